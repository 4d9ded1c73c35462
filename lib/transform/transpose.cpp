#include "transform/transpose.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/transpose.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace chunkhit::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void transpose_plainly(const ByteMatrixView& in, std::uint8_t* out, std::size_t out_row_bytes) {
  for (std::size_t column = 0; column < in.columns; ++column)
    for (std::size_t row = 0; row < in.rows; ++row)
      out[column * out_row_bytes + row] = in.bytes[row * in.row_bytes + column];
}

void split_plainly(const std::uint8_t* pixels, std::uint32_t channels, std::size_t begin, std::size_t end,
                   std::uint8_t* planes, std::size_t plane_bytes) {
  for (std::uint32_t channel = 0; channel < channels; ++channel)
    for (std::size_t i = begin; i < end; ++i)
      planes[channel * plane_bytes + i] = pixels[i * channels + channel];
}

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET <= HWY_AVX3
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif

template <std::size_t kBytes>
using ByteTag = hn::FixedTag<std::uint8_t, kBytes>;

// Interleaves the bytes of vectors i and i + 8 four times, which turns each 16 × 16 block.
template <class D8>
HWY_INLINE void turn_blocks(D8 d8, hn::Vec<D8> (&vectors)[16]) {
  HWY_UNROLL(4)
  for (int pass = 0; pass < 4; ++pass) {
    hn::Vec<D8> turned[16];
    HWY_UNROLL(8)
    for (int i = 0; i < 8; ++i) {
      turned[2 * i] = hn::InterleaveLower(d8, vectors[i], vectors[i + 8]);
      turned[2 * i + 1] = hn::InterleaveUpper(d8, vectors[i], vectors[i + 8]);
    }
    HWY_UNROLL(16)
    for (int i = 0; i < 16; ++i) vectors[i] = turned[i];
  }
}

// Turns 16 rows of kBytes columns.
template <std::size_t kBytes>
HWY_INLINE void transpose_block(const std::uint8_t* in, std::size_t row_bytes, std::uint8_t* out,
                                std::size_t out_row_bytes) {
  const ByteTag<kBytes> d8;
  const ByteTag<16> d16;
  hn::Vec<ByteTag<kBytes>> vectors[16];
  for (std::size_t i = 0; i < 16; ++i) vectors[i] = hn::LoadU(d8, in + i * row_bytes);
  turn_blocks(d8, vectors);
  for (std::size_t i = 0; i < 16; ++i) {
    if constexpr (kBytes == 32) {
      hn::StoreU(hn::LowerHalf(vectors[i]), d16, out + i * out_row_bytes);
      hn::StoreU(hn::UpperHalf(d16, vectors[i]), d16, out + (i + 16) * out_row_bytes);
    } else {
      hn::StoreU(vectors[i], d16, out + i * out_row_bytes);
    }
  }
}

// Turns 16 rows of at least 16 columns; the last block overlaps the one before.
void transpose_16_rows(const std::uint8_t* in, std::size_t row_bytes, std::size_t columns, std::uint8_t* out,
                       std::size_t out_row_bytes) {
  std::size_t column = 0;
  for (; column + kVectorBytes <= columns; column += kVectorBytes)
    transpose_block<kVectorBytes>(in + column, row_bytes, out + column * out_row_bytes, out_row_bytes);
  for (; column < columns; column += 16) {
    column = std::min(column, columns - 16);
    transpose_block<16>(in + column, row_bytes, out + column * out_row_bytes, out_row_bytes);
  }
}

void transpose_bytes(const ByteMatrixView& in, std::uint8_t* out, std::size_t out_row_bytes) {
  if (in.rows < 16 || in.columns < 16) return transpose_plainly(in, out, out_row_bytes);
  for (std::size_t row = 0; row < in.rows; row += 16) {
    row = std::min(row, in.rows - 16);
    transpose_16_rows(in.bytes + row * in.row_bytes, in.row_bytes, in.columns, out + row, out_row_bytes);
  }
}

void split_channels(const std::uint8_t* pixels, std::uint32_t channels, std::size_t pixel_count,
                    std::uint8_t* planes, std::size_t plane_bytes) {
  const hn::ScalableTag<std::uint8_t> d8;
  const std::size_t step = hn::Lanes(d8);
  std::size_t i = 0;
  hn::Vec<decltype(d8)> plane0, plane1, plane2, plane3;
  for (; channels == 3 && i + step <= pixel_count; i += step) {
    hn::LoadInterleaved3(d8, pixels + i * 3, plane0, plane1, plane2);
    hn::StoreU(plane0, d8, planes + i);
    hn::StoreU(plane1, d8, planes + plane_bytes + i);
    hn::StoreU(plane2, d8, planes + 2 * plane_bytes + i);
  }
  for (; channels == 4 && i + step <= pixel_count; i += step) {
    hn::LoadInterleaved4(d8, pixels + i * 4, plane0, plane1, plane2, plane3);
    hn::StoreU(plane0, d8, planes + i);
    hn::StoreU(plane1, d8, planes + plane_bytes + i);
    hn::StoreU(plane2, d8, planes + 2 * plane_bytes + i);
    hn::StoreU(plane3, d8, planes + 3 * plane_bytes + i);
  }
  split_plainly(pixels, channels, i, pixel_count, planes, plane_bytes);
}

#else

void transpose_bytes(const ByteMatrixView& in, std::uint8_t* out, std::size_t out_row_bytes) {
  transpose_plainly(in, out, out_row_bytes);
}

void split_channels(const std::uint8_t* pixels, std::uint32_t channels, std::size_t pixel_count,
                    std::uint8_t* planes, std::size_t plane_bytes) {
  split_plainly(pixels, channels, 0, pixel_count, planes, plane_bytes);
}

#endif

}  // namespace chunkhit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chunkhit {

HWY_EXPORT(transpose_bytes);
HWY_EXPORT(split_channels);

void transpose_bytes(ByteMatrixView in, std::uint8_t* out, std::size_t out_row_bytes) {
  HWY_DYNAMIC_DISPATCH(transpose_bytes)(in, out, out_row_bytes);
}

void split_channels(const std::uint8_t* pixels, std::uint32_t channels, std::size_t pixel_count,
                    std::uint8_t* planes, std::size_t plane_bytes) {
  HWY_DYNAMIC_DISPATCH(split_channels)(pixels, channels, pixel_count, planes, plane_bytes);
}

}  // namespace chunkhit
#endif
