#include "input/gzip_text.h"

#include <libdeflate.h>
#define ZLIB_CONST
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::size_t kFixedHeaderBytes = 10;
constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 20;
constexpr std::size_t kTrailerBytes = 8;

// Flags of a header.
constexpr std::uint8_t kHeaderCrc = 2;
constexpr std::uint8_t kExtra = 4;
constexpr std::uint8_t kName = 8;
constexpr std::uint8_t kComment = 16;
constexpr std::uint8_t kReserved = 0xe0;

/// Where a text that ends with NUL ends; nothing where it is not whole.
std::optional<std::size_t> text_end(Bytes header, std::size_t begin) {
  const auto nul = std::find(header.begin() + static_cast<std::ptrdiff_t>(begin), header.end(), 0);
  if (nul == header.end()) return std::nullopt;
  return static_cast<std::size_t>(nul - header.begin()) + 1;
}

/// The bytes of the header that `header` begins with, without its checksum; nothing where it is not whole.
std::optional<std::size_t> header_bytes(Bytes header) {
  if (header.size() < kFixedHeaderBytes) return std::nullopt;
  const std::uint8_t flags = header[3];
  std::optional<std::size_t> end = kFixedHeaderBytes;
  if ((flags & kExtra) != 0) {
    if (header.size() < *end + 2) return std::nullopt;
    *end += 2 + std::size_t{load_little<std::uint16_t>(header.data() + *end)};
    if (header.size() < *end) return std::nullopt;
  }
  for (const std::uint8_t flag : {kName, kComment})
    if (end && (flags & flag) != 0) end = text_end(header, *end);
  return end;
}

std::string hex_text(std::uint32_t number) {
  std::array<char, 9> text{};
  static_cast<void>(std::snprintf(text.data(), text.size(), "%08x", number));
  return text.data();
}

}  // namespace

struct GzipText::Inflater {
  Inflater() {
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream stream{};
};

GzipText::GzipText(std::string name) : name_(std::move(name)), inflater_(std::make_unique<Inflater>()) {}
GzipText::~GzipText() = default;

void GzipText::fail(const std::string& what) const {
  throw Error(ErrorCode::bad_data,
              name_ + ": cannot be read: gzip member " + std::to_string(member_) + ": " + what);
}

void GzipText::fail_magic() {
  if (member_ == 1) fail("has no header of gzip and deflate, expected bytes 1f 8b 08");
  --member_;
  fail("is followed by bytes that begin no other member");
}

std::size_t GzipText::read(Bytes& stored, MutableBytes out) {
  switch (step_) {
    case Step::header:
      read_header(stored);
      return 0;
    case Step::body:
      return inflate(stored, out);
    case Step::trailer:
      read_trailer(stored);
      return 0;
    case Step::zeros:
      break;
  }
  // tar and tapes fill their last block with zeros.
  if (std::any_of(stored.begin(), stored.end(), [](std::uint8_t byte) { return byte != 0; }))
    fail("is followed by bytes that begin no other member");
  stored = {};
  return 0;
}

void GzipText::finish() const {
  const bool is_between = step_ == Step::zeros || (step_ == Step::header && pending_.empty() && member_ > 1);
  if (!is_between) fail("is truncated: the file ends inside it");
}

void GzipText::read_header(Bytes& stored) {
  if (pending_.empty() && member_ > 1 && !stored.empty() && stored[0] == 0) {
    --member_;  // the one before was the last
    step_ = Step::zeros;
    return;
  }
  const std::size_t before = pending_.size();
  const Bytes more = stored.first(std::min(stored.size(), kMaxHeaderBytes + 1 - before));
  pending_.insert(pending_.end(), more.begin(), more.end());
  const std::string_view magic("\x1f\x8b\x08", 3);
  if (!magic.starts_with(as_text(pending_).substr(0, magic.size()))) fail_magic();
  if (pending_.size() > 3 && (pending_[3] & kReserved) != 0) fail("has unknown flags in its header");
  stored = stored.subspan(more.size());
  const std::optional<std::size_t> bytes = header_bytes(pending_);
  const bool has_crc = pending_.size() > 3 && (pending_[3] & kHeaderCrc) != 0;
  const std::size_t whole = bytes.value_or(0) + (has_crc ? 2 : 0);
  if (!bytes || pending_.size() < whole) {
    if (pending_.size() > kMaxHeaderBytes) fail("has a header of more than 1 MiB");
    return;
  }
  if (has_crc && load_little<std::uint16_t>(pending_.data() + *bytes) !=
                     (libdeflate_crc32(0, pending_.data(), *bytes) & 0xffff))
    fail("has a header whose CRC-16 differs from the stored one");
  // What follows the header is given again: it is at the end of what was just taken.
  stored = {more.data() + (whole - before), stored.data() + stored.size()};
  pending_.clear();
  inflateReset(&inflater_->stream);
  crc_ = 0;
  byte_count_ = 0;
  step_ = Step::body;
}

std::size_t GzipText::inflate(Bytes& stored, MutableBytes out) {
  constexpr std::size_t kMaxBytes = std::numeric_limits<uInt>::max();
  z_stream& stream = inflater_->stream;
  const auto given = static_cast<uInt>(std::min(stored.size(), kMaxBytes));
  const auto room = static_cast<uInt>(std::min(out.size(), kMaxBytes));
  stream.next_in = stored.data();
  stream.avail_in = given;
  stream.next_out = out.data();
  stream.avail_out = room;
  const int result = ::inflate(&stream, Z_NO_FLUSH);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
    fail(std::string("is damaged: ") +
         (stream.msg != nullptr ? stream.msg : "deflate stream cannot be read"));
  stored = stored.subspan(given - stream.avail_in);
  const std::size_t count = room - stream.avail_out;
  crc_ = libdeflate_crc32(crc_, out.data(), count);
  byte_count_ += static_cast<std::uint32_t>(count);
  if (result == Z_STREAM_END) step_ = Step::trailer;
  return count;
}

void GzipText::read_trailer(Bytes& stored) {
  const Bytes more = stored.first(std::min(stored.size(), kTrailerBytes - pending_.size()));
  pending_.insert(pending_.end(), more.begin(), more.end());
  stored = stored.subspan(more.size());
  if (pending_.size() < kTrailerBytes) return;
  const auto crc = load_little<std::uint32_t>(pending_.data());
  const auto byte_count = load_little<std::uint32_t>(pending_.data() + 4);
  if (crc != crc_) fail("is damaged: its text has CRC-32 " + hex_text(crc_) + ", expected " + hex_text(crc));
  if (byte_count != byte_count_)
    fail("is damaged: its text has " + std::to_string(byte_count_) + " bytes (modulo 2^32), expected " +
         std::to_string(byte_count));
  pending_.clear();
  ++member_;
  step_ = Step::header;
}

}  // namespace chunkhit
