#include "pack/sample_maker.h"

#include <optional>

#include "base/words.h"
#include "chunkhit/error.h"
#include "transform/orientation.h"

namespace chunkhit {
namespace {

/// Buffers above this are given back after the picture that needed them.
constexpr std::size_t kKeptBufferBytes = 32 << 20;

std::string shape_text(const SampleShape& shape) {
  return std::to_string(shape.width) + "x" + std::to_string(shape.height) + "x" +
         std::to_string(shape.channels);
}

/// Why a picture that needs so much is not decoded; empty where it may be.
std::string over_budget(std::uint64_t needed, const MemoryBudget& budget) {
  if (needed <= budget.total()) return {};
  return "needs " + bytes_text(static_cast<double>(needed)) + " of memory to decode, over the " +
         bytes_text(static_cast<double>(budget.total())) + " that --memory leaves";
}

void release_if_large(ByteBuffer& buffer) {
  if (buffer.capacity() > kKeptBufferBytes) ByteBuffer().swap(buffer);
}

}  // namespace

int effective_orientation(const PackImagesSpec& spec, const ImageHeader& header) {
  return spec.exif == Exif::apply ? header.orientation : 1;
}

TransformPlan plan_sample(const PackImagesSpec& spec, const ImageHeader& header) {
  const bool swapped = swaps_sides(effective_orientation(spec, header));
  return plan_transform(spec.transform, swapped ? header.height : header.width,
                        swapped ? header.width : header.height, header.channels, header.scales);
}

std::optional<DecodePlan> SampleMaker::plan(std::string_view file, const ImageHeader& header,
                                            std::string& fault) {
  orientation_ = effective_orientation(context_.spec, header);
  plan_ = plan_sample(context_.spec, header);
  if (!plan_.fault.empty()) {
    fault = plan_.fault;
    return std::nullopt;
  }
  if (plan_.sample != context_.sample)
    throw Error(ErrorCode::bad_data,
                "pictures of different shapes: " + context_.first_file + " gives " +
                    shape_text(context_.sample) + ", " + std::string(file) + " gives " +
                    shape_text(plan_.sample) +
                    " (width x height x channels); --resize WxH, --crop or --fit make them alike");
  const bool swapped = swaps_sides(orientation_);
  const std::uint32_t stored_width = swapped ? plan_.source_height : plan_.source_width;
  const std::uint32_t stored_height = swapped ? plan_.source_width : plan_.source_height;
  DecodePlan wanted{plan_.shrink, stored_region(plan_.region, orientation_, stored_width, stored_height),
                    plan_.channels};
  // The region may be held twice: as stored and upright.
  const std::uint64_t region_bytes = std::uint64_t{wanted.region.width} * wanted.region.height * 4;
  const std::uint64_t needed = file_.size() + header.extra_bytes + region_bytes * (orientation_ == 1 ? 1 : 2);
  fault = over_budget(needed, context_.budget);
  if (!fault.empty()) return std::nullopt;
  share_ = MemoryBudget::Share(context_.budget, needed);
  return wanted;
}

std::string SampleMaker::decode(std::string_view file, std::uint8_t* slot) {
  const DecodeOptions options{context_.spec.max_pixels, context_.spec.accept_warnings, context_.spec.check,
                              context_.spec.max_seconds_per_image};
  const PlanDecode plan_decode = [&](const ImageHeader& header, std::string& fault) {
    return plan(file, header, fault);
  };
  std::string fault = decode_image(file_, plan_decode, options, stored_);
  if (!fault.empty()) return fault;
  if (orientation_ != 1) turn_upright(stored_.view(), orientation_, upright_);
  transform_.apply(plan_, orientation_ != 1 ? upright_.view() : stored_.view(), slot);
  return {};
}

void SampleMaker::release_large_buffers() {
  share_ = MemoryBudget::Share();
  release_if_large(file_);
  release_if_large(stored_.pixels);
  release_if_large(upright_.pixels);
}

std::string SampleMaker::make(std::string_view file, std::uint8_t* slot) {
  try {
    return with_retries([&] { return try_make(file, slot); });
  } catch (const MachineError& error) {
    if (context_.reject_unreadable) return error.what();
    throw Error(
        ErrorCode::try_again,
        std::string(file) + ": " + error.what() +
            " (tried three times); when the disk, network or limit allows it, the same command goes on; "
            "--on-io-error reject packs without such files");
  }
}

std::string SampleMaker::try_make(std::string_view file, std::uint8_t* slot) {
  stamp_ = {};
  std::unique_lock<std::mutex> large(context_.large_file, std::defer_lock);
  RootFolder::File opened = context_.root.open(file);
  if (!opened.fault.empty()) return opened.fault;
  stamp_ = opened.stamp;
  if (opened.bytes > context_.spec.max_input_bytes)
    return "is " + bytes_text(static_cast<double>(opened.bytes)) + ", over the limit of " +
           bytes_text(static_cast<double>(context_.spec.max_input_bytes));
  std::string fault = over_budget(opened.bytes, context_.budget);
  if (!fault.empty()) return fault;
  if (opened.bytes > kSmallFileBytes) large.lock();
  try {
    fault = opened.read(file_);
    if (fault.empty()) fault = decode(file, slot);
  } catch (const std::bad_alloc&) {
    release_large_buffers();
    throw MachineError("needs more memory to decode than there is");
  }
  release_large_buffers();
  return fault;
}

}  // namespace chunkhit
