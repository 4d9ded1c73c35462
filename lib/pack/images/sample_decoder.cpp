#include "pack/images/sample_decoder.h"

#include <algorithm>
#include <new>
#include <optional>
#include <string>

#include "base/words.h"
#include "chunkhit/error.h"
#include "decode/channels.h"
#include "decode/formats.h"
#include "store/part.h"
#include "transform/orientation.h"

namespace chunkhit {
namespace {

std::string sides_text(const SampleShape& shape) {
  return std::to_string(shape.width) + "x" + std::to_string(shape.height) + "x" +
         std::to_string(shape.channels);
}

void check_limit(std::uint64_t needed, const PackImagesSpec& spec, const std::string& what = "") {
  if (needed > spec.max_decode_bytes)
    throw ImageError(what + "needs " + size_text(needed) + " of memory to decode, over the limit of " +
                     size_text(spec.max_decode_bytes) + " (`max_decode_bytes`)");
}

}  // namespace

void throw_unreadable(std::string_view file, const MachineError& error) {
  throw Error(
      ErrorCode::try_again,
      std::string(file) + ": " + error.what() +
          " (tried three times); rerun the same command to resume when the disk, network or limit allows it");
}

/// Makes a sample in several tries where the machine cannot read its file or has too little memory.
template <class Make>
auto make_with_retries(std::string_view file, Make make) -> decltype(make()) {
  try {
    return with_retries([&] {
      try {
        return make();
      } catch (const std::bad_alloc&) {
        throw MachineError("needs more memory to decode than there is");
      }
    });
  } catch (const MachineError& error) {
    throw_unreadable(file, error);
  }
}

std::uint64_t max_pixels(const PackImagesSpec& spec) {
  constexpr std::uint64_t kBytesPerPixel = 5;
  const std::uint64_t max_pixels =
      std::max(DecodeOptions().max_pixels, spec.max_decode_bytes / kBytesPerPixel);
  return spec.sizes == Sizes::fixed ? max_pixels : std::min(max_pixels, kMaxOwnPixels);
}

DecodeOptions decode_options(const PackImagesSpec& spec) {
  return {.max_pixels = max_pixels(spec),
          .accept_warnings = spec.accept_warnings,
          .check = spec.check,
          .max_seconds = spec.max_seconds_per_image,
          .scale_from = spec.scale_from};
}

int effective_orientation(const PackImagesSpec& spec, const ImageHeader& header) {
  return spec.exif == Exif::apply ? header.orientation : 1;
}

TransformSpec sample_transform(const PackImagesSpec& spec, const ImageHeader& header) {
  TransformSpec transform = spec.transform;
  const OwnSizesSpec& own = spec.own_sizes;
  if (own.max_side > 0 && std::max(header.width, header.height) > own.max_side) {
    transform.resize = Resize::long_side;
    transform.resize_width = own.max_side;
  }
  if (own.short_side > 0 && std::min(header.width, header.height) > own.short_side) {
    transform.resize = Resize::short_side;
    transform.resize_width = own.short_side;
  }
  return transform;
}

TransformPlan plan_sample(const PackImagesSpec& spec, const ImageHeader& header,
                          std::vector<SampleField> fields) {
  const bool swapped = swaps_sides(effective_orientation(spec, header));
  TransformPlan plan = plan_transform(sample_transform(spec, header), swapped ? header.height : header.width,
                                      swapped ? header.width : header.height, header.channels, header.scales,
                                      effective_orientation(spec, header));
  plan.sample.pairs = std::move(fields);
  return plan;
}

/// An image of this header, how its aspect ratio changes, and what the crop removes of it or adds.
InputImage input_image(const ImageHeader& header, int orientation, const TransformPlan& plan) {
  const bool swapped = swaps_sides(orientation);
  InputImage input{header.format, swapped ? header.height : header.width,
                   swapped ? header.width : header.height};
  const std::uint64_t wide = std::uint64_t{plan.resized_width} * input.height;
  const std::uint64_t high = std::uint64_t{plan.resized_height} * input.width;
  input.squeeze = static_cast<double>(std::max(wide, high)) / static_cast<double>(std::min(wide, high));
  input.crop_loss = 1 - static_cast<double>(std::uint64_t{plan.window.width} * plan.window.height) /
                            static_cast<double>(std::uint64_t{plan.resized_width} * plan.resized_height);
  input.padding = 1 - static_cast<double>(std::uint64_t{plan.canvas.width} * plan.canvas.height) /
                          static_cast<double>(std::uint64_t{plan.sample.width} * plan.sample.height);
  input.loses_alpha = has_alpha(header.channels) && !has_alpha(plan.channels);
  input.has_more_frames = header.has_more_frames;
  return input;
}

std::uint64_t SampleDecoder::plan(std::string_view file, const ImageHeader& header) {
  orientation_ = effective_orientation(context_.spec, header);
  plan_ = plan_sample(context_.spec, header, context_.sample.pairs);
  if (!plan_.error.empty()) throw ImageError(plan_.error);
  input_ = input_image(header, orientation_, plan_);
  composes_ = input_.loses_alpha && context_.spec.transform.background.has_value();
  input_.loses_alpha = input_.loses_alpha && !composes_;
  check_plan(file, header);
  const std::uint64_t needed = needed_bytes(header, decode_plan());
  check_limit(needed, context_.spec);
  check_budget(needed, file);
  return needed;
}

/// Ends the run where the sample has another shape than the pack's.
void SampleDecoder::check_plan(std::string_view file, const ImageHeader&) {
  if (plan_.sample != context_.sample)
    throw Error(ErrorCode::bad_data, "images of different shapes: " + context_.first_file + " gives " +
                                         sides_text(context_.sample) + ", " + std::string(file) + " gives " +
                                         sides_text(plan_.sample) +
                                         " (width x height x channels); `resize` WxH, `crop` or `fit` make "
                                         "them alike, `sizes` own keeps them");
}

/// The plan is for the upright image, decoders see it as it is stored: the region is turned back.
DecodePlan SampleDecoder::decode_plan() const {
  const bool swapped = swaps_sides(orientation_);
  const std::uint32_t stored_width = swapped ? plan_.source_height : plan_.source_width;
  const std::uint32_t stored_height = swapped ? plan_.source_width : plan_.source_height;
  return {plan_.shrink, stored_region(plan_.region, orientation_, stored_width, stored_height),
          composes_ ? 4 : plan_.channels};
}

/// Estimates the peak memory of a sample: of the decoder alone, of the decoder beside the decoded region, or
/// of what is made of the region (which is held twice if it is turned). The file is held all the time.
std::uint64_t SampleDecoder::needed_bytes(const ImageHeader& header, const DecodePlan& wanted) const {
  const std::uint64_t region_bytes =
      std::uint64_t{wanted.region.width} * wanted.region.height * wanted.channels;
  const std::uint64_t held = file_.size() + region_bytes * (orientation_ == 1 ? 1 : 2);
  return std::max(file_.size() + std::max(header.peak_bytes, header.extra_bytes + region_bytes),
                  made_bytes(header, held));
}

std::uint64_t SampleDecoder::made_bytes(const ImageHeader&, std::uint64_t held) const {
  return held + transform_.needed_bytes(plan_);
}

/// Ends the run where an image needs more memory than all images together may take.
void SampleDecoder::check_budget(std::uint64_t needed, std::string_view file) const {
  const std::uint64_t most = std::max(context_.kept_bytes, context_.budget.total());
  if (needed > most)
    throw Error(ErrorCode::usage,
                "`memory_bytes`: " + std::string(file) + " needs " + size_text(needed) + " to decode, " +
                    size_text(most) +
                    " are left for it; rerun with more to resume, or reject such images by a "
                    "lower `max_decode_bytes`");
}

Image& SampleDecoder::upright(const Decoded& image) {
  if (orientation_ == 1) return image.pixels;
  turn_upright(image.pixels.view(), orientation_, upright_);
  return upright_;
}

void SampleDecoder::transform(const Decoded& image, std::uint8_t* slot) {
  transform_.apply(plan_, upright(image).view(), slot);
}

/// Frees buffers of more than kept_bytes.
void SampleDecoder::free_large_buffers() {
  const std::uint64_t held =
      file_.capacity() + stored_.pixels.capacity() + upright_.pixels.capacity() + transform_.held_bytes();
  if (held > context_.kept_bytes) {
    ByteBuffer().swap(file_);
    ByteBuffer().swap(stored_.pixels);
    ByteBuffer().swap(upright_.pixels);
    transform_.release();
  }
}

SampleFile SampleDecoder::open(const SampleList& list, std::size_t index) {
  stamp_ = {};
  warnings_.clear();
  SampleFile opened = open_file(list, index);
  if (opened.error) throw ImageError(opened.error);
  stamp_ = opened.stamp;
  check_limit(opened.bytes, context_.spec);
  check_budget(opened.bytes, list.file(index));
  return opened;
}

// The header says how much memory is needed. Where less is left, the thread releases what the image holds,
// waits for the amount and starts over: threads that hold memory of images while they wait could deadlock.
SampleDecoder::Decoded SampleDecoder::read(const SampleList& list, std::size_t index,
                                           MemoryBudget::Share* payload) {
  for (std::uint64_t needed = 0, payload_bytes = 0;;) {
    if (payload != nullptr) payload->grow(payload_bytes);
    const SampleFile opened = open(list, index);
    needed = std::max(needed, opened.bytes);
    Decoded image{MemoryBudget::Share(context_.budget, needed > context_.kept_bytes ? needed : 0),
                  std::unique_ptr<SampleDecoder, FreeLargeBuffers>(this), stored_};
    if (const FileError error = opened.read(file_)) throw ImageError(error);
    const bool is_file = opened.pixels.channels == 0;
    std::optional<ImageFile> file;
    if (is_file) file.emplace(file_, decode_options(context_.spec));
    needed = plan(list.file(index),
                  is_file ? file->header() : pixels_header(opened.pixels, max_pixels(context_.spec)));
    payload_bytes = payload != nullptr ? expected_payload() : 0;
    if (payload != nullptr && !payload->try_grow(payload_bytes)) continue;
    if (needed > context_.kept_bytes && !image.share.try_grow(needed)) continue;
    if (is_file)
      decode(*file, image.pixels);
    else
      take_pixels(opened.pixels, decode_plan(), image.pixels);
    if (composes_) compose_over(*context_.spec.transform.background, plan_.channels, image.pixels);
    return image;
  }
}

void SampleDecoder::decode(ImageFile& file, Image& image) {
  file.decode(decode_plan(), image);
  input_.max_value = file.header().max_value;
  warnings_ = file.warnings();
  is_damaged_ = file.is_damaged();
}

void SampleDecoder::take_pixels(const SampleShape& shape, const DecodePlan& wanted, Image& image) {
  const Rect& region = wanted.region;
  image.reshape(region.width, region.height, wanted.channels);
  const bool is_whole = image.pixels.size() == file_.size();
  if (is_whole && wanted.channels == shape.channels) return image.pixels.swap(file_);
  for (std::uint32_t y = 0; y < region.height; ++y) {
    const std::size_t pixel = std::size_t{region.y + y} * shape.width + region.x;
    convert_channels(file_.data() + pixel * shape.channels, shape.channels, image.row(y), wanted.channels,
                     region.width);
  }
}

void SampleDecoder::make_image(const SampleList& list, std::size_t index, const std::function<void()>& make) {
  try {
    make_with_retries(list.file(index), [&] { make(); });
  } catch (const ImageError&) {
    if (stamp_ != FileStamp{}) stamp_ = joined_stamps(stamp_, context_.folders(), list, index);
    throw;
  }
}

void SampleDecoder::make(const SampleList& list, std::size_t index, std::uint8_t* slot) {
  make_image(list, index, [&] { transform(read(list, index), slot); });
  for (std::size_t field = 0; field < context_.sample.pairs.size(); ++field)
    make_field(list, index, field, slot + context_.sample.offset_of(field));
}

void SampleDecoder::make_field(const SampleList& list, std::size_t index, std::size_t field,
                               std::uint8_t* out) {
  const PairFolder& pair = context_.pairs[field];
  try {
    if (traits_of(pair.field.role).is_image)
      make_view(list, index, pair, out);
    else
      make_mask(list, index, pair, out);
  } catch (const ImageError&) {
    stamp_ = joined_stamps(stamp_, context_.folders(), list, index, field);
    throw;
  }
}

SampleFile SampleDecoder::open_file(const SampleList& list, std::size_t index) {
  return open_sample(context_.root, list, index);
}

namespace {

/// Makes second images, each from its own file, as the first ones are made.
class ViewDecoder final : public SampleDecoder {
 public:
  using SampleDecoder::SampleDecoder;
  /// Writes the view of an image. Throws as `make`.
  void make(const SampleList& list, std::size_t index, const PairFolder& pair, const InputImage& image,
            std::uint8_t* out) {
    pair_ = &pair;
    name_.clear();
    is_open_ = false;
    image_ = {image.width, image.height};
    try {
      make_with_retries(list.file(index), [&] { transform(read(list, index), out); });
    } catch (const ImageError& error) {
      throw ImageError(is_open_ ? pair_text(pair, name_) + error.reason() : error.reason());
    }
  }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  SampleFile open_file(const SampleList& list, std::size_t index) override {
    MaskFile view = open_pair(context_.root, *pair_, list, index);
    name_ = view.name;
    is_open_ = true;
    return std::move(view.file);
  }

  /// A view of another shape is a reject, not the end of the run.
  void check_plan(std::string_view, const ImageHeader&) override {
    if (input_.width != image_.width || input_.height != image_.height)
      throw ImageError("has " + std::to_string(input_.width) + " x " + std::to_string(input_.height) +
                       " pixels, expected " + std::to_string(image_.width) + " x " +
                       std::to_string(image_.height) + " as its image");
    if (plan_.sample != context_.sample)
      throw ImageError("gives " + sides_text(plan_.sample) + ", expected " + sides_text(context_.sample) +
                       " as its image (width x height x channels)");
  }

  const PairFolder* pair_ = nullptr;
  std::string name_;
  bool is_open_ = false;
  MaskDecoder::Size image_{};
};

}  // namespace

void SampleDecoder::make_view(const SampleList& list, std::size_t index, const PairFolder& pair,
                              std::uint8_t* out) {
  if (!view_) view_ = std::make_unique<ViewDecoder>(context_);
  auto& view = static_cast<ViewDecoder&>(*view_);
  view.make(list, index, pair, input_, out);
  if (!view.name().empty())
    stamp_ = joined_stamp(stamp_, view.stamp());  // of a file, not of a program's pixels
  if (view.warnings().empty()) return;
  warnings_ += (warnings_.empty() ? "" : "; ") + pair_text(pair, view.name()) + view.warnings();
}

void SampleDecoder::make_mask(const SampleList& list, std::size_t index, const PairFolder& pair,
                              std::uint8_t* out) {
  const std::string_view file = list.file(index);
  // The file, its pixels, and what is made of them for a sample of its own size, which has all masks.
  constexpr std::uint64_t kMaskCopies = 3;
  std::uint64_t bytes = (kMaskCopies + context_.sample.pairs.size()) * input_.width * input_.height;
  for (std::uint64_t needed = bytes; needed != 0; bytes = std::max(bytes, needed)) {
    MemoryBudget::Share share;
    if (needed > context_.kept_bytes) {
      check_limit(needed, context_.spec, "its " + pair.field.name + ": ");
      check_budget(needed, file);
      share = MemoryBudget::Share(context_.budget, needed);
    }
    needed = make_with_retries(file, [&] {
      return mask_.make(context_.root, pair, list, index, {input_.width, input_.height},
                        std::max(needed, context_.kept_bytes), out);
    });
    if (needed != 0) mask_.release();  // nothing is held while the thread waits for more
  }
  stamp_ = joined_stamp(stamp_, mask_.stamp());
  if (bytes > context_.kept_bytes) mask_.release();
}

}  // namespace chunkhit
