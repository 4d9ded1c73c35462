#include "pack/images/sample_decoder.h"

#include <algorithm>
#include <string>

#include "chunkhit/error.h"

namespace chunkhit {

void SampleReader::make_image(const SampleList& list, std::size_t index,
                              const ImageReader::Complete& complete, const Make& make,
                              MemoryBudget::Share* payload) {
  const auto open = [&] { return open_sample(context_.root, list, index); };
  try {
    make_with_retries(list.file(index),
                      [&] { make(image_.read(list.file(index), open, complete, payload)); });
  } catch (const ImageError&) {
    stamp_ = image_.stamp();
    if (stamp_ != FileStamp{}) stamp_ = joined_stamps(stamp_, context_.folders(), list, index);
    throw;
  }
  stamp_ = image_.stamp();
  warnings_ = image_.warnings();
}

void SampleReader::make_field(const SampleList& list, std::size_t index, std::size_t field,
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

void SampleReader::check_view(const ImagePlan& view) const {
  const InputImage &found = view.input, &image = input();
  if (found.width != image.width || found.height != image.height)
    throw ImageError(RejectKind::shape, "has " + std::to_string(found.width) + " x " +
                                            std::to_string(found.height) + " pixels, expected " +
                                            std::to_string(image.width) + " x " +
                                            std::to_string(image.height) + " as its image");
  if (view.transform.sample != context_.sample)
    throw ImageError(RejectKind::shape, "gives " + sides_text(view.transform.sample) + ", expected " +
                                            sides_text(context_.sample) +
                                            " as its image (width x height x channels)");
}

// Made as its image is, from a file of its own.
void SampleReader::make_view(const SampleList& list, std::size_t index, const PairFolder& pair,
                             std::uint8_t* out) {
  if (!view_) view_.emplace(context_);
  std::string name;  // empty of a program's pixels
  bool is_open = false;
  const auto open = [&] {
    MaskFile view = open_pair(context_.root, pair, list, index);
    name = view.name;
    is_open = true;
    return std::move(view.file);
  };
  const auto complete = [&](const ImageHeader&, ImagePlan& plan) {
    check_view(plan);
    plan.made_bytes = view_->transform_bytes(plan);
  };
  try {
    make_with_retries(list.file(index),
                      [&] { view_->transform(view_->read(list.file(index), open, complete), out); });
  } catch (const ImageError& error) {
    throw ImageError(error.kind(), is_open ? pair_text(pair, name) + error.reason() : error.reason());
  }
  if (!name.empty()) stamp_ = joined_stamp(stamp_, view_->stamp());
  if (view_->warnings().empty()) return;
  warnings_ += (warnings_.empty() ? "" : "; ") + pair_text(pair, name) + view_->warnings();
}

void SampleReader::make_mask(const SampleList& list, std::size_t index, const PairFolder& pair,
                             std::uint8_t* out) {
  const std::string_view file = list.file(index);
  // The file, its pixels, and what is made of them for a sample of its own size, which has all masks.
  constexpr std::uint64_t kMaskCopies = 3;
  std::uint64_t bytes = (kMaskCopies + context_.sample.pairs.size()) * input().width * input().height;
  for (std::uint64_t needed = bytes; needed != 0; bytes = std::max(bytes, needed)) {
    MemoryBudget::Share share;
    if (needed > context_.kept_bytes) {
      check_decode_limit(needed, context_.spec, "its " + pair.field.name + ": ");
      image_.check_budget(needed, file);
      share = MemoryBudget::Share(context_.budget, needed);
    }
    make_with_retries(file, [&] {
      needed = mask_.make(context_.root, pair, list, index, {input().width, input().height},
                          std::max(needed, context_.kept_bytes), out);
    });
    if (needed != 0) mask_.release();  // nothing is held while the thread waits for more
  }
  stamp_ = joined_stamp(stamp_, mask_.stamp());
  if (bytes > context_.kept_bytes) mask_.release();
}

/// Ends the run where the sample has another shape than the pack's.
static void check_shape(const DecoderContext& context, std::string_view file, const SampleShape& found) {
  if (found != context.sample)
    throw Error(ErrorCode::bad_data, "images of different shapes: " + context.first_file + " gives " +
                                         sides_text(context.sample) + ", " + std::string(file) + " gives " +
                                         sides_text(found) +
                                         " (width x height x channels); `resize` WxH, `crop` or `fit` make "
                                         "them alike, `sizes` own keeps them");
}

void SampleDecoder::make(const SampleList& list, std::size_t index, std::uint8_t* slot) {
  ImageReader& reader = files_.image();
  const auto complete = [&](const ImageHeader&, ImagePlan& plan) {
    check_shape(context_, list.file(index), plan.transform.sample);
    plan.made_bytes = reader.transform_bytes(plan);
  };
  files_.make_image(list, index, complete,
                    [&](const ImageReader::Decoded& image) { reader.transform(image, slot); });
  for (std::size_t field = 0; field < context_.sample.pairs.size(); ++field)
    files_.make_field(list, index, field, slot + context_.sample.offset_of(field));
}

}  // namespace chunkhit
