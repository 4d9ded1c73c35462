#include "store/hdf5/isolated.h"

#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>

#include "chunkhit/error.h"
#include "store/hdf5/handle.h"

namespace chunkhit {
namespace {

constexpr std::uintmax_t kMinSeconds = 5;
constexpr std::uintmax_t kMaxSeconds = 60;
// Slower than anything that a library reads of a file between two answers.
constexpr std::uintmax_t kBytesOfSecond = 10 << 20;

struct ForkAnswer {
  pid_t child = -1;
  int error = EAGAIN;
};

herr_t fork_here(hid_t, const char*, void* answer) {
  auto& fork = *static_cast<ForkAnswer*>(answer);
  fork.child = ::fork();
  fork.error = errno;
  return 1;  // no more calls
}

std::unique_ptr<ServingChild> try_child(const std::vector<std::string>& paths,
                                        const std::function<void(ChildLine&)>& serve) {
  try {
    return std::make_unique<ServingChild>(serve, hdf5_child(paths));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::try_again) throw;
    return nullptr;
  }
}

}  // namespace

pid_t fork_outside_hdf5() {
  // A call of the library has its lock, also while it calls back: the child's only thread is the one that
  // holds it.
  const QuietHdf5 quiet;
  ForkAnswer answer;
  H5Piterate(H5P_FILE_ACCESS, nullptr, fork_here, &answer);
  errno = answer.error;
  return answer.child;
}

ChildOptions hdf5_child(const std::vector<std::string>& paths) {
  std::uintmax_t max_bytes = 0;
  for (const std::string& path : paths) {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(path, error);
    if (!error) max_bytes = std::max(max_bytes, bytes);
  }
  const std::uintmax_t seconds = std::min(kMinSeconds + max_bytes / kBytesOfSecond, kMaxSeconds);
  return {.fork = fork_outside_hdf5, .max_seconds = static_cast<std::uint32_t>(seconds)};
}

void read_isolated(const std::vector<std::string>& paths, const std::function<ByteBuffer(std::size_t)>& read,
                   const std::function<void(std::size_t, Bytes)>& use) {
  const std::unique_ptr<ServingChild> child = try_child(paths, [&](ChildLine& line) {
    for (std::size_t i = 0; i < paths.size(); ++i) line.answer(read(i));
  });
  for (std::size_t i = 0; i < paths.size(); ++i) use(i, child ? child->receive(paths[i]) : read(i));
}

}  // namespace chunkhit
