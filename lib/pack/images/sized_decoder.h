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

/// Makes samples of their own sizes. Each thread has its own.
class SizedSampleDecoder {
 public:
  explicit SizedSampleDecoder(DecoderContext& context)
      : context_(context), files_(context), reader_(files_.image()) {}
  SizedSampleDecoder(const SizedSampleDecoder&) = delete;
  SizedSampleDecoder& operator=(const SizedSampleDecoder&) = delete;
  /// Makes a sample of its own size. Its payload's share grows to what is expected before the image is
  /// decoded; waits for it where less is left. Throws as SampleDecoder::make.
  [[nodiscard]] SizedSample make_sized(const SampleList& list, std::size_t index,
                                       MemoryBudget::Share& payload);
  [[nodiscard]] const SampleReader& files() const { return files_; }

 private:
  void complete(std::string_view file, const ImageHeader& header, ImagePlan& plan);
  [[nodiscard]] std::uint64_t made_bytes(const ImageHeader& header, const ImagePlan& plan) const;
  [[nodiscard]] std::uint64_t expected_payload(const TransformPlan& plan) const;
  /// Whether pixels are encoded as JPEG.
  [[nodiscard]] bool is_encoded(const TransformPlan& plan) const;
  /// Whether pixels that are not encoded are compressed, and by which codec.
  [[nodiscard]] bool is_compressed() const;
  [[nodiscard]] bool is_photo(const TransformPlan& plan) const;
  [[nodiscard]] const TransformPlan& plan() const { return reader_.plan().transform; }
  [[nodiscard]] SizedSample store(const ImageReader::Decoded& image);
  /// Writes the file in tiles, or as it is, where it can be read as JPEG from there.
  [[nodiscard]] bool keep_jpeg(ByteBuffer& payload);
  void store_pixels(const ImageReader::Decoded& image, SizedSample& sample);
  void encode(Image& decoded, SizedSample& sample);
  void compress(const SampleShape& shape, SizedSample& sample);
  void append_masks(const SampleList& list, std::size_t index, SizedSample& sample);

  DecoderContext& context_;
  SampleReader files_;
  ImageReader& reader_;
  bool keeps_jpeg_ = false;
  bool keeps_file_ = false;  // its bytes stay as they are
  bool is_resized_ = false;
};

}  // namespace chunkhit
