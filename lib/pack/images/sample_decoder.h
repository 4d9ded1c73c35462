// From a row of the list to the bytes of its sample: read, decode, turn, transform.
#pragma once

#include <cstdint>
#include <functional>
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
  SampleShape sample;                 ///< every sample must have this shape
  std::string first_file;             ///< the image that the shape comes from, for messages
  MemoryBudget budget;                ///< for images that need more than kept_bytes
  std::uint64_t kept_bytes = 0;       ///< what each decoder may hold without a share of the budget
  std::optional<RootFolder> masks{};  ///< folder of the masks, where the spec has one
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
  MemoryBudget::Share share;
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
  /// Makes a sample of its own size, whose payload holds a share of `payloads`; false, without a payload,
  /// where less is left there. Without a budget it takes what it needs. Throws the same.
  [[nodiscard]] bool make_sized(const SampleList& list, std::size_t index, SizedSample& sample,
                                MemoryBudget* payloads);
  /// What is odd or damaged about the last file, whose sample was made all the same; empty as a rule.
  [[nodiscard]] const std::string& warnings() const { return warnings_; }
  /// The last image as it was read, where its sample was made.
  [[nodiscard]] const InputImage& input() const { return input_; }
  /// The stamp of the last file.
  [[nodiscard]] const FileStamp& stamp() const { return stamp_; }

 private:
  /// What is done with a decoded image.
  using Finish = std::function<void()>;
  void make(const SampleList& list, std::size_t index, const Finish& finish);
  void try_make(const SampleList& list, std::size_t index, const Finish& finish);
  void read_and_decode(const SampleFile& opened, std::string_view file, const Finish& finish);
  /// Decodes what is wanted into stored_; false where the budget has less memory left than that takes.
  [[nodiscard]] bool decode(std::string_view file);
  void transform(std::uint8_t* slot);
  /// Makes the mask of the image that was made last.
  void make_mask(std::string_view file, std::uint8_t* out);
  void append_mask(std::string_view file, SizedSample& sample);
  [[nodiscard]] bool is_sized() const { return context_.spec.sizes == Sizes::own; }
  [[nodiscard]] bool is_encoded() const;
  /// Whether pixels that are not encoded are compressed, and by which codec.
  [[nodiscard]] bool is_compressed() const;
  [[nodiscard]] bool is_photo() const;
  /// About how many bytes the payload of a planned image has.
  [[nodiscard]] std::uint64_t expected_payload() const;
  void store_sized(SizedSample& sample);
  /// Writes the file in tiles, or as it is, where it can be read as JPEG from there.
  [[nodiscard]] bool keep_jpeg(ByteBuffer& payload);
  void store_pixels(SizedSample& sample);
  void encode(SizedSample& sample);
  void compress(const SampleShape& shape, SizedSample& sample);
  void plan(std::string_view file, const ImageHeader& header);
  void plan_sized(std::string_view file, const ImageHeader& header);
  [[nodiscard]] bool take_payload_share();
  [[nodiscard]] DecodePlan decode_plan() const;
  [[nodiscard]] std::uint64_t needed_bytes(const ImageHeader& header, const DecodePlan& wanted) const;
  [[nodiscard]] std::uint64_t sized_bytes(const ImageHeader& header, std::uint64_t held) const;
  void check_budget(std::uint64_t needed, std::string_view file) const;
  [[nodiscard]] bool may_hold(std::uint64_t bytes);
  void free_large_buffers();
  void release_memory();

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
  MemoryBudget::Share share_;
  std::uint64_t awaited_bytes_ = 0;  // above 0: not decoded, because the budget had less left
  // Of samples of their own sizes:
  bool keeps_jpeg_ = false;
  bool keeps_file_ = false;  // its bytes stay as they are
  bool is_resized_ = false;
  MemoryBudget* payloads_ = nullptr;
  MemoryBudget::Share payload_share_;
  bool lacks_payload_share_ = false;
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
