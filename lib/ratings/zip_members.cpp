#include "ratings/zip_members.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <new>
#include <unordered_set>

#include "base/file.h"
#include "base/words.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;
// More members than any array file has; a hostile list could go on for long.
constexpr std::size_t kMaxMembers = 4096;

struct FreeArchive {
  void operator()(struct archive* reader) const { archive_read_free(reader); }
};

/// A ZIP file that is walked from member to member.
class ZipWalk {
 public:
  explicit ZipWalk(const std::string& path) : file_(path), fd_(file_.duplicate()) {
    if (reader_ == nullptr) throw std::bad_alloc();
    // Only by the list at its end: a ZIP that is cut off is refused at once.
    check(archive_read_support_format_zip_seekable(reader_.get()));
    check(archive_read_open_fd(reader_.get(), fd_.get(), kReadBytes));
  }
  /// Continues with the next member; false behind the last.
  bool next(std::string& name) {
    struct archive_entry* entry = nullptr;
    const int status = archive_read_next_header(reader_.get(), &entry);
    if (status == ARCHIVE_EOF) return false;
    check(status);
    const char* text = archive_entry_pathname(entry);
    name = text == nullptr ? "" : text;
    return true;
  }
  [[nodiscard]] std::size_t read(MutableBytes out, const std::string& location) {
    const la_ssize_t count = archive_read_data(reader_.get(), out.data(), out.size());
    if (count < 0) throw Error(ErrorCode::bad_data, location + ": cannot be read on: " + reason());
    return static_cast<std::size_t>(count);
  }

 private:
  void check(int status) const {
    if (status < ARCHIVE_WARN)
      throw Error(ErrorCode::bad_data, file_.path() + ": cannot be read as ZIP, or is cut off: " + reason());
  }
  [[nodiscard]] std::string reason() const {
    const char* text = archive_error_string(reader_.get());
    const std::string_view words = text != nullptr ? text : "unknown error";
    return std::string(words.substr(0, words.find_last_not_of('\n') + 1));
  }
  InputFile file_;
  FileDescriptor fd_;
  std::unique_ptr<struct archive, FreeArchive> reader_{archive_read_new()};
};

}  // namespace

std::vector<std::string> list_zip_members(const std::string& path) {
  ZipWalk walk(path);
  std::vector<std::string> names;
  std::unordered_set<std::string> known;
  for (std::string name; walk.next(name);) {
    if (!known.insert(name).second)
      throw Error(ErrorCode::bad_data, path + ": has two members " + printable_text(name));
    if (names.size() == kMaxMembers)
      throw Error(ErrorCode::bad_data, path + ": has more than " + count_text(kMaxMembers) + " members");
    names.push_back(name);
  }
  return names;
}

struct ZipMember::State {
  ZipWalk walk;
  std::string location;
};

ZipMember::ZipMember(const std::string& path, const std::string& name)
    : state_(new State{ZipWalk(path), path + ": " + printable_text(name)}) {
  std::string found;
  do {
    if (!state_->walk.next(found))
      throw Error(ErrorCode::bad_data, path + ": has no member " + printable_text(name));
  } while (found != name);
}

ZipMember::ZipMember(ZipMember&&) noexcept = default;

ZipMember::~ZipMember() = default;

std::size_t ZipMember::read(MutableBytes out) {
  return out.empty() ? 0 : state_->walk.read(out, state_->location);
}

const std::string& ZipMember::location() const { return state_->location; }

}  // namespace chunkhit
