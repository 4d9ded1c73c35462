// Weighted sums of bytes by the 8-bit dot products of AVX-512 (VNNI, VBMI), on machines that have them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "transform/axis_weights.h"
#include "types/image.h"

namespace chunkhit {

/// Bytes that are mixed at the same time; shorter rows are left to others.
inline constexpr std::size_t kVnniBytes = 64;

/// Returns whether the machine has the instructions.
[[nodiscard]] bool has_vnni();

/// mix_rows of row_mix.h, for a `length` of at least kVnniBytes and a machine that has_vnni.
void mix_rows_vnni(const AxisWeights& axis, const std::uint8_t* rows, std::size_t row_bytes,
                   std::size_t length, std::uint8_t* out, std::size_t out_row_bytes);

/// Mixes neighbouring pixels of rows as they lie. A plan says, for each 16 bytes of an output row, which
/// bytes to pick out of which 64 bytes of the source row, and how to weigh them.
class PixelMixer {
 public:
  /// Makes the plan of an axis for source rows of `row_bytes` bytes. Returns false if the machine cannot mix
  /// pixels in this way, or not fast: rows are short, or output pixels are mixed of very many.
  [[nodiscard]] bool plan(const AxisWeights& columns, std::uint32_t channels, std::size_t row_bytes);

  /// Writes an output row, `out_row_bytes` apart, for each of `rows`. Reads and writes nothing beyond them.
  void mix(ImageView rows, std::uint8_t* out, std::size_t out_row_bytes) const;

  /// What a plan takes at most.
  static constexpr std::size_t kMaxPlanBytes = std::size_t{1} << 18;

 private:
  /// For each of 16 output bytes four bytes of the source and the digits of their weights.
  struct Step {
    alignas(kVnniBytes) std::array<std::array<std::uint8_t, 4>, 16> picks;
    std::array<std::array<std::array<std::int8_t, 4>, 16>, 3> digits;
  };

  struct FourRows {
    std::array<const std::uint8_t*, 4> in;
    std::array<const std::uint8_t*, 4> next;  // are mixed soon: they are fetched meanwhile
    std::array<std::uint8_t*, 4> out;
  };

  void add_steps(const AxisWeights& columns, std::size_t out_byte);
  std::uint32_t add_pixel(const AxisWeights& columns, std::uint32_t pixel, std::uint32_t tap,
                          std::size_t out_byte);
  void mix_four(const FourRows& rows) const;

  std::uint32_t channels_ = 0;
  std::size_t row_bytes_ = 0;  // of the source
  std::size_t out_bytes_ = 0;  // of an output row
  std::vector<Step, UnwrittenAllocator<Step>> steps_;
  std::vector<std::uint32_t> begins_;  // per step: the first of the 64 bytes of the source
  std::vector<std::uint32_t> ends_;    // per 16 output bytes: the end of their steps
};

}  // namespace chunkhit
