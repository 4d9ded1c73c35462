#include "input/text_stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "base/file.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;

struct FreeArchive {
  void operator()(struct archive* reader) const { archive_read_free(reader); }
};

}  // namespace

struct TextStream::State {
  std::string name;
  FileDescriptor file;  // closed for stdin, which is not ours to close
  std::unique_ptr<struct archive, FreeArchive> reader{archive_read_new()};
  bool at_end = false;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::bad_data, name + ": " + what);
  }
  void check(int result) const {
    if (result < ARCHIVE_WARN) fail("cannot be read: " + reason());
  }
  [[nodiscard]] std::string reason() const {
    const char* text = archive_error_string(reader.get());
    return text != nullptr ? text : "unknown fault";
  }
  int open_file(const std::string& path);
};

int TextStream::State::open_file(const std::string& path) {
  if (path == "-") return STDIN_FILENO;
  file = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.is_open()) fail(std::string("cannot be opened: ") + error_text(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) == 0 && S_ISDIR(status.st_mode)) fail("is a folder, expected a file");
  return file.get();
}

TextStream::TextStream(const std::string& path) : state_(std::make_unique<State>()) {
  state_->name = path == "-" ? "stdin" : path;
  const int fd = state_->open_file(path);
  struct archive* reader = state_->reader.get();
  if (reader == nullptr) throw std::bad_alloc();
  state_->check(archive_read_support_filter_gzip(reader));
  state_->check(archive_read_support_filter_zstd(reader));
  state_->check(archive_read_support_format_raw(reader));
  state_->check(archive_read_support_format_empty(reader));
  state_->check(archive_read_open_fd(reader, fd, kReadBytes));
  struct archive_entry* entry = nullptr;
  const int header = archive_read_next_header(reader, &entry);
  state_->at_end = header == ARCHIVE_EOF;
  if (!state_->at_end) state_->check(header);
}

TextStream::~TextStream() = default;

const std::string& TextStream::name() const { return state_->name; }

std::size_t TextStream::read(MutableBytes out) {
  if (state_->at_end || out.empty()) return 0;
  const la_ssize_t count = archive_read_data(state_->reader.get(), out.data(), out.size());
  if (count < 0) state_->fail("cannot be read on: " + state_->reason());
  state_->at_end = count == 0;
  return static_cast<std::size_t>(count);
}

}  // namespace chunkhit
