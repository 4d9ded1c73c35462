// Copies a stored sample into a batch and changes it on the way: resized crop, crop, flips, quarter turns,
// layout, normalised floats.
#pragma once

#include <cstddef>
#include <cstdint>

#include "augment/normalizer.h"
#include "augment/random_crop.h"
#include "base/bytes.h"
#include "chunkhit/image_loader.h"
#include "chunkhit/pack_info.h"
#include "transform/image_transform.h"
#include "types/image.h"

namespace chunkhit {

/// What becomes of each sample.
struct SampleFormat {
  SampleShape stored;
  AugmentSpec augment;
  Dtype dtype = Dtype::uint8;
  Layout layout = Layout::nhwc;
  NormalizeSpec normalize;        ///< one mean and std per channel; only for floats
  std::uint8_t mask_padding = 0;  ///< ImageLoaderOptions::mask_padding
  std::uint8_t padding = 0;       ///< what these samples have beyond the stored ones
};

/// What becomes of a field behind the image: the same crops and flips; of class ids, whole ones.
[[nodiscard]] SampleFormat pair_format(const SampleFormat& image, FieldRole role);

/// Writes samples; holds tables only, so any thread may use it.
class SampleWriter {
 public:
  /// Throws usage, naming the option, when the format makes no sense for the stored shape.
  explicit SampleWriter(const SampleFormat& format);
  /// The shape of one written sample (batch = 1).
  [[nodiscard]] const BatchShape& shape() const;
  /// Bytes of one written sample.
  [[nodiscard]] std::size_t sample_bytes() const;
  [[nodiscard]] Dtype dtype() const { return format_.dtype; }
  /// What lies beyond the stored pixels.
  [[nodiscard]] std::uint8_t padding() const { return format_.padding; }
  /// Whether samples are copied byte for byte.
  [[nodiscard]] bool copies() const;
  /// Writes one sample to `out` (sample_bytes(), aligned to a value) from its stored pixels. What it wrote
  /// is seen by a thread that synchronizes afterwards, by a mutex or an atomic.
  void write(const std::uint8_t* stored, const SampleUse& use, std::uint8_t* out) const;

 private:
  // Bytes in `pieces` (one of whole pixels, or a plane of each channel) that are piece_bytes apart.
  struct Rows {
    const std::uint8_t* bytes;
    std::size_t piece_bytes;
  };
  struct MutableRows {
    std::uint8_t* bytes;
    std::size_t piece_bytes;
  };
  struct RowRange {
    std::size_t first;
    std::size_t count;
  };
  void resize(const std::uint8_t* stored, const SampleUse& use, std::uint8_t* out) const;
  void resize_planes(const std::uint8_t* stored, const ResizedPart& part, AlphaResampler& resampler,
                     std::uint8_t* out) const;
  void write_whole(const std::uint8_t* stored, const SampleUse& use, std::uint8_t* out) const;
  [[nodiscard]] std::size_t value_bytes() const;
  [[nodiscard]] std::size_t stored_values() const;
  [[nodiscard]] std::size_t written_values() const;
  [[nodiscard]] bool keeps_layout() const;
  [[nodiscard]] bool streams() const;
  [[nodiscard]] MutableRows written_rows(std::uint8_t* out, std::size_t first) const;
  void write_rows(const std::uint8_t* stored, const Crop& crop, const RowRange& range,
                  std::uint8_t* out) const;
  [[nodiscard]] Rows crop_rows(const std::uint8_t* stored, const Crop& crop, const RowRange& range,
                               std::uint8_t* room) const;
  void copy_rows(const std::uint8_t* stored, const Crop& crop, const RowRange& range,
                 const MutableRows& to) const;
  void copy_row(const std::uint8_t* row, const Crop& crop, std::uint8_t* out) const;
  void copy_columns(const std::uint8_t* stored, const Crop& crop, const RowRange& range,
                    const MutableRows& to) const;
  void copy_pieces(const Rows& from, std::size_t pixel_count, const MutableRows& to) const;
  void copy_bytes(const std::uint8_t* bytes, std::size_t count, std::uint8_t* out) const;
  void arrange(const Rows& from, std::size_t pixel_count, const MutableRows& to) const;
  void normalize_rows(const Rows& from, const RowRange& range, float* out) const;
  void halve_rows(const Rows& from, const RowRange& range, std::uint16_t* room, std::uint8_t* out) const;

  SampleShape image_;  // as it is stored
  ResizedCrop resized_crop_;
  SampleFormat format_;  // of what is stored, or of what was resized
  BatchShape shape_;
  RandomCrop random_crop_;
  Normalizer normalizer_;
  HalfNormalizer half_normalizer_;
  bool copies_;
  std::size_t block_rows_;
};

}  // namespace chunkhit
