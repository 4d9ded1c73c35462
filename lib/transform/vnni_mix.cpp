#include "transform/vnni_mix.h"

#include <algorithm>
#include <limits>

// Highway detects the machine's instructions and lets tests choose among them. Its own operations are not
// used here: version 1.0.3 has no 8-bit dot product, and its target asks for AVX-VNNI, which is another
// extension.
#define HWY_WANT_AVX3_DL
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX2 | HWY_AVX3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/vnni_mix.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

namespace chunkhit::HWY_NAMESPACE {

bool is_vnni() { return HWY_TARGET == HWY_AVX3_DL; }

}  // namespace chunkhit::HWY_NAMESPACE

#if HWY_ONCE
namespace chunkhit {

HWY_EXPORT(is_vnni);

bool has_vnni() { return HWY_DYNAMIC_DISPATCH(is_vnni)(); }

bool PixelMixer::plan(const AxisWeights& columns, std::uint32_t channels, std::size_t row_bytes) {
  steps_.clear();
  begins_.clear();
  ends_.clear();
  channels_ = channels;
  row_bytes_ = row_bytes;
  out_bytes_ = std::size_t{columns.size()} * channels;
  if (!has_vnni() || row_bytes < kVnniBytes || out_bytes_ < 16 || channels > 4) return false;
  for (std::size_t done = 0; done < out_bytes_; done += 16) {
    add_steps(columns, std::min(done, out_bytes_ - 16));  // the last 16 overlap the ones before
    if (steps_.size() * sizeof(Step) > kMaxPlanBytes) return false;
    ends_.push_back(static_cast<std::uint32_t>(steps_.size()));
  }
  return true;
}

// Each step takes up to four taps of each pixel from 64 bytes that begin with the first tap not yet taken.
void PixelMixer::add_steps(const AxisWeights& columns, std::size_t out_byte) {
  const auto first = static_cast<std::uint32_t>(out_byte / channels_);
  const auto last = static_cast<std::uint32_t>((out_byte + 15) / channels_);
  std::array<std::uint32_t, 16> taken{};
  while (steps_.size() * sizeof(Step) <= kMaxPlanBytes) {
    std::uint32_t next = std::numeric_limits<std::uint32_t>::max();
    for (std::uint32_t pixel = first; pixel <= last; ++pixel)
      if (const std::uint32_t tap = taken[pixel - first]; tap < columns.count[pixel])
        next = std::min(next, columns.first[pixel] + tap);
    if (next == std::numeric_limits<std::uint32_t>::max()) return;
    begins_.push_back(
        static_cast<std::uint32_t>(std::min(std::size_t{next} * channels_, row_bytes_ - kVnniBytes)));
    steps_.emplace_back();
    for (std::uint32_t pixel = first; pixel <= last; ++pixel)
      taken[pixel - first] += add_pixel(columns, pixel, taken[pixel - first], out_byte);
  }
}

// Returns how many taps the last step takes of a pixel.
std::uint32_t PixelMixer::add_pixel(const AxisWeights& columns, std::uint32_t pixel, std::uint32_t tap,
                                    std::size_t out_byte) {
  const std::size_t at = std::size_t{columns.first[pixel] + tap} * channels_ - begins_.back();
  const std::size_t visible = at < kVnniBytes ? (kVnniBytes - at) / channels_ : 0;
  const auto taps =
      static_cast<std::uint32_t>(std::min<std::size_t>({4, columns.count[pixel] - tap, visible}));
  std::array<std::int32_t, 4> weights{};
  std::copy_n(&columns.weights[std::size_t{pixel} * columns.stride + tap], taps, weights.begin());
  const WeightDigits split = digits_of(weights.data());
  Step& step = steps_.back();
  const std::size_t begin = std::size_t{pixel} * channels_;
  for (std::size_t byte = std::max(begin, out_byte); byte < std::min(begin + channels_, out_byte + 16);
       ++byte) {
    for (std::size_t i = 0; i < 4; ++i)
      step.picks[byte - out_byte][i] = static_cast<std::uint8_t>(at + byte - begin + i * channels_);
    for (std::size_t i = 0; i < 3; ++i) step.digits[i][byte - out_byte] = split.digits[i];
  }
  return taps;
}

void PixelMixer::mix(ImageView rows, std::uint8_t* out, std::size_t out_row_bytes) const {
  constexpr std::uint32_t kRowsAhead = 8;  // a large image is in memory, not in the cache
  for (std::uint32_t y = 0; y < rows.height; y += 4) {
    FourRows four;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t row = std::min(y + i, rows.height - 1);
      four.in[i] = rows.row(row);
      four.next[i] = rows.row(std::min(row + kRowsAhead, rows.height - 1));
      four.out[i] = out + row * out_row_bytes;
    }
    mix_four(four);
  }
}

#if HWY_TARGETS & HWY_AVX3_DL

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")

namespace {

// Four bytes for each of 16 output bytes, and the digits of their weights.
struct Products {
  __m512i bytes, high, middle, low;
};

// Sums of products with each digit. Where one wraps, the total is right again.
struct DigitSums {
  __m512i high, middle, low;
};

HWY_INLINE DigitSums no_sums() {
  return {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_set1_epi32(1 << (kWeightBits - 1))};
}

HWY_INLINE void add(const Products& from, DigitSums& sums) {
  sums.high = _mm512_dpbusd_epi32(sums.high, from.bytes, from.high);
  sums.middle = _mm512_dpbusd_epi32(sums.middle, from.bytes, from.middle);
  sums.low = _mm512_dpbusd_epi32(sums.low, from.bytes, from.low);
}

HWY_INLINE __m512i total(const DigitSums& sums) {
  const __m512i upper = _mm512_add_epi32(_mm512_slli_epi32(sums.high, 16), _mm512_slli_epi32(sums.middle, 8));
  return _mm512_srai_epi32(_mm512_add_epi32(upper, sums.low), kWeightBits);
}

// The same for one or two, with fewer instructions.
template <std::size_t kCount>
HWY_INLINE __m512i total(const Products (&of)[kCount]) {
  __m512i sum = _mm512_set1_epi32(1 << (kWeightBits - 17));
  for (const Products& products : of) sum = _mm512_dpbusd_epi32(sum, products.bytes, products.high);
  sum = _mm512_slli_epi32(sum, 8);
  for (const Products& products : of) sum = _mm512_dpbusd_epi32(sum, products.bytes, products.middle);
  sum = _mm512_slli_epi32(sum, 8);
  for (const Products& products : of) sum = _mm512_dpbusd_epi32(sum, products.bytes, products.low);
  return _mm512_srai_epi32(sum, kWeightBits);
}

// Clamps to 8 bits; each 16 bytes of the result are 4 of each vector's.
HWY_INLINE __m512i clamped_bytes(const __m512i (&totals)[4]) {
  return _mm512_packus_epi16(_mm512_packs_epi32(totals[0], totals[1]),
                             _mm512_packs_epi32(totals[2], totals[3]));
}

HWY_INLINE __m512i repeated(const std::array<std::int8_t, 4>& digits) {
  return _mm512_set1_epi32(load_little<std::int32_t>(reinterpret_cast<const std::uint8_t*>(digits.data())));
}

// Rows that are mixed into one.
struct MixedRows {
  const std::uint8_t* first;
  std::size_t row_bytes;
  std::uint32_t count;
  const WeightDigits* weights;
};

// Products of 64 bytes of rows 4 · block and the next three. Bytes that lie above each other are brought
// together by interleaving, which clamped_bytes undoes. Rows beyond the last have no weight: it is read
// again.
HWY_INLINE void load_rows(const MixedRows& rows, std::size_t at, std::size_t block, Products (&to)[4]) {
  const std::size_t last = (rows.count - 1) * rows.row_bytes;
  const auto row = [&](std::size_t i) __attribute__((always_inline)) {
    return rows.first + at + std::min((4 * block + i) * rows.row_bytes, last);
  };
  const __m512i a = _mm512_loadu_si512(row(0)), b = _mm512_loadu_si512(row(1));
  const __m512i c = _mm512_loadu_si512(row(2)), d = _mm512_loadu_si512(row(3));
  const __m512i ab[] = {_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)};
  const __m512i cd[] = {_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d)};
  const WeightDigits& weights = rows.weights[block];
  for (std::size_t i = 0; i < 4; ++i) {
    to[i].bytes = i % 2 == 0 ? _mm512_unpacklo_epi16(ab[i / 2], cd[i / 2])
                             : _mm512_unpackhi_epi16(ab[i / 2], cd[i / 2]);
    to[i].high = repeated(weights.digits[0]);
    to[i].middle = repeated(weights.digits[1]);
    to[i].low = repeated(weights.digits[2]);
  }
}

HWY_INLINE __m512i mix_few(const MixedRows& rows, std::size_t at) {
  Products products[4];
  load_rows(rows, at, 0, products);
  __m512i totals[4];
  for (std::size_t i = 0; i < 4; ++i) totals[i] = total({products[i]});
  return clamped_bytes(totals);
}

HWY_INLINE __m512i mix_many(const MixedRows& rows, std::size_t at) {
  DigitSums sums[4] = {no_sums(), no_sums(), no_sums(), no_sums()};
  for (std::size_t block = 0; 4 * block < rows.count; ++block) {
    Products products[4];
    load_rows(rows, at, block, products);
    for (std::size_t i = 0; i < 4; ++i) add(products[i], sums[i]);
  }
  return clamped_bytes({total(sums[0]), total(sums[1]), total(sums[2]), total(sums[3])});
}

}  // namespace

void mix_rows_vnni(const AxisWeights& axis, const std::uint8_t* rows, std::size_t row_bytes,
                   std::size_t length, std::uint8_t* out, std::size_t out_row_bytes) {
  for (std::size_t i = 0; i < axis.size(); ++i) {
    const MixedRows mixed{rows + axis.first[i] * row_bytes, row_bytes, axis.count[i],
                          &axis.digits[i * axis.stride / 4]};
    for (std::size_t done = 0; done < length; done += kVnniBytes) {
      const std::size_t at = std::min(done, length - kVnniBytes);  // the last 64 overlap the ones before
      const __m512i bytes = mixed.count <= 4 ? mix_few(mixed, at) : mix_many(mixed, at);
      _mm512_storeu_si512(out + i * out_row_bytes + at, bytes);
    }
  }
}

void PixelMixer::mix_four(const FourRows& rows) const {
  const __m512i by_rows = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const auto load = [&](std::size_t row, std::size_t step) __attribute__((always_inline)) {
    return Products{_mm512_permutexvar_epi8(_mm512_load_si512(steps_[step].picks.data()),
                                            _mm512_loadu_si512(rows.in[row] + begins_[step])),
                    _mm512_load_si512(steps_[step].digits[0].data()),
                    _mm512_load_si512(steps_[step].digits[1].data()),
                    _mm512_load_si512(steps_[step].digits[2].data())};
  };
  std::size_t step = 0;
  for (std::size_t block = 0; block < ends_.size(); ++block) {
    const std::size_t count = ends_[block] - step;
    for (const std::uint8_t* row : rows.next)
      _mm_prefetch(reinterpret_cast<const char*>(row + begins_[step]), _MM_HINT_T0);
    __m512i totals[4];
    if (count == 1) {
      for (std::size_t i = 0; i < 4; ++i) totals[i] = total({load(i, step)});
    } else if (count == 2) {
      for (std::size_t i = 0; i < 4; ++i) totals[i] = total({load(i, step), load(i, step + 1)});
    } else {
      DigitSums sums[4] = {no_sums(), no_sums(), no_sums(), no_sums()};
      for (std::size_t j = step; j < ends_[block]; ++j)
        for (std::size_t i = 0; i < 4; ++i) add(load(i, j), sums[i]);
      for (std::size_t i = 0; i < 4; ++i) totals[i] = total(sums[i]);
    }
    step = ends_[block];
    const __m512i mixed = _mm512_permutexvar_epi32(by_rows, clamped_bytes(totals));
    const std::size_t at = std::min(block * 16, out_bytes_ - 16);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(rows.out[0] + at), _mm512_castsi512_si128(mixed));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(rows.out[1] + at), _mm512_extracti32x4_epi32(mixed, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(rows.out[2] + at), _mm512_extracti32x4_epi32(mixed, 2));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(rows.out[3] + at), _mm512_extracti32x4_epi32(mixed, 3));
  }
}

HWY_POP_ATTRIBUTES

#else

void mix_rows_vnni(const AxisWeights&, const std::uint8_t*, std::size_t, std::size_t, std::uint8_t*,
                   std::size_t) {}

void PixelMixer::mix_four(const FourRows&) const {}

#endif

}  // namespace chunkhit
#endif
