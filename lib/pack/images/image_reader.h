// From an image's file to the pixels that its sample is made of: read, planned, decoded within a budget of
// memory, turned, transformed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_budget.h"
#include "chunkhit/image_spec.h"
#include "decode/image_decoder.h"
#include "listing/root_folder.h"
#include "listing/sample_list.h"
#include "pack/images/mask_decoder.h"
#include "transform/image_transform.h"
#include "types/image.h"
#include "types/input_sizes.h"

namespace chunkhit {

/// What all decoders of a run share.
struct DecoderContext {
  const PackImagesSpec& spec;
  const RootFolder& root;
  SampleShape sample;            ///< every sample must have this shape
  std::string first_file;        ///< the image that the shape comes from, for messages
  MemoryBudget budget;           ///< for images that need more than kept_bytes
  std::uint64_t kept_bytes = 0;  ///< what each decoder may hold without a share of the budget
  std::vector<PairFolder> pairs = pair_folders(spec, sample.pairs);  ///< of the sample's fields
  [[nodiscard]] InputFolders folders() const { return {root, pairs}; }
};

/// What is wanted of an image, and what that takes.
struct ImagePlan {
  TransformPlan transform;          ///< of the upright image
  DecodePlan decode;                ///< of the image as it is stored
  int orientation = 1;              ///< as EXIF numbers it; 1 where it is ignored
  InputImage input;                 ///< the image as it is read
  bool composes = false;            ///< shows a background behind transparent pixels
  std::uint64_t made_bytes = 0;     ///< memory of making the sample, with the file and the decoded region
  std::uint64_t payload_bytes = 0;  ///< about what the sample is stored in, where it has no slot
};

/// Reads images for one thread: it keeps buffers and tables.
class ImageReader {
 public:
  explicit ImageReader(DecoderContext& context) : context_(context), transform_(context.spec.transform) {}
  struct FreeLargeBuffers {
    void operator()(ImageReader* reader) const { reader->free_large_buffers(); }
  };
  /// An image in its reader's buffers. Large ones are freed at its end, and then its share of memory, also
  /// after an error, because other threads may wait for it.
  struct Decoded {
    MemoryBudget::Share share;
    std::unique_ptr<ImageReader, FreeLargeBuffers> buffers;
    Image& pixels;  ///< of the region that is wanted, as stored
  };
  /// Opens the file.
  using Open = std::function<SampleFile()>;
  /// Checks the plan of a sample of the spec, which it may change, and estimates `made_bytes`. Throws
  /// ImageError, or bad_data, which ends the run.
  using Complete = std::function<void(const ImageHeader& header, ImagePlan& plan)>;
  /// Reads and decodes an image; with `payload`, that share grows to plan.payload_bytes first. `file` is for
  /// messages. Throws ImageError, MachineError; usage for more memory than all images may take.
  [[nodiscard]] Decoded read(std::string_view file, const Open& open, const Complete& complete,
                             MemoryBudget::Share* payload = nullptr);
  /// The plan of the last image.
  [[nodiscard]] const ImagePlan& plan() const { return plan_; }
  /// The memory of the file and the decoded region, turned where the plan says so.
  [[nodiscard]] std::uint64_t held_bytes(const ImagePlan& plan) const;
  /// The same, with what the transform of the plan needs.
  [[nodiscard]] std::uint64_t transform_bytes(const ImagePlan& plan) const {
    return held_bytes(plan) + transform_.needed_bytes(plan.transform);
  }
  /// Throws usage where an image needs more memory than all images together may take.
  void check_budget(std::uint64_t needed, std::string_view file) const;
  /// The pixels turned upright.
  [[nodiscard]] Image& upright(const Decoded& image);
  void transform(const Decoded& image, std::uint8_t* slot);
  /// Frees buffers of more than kept_bytes.
  void free_large_buffers();
  /// The bytes of the last file.
  [[nodiscard]] const ByteBuffer& file() const { return file_; }
  /// Whether the pixels of the last file were taken although it is damaged.
  [[nodiscard]] bool is_damaged() const { return is_damaged_; }
  [[nodiscard]] const FileStamp& stamp() const { return stamp_; }  ///< of the last file
  /// What is odd or damaged about the last file, which was decoded all the same; empty as a rule.
  [[nodiscard]] const std::string& warnings() const { return warnings_; }

 private:
  /// Opens a file, and checks that its bytes may be held.
  [[nodiscard]] SampleFile open_within_limits(std::string_view file, const Open& open);
  /// Plans what is made of an image, and returns how much memory that takes.
  [[nodiscard]] std::uint64_t make_plan(std::string_view file, const ImageHeader& header,
                                        const Complete& complete);
  void decode(ImageFile& file, Image& image);
  /// Takes the region that is wanted of pixels that were read as they are.
  void take_pixels(const SampleShape& shape, Image& image);

  DecoderContext& context_;
  ImageTransform transform_;
  ImagePlan plan_;
  ByteBuffer file_;
  Image stored_;
  Image upright_;
  FileStamp stamp_;
  std::string warnings_;
  bool is_damaged_ = false;
};

/// Makes something in several tries where the machine cannot read its file or has too little memory. Throws
/// try_again.
void make_with_retries(std::string_view file, const std::function<void()>& make);

/// Throws try_again for a file that the machine cannot read.
[[noreturn]] void throw_unreadable(std::string_view file, const MachineError& error);

/// Throws ImageError for more memory than `max_decode_bytes`; `what` begins its text.
void check_decode_limit(std::uint64_t needed, const PackImagesSpec& spec, const std::string& what = "");

/// "640x480x3": width, height, channels.
[[nodiscard]] std::string sides_text(const SampleShape& shape);

/// The transformation of an image of this header, with the resizing that its size asks for.
[[nodiscard]] TransformSpec sample_transform(const PackImagesSpec& spec, const ImageHeader& header);

/// Plans a sample of these fields from an image of this header, turned upright if the spec says so.
[[nodiscard]] TransformPlan plan_sample(const PackImagesSpec& spec, const ImageHeader& header,
                                        std::vector<SampleField> fields);

/// Returns the most pixels of an image that is decoded: the decoder's limit, more where `max_decode_bytes`
/// has room for them.
[[nodiscard]] std::uint64_t max_pixels(const PackImagesSpec& spec);

/// How a spec decodes image files.
[[nodiscard]] DecodeOptions decode_options(const PackImagesSpec& spec);

/// Gives the orientation that a spec lets an image have: 1 where EXIF is ignored.
[[nodiscard]] int effective_orientation(const PackImagesSpec& spec, const ImageHeader& header);

}  // namespace chunkhit
