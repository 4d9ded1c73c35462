#include "transform/row_mix.h"

#include <algorithm>
#include <cstring>

// Scalable vectors are left to the fixed ones of the same machine (NEON), which are as fast here.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/row_mix.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace chunkhit::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The rows that one output row is mixed of.
struct MixedRow {
  const std::uint8_t* rows;
  std::size_t row_bytes;
  std::uint32_t count;
  const std::int32_t* weights;
  const WeightPair* pairs;
};

void mix_bytes(const MixedRow& row, std::size_t begin, std::size_t end, std::uint8_t* out) {
  for (std::size_t i = begin; i < end; ++i) {
    std::int32_t sum = 1 << (kWeightBits - 1);
    for (std::uint32_t tap = 0; tap < row.count; ++tap)
      sum += row.rows[tap * row.row_bytes + i] * row.weights[tap];
    out[i] = static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
  }
}

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

template <class D8>
using Tag32 = hn::Repartition<std::int32_t, D8>;
template <class D8>
using Sums = hn::Vec<Tag32<D8>>;

// Sums of products with the low and the high halves of the weights, for a quarter of the bytes of a vector.
template <class D8>
struct QuarterSum {
  Sums<D8> low0, low1, high0, high1;
};

template <class D8>
HWY_INLINE QuarterSum<D8> zero_sum(D8) {
  const auto zero = hn::Zero(Tag32<D8>());
  return {zero, zero, zero, zero};
}

// `bytes` are pairs of 16-bit pixels of two rows, one above the other.
template <class D8, class V16>
HWY_INLINE void add_products(D8, V16 bytes, V16 low, V16 high, QuarterSum<D8>& sum) {
  const Tag32<D8> d32;
  sum.low0 = hn::ReorderWidenMulAccumulate(d32, bytes, low, sum.low0, sum.low1);
  sum.high0 = hn::ReorderWidenMulAccumulate(d32, bytes, high, sum.high0, sum.high1);
}

// Joins the halves and rounds; still with the fractional bits.
template <class D8>
HWY_INLINE Sums<D8> rounded_sum(D8, const QuarterSum<D8>& sum) {
  const Tag32<D8> d32;
  const auto low = hn::RearrangeToOddPlusEven(sum.low0, sum.low1);
  const auto high = hn::RearrangeToOddPlusEven(sum.high0, sum.high1);
  return hn::Add(hn::Add(low, hn::ShiftLeft<15>(high)), hn::Set(d32, 1 << (kWeightBits - 1)));
}

// Drops the fractional bits and clamps; 16-bit lanes alternate between `even` and `odd`.
template <class D8, class V32>
HWY_INLINE auto clamped_halves(D8, V32 even, V32 odd) {
  const hn::Repartition<std::int16_t, D8> d16;
  const auto joined = hn::OddEven(hn::BitCast(d16, hn::ShiftRight<kWeightBits - 16>(odd)),
                                  hn::BitCast(d16, hn::ShiftRight<kWeightBits>(even)));
  return hn::Min(hn::Max(joined, hn::Zero(d16)), hn::Set(d16, 255));
}

// Adds what two rows, one above the other, give to the sums; `bytes` are theirs, alternating.
template <class D8>
HWY_INLINE void add_rows(D8 d8, hn::Vec<D8> bytes, const WeightPair& weights, QuarterSum<D8>& even,
                         QuarterSum<D8>& odd) {
  const hn::Repartition<std::int16_t, D8> d16;
  const Tag32<D8> d32;
  const auto zero = hn::Zero(d8);
  std::int32_t low_bits, high_bits;
  std::memcpy(&low_bits, weights.low.data(), sizeof low_bits);
  std::memcpy(&high_bits, weights.high.data(), sizeof high_bits);
  const auto low = hn::BitCast(d16, hn::Set(d32, low_bits));
  const auto high = hn::BitCast(d16, hn::Set(d32, high_bits));
  add_products(d8, hn::BitCast(d16, hn::InterleaveLower(d8, bytes, zero)), low, high, even);
  add_products(d8, hn::BitCast(d16, hn::InterleaveUpper(d8, bytes, zero)), low, high, odd);
}

// Mixes the lower or the upper 8 of each 16 bytes. Both at once would need more sums than AVX2 has registers.
template <bool kUpper, class D8>
HWY_INLINE auto mix_half(D8 d8, const MixedRow& row, std::size_t at) {
  const auto alternating = [d8](hn::Vec<D8> above, hn::Vec<D8> below) {
    if constexpr (kUpper) return hn::InterleaveUpper(d8, above, below);
    return hn::InterleaveLower(d8, above, below);
  };
  QuarterSum<D8> even = zero_sum(d8), odd = zero_sum(d8);
  const std::uint8_t* in = row.rows + at;
  const WeightPair* pair = row.pairs;
  for (const WeightPair* const end = pair + row.count / 2; pair != end; ++pair) {
    add_rows(d8, alternating(hn::LoadU(d8, in), hn::LoadU(d8, in + row.row_bytes)), *pair, even, odd);
    in += 2 * row.row_bytes;
  }
  if (row.count % 2 != 0) add_rows(d8, alternating(hn::LoadU(d8, in), hn::Zero(d8)), *pair, even, odd);
  return clamped_halves(d8, rounded_sum(d8, even), rounded_sum(d8, odd));
}

// Mixes as many bytes as the vector has and brings each 16 of them into their order.
template <class D8>
HWY_INLINE void mix_vector(D8 d8, const MixedRow& row, std::size_t at, std::uint8_t* out) {
  alignas(16) static constexpr std::uint8_t kOrder[16] = {0, 4, 8, 12, 2, 6, 10, 14,
                                                          1, 5, 9, 13, 3, 7, 11, 15};
  const auto lower = mix_half<false>(d8, row, at);
  const auto upper = mix_half<true>(d8, row, at);
  const auto mixed = hn::BitCast(d8, hn::Or(lower, hn::ShiftLeft<8>(upper)));
  hn::StoreU(hn::TableLookupBytes(mixed, hn::LoadDup128(d8, kOrder)), d8, out + at);
}

// Whole vectors, then 16 bytes at a time; the last 16 overlap the ones before.
void mix_row(const MixedRow& row, std::size_t length, std::uint8_t* out) {
  const hn::CappedTag<std::uint8_t, 32> whole;
  const hn::FixedTag<std::uint8_t, 16> small;
  if (length < 16) return mix_bytes(row, 0, length, out);
  std::size_t at = 0;
  for (; at + hn::Lanes(whole) <= length; at += hn::Lanes(whole)) mix_vector(whole, row, at, out);
  for (; at + 16 <= length; at += 16) mix_vector(small, row, at, out);
  if (at < length) mix_vector(small, row, length - 16, out);
}

#else

void mix_row(const MixedRow& row, std::size_t length, std::uint8_t* out) { mix_bytes(row, 0, length, out); }

#endif

void mix_rows(const AxisWeights& axis, const std::uint8_t* rows, std::size_t row_bytes, std::size_t length,
              std::uint8_t* out, std::size_t out_row_bytes) {
  for (std::size_t i = 0; i < axis.size(); ++i) {
    const MixedRow row{rows + axis.first[i] * row_bytes, row_bytes, axis.count[i],
                       &axis.weights[i * axis.stride], &axis.pairs[i * axis.stride / 2]};
    mix_row(row, length, out + i * out_row_bytes);
  }
}

}  // namespace chunkhit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chunkhit {

HWY_EXPORT(mix_rows);

void mix_rows(const AxisWeights& axis, const std::uint8_t* rows, std::size_t row_bytes, std::size_t length,
              std::uint8_t* out, std::size_t out_row_bytes) {
  HWY_DYNAMIC_DISPATCH(mix_rows)(axis, rows, row_bytes, length, out, out_row_bytes);
}

}  // namespace chunkhit
#endif
