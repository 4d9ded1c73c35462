#include "augment/pixel_rows.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/bytes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "augment/pixel_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace chunkhit::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void reverse_plainly(const std::uint8_t* pixels, std::size_t pixel_count, std::size_t pixel_bytes,
                     std::uint8_t* out) {
  for (std::size_t i = 0; i < pixel_count; ++i)
    for (std::size_t byte = 0; byte < pixel_bytes; ++byte)
      out[(pixel_count - 1 - i) * pixel_bytes + byte] = pixels[i * pixel_bytes + byte];
}

void join_plainly(const std::uint8_t* planes, std::size_t plane_bytes, std::uint32_t channels,
                  std::size_t begin, std::size_t end, std::uint8_t* pixels) {
  for (std::size_t i = begin; i < end; ++i)
    for (std::uint32_t channel = 0; channel < channels; ++channel)
      pixels[i * channels + channel] = planes[channel * plane_bytes + i];
}

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

using Sixteen = hn::FixedTag<std::uint8_t, 16>;

constexpr std::size_t kMaxPixelBytes = 8;

using Order = std::array<std::uint8_t, 16>;

// Byte order that reverses the first whole pixels of 16 bytes, after zeros for the bytes left over.
constexpr Order first_pixels(std::size_t pixel_bytes) {
  Order order{};
  const std::size_t count = 16 / pixel_bytes, rest = 16 % pixel_bytes;
  for (std::size_t i = 0; i < rest; ++i) order[i] = 0x80;
  for (std::size_t i = 0; i < count * pixel_bytes; ++i)
    order[rest + i] =
        static_cast<std::uint8_t>((count - 1 - i / pixel_bytes) * pixel_bytes + i % pixel_bytes);
  return order;
}

// Byte order that reverses the last whole pixels of 16 bytes, before zeros.
constexpr Order last_pixels(std::size_t pixel_bytes) {
  const std::size_t rest = 16 % pixel_bytes;
  const Order first = first_pixels(pixel_bytes);
  Order order{};
  for (std::size_t i = 0; i < 16; ++i)
    order[i] = i < 16 - rest ? static_cast<std::uint8_t>(first[rest + i] + rest) : 0x80;
  return order;
}

struct Reversal {
  Order first, last;
};
constexpr Reversal reversal(std::size_t pixel_bytes) {
  return {first_pixels(pixel_bytes), last_pixels(pixel_bytes)};
}
constexpr std::array<Reversal, kMaxPixelBytes> kReversals{reversal(1), reversal(2), reversal(3), reversal(4),
                                                          reversal(5), reversal(6), reversal(7), reversal(8)};

// Reads forwards, as memory is read ahead best. Stores 16 bytes at a time, of which the next store overwrites
// those that are no whole pixel; the last store overlaps the one before, and puts right what it spoils of
// that.
void reverse_pixels(const std::uint8_t* pixels, std::size_t pixel_count, std::size_t pixel_bytes,
                    std::uint8_t* out) {
  const std::size_t bytes = pixel_count * pixel_bytes;
  if (pixel_bytes > kMaxPixelBytes || bytes < 16)
    return reverse_plainly(pixels, pixel_count, pixel_bytes, out);
  const Sixteen sixteen;
  const Reversal& reversal = kReversals[pixel_bytes - 1];
  const auto first = hn::LoadU(sixteen, reversal.first.data()),
             last = hn::LoadU(sixteen, reversal.last.data());
  const std::size_t rest = 16 % pixel_bytes, step = 16 - rest;
  for (std::size_t i = 0; i + 16 <= bytes; i += step) {
    const auto block = hn::LoadU(sixteen, pixels + i);
    hn::StoreU(hn::TableLookupBytesOr0(block, first), sixteen, out + bytes - i - 16);
  }
  hn::StoreU(hn::TableLookupBytesOr0(hn::LoadU(sixteen, pixels + bytes - 16), last), sixteen, out);
  for (std::size_t i = 0; i < rest; ++i) out[step + i] = pixels[bytes - step - pixel_bytes + i];
}

void join_channels(const std::uint8_t* planes, std::size_t plane_bytes, std::uint32_t channels,
                   std::size_t pixel_count, std::uint8_t* pixels) {
  const Sixteen sixteen;
  const auto load = [=](std::size_t channel, std::size_t at)
                        HWY_ATTR { return hn::LoadU(sixteen, planes + channel * plane_bytes + at); };
  std::size_t i = 0;
  for (; channels == 2 && i + 16 <= pixel_count; i += 16)
    hn::StoreInterleaved2(load(0, i), load(1, i), sixteen, pixels + i * 2);
  for (; channels == 3 && i + 16 <= pixel_count; i += 16)
    hn::StoreInterleaved3(load(0, i), load(1, i), load(2, i), sixteen, pixels + i * 3);
  for (; channels == 4 && i + 16 <= pixel_count; i += 16)
    hn::StoreInterleaved4(load(0, i), load(1, i), load(2, i), load(3, i), sixteen, pixels + i * 4);
  join_plainly(planes, plane_bytes, channels, i, pixel_count, pixels);
}

// Streamed and other stores never share a cache line.
void stream_bytes(const std::uint8_t* bytes, std::size_t count, std::uint8_t* out) {
  const hn::CappedTag<std::uint8_t, kCacheLineBytes> vector;
  const std::size_t in_line = reinterpret_cast<std::uintptr_t>(out) % kCacheLineBytes;
  const std::size_t begin = std::min(count, (kCacheLineBytes - in_line) % kCacheLineBytes);
  const std::size_t end = begin + (count - begin) / kCacheLineBytes * kCacheLineBytes;
  std::memcpy(out, bytes, begin);
  for (std::size_t i = begin; i < end; i += hn::Lanes(vector))
    hn::Stream(hn::LoadU(vector, bytes + i), vector, out + i);
  std::memcpy(out + end, bytes + end, count - end);
}

#else

void stream_bytes(const std::uint8_t* bytes, std::size_t count, std::uint8_t* out) {
  std::memcpy(out, bytes, count);
}

void reverse_pixels(const std::uint8_t* pixels, std::size_t pixel_count, std::size_t pixel_bytes,
                    std::uint8_t* out) {
  reverse_plainly(pixels, pixel_count, pixel_bytes, out);
}

void join_channels(const std::uint8_t* planes, std::size_t plane_bytes, std::uint32_t channels,
                   std::size_t pixel_count, std::uint8_t* pixels) {
  join_plainly(planes, plane_bytes, channels, 0, pixel_count, pixels);
}

#endif

}  // namespace chunkhit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chunkhit {

namespace {

template <std::size_t kPixelBytes>
void write_pixel_column(const std::uint8_t* row, const PixelColumn& column, std::uint8_t* out) {
  const std::size_t bytes = kPixelBytes == 0 ? column.pixel_bytes : kPixelBytes;
  for (std::size_t i = 0; i < column.count; ++i)
    std::memcpy(out + (column.reversed ? column.count - 1 - i : i) * column.row_bytes, row + i * bytes,
                bytes);
}

}  // namespace

void write_column(const std::uint8_t* row, const PixelColumn& column, std::uint8_t* out) {
  if (column.pixel_bytes == 1) return write_pixel_column<1>(row, column, out);
  if (column.pixel_bytes == 3) return write_pixel_column<3>(row, column, out);
  if (column.pixel_bytes == 4) return write_pixel_column<4>(row, column, out);
  write_pixel_column<0>(row, column, out);
}

HWY_EXPORT(stream_bytes);
HWY_EXPORT(reverse_pixels);
HWY_EXPORT(join_channels);

void stream_bytes(const std::uint8_t* bytes, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(stream_bytes)(bytes, count, out);
}

void reverse_pixels(const std::uint8_t* pixels, std::size_t pixel_count, std::size_t pixel_bytes,
                    std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(reverse_pixels)(pixels, pixel_count, pixel_bytes, out);
}

void join_channels(const std::uint8_t* planes, std::size_t plane_bytes, std::uint32_t channels,
                   std::size_t pixel_count, std::uint8_t* pixels) {
  HWY_DYNAMIC_DISPATCH(join_channels)(planes, plane_bytes, channels, pixel_count, pixels);
}

}  // namespace chunkhit
#endif
