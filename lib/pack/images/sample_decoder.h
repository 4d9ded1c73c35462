// From a row of the list to the bytes of its sample: its image, its masks and views.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "pack/images/image_reader.h"

namespace chunkhit {

/// Reads what a sample is made of: its image, and its fields, each from its own file. One thread.
class SampleReader {
 public:
  explicit SampleReader(DecoderContext& context) : context_(context), image_(context), mask_(context.spec) {}
  using Make = std::function<void(const ImageReader::Decoded& image)>;
  /// Reads the image of a list's sample and makes something of it, in several tries. A reject's stamp covers
  /// its fields, too, so that a later run finds either changed. Throws as ImageReader::read, and try_again.
  void make_image(const SampleList& list, std::size_t index, const ImageReader::Complete& complete,
                  const Make& make, MemoryBudget::Share* payload = nullptr);
  /// Makes a field, by its number, of the image that was made last. Throws likewise.
  void make_field(const SampleList& list, std::size_t index, std::size_t field, std::uint8_t* out);
  [[nodiscard]] ImageReader& image() { return image_; }
  /// What is odd or damaged about the last files, whose sample was made all the same; empty as a rule.
  [[nodiscard]] const std::string& warnings() const { return warnings_; }
  /// The last image as it was read, where its sample was made.
  [[nodiscard]] const InputImage& input() const { return image_.plan().input; }
  /// The stamp of the last files.
  [[nodiscard]] const FileStamp& stamp() const { return stamp_; }
  /// The shape of an image's masks in the sample.
  [[nodiscard]] SampleShape mask_shape() const { return mask_.plan({input().width, input().height}).sample; }

 private:
  void make_mask(const SampleList& list, std::size_t index, const PairFolder& pair, std::uint8_t* out);
  void make_view(const SampleList& list, std::size_t index, const PairFolder& pair, std::uint8_t* out);
  /// A view of another shape than its image is a reject, not the end of the run.
  void check_view(const ImagePlan& view) const;

  DecoderContext& context_;
  ImageReader image_;
  std::optional<ImageReader> view_;  // once one was needed
  MaskDecoder mask_;
  FileStamp stamp_;
  std::string warnings_;
};

/// Makes samples of one shape. Each thread has its own.
class SampleDecoder {
 public:
  explicit SampleDecoder(DecoderContext& context) : context_(context), files_(context) {}
  /// Writes the bytes of a list's sample to `slot`. Throws ImageError where it cannot be packed, bad_data
  /// when the image's shape differs from the pack's or its container changed, try_again when the machine
  /// could not read the file in several tries.
  void make(const SampleList& list, std::size_t index, std::uint8_t* slot);
  [[nodiscard]] const SampleReader& files() const { return files_; }

 private:
  DecoderContext& context_;
  SampleReader files_;
};

}  // namespace chunkhit
