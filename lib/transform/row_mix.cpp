#include "transform/row_mix.h"

#include <algorithm>
#include <cstring>

#include "transform/vnni_mix.h"

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
using Tag16 = hn::Repartition<std::int16_t, D8>;
template <class D8>
using Tag32 = hn::Repartition<std::int32_t, D8>;

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSE4

HWY_INLINE hn::Vec128<std::int16_t> pair_sums(hn::Vec128<std::uint8_t> bytes,
                                              hn::Vec128<std::int16_t> weights) {
  return hn::Vec128<std::int16_t>{_mm_maddubs_epi16(bytes.raw, weights.raw)};
}

HWY_INLINE hn::Vec128<std::uint8_t> clamped_bytes(hn::Vec128<std::int16_t> lower,
                                                  hn::Vec128<std::int16_t> upper) {
  return hn::Vec128<std::uint8_t>{_mm_packus_epi16(lower.raw, upper.raw)};
}

#if HWY_TARGET <= HWY_AVX2

HWY_INLINE hn::Vec256<std::int16_t> pair_sums(hn::Vec256<std::uint8_t> bytes,
                                              hn::Vec256<std::int16_t> weights) {
  return hn::Vec256<std::int16_t>{_mm256_maddubs_epi16(bytes.raw, weights.raw)};
}

HWY_INLINE hn::Vec256<std::uint8_t> clamped_bytes(hn::Vec256<std::int16_t> lower,
                                                  hn::Vec256<std::int16_t> upper) {
  return hn::Vec256<std::uint8_t>{_mm256_packus_epi16(lower.raw, upper.raw)};
}

#endif

#else

// The sum of each two bytes times the two 8-bit weights that a 16-bit lane holds.
template <class V8, class V16>
HWY_INLINE V16 pair_sums(V8 bytes, V16 weights) {
  const hn::DFromV<V16> d16;
  const auto pairs = hn::BitCast(hn::RebindToUnsigned<decltype(d16)>(), bytes);
  const auto second = hn::BitCast(d16, hn::ShiftRight<8>(pairs));
  const auto first = hn::And(hn::BitCast(d16, pairs), hn::Set(d16, 255));
  return hn::Add(hn::Mul(first, hn::ShiftRight<8>(hn::ShiftLeft<8>(weights))),
                 hn::Mul(second, hn::ShiftRight<8>(weights)));
}

// Each 16 bytes are 8 of `lower` and then 8 of `upper`, clamped.
template <class V16>
HWY_INLINE auto clamped_bytes(V16 lower, V16 upper) {
  const hn::FixedTag<std::uint8_t, 8> half;
  return hn::Combine(hn::FixedTag<std::uint8_t, 16>(), hn::DemoteTo(half, upper), hn::DemoteTo(half, lower));
}

#endif

// What the rows give to the bytes of a vector, with the halves of the weights: the low products by quarters
// (of each 16 bytes), in two parts that belong together, and the high ones by halves.
template <class D8>
struct Sums {
  hn::Vec<Tag32<D8>> low[4], low_rest[4];
  hn::Vec<Tag16<D8>> high[2];
};

// Rounding half up to kWeightBits is done in the upper 16 bits.
template <class D8>
HWY_INLINE Sums<D8> no_sums(D8) {
  const auto zero = hn::Zero(Tag32<D8>());
  const auto half = hn::Set(Tag16<D8>(), 1 << (kWeightBits - 17));
  return {{zero, zero, zero, zero}, {zero, zero, zero, zero}, {half, half}};
}

// Adds the products of a half of each 16 bytes; `bytes` alternate between two rows.
template <int kHalf, class D8, class V16>
HWY_INLINE void add_half(D8 d8, hn::Vec<D8> bytes, V16 low, V16 high, Sums<D8>& sums) {
  const Tag16<D8> d16;
  const Tag32<D8> d32;
  const auto zero = hn::Zero(d8);
  const auto first = hn::BitCast(d16, hn::InterleaveLower(d8, bytes, zero));
  const auto second = hn::BitCast(d16, hn::InterleaveUpper(d8, bytes, zero));
  constexpr int kFirst = 2 * kHalf, kSecond = 2 * kHalf + 1;
  sums.high[kHalf] = hn::Add(sums.high[kHalf], pair_sums(bytes, high));
  sums.low[kFirst] = hn::ReorderWidenMulAccumulate(d32, first, low, sums.low[kFirst], sums.low_rest[kFirst]);
  sums.low[kSecond] =
      hn::ReorderWidenMulAccumulate(d32, second, low, sums.low[kSecond], sums.low_rest[kSecond]);
}

template <class D8>
HWY_INLINE void add_rows(D8 d8, hn::Vec<D8> above, hn::Vec<D8> below, const WeightPair& weights,
                         Sums<D8>& sums) {
  const Tag16<D8> d16;
  std::int32_t low_bits;
  std::int16_t high_bits;
  std::memcpy(&low_bits, weights.low.data(), sizeof low_bits);
  std::memcpy(&high_bits, weights.high.data(), sizeof high_bits);
  const auto low = hn::BitCast(d16, hn::Set(Tag32<D8>(), low_bits));
  const auto high = hn::Set(d16, high_bits);
  add_half<0>(d8, hn::InterleaveLower(d8, above, below), low, high, sums);
  add_half<1>(d8, hn::InterleaveUpper(d8, above, below), low, high, sums);
}

// Joins the sums of a half of each 16 bytes. The low products' part below 16 bits cannot change the result
// any more: floor((h · 2^16 + l) / 2^22) = floor((h + floor(l / 2^16)) / 2^6).
template <int kHalf, class D8>
HWY_INLINE auto mixed_half(D8, const Sums<D8>& sums) {
  constexpr int kFirst = 2 * kHalf, kSecond = 2 * kHalf + 1;
  const auto first = hn::RearrangeToOddPlusEven(sums.low[kFirst], sums.low_rest[kFirst]);
  const auto second = hn::RearrangeToOddPlusEven(sums.low[kSecond], sums.low_rest[kSecond]);
  const auto low = hn::ReorderDemote2To(Tag16<D8>(), hn::ShiftRight<16>(first), hn::ShiftRight<16>(second));
  return hn::ShiftRight<kWeightBits - 16>(hn::Add(low, sums.high[kHalf]));
}

// Mixes as many bytes as the vector has.
template <class D8>
HWY_INLINE void mix_vector(D8 d8, const MixedRow& row, std::size_t at, std::uint8_t* out) {
  Sums<D8> sums = no_sums(d8);
  const std::uint8_t* in = row.rows + at;
  const WeightPair* pair = row.pairs;
  for (const WeightPair* const end = pair + row.count / 2; pair != end; ++pair) {
    add_rows(d8, hn::LoadU(d8, in), hn::LoadU(d8, in + row.row_bytes), *pair, sums);
    in += 2 * row.row_bytes;
  }
  if (row.count % 2 != 0) add_rows(d8, hn::LoadU(d8, in), hn::Zero(d8), *pair, sums);
  hn::StoreU(clamped_bytes(mixed_half<0>(d8, sums), mixed_half<1>(d8, sums)), d8, out + at);
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
  if (length >= kVnniBytes && has_vnni())
    return mix_rows_vnni(axis, rows, row_bytes, length, out, out_row_bytes);
  HWY_DYNAMIC_DISPATCH(mix_rows)(axis, rows, row_bytes, length, out, out_row_bytes);
}

}  // namespace chunkhit
#endif
