#include "cache/shared_opening.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/remote/url.h"
#include "chunkhit/version.h"

namespace chunkhit {
namespace {

// What does not fit is read by each process. Memory is taken as it is filled.
constexpr std::uint64_t kOpeningBlockBytes = 1 << 20, kMaxOpeningBytes = 64 << 20;
constexpr std::size_t kCount = 0, kFirstBlock = 1;  // chunks of the arena
constexpr std::size_t kMaxTextBytes = 1 << 16;

std::vector<std::uint64_t> arena_sizes() {
  std::vector<std::uint64_t> sizes{sizeof(std::uint64_t)};
  sizes.resize(kFirstBlock + kMaxOpeningBytes / kOpeningBlockBytes, kOpeningBlockBytes);
  return sizes;
}

/// Tells what is opened from all else. The same URL may be of another server.
std::optional<std::uint64_t> opening_id(const std::vector<std::string>& paths) {
  Xxh3Stream stream;
  stream.update(as_bytes(std::string("opening ") + version()));
  for (const std::string& path : paths) {
    const bool is_s3 = path.starts_with("s3://");
    stream.update(as_bytes((is_s3 ? s3_request_url(path, read_s3_access()) : path) + '\n'));
  }
  return stream.value();
}

void append_number(std::string& text, std::uint64_t number) {
  std::array<std::uint8_t, sizeof number> bytes{};
  store_little(bytes.data(), number);
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void append_text(std::string& text, std::string_view added) {
  append_number(text, added.size());
  text.append(added);
}

/// Takes what `append_number` and `append_text` wrote; nothing where it is not there.
class Fields {
 public:
  explicit Fields(Bytes bytes) : left_(bytes) {}
  [[nodiscard]] bool at_end() const { return left_.empty(); }
  [[nodiscard]] std::optional<Bytes> bytes(std::uint64_t count) {
    if (count > left_.size()) return std::nullopt;
    return std::exchange(left_, left_.subspan(count)).first(count);
  }
  [[nodiscard]] std::optional<std::uint64_t> number() {
    const auto found = bytes(sizeof(std::uint64_t));
    return found ? std::optional(load_little<std::uint64_t>(found->data())) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::string> text() {
    const auto count = number();
    const auto found = count && *count <= kMaxTextBytes ? bytes(*count) : std::nullopt;
    return found ? std::optional(std::string(as_text(*found))) : std::nullopt;
  }

 private:
  Bytes left_;
};

std::optional<std::pair<std::string, OpenedFiles::File>> read_file(Fields& fields) {
  const auto url = fields.text(), etag = fields.text();
  const auto byte_count = fields.number(), ranges = fields.number();
  if (!url || !etag || !byte_count || !ranges) return std::nullopt;
  OpenedFiles::File file{{*byte_count, *etag}, {}};
  for (std::uint64_t range = 0; range < *ranges; ++range) {
    const auto offset = fields.number(), count = fields.number();
    const auto bytes = count ? fields.bytes(*count) : std::nullopt;
    if (!offset || !bytes || *offset > *byte_count || *count > *byte_count - *offset) return std::nullopt;
    file.ranges.push_back({*offset, *bytes});
  }
  return std::pair(*url, file);
}

}  // namespace

SharedOpening::SharedOpening(const std::vector<std::string>& paths) {
  try {
    arena_ = ChunkArena(arena_sizes(), opening_id(paths));
  } catch (const NotShared&) {
    return;  // a loader says why memory is not shared
  }
  was_just_read_ = !arena_.is_ready(kCount);
  const ChunkArena::Claim claim = arena_.claim(kCount);
  is_filling_ = claim == ChunkArena::Claim::own;
  if (claim == ChunkArena::Claim::filled) read_files();
}

SharedOpening::~SharedOpening() {
  if (is_filling_) arena_.give_up(kCount);
}

const OpenedFiles::File* SharedOpening::find(const std::string& url) const {
  const auto found = files_.find(url);
  return found == files_.end() ? nullptr : &found->second;
}

void SharedOpening::read_files() {
  const auto count = load_little<std::uint64_t>(arena_.chunk(kCount));
  Fields fields({arena_.chunk(kFirstBlock), std::min(count, kMaxOpeningBytes)});
  while (!fields.at_end()) {
    auto file = read_file(fields);
    if (!file) return;
    files_.insert(*std::move(file));
  }
}

/// Under the lock: adds a record, where it fits.
void SharedOpening::append(Bytes bytes) {
  if (bytes.size() > kMaxOpeningBytes - added_bytes_) return;
  const std::uint64_t end = added_bytes_ + bytes.size();
  for (std::uint64_t block = added_bytes_ / kOpeningBlockBytes; block * kOpeningBlockBytes < end; ++block)
    if (arena_.claim(kFirstBlock + block) == ChunkArena::Claim::own) arena_.finish(kFirstBlock + block);
  std::ranges::copy(bytes, arena_.chunk(kFirstBlock) + added_bytes_);
  added_bytes_ = end;
}

void SharedOpening::add(const std::string& url, const File& file) {
  const std::lock_guard lock(mutex_);
  if (!is_filling_) return;
  std::string record;
  append_text(record, url);
  append_text(record, file.info.etag);
  append_number(record, file.info.bytes);
  append_number(record, file.ranges.size());
  for (const auto& [offset, bytes] : file.ranges) {
    append_number(record, offset);
    append_text(record, as_text(bytes));
  }
  append(as_bytes(record));
}

void SharedOpening::finish() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(is_filling_, false)) return;
  store_little(arena_.chunk(kCount), added_bytes_);
  arena_.finish(kCount);
}

OpeningScope::OpeningScope(const std::vector<std::string>& paths) {
  if (std::ranges::any_of(paths, [](const auto& path) { return is_url(path); }))
    opening_ = std::make_shared<SharedOpening>(paths);
  opened_files_of_thread() = opening_.get();
}

OpeningScope::~OpeningScope() { opened_files_of_thread() = nullptr; }

void OpeningScope::finish() const {
  if (opening_) opening_->finish();
}

}  // namespace chunkhit
