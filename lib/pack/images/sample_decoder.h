// From a row of the list to the bytes of its sample: read, decode, turn, transform.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/memory_budget.h"
#include "chunkhit/image_spec.h"
#include "decode/image_decoder.h"
#include "listing/root_folder.h"
#include "listing/sample_list.h"
#include "pack/images/mask_decoder.h"
#include "store/part.h"
#include "transform/image_transform.h"
#include "types/image.h"
#include "types/input_sizes.h"
#include "types/pixel_sums.h"

namespace chunkhit {

/// What all decoders of a run share.
struct DecoderContext {
  const PackImagesSpec& spec;
  const RootFolder& root;
  SampleShape sample;            ///< every sample must have this shape
  std::string first_file;        ///< the image that the shape comes from, for messages
  MemoryBudget budget;           ///< for images that need more than kept_bytes
  std::uint64_t kept_bytes = 0;  ///< what each decoder may hold without a share of the budget
  std::optional<RootFolder> masks = mask_folder(spec);
  [[nodiscard]] InputFolders folders() const { return {root, masks}; }
};

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

/// Makes samples; each thread has its own, because it keeps buffers and tables.
class SampleDecoder {
 public:
  explicit SampleDecoder(DecoderContext& context)
      : context_(context), transform_(context.spec.transform), mask_(context.spec) {}
  /// Writes the bytes of a list's sample to `slot`. Throws ImageError where it cannot be packed, bad_data
  /// when the image's shape differs from the pack's or its container changed, try_again when the machine
  /// could not read the file in several tries.
  void make(const SampleList& list, std::size_t index, std::uint8_t* slot);
  /// Makes a sample of its own size. Its payload's share grows to what is expected before the image is
  /// decoded; waits for it where less is left. Throws the same.
  [[nodiscard]] SizedSample make_sized(const SampleList& list, std::size_t index,
                                       MemoryBudget::Share& payload);
  /// What is odd or damaged about the last file, whose sample was made all the same; empty as a rule.
  [[nodiscard]] const std::string& warnings() const { return warnings_; }
  /// The last image as it was read, where its sample was made.
  [[nodiscard]] const InputImage& input() const { return input_; }
  /// The stamp of the last file.
  [[nodiscard]] const FileStamp& stamp() const { return stamp_; }

 private:
  struct FreeLargeBuffers {
    void operator()(SampleDecoder* decoder) const { decoder->free_large_buffers(); }
  };
  /// An image in its decoder's buffers. Large ones are freed at its end, and then its share of memory, also
  /// after an error, because other threads may wait for it.
  struct Decoded {
    MemoryBudget::Share share;
    std::unique_ptr<SampleDecoder, FreeLargeBuffers> buffers;
    Image& pixels;  ///< of the region that is wanted, as stored
  };
  /// Reads and decodes an image; with `payload`, that share grows first.
  [[nodiscard]] Decoded read(const SampleList& list, std::size_t index,
                             MemoryBudget::Share* payload = nullptr);
  /// Opens a sample, and checks that its bytes may be held.
  [[nodiscard]] SampleFile open(const SampleList& list, std::size_t index);
  /// Plans what is made of an image, and returns how much memory that takes.
  [[nodiscard]] std::uint64_t plan(std::string_view file, const ImageHeader& header);
  void decode(ImageFile& file, Image& image);
  /// Takes the region that is wanted of pixels that were read as they are.
  void take_pixels(const SampleShape& shape, const DecodePlan& wanted, Image& image);
  /// The pixels turned upright.
  [[nodiscard]] Image& upright(const Decoded& image);
  void transform(const Decoded& image, std::uint8_t* slot);
  template <class Make>
  auto make_image(const SampleList& list, std::size_t index, Make make) -> decltype(make());
  /// Makes the mask of the image that was made last.
  void make_mask(const SampleList& list, std::size_t index, std::uint8_t* out);
  void append_mask(const SampleList& list, std::size_t index, SizedSample& sample);
  [[nodiscard]] bool is_sized() const { return context_.spec.sizes == Sizes::own; }
  [[nodiscard]] bool is_encoded() const;
  /// Whether pixels that are not encoded are compressed, and by which codec.
  [[nodiscard]] bool is_compressed() const;
  [[nodiscard]] bool is_photo() const;
  /// About how many bytes the payload of a planned image has.
  [[nodiscard]] std::uint64_t expected_payload() const;
  [[nodiscard]] SizedSample store(const Decoded& image);
  /// Writes the file in tiles, or as it is, where it can be read as JPEG from there.
  [[nodiscard]] bool keep_jpeg(ByteBuffer& payload);
  void store_pixels(const Decoded& image, SizedSample& sample);
  void encode(SizedSample& sample);
  void compress(const SampleShape& shape, SizedSample& sample);
  void check_shape(std::string_view file) const;
  void plan_sized(std::string_view file, const ImageHeader& header);
  [[nodiscard]] DecodePlan decode_plan() const;
  [[nodiscard]] std::uint64_t needed_bytes(const ImageHeader& header, const DecodePlan& wanted) const;
  [[nodiscard]] std::uint64_t sized_bytes(const ImageHeader& header, std::uint64_t held) const;
  void check_budget(std::uint64_t needed, std::string_view file) const;
  void free_large_buffers();

  DecoderContext& context_;
  FileStamp stamp_;
  std::string warnings_;
  InputImage input_;
  ImageTransform transform_;
  MaskDecoder mask_;
  ByteBuffer file_;
  Image stored_;
  Image upright_;
  TransformPlan plan_;
  int orientation_ = 1;
  bool composes_ = false;  // shows a background behind transparent pixels
  // Of samples of their own sizes:
  bool keeps_jpeg_ = false;
  bool keeps_file_ = false;  // its bytes stay as they are
  bool is_resized_ = false;
};

/// Throws try_again for a file that the machine cannot read.
[[noreturn]] void throw_unreadable(std::string_view file, const MachineError& error);

/// Plans the transformation of an image of this header, turned upright if the spec says so.
[[nodiscard]] TransformPlan plan_sample(const PackImagesSpec& spec, const ImageHeader& header);

/// Returns the most pixels of an image that is decoded: the decoder's limit, more where `max_decode_bytes`
/// has room for them.
[[nodiscard]] std::uint64_t max_pixels(const PackImagesSpec& spec);

/// Gives the orientation that a spec lets an image have: 1 where EXIF is ignored.
[[nodiscard]] int effective_orientation(const PackImagesSpec& spec, const ImageHeader& header);

}  // namespace chunkhit
