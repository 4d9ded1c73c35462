// Rows of bytes with SIMD, for the photo predictor: included once for each instruction set, hence the odd
// guard.
#if defined(CHUNKHIT_COMPRESS_PHOTO_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CHUNKHIT_COMPRESS_PHOTO_ROWS_INL_H_
#undef CHUNKHIT_COMPRESS_PHOTO_ROWS_INL_H_
#else
#define CHUNKHIT_COMPRESS_PHOTO_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace chunkhit::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
using Wide = hn::FixedTag<std::uint8_t, 1>;
using Narrow = Wide;
#else
using Wide = hn::CappedTag<std::uint8_t, 32>;
using Narrow = hn::FixedTag<std::uint8_t, 16>;
#endif

/// Calls `block(i)` for `step` values at a time, or `one(i)` for each where there are fewer. The last block
/// overlaps the one before it, so a block must not write what it reads.
template <class Block, class One>
HWY_INLINE void for_each_block(std::size_t begin, std::size_t end, std::size_t step, Block block, One one) {
  if (end - begin < step) {
    for (std::size_t i = begin; i < end; ++i) one(i);
    return;
  }
  std::size_t i = begin;
  for (; i + step <= end; i += step) block(i);
  if (i < end) block(end - step);
}

/// out[i] = (row[i] − above[i]) − (row[i − step] − above[i − step]), with zeros to the left of both rows.
inline void subtract_prediction(const std::uint8_t* row, const std::uint8_t* above, std::size_t bytes,
                                std::size_t step, std::uint8_t* out) {
  const Wide wide;
  for (std::size_t i = 0; i < step; ++i) out[i] = static_cast<std::uint8_t>(row[i] - above[i]);
  const auto block = [=](std::size_t i) HWY_ATTR {
    const auto here = hn::Sub(hn::LoadU(wide, row + i), hn::LoadU(wide, above + i));
    const auto left = hn::Sub(hn::LoadU(wide, row + i - step), hn::LoadU(wide, above + i - step));
    hn::StoreU(hn::Sub(here, left), wide, out + i);
  };
  const auto one = [=](std::size_t i) HWY_ATTR {
    out[i] = static_cast<std::uint8_t>((row[i] - above[i]) - (row[i - step] - above[i - step]));
  };
  for_each_block(step, bytes, hn::Lanes(wide), block, one);
}

/// out[i] = a[i] + b[i]
inline void add_rows(const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes, std::uint8_t* out) {
  const Wide wide;
  const auto block = [=](std::size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(wide, a + i), hn::LoadU(wide, b + i)), wide, out + i);
  };
  const auto one = [=](std::size_t i) HWY_ATTR { out[i] = static_cast<std::uint8_t>(a[i] + b[i]); };
  for_each_block(0, bytes, hn::Lanes(wide), block, one);
}

/// out[i] = a[i] − b[i]
inline void subtract_rows(const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes,
                          std::uint8_t* out) {
  const Wide wide;
  const auto block = [=](std::size_t i) HWY_ATTR {
    hn::StoreU(hn::Sub(hn::LoadU(wide, a + i), hn::LoadU(wide, b + i)), wide, out + i);
  };
  const auto one = [=](std::size_t i) HWY_ATTR { out[i] = static_cast<std::uint8_t>(a[i] - b[i]); };
  for_each_block(0, bytes, hn::Lanes(wide), block, one);
}

/// out[i] = row[0] + … + row[i]. Within 16 bytes by doubling (Hillis and Steele 1986); their last sum is
/// carried on.
inline void sum_row(const std::uint8_t* row, std::size_t bytes, std::uint8_t* out) {
  std::size_t i = 0;
  std::uint8_t sum = 0;
#if HWY_TARGET != HWY_SCALAR
  const Narrow narrow;
  const auto last = hn::Set(narrow, 15);
  auto carry = hn::Zero(narrow);
  for (; i + 16 <= bytes; i += 16) {
    auto sums = hn::LoadU(narrow, row + i);
    sums = hn::Add(sums, hn::ShiftLeftBytes<1>(sums));
    sums = hn::Add(sums, hn::ShiftLeftBytes<2>(sums));
    sums = hn::Add(sums, hn::ShiftLeftBytes<4>(sums));
    sums = hn::Add(sums, hn::ShiftLeftBytes<8>(sums));
    const auto total = hn::TableLookupBytes(sums, last);
    hn::StoreU(hn::Add(sums, carry), narrow, out + i);
    carry = hn::Add(carry, total);
  }
  sum = hn::GetLane(carry);
#endif
  for (; i < bytes; ++i) out[i] = sum = static_cast<std::uint8_t>(sum + row[i]);
}

/// Pulls a row of pixels apart into rows of planes, `plane_bytes` from each other; of three channels the
/// green one is subtracted from the others.
inline void split_pixels(const std::uint8_t* row, std::size_t width, std::size_t channels,
                         std::uint8_t* planes, std::size_t plane_bytes) {
  const auto one = [=](std::size_t x) HWY_ATTR {
    const std::uint8_t* pixel = row + x * channels;
    for (std::size_t c = 0; c < channels; ++c) {
      const std::uint8_t green = channels == 3 && c != 1 ? pixel[1] : 0;
      planes[c * plane_bytes + x] = static_cast<std::uint8_t>(pixel[c] - green);
    }
  };
  const Narrow narrow;
  using Vector = hn::Vec<Narrow>;
  const auto three = [=](std::size_t x) HWY_ATTR {
    Vector red, green, blue;
    hn::LoadInterleaved3(narrow, row + x * 3, red, green, blue);
    hn::StoreU(hn::Sub(red, green), narrow, planes + x);
    hn::StoreU(green, narrow, planes + plane_bytes + x);
    hn::StoreU(hn::Sub(blue, green), narrow, planes + 2 * plane_bytes + x);
  };
  const auto four = [=](std::size_t x) HWY_ATTR {
    Vector red, green, blue, alpha;
    hn::LoadInterleaved4(narrow, row + x * 4, red, green, blue, alpha);
    hn::StoreU(red, narrow, planes + x);
    hn::StoreU(green, narrow, planes + plane_bytes + x);
    hn::StoreU(blue, narrow, planes + 2 * plane_bytes + x);
    hn::StoreU(alpha, narrow, planes + 3 * plane_bytes + x);
  };
  const std::size_t lanes = hn::Lanes(narrow);
  if (channels == 3) return for_each_block(0, width, lanes, three, one);
  if (channels == 4) return for_each_block(0, width, lanes, four, one);
  for (std::size_t x = 0; x < width; ++x) one(x);
}

/// Puts rows of planes, `width` bytes from each other, together into a row of pixels; undoes `split_pixels`.
inline void join_pixels(const std::uint8_t* planes, std::size_t width, std::size_t channels,
                        std::uint8_t* row) {
  const auto one = [=](std::size_t x) HWY_ATTR {
    for (std::size_t c = 0; c < channels; ++c) {
      const std::uint8_t green = channels == 3 && c != 1 ? planes[width + x] : 0;
      row[x * channels + c] = static_cast<std::uint8_t>(planes[c * width + x] + green);
    }
  };
  const Narrow narrow;
  const auto load = [=](std::size_t c, std::size_t x)
                        HWY_ATTR { return hn::LoadU(narrow, planes + c * width + x); };
  const auto three = [=](std::size_t x) HWY_ATTR {
    const auto green = load(1, x);
    hn::StoreInterleaved3(hn::Add(load(0, x), green), green, hn::Add(load(2, x), green), narrow, row + x * 3);
  };
  const auto four = [=](std::size_t x) HWY_ATTR {
    hn::StoreInterleaved4(load(0, x), load(1, x), load(2, x), load(3, x), narrow, row + x * 4);
  };
  const std::size_t lanes = hn::Lanes(narrow);
  if (channels == 3) return for_each_block(0, width, lanes, three, one);
  if (channels == 4) return for_each_block(0, width, lanes, four, one);
  for (std::size_t x = 0; x < width; ++x) one(x);
}

}  // namespace chunkhit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
