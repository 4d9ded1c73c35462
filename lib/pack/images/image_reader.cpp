#include "pack/images/image_reader.h"

#include <algorithm>
#include <new>
#include <optional>
#include <string>

#include "base/words.h"
#include "chunkhit/error.h"
#include "decode/channels.h"
#include "store/part.h"
#include "transform/orientation.h"

namespace chunkhit {

std::string sides_text(const SampleShape& shape) {
  return std::to_string(shape.width) + "x" + std::to_string(shape.height) + "x" +
         std::to_string(shape.channels);
}

void check_decode_limit(std::uint64_t needed, const PackImagesSpec& spec, const std::string& what) {
  if (needed > spec.max_decode_bytes)
    throw ImageError(RejectKind::too_large, what + "needs " + size_text(needed) +
                                                " of memory to decode, over the limit of " +
                                                size_text(spec.max_decode_bytes) + " (`max_decode_bytes`)");
}

void throw_unreadable(std::string_view file, const MachineError& error) {
  throw Error(
      ErrorCode::try_again,
      std::string(file) + ": " + error.what() +
          " (tried three times); rerun the same command to resume when the disk, network or limit allows it");
}

void make_with_retries(std::string_view file, const std::function<void()>& make) {
  try {
    with_retries([&] {
      try {
        make();
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
  return spec.exif == ExifUse::apply ? header.orientation : 1;
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

namespace {

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

/// The plan is for the upright image, decoders see it as it is stored: the region is turned back.
ImagePlan plan_image(const DecoderContext& context, const ImageHeader& header) {
  ImagePlan plan;
  plan.orientation = effective_orientation(context.spec, header);
  plan.transform = plan_sample(context.spec, header, context.sample.pairs);
  const TransformPlan& upright = plan.transform;
  if (!upright.error.empty()) throw ImageError(RejectKind::shape, upright.error);
  plan.input = input_image(header, plan.orientation, upright);
  plan.composes = plan.input.loses_alpha && context.spec.transform.background.has_value();
  plan.input.loses_alpha = plan.input.loses_alpha && !plan.composes;
  const bool swapped = swaps_sides(plan.orientation);
  const std::uint32_t stored_width = swapped ? upright.source_height : upright.source_width;
  const std::uint32_t stored_height = swapped ? upright.source_width : upright.source_height;
  plan.decode = {upright.shrink, stored_region(upright.region, plan.orientation, stored_width, stored_height),
                 plan.composes ? 4 : upright.channels};
  return plan;
}

std::uint64_t region_bytes(const DecodePlan& wanted) {
  return std::uint64_t{wanted.region.width} * wanted.region.height * wanted.channels;
}

}  // namespace

std::uint64_t ImageReader::held_bytes(const ImagePlan& plan) const {
  return file_.size() + region_bytes(plan.decode) * (plan.orientation == 1 ? 1 : 2);
}

// The peak is of the decoder alone, of the decoder beside the decoded region, or of what is made of the
// region (which is held twice if it is turned). The file is held all the time.
std::uint64_t ImageReader::make_plan(std::string_view file, const ImageHeader& header,
                                     const Complete& complete) {
  plan_ = plan_image(context_, header);
  complete(header, plan_);
  const std::uint64_t decoding = std::max(header.peak_bytes, header.extra_bytes + region_bytes(plan_.decode));
  const std::uint64_t needed = std::max(file_.size() + decoding, plan_.made_bytes);
  check_decode_limit(needed, context_.spec);
  check_budget(needed, file);
  return needed;
}

void ImageReader::check_budget(std::uint64_t needed, std::string_view file) const {
  const std::uint64_t most = std::max(context_.kept_bytes, context_.budget.total());
  if (needed > most)
    throw Error(ErrorCode::usage,
                "`memory_bytes`: " + std::string(file) + " needs " + size_text(needed) + " to decode, " +
                    size_text(most) +
                    " are left for it; rerun with more to resume, or reject such images by a "
                    "lower `max_decode_bytes`");
}

Image& ImageReader::upright(const Decoded& image) {
  if (plan_.orientation == 1) return image.pixels;
  turn_upright(image.pixels.view(), plan_.orientation, upright_);
  return upright_;
}

void ImageReader::transform(const Decoded& image, std::uint8_t* slot) {
  transform_.apply(plan_.transform, upright(image).view(), slot);
}

void ImageReader::free_large_buffers() {
  const std::uint64_t held =
      file_.capacity() + stored_.pixels.capacity() + upright_.pixels.capacity() + transform_.held_bytes();
  if (held > context_.kept_bytes) {
    ByteBuffer().swap(file_);
    ByteBuffer().swap(stored_.pixels);
    ByteBuffer().swap(upright_.pixels);
    transform_.release();
  }
}

SampleFile ImageReader::open_within_limits(std::string_view file, const Open& open) {
  stamp_ = {};
  warnings_.clear();
  SampleFile opened = open();
  if (opened.error) throw ImageError(opened.error);
  stamp_ = opened.stamp;
  check_decode_limit(opened.bytes, context_.spec);
  check_budget(opened.bytes, file);
  return opened;
}

// The header says how much memory is needed. Where less is left, the thread releases what the image holds,
// waits for the amount and starts over: threads that hold memory of images while they wait could deadlock.
ImageReader::Decoded ImageReader::read(std::string_view name, const Open& open, const Complete& complete,
                                       MemoryBudget::Share* payload) {
  for (std::uint64_t needed = 0, payload_bytes = 0;;) {
    if (payload != nullptr) payload->grow(payload_bytes);
    const SampleFile opened = open_within_limits(name, open);
    needed = std::max(needed, opened.bytes);
    Decoded image{MemoryBudget::Share(context_.budget, needed > context_.kept_bytes ? needed : 0),
                  std::unique_ptr<ImageReader, FreeLargeBuffers>(this), stored_};
    if (const FileError error = opened.read(file_)) throw ImageError(error);
    const bool is_file = opened.pixels.channels == 0;
    std::optional<ImageFile> file;
    if (is_file) file.emplace(file_, decode_options(context_.spec));
    needed = make_plan(
        name, is_file ? file->header() : pixels_header(opened.pixels, max_pixels(context_.spec)), complete);
    payload_bytes = payload != nullptr ? plan_.payload_bytes : 0;
    if (payload != nullptr && !payload->try_grow(payload_bytes)) continue;
    if (needed > context_.kept_bytes && !image.share.try_grow(needed)) continue;
    if (is_file)
      decode(*file, image.pixels);
    else
      take_pixels(opened.pixels, image.pixels);
    if (plan_.composes)
      compose_over(*context_.spec.transform.background, plan_.transform.channels, image.pixels);
    return image;
  }
}

void ImageReader::decode(ImageFile& file, Image& image) {
  file.decode(plan_.decode, image);
  plan_.input.max_value = file.header().max_value;
  warnings_ = file.warnings();
  is_damaged_ = file.is_damaged();
}

void ImageReader::take_pixels(const SampleShape& shape, Image& image) {
  const DecodePlan& wanted = plan_.decode;
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

}  // namespace chunkhit
