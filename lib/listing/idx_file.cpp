#include "listing/idx_file.h"

#include <array>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMagicBytes = 4;
constexpr std::uint8_t kUnsignedBytes = 0x08;
constexpr std::size_t kMaxDimensions = 4;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 63;

/// The name of a type of IDX; empty for none.
std::string_view type_name(std::uint8_t type) {
  switch (type) {
    case kUnsignedBytes:
      return "uint8";
    case 0x09:
      return "int8";
    case 0x0b:
      return "int16";
    case 0x0c:
      return "int32";
    case 0x0d:
      return "float32";
    case 0x0e:
      return "float64";
    default:
      return "";
  }
}

}  // namespace

bool is_idx(Bytes head) {
  return head.size() >= kMagicBytes && head[0] == 0 && head[1] == 0 && !type_name(head[2]).empty() &&
         head[3] > 0;
}

IdxReader::IdxReader(const std::string& path, const std::atomic<bool>* stop) : stream_(path, stop) {
  if (!is_idx(stream_.head())) fail("is no IDX file (of MNIST's format), plain, gzip or zstd");
  std::array<std::uint8_t, kMagicBytes> magic;
  read(magic);
  if (magic[2] != kUnsignedBytes) fail("holds " + std::string(type_name(magic[2])) + ", expected uint8");
  if (magic[3] > kMaxDimensions)
    fail("has " + std::to_string(magic[3]) + " dimensions, expected up to " + std::to_string(kMaxDimensions));
  std::uint64_t bytes = 1;
  for (std::uint8_t dimension = 0; dimension < magic[3]; ++dimension) {
    std::array<std::uint8_t, 4> side;
    read(side);
    shape_.push_back(std::uint32_t{side[0]} << 24 | std::uint32_t{side[1]} << 16 |
                     std::uint32_t{side[2]} << 8 | side[3]);
    if (shape_.back() == 0) fail("has no items: dimension " + std::to_string(dimension) + " is 0");
    if (bytes > kMaxBytes / shape_.back()) fail("has impossibly large dimensions");
    bytes *= shape_.back();
  }
}

std::uint64_t IdxReader::item_bytes() const {
  std::uint64_t bytes = 1;
  for (std::size_t dimension = 1; dimension < shape_.size(); ++dimension) bytes *= shape_[dimension];
  return bytes;
}

void IdxReader::read(MutableBytes out) {
  while (!out.empty()) {
    const std::size_t count = stream_.read(out);
    if (count == 0)
      fail("ends at byte " + std::to_string(taken_) + ", but its shape says more: is it truncated?");
    taken_ += count;
    out = out.subspan(count);
  }
}

void IdxReader::finish() {
  std::array<std::uint8_t, 1> more;
  if (stream_.read(more) != 0) fail("has more bytes than its shape says, " + std::to_string(taken_));
}

void IdxReader::fail(const std::string& what) const {
  throw Error(ErrorCode::bad_data, stream_.name() + ": " + what);
}

}  // namespace chunkhit
