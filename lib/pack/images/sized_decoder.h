// From a row of the list to an image of its own size: its JPEG as it is, or pixels, raw or encoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/memory_budget.h"
#include "pack/images/sample_decoder.h"
#include "store/part.h"
#include "types/pixel_sums.h"

namespace chunkhit {

/// An image of its own size, as it is stored.
struct SizedSample {
  ByteBuffer payload;
  std::uint32_t height = 0;  ///< of the payload, pixels
  std::uint32_t width = 0;
  PayloadKind kind = PayloadKind::raw;
  std::uint32_t mask_bytes = 0;  ///< of the payload's end
  int orientation = 1;           ///< how the payload is to be turned
  std::uint64_t xxh3 = 0;        ///< of the payload
  PixelSums pixels;              ///< of the payload's pixels
};

/// Makes samples of their own sizes; each thread has its own.
class SizedSampleDecoder final : public SampleDecoder {
 public:
  using SampleDecoder::SampleDecoder;
  /// Makes a sample of its own size. Its payload's share grows to what is expected before the image is
  /// decoded; waits for it where less is left. Throws as
  /// SampleDecoder::make.
  [[nodiscard]] SizedSample make_sized(const SampleList& list, std::size_t index,
                                       MemoryBudget::Share& payload);

 private:
  void check_plan(std::string_view file, const ImageHeader& header) override;
  [[nodiscard]] DecodePlan decode_plan() const override;
  [[nodiscard]] std::uint64_t made_bytes(const ImageHeader& header, std::uint64_t held) const override;
  [[nodiscard]] std::uint64_t expected_payload() const override;
  /// Whether pixels are encoded as JPEG.
  [[nodiscard]] bool is_encoded() const;
  /// Whether pixels that are not encoded are compressed, and by which codec.
  [[nodiscard]] bool is_compressed() const;
  [[nodiscard]] bool is_photo() const;
  [[nodiscard]] SizedSample store(const Decoded& image);
  /// Writes the file in tiles, or as it is, where it can be read as JPEG from there.
  [[nodiscard]] bool keep_jpeg(ByteBuffer& payload);
  void store_pixels(const Decoded& image, SizedSample& sample);
  void encode(SizedSample& sample);
  void compress(const SampleShape& shape, SizedSample& sample);
  void append_masks(const SampleList& list, std::size_t index, SizedSample& sample);

  bool keeps_jpeg_ = false;
  bool keeps_file_ = false;  // its bytes stay as they are
  bool is_resized_ = false;
};

}  // namespace chunkhit
