// From a row of the list to the bytes of its sample: read, decode, turn, transform; its mask or view
// likewise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

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

/// Makes samples, of one shape unless a subclass plans otherwise. Each thread has its own: it keeps buffers
/// and tables.
class SampleDecoder {
 public:
  explicit SampleDecoder(DecoderContext& context)
      : context_(context), transform_(context.spec.transform), mask_(context.spec) {}
  virtual ~SampleDecoder() = default;
  /// Writes the bytes of a list's sample to `slot`. Throws ImageError where it cannot be packed, bad_data
  /// when the image's shape differs from the pack's or its container changed, try_again when the machine
  /// could not read the file in several tries.
  void make(const SampleList& list, std::size_t index, std::uint8_t* slot);
  /// What is odd or damaged about the last file, whose sample was made all the same; empty as a rule.
  [[nodiscard]] const std::string& warnings() const { return warnings_; }
  /// The last image as it was read, where its sample was made.
  [[nodiscard]] const InputImage& input() const { return input_; }
  /// The stamp of the last file.
  [[nodiscard]] const FileStamp& stamp() const { return stamp_; }

 protected:
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
  /// Checks what is planned of an image; may change it. Throws bad_data, which ends the run, or ImageError.
  virtual void check_plan(std::string_view file, const ImageHeader& header);
  /// What is wanted of the file. The plan is for the upright image, decoders see it as it is stored.
  [[nodiscard]] virtual DecodePlan decode_plan() const;
  /// Estimates what making the sample takes, with the file and the decoded region, which are `held`.
  [[nodiscard]] virtual std::uint64_t made_bytes(const ImageHeader& header, std::uint64_t held) const;
  /// About how many bytes a planned image is stored in, where it has no slot.
  [[nodiscard]] virtual std::uint64_t expected_payload() const { return 0; }
  /// The pixels turned upright.
  [[nodiscard]] Image& upright(const Decoded& image);
  void transform(const Decoded& image, std::uint8_t* slot);
  /// Makes a sample without its fields, in several tries. A reject's stamp covers them, too, so that a later
  /// run finds either changed.
  void make_image(const SampleList& list, std::size_t index, const std::function<void()>& make);
  /// Makes a field, by its number, of the image that was made last.
  void make_field(const SampleList& list, std::size_t index, std::size_t field, std::uint8_t* out);
  /// Opens the file of a sample.
  [[nodiscard]] virtual SampleFile open_file(const SampleList& list, std::size_t index);
  void free_large_buffers();

  DecoderContext& context_;
  InputImage input_;
  ImageTransform transform_;
  MaskDecoder mask_;
  std::unique_ptr<SampleDecoder> view_;  // of the second images, once one was needed
  ByteBuffer file_;
  Image stored_;
  TransformPlan plan_;
  int orientation_ = 1;
  bool is_damaged_ = false;  // the last file, whose pixels were taken all the same

 private:
  /// Opens a sample, and checks that its bytes may be held.
  [[nodiscard]] SampleFile open(const SampleList& list, std::size_t index);
  /// Plans what is made of an image, and returns how much memory that takes.
  [[nodiscard]] std::uint64_t plan(std::string_view file, const ImageHeader& header);
  void decode(ImageFile& file, Image& image);
  /// Takes the region that is wanted of pixels that were read as they are.
  void take_pixels(const SampleShape& shape, const DecodePlan& wanted, Image& image);
  [[nodiscard]] std::uint64_t needed_bytes(const ImageHeader& header, const DecodePlan& wanted) const;
  void check_budget(std::uint64_t needed, std::string_view file) const;
  void make_mask(const SampleList& list, std::size_t index, const PairFolder& pair, std::uint8_t* out);
  void make_view(const SampleList& list, std::size_t index, const PairFolder& pair, std::uint8_t* out);

  FileStamp stamp_;
  std::string warnings_;
  Image upright_;
  bool composes_ = false;  // shows a background behind transparent pixels
};

/// Throws try_again for a file that the machine cannot read.
[[noreturn]] void throw_unreadable(std::string_view file, const MachineError& error);

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
