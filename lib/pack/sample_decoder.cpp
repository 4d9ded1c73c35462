#include "pack/sample_decoder.h"

#include <algorithm>
#include <new>
#include <string>

#include "base/words.h"
#include "chunkhit/error.h"
#include "transform/orientation.h"

namespace chunkhit {
namespace {

std::string shape_text(const SampleShape& shape) {
  return std::to_string(shape.width) + "x" + std::to_string(shape.height) + "x" +
         std::to_string(shape.channels);
}

void check_limit(std::uint64_t needed, const PackImagesSpec& spec) {
  if (needed > spec.max_decode_bytes)
    throw ImageError("needs " + bytes_text(static_cast<double>(needed)) +
                     " of memory to decode, over the limit of " +
                     bytes_text(static_cast<double>(spec.max_decode_bytes)) + " (`max_decode_bytes`)");
}

}  // namespace

void throw_unreadable(std::string_view file, const MachineError& error) {
  throw Error(
      ErrorCode::try_again,
      std::string(file) + ": " + error.what() +
          " (tried three times); rerun the same command to resume when the disk, network or limit allows it; "
          "`on_io_error` reject packs without such files");
}

int effective_orientation(const PackImagesSpec& spec, const ImageHeader& header) {
  return spec.exif == Exif::apply ? header.orientation : 1;
}

TransformPlan plan_sample(const PackImagesSpec& spec, const ImageHeader& header) {
  const bool swapped = swaps_sides(effective_orientation(spec, header));
  return plan_transform(spec.transform, swapped ? header.height : header.width,
                        swapped ? header.width : header.height, header.channels, header.scales,
                        effective_orientation(spec, header));
}

/// Plans the transform of an image; one that yields another shape than the pack's ends the run.
void SampleDecoder::plan(std::string_view file, const ImageHeader& header) {
  orientation_ = effective_orientation(context_.spec, header);
  plan_ = plan_sample(context_.spec, header);
  if (!plan_.error.empty()) throw ImageError(plan_.error);
  if (plan_.sample != context_.sample)
    throw Error(ErrorCode::bad_data,
                "images of different shapes: " + context_.first_file + " gives " +
                    shape_text(context_.sample) + ", " + std::string(file) + " gives " +
                    shape_text(plan_.sample) +
                    " (width x height x channels); `resize` WxH, `crop` or `fit` make them alike");
}

/// The plan is for the upright image, decoders see it as it is stored: the region is turned back.
DecodePlan SampleDecoder::decode_plan() const {
  const bool swapped = swaps_sides(orientation_);
  const std::uint32_t stored_width = swapped ? plan_.source_height : plan_.source_width;
  const std::uint32_t stored_height = swapped ? plan_.source_width : plan_.source_height;
  return {plan_.shrink, stored_region(plan_.region, orientation_, stored_width, stored_height),
          plan_.channels};
}

/// Estimates the peak memory of decoding: file, decoder, decoded region (twice if it is turned), transform.
std::uint64_t SampleDecoder::needed_bytes(const ImageHeader& header, const Rect& region) const {
  const std::uint64_t region_bytes = std::uint64_t{region.width} * region.height * plan_.channels;
  return file_.size() + header.extra_bytes + region_bytes * (orientation_ == 1 ? 1 : 2) +
         transform_.needed_bytes(plan_);
}

bool SampleDecoder::decode(std::string_view file) {
  ImageFile image(file_, {context_.spec.max_pixels, context_.spec.accept_warnings, context_.spec.check,
                          context_.spec.max_seconds_per_image});
  plan(file, image.header());
  const DecodePlan wanted = decode_plan();
  const std::uint64_t needed = needed_bytes(image.header(), wanted.region);
  check_limit(needed, context_.spec);
  if (!may_hold(needed)) {
    awaited_bytes_ = needed;
    return false;
  }
  image.decode(wanted, stored_);
  warnings_ = image.warnings();
  return true;
}

void SampleDecoder::transform(std::uint8_t* slot) {
  if (orientation_ != 1) turn_upright(stored_.view(), orientation_, upright_);
  transform_.apply(plan_, orientation_ != 1 ? upright_.view() : stored_.view(), slot);
}

// Takes the missing memory without waiting: a thread that waits must hold none, or threads could deadlock.
bool SampleDecoder::may_hold(std::uint64_t bytes) {
  if (bytes <= std::max(context_.kept_bytes, share_.bytes())) return true;
  if (share_.bytes() > 0) return share_.try_grow(bytes);
  share_ = MemoryBudget::Share::of_what_is_left(context_.budget, bytes);
  return share_.bytes() > 0;
}

/// Keeps buffers up to kept_bytes for the next image.
void SampleDecoder::release_memory() {
  const std::uint64_t held =
      file_.capacity() + stored_.pixels.capacity() + upright_.pixels.capacity() + transform_.held_bytes();
  if (held > context_.kept_bytes) {
    ByteBuffer().swap(file_);
    ByteBuffer().swap(stored_.pixels);
    ByteBuffer().swap(upright_.pixels);
    transform_.release();
  }
  share_ = MemoryBudget::Share();
}

// Memory is released also after an error, because other threads may wait for it.
void SampleDecoder::read_and_decode(const RootFolder::File& opened, std::string_view file,
                                    std::uint8_t* slot) {
  struct Release {
    SampleDecoder& maker;
    ~Release() { maker.release_memory(); }
  } release{*this};
  try {
    const std::string reason = opened.read(file_);
    if (!reason.empty()) throw ImageError(reason);
    if (decode(file)) transform(slot);
  } catch (const std::bad_alloc&) {
    throw MachineError("needs more memory to decode than there is");
  }
}

void SampleDecoder::make(std::string_view file, std::uint8_t* slot) {
  try {
    with_retries([&] { try_make(file, slot); });
  } catch (const MachineError& error) {
    if (context_.reject_unreadable) throw ImageError(error.what());
    throw_unreadable(file, error);
  }
}

void SampleDecoder::try_make(std::string_view file, std::uint8_t* slot) {
  // If too little memory is left, the thread releases everything, waits for the amount and starts over.
  for (std::uint64_t needed = 0;; needed = awaited_bytes_) {
    awaited_bytes_ = 0;
    stamp_ = {};
    warnings_.clear();
    const RootFolder::File opened = context_.root.open(file);
    if (!opened.error.empty()) throw ImageError(opened.error);
    stamp_ = opened.stamp;
    if (opened.bytes > context_.spec.max_input_bytes)
      throw ImageError("is " + bytes_text(static_cast<double>(opened.bytes)) + ", over the limit of " +
                       bytes_text(static_cast<double>(context_.spec.max_input_bytes)));
    check_limit(opened.bytes, context_.spec);
    needed = std::max(needed, opened.bytes);
    if (needed > context_.kept_bytes) share_ = MemoryBudget::Share(context_.budget, needed);
    read_and_decode(opened, file, slot);
    if (awaited_bytes_ == 0) return;
  }
}

}  // namespace chunkhit
