#include "base/aside_name.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <optional>

#include "base/file.h"
#include "base/hash.h"
#include "base/process_state.h"
#include "base/text.h"

namespace chunkhit {
namespace {

constexpr std::string_view kEnd = ".tmp";
/// A writer of another machine that wrote nothing for so long is taken for gone. If it is not, its own rename
/// fails: nothing wrong is ever published.
constexpr std::time_t kForgottenSeconds = std::time_t{24} * 60 * 60;

struct Writer {
  std::string host;
  std::uint64_t pid = 0;
  std::uint64_t start = 0;  ///< of the process, in clock ticks since the machine's
};

/// This machine's name without dots, which separate the parts of an aside name.
std::string host_name() {
  char host[65] = "";
  ::gethostname(host, sizeof host - 1);
  std::string name(host);
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    if (!plain) c = '_';
  }
  return name.empty() ? "host" : name;
}

/// When a process started; nothing where it has ended.
std::optional<std::uint64_t> process_start(std::uint64_t pid) {
  const auto state = process_state(pid);
  return state && state->is_known ? std::optional(state->start) : std::nullopt;
}

std::string random_text() {
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != sizeof bits) bits = static_cast<std::uint64_t>(std::clock());
  return hash_text(bits).substr(0, 8);
}

/// What stands between `.` and `.tmp`; empty where they do not.
std::string_view between(std::string_view entry) {
  if (entry.size() <= 1 + kEnd.size() || !entry.starts_with('.') || !entry.ends_with(kEnd)) return {};
  return entry.substr(1, entry.size() - 1 - kEnd.size());
}

/// Cuts what follows the last '-' off a text.
std::string_view cut_last(std::string_view& text) {
  const std::size_t dash = text.rfind('-');
  if (dash == std::string_view::npos) return {};
  const std::string_view last = text.substr(dash + 1);
  text = text.substr(0, dash);
  return last;
}

/// Reads HOST-PID-START-RANDOM; a host may hold a '-'.
std::optional<Writer> parse_writer(std::string_view text) {
  Writer writer;
  if (cut_last(text).size() != 8 || !parse_all(cut_last(text), writer.start) ||
      !parse_all(cut_last(text), writer.pid) || text.empty())
    return std::nullopt;
  writer.host = text;
  return writer;
}

std::optional<Writer> writer_of(std::string_view entry) {
  const std::string_view text = between(entry);
  const std::size_t dot = text.rfind('.');
  return dot == std::string_view::npos ? std::nullopt : parse_writer(text.substr(dot + 1));
}

/// Whether a process holds PendingFile's lock on a file; it may be one that /proc does not show here.
bool is_locked(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return file.is_open() && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

bool is_forgotten(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && std::time(nullptr) - status.st_mtime > kForgottenSeconds;
}

}  // namespace

std::string make_aside_path(const std::string& path) {
  static const std::string host = host_name();
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  // Not the same after a fork.
  const auto pid = static_cast<std::uint64_t>(::getpid());
  const std::string start = std::to_string(process_start(pid).value_or(0));
  std::string aside = path.substr(0, name) + "." + path.substr(name) + "." + host;
  return aside.append("-")
      .append(std::to_string(pid))
      .append("-")
      .append(start)
      .append("-")
      .append(random_text())
      .append(kEnd);
}

std::string_view name_written_aside(std::string_view entry) {
  const std::string_view text = between(entry);
  return writer_of(entry) ? text.substr(0, text.rfind('.')) : text;
}

std::string aside_writer_text(std::string_view entry) {
  const std::optional<Writer> writer = writer_of(entry);
  return writer ? "host " + writer->host + ", process " + std::to_string(writer->pid) : "";
}

AsideWriter find_aside_writer(const std::string& folder, const std::string& entry) {
  const std::optional<Writer> writer = writer_of(entry);
  const std::string path = folder + "/" + entry;
  if (!writer) return AsideWriter::is_gone;
  if (writer->host != host_name()) return is_forgotten(path) ? AsideWriter::is_gone : AsideWriter::unknown;
  const bool runs = process_start(writer->pid) == std::optional(writer->start);
  return runs || is_locked(path) ? AsideWriter::lives : AsideWriter::is_gone;
}

std::string begun_text(const std::string& folder, const std::string& entry) {
  std::string text(name_written_aside(entry));
  const std::string writer = aside_writer_text(entry);
  if (!writer.empty()) text.append(" (").append(writer).append(")");
  return find_aside_writer(folder, entry) == AsideWriter::is_gone ? text + ": left over" : text;
}

}  // namespace chunkhit
