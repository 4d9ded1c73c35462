#include "listing/tar_members.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include <algorithm>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "base/free_archive.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::size_t kBlockBytes = 512;
constexpr std::size_t kEndBytes = 2 * kBlockBytes;
// Headers alone are read: little is read in vain before a member's bytes are skipped.
constexpr std::size_t kReadBytes = 4096;
constexpr std::size_t kSumAt = 148;
constexpr std::size_t kSumBytes = 8;

bool are_zeros(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

/// The number that a header's field of octal digits holds.
std::optional<std::uint32_t> octal_number(std::string_view field) {
  const std::size_t begin = field.find_first_not_of(' ');
  if (begin == std::string_view::npos) return std::nullopt;
  std::uint32_t number = 0;
  std::size_t at = begin;
  for (; at < field.size() && field[at] >= '0' && field[at] <= '7'; ++at)
    number = number * 8 + static_cast<std::uint32_t>(field[at] - '0');
  return at == begin ? std::nullopt : std::optional(number);
}

TarKind kind_of(struct archive_entry* entry) {
  if (archive_entry_hardlink(entry) != nullptr) return TarKind::hard_link;
  switch (archive_entry_filetype(entry)) {
    case S_IFREG:
      return archive_entry_sparse_count(entry) > 0 ? TarKind::sparse : TarKind::file;
    case S_IFDIR:
      return TarKind::folder;
    case S_IFLNK:
      return TarKind::link;
    default:
      return TarKind::special;
  }
}

std::string text_of(const char* local, const char* utf8) {
  std::string_view text = local != nullptr ? local : utf8 != nullptr ? utf8 : "";
  while (text.starts_with("./") || text.starts_with('/'))
    text.remove_prefix(std::min(text.find_first_not_of('/', 1), text.size()));
  return std::string(text);
}

}  // namespace

/// A header's sum counts its own field as blanks; that of the few blocks of zeros of a tar without members is
/// not there.
bool is_tar(Bytes head) {
  if (head.size() < kBlockBytes) return false;
  const Bytes header = head.first(kBlockBytes);
  if (are_zeros(header)) return head.size() >= kEndBytes && are_zeros(head);
  const auto stored = octal_number(as_text(header.subspan(kSumAt, kSumBytes)));
  std::uint32_t sum = kSumBytes * ' ';
  std::int32_t signed_sum = kSumBytes * ' ';  // as some old programs count it
  for (std::size_t at = 0; at < kBlockBytes; ++at) {
    if (at >= kSumAt && at < kSumAt + kSumBytes) continue;
    sum += header[at];
    signed_sum += static_cast<std::int8_t>(header[at]);
  }
  return stored && (*stored == sum || static_cast<std::int32_t>(*stored) == signed_sum);
}

bool is_tar(const InputFile& file) {
  ByteBuffer head(std::min<std::uint64_t>(kEndBytes, file.byte_count()));
  file.read_at(0, head);
  return is_tar(head);
}

struct TarReader::State {
  State(const InputFile& input, std::uint64_t first, std::uint64_t count, std::string title)
      : file(input), begin(first), byte_count(count), name(std::move(title)), block(kReadBytes) {
    if (reader == nullptr) throw std::bad_alloc();
    check(archive_read_support_format_tar(reader.get()));
    check(archive_read_set_format_option(reader.get(), "tar", "read_concatenated_archives", "1"));
    archive_read_set_read_callback(reader.get(), give_block);
    archive_read_set_skip_callback(reader.get(), skip);
    archive_read_set_callback_data(reader.get(), this);
  }

  [[noreturn]] void fail(std::uint64_t offset, const std::string& what) const {
    throw_bad_data(name + ": at byte " + std::to_string(offset) + ": " + what);
  }
  void check(int status) const {
    if (error) throw Error(*error);
    if (status == ARCHIVE_OK || status == ARCHIVE_WARN) return;  // ARCHIVE_RETRY: a damaged header
    const char* const text = archive_error_string(reader.get());
    fail(at_header(), std::string("cannot be read as tar: ") + (text != nullptr ? text : "unknown error"));
  }
  [[nodiscard]] std::uint64_t at_header() const {
    return static_cast<std::uint64_t>(std::max<la_int64_t>(0, archive_read_header_position(reader.get())));
  }
  void check_end() const {
    ByteBuffer end(kEndBytes);
    if (byte_count >= kEndBytes) file.read_at(begin + byte_count - kEndBytes, end);
    if (byte_count >= kEndBytes && are_zeros(end)) return;
    fail(byte_count, "ends without the two blocks of zeros that end a tar: is it truncated?");
  }

  // Exceptions must not pass through libarchive: one is kept until it has returned.
  static la_ssize_t give_block(struct archive* reader, void* data, const void** bytes) {
    auto& state = *static_cast<State*>(data);
    const std::size_t count = std::min<std::uint64_t>(kReadBytes, state.byte_count - state.at);
    try {
      state.file.read_at(state.begin + state.at, MutableBytes(state.block).first(count));
    } catch (const Error& thrown) {
      state.error = thrown;
      archive_set_error(reader, EIO, "cannot be read");
      return ARCHIVE_FATAL;
    }
    state.at += count;
    *bytes = state.block.data();
    return static_cast<la_ssize_t>(count);
  }
  static la_int64_t skip(struct archive*, void* data, la_int64_t wanted) {
    auto& state = *static_cast<State*>(data);
    const std::uint64_t count = std::min(static_cast<std::uint64_t>(wanted), state.byte_count - state.at);
    state.at += count;
    return static_cast<la_int64_t>(count);
  }

  const InputFile& file;
  std::uint64_t begin;
  std::uint64_t byte_count;
  std::string name;
  std::uint64_t at = 0;
  ByteBuffer block;
  std::optional<Error> error;
  std::unique_ptr<struct archive, FreeArchive> reader{archive_read_new()};
};

TarReader::TarReader(const InputFile& file, std::uint64_t begin, std::uint64_t bytes, std::string name)
    : state_(std::make_unique<State>(file, begin, bytes, std::move(name))) {
  state_->check_end();
  state_->check(archive_read_open1(state_->reader.get()));
}

TarReader::~TarReader() = default;

/// The position behind a header is that of the member's bytes: libarchive reads no further, and what it skips
/// at the next call is exactly these bytes.
bool TarReader::next(TarMember& member) {
  struct archive* const reader = state_->reader.get();
  struct archive_entry* entry = nullptr;
  const int status = archive_read_next_header(reader, &entry);
  if (status == ARCHIVE_EOF) return false;
  state_->check(status);
  member.name = text_of(archive_entry_pathname(entry), archive_entry_pathname_utf8(entry));
  member.kind = kind_of(entry);
  member.target = member.kind == TarKind::hard_link
                      ? text_of(archive_entry_hardlink(entry), archive_entry_hardlink_utf8(entry))
                      : "";
  member.offset = static_cast<std::uint64_t>(archive_filter_bytes(reader, 0));
  const la_int64_t bytes = archive_entry_size(entry);
  member.bytes = bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0;
  const std::uint64_t all = state_->byte_count;
  const bool is_whole = member.offset <= all && member.bytes <= all - member.offset;
  if (bytes < 0 || (member.kind == TarKind::file && !is_whole))
    state_->fail(state_->at_header(), printable_text(member.name) + " has " + std::to_string(bytes) +
                                          " bytes from byte " + std::to_string(member.offset) +
                                          " on, but the tar has only " + std::to_string(all));
  return true;
}

}  // namespace chunkhit
