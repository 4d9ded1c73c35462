#include "pack/images/sample_decoder.h"

#include <algorithm>
#include <new>
#include <string>

#include "base/hash.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "codec/chunk_codec.h"
#include "codec/zstd.h"
#include "decode/channels.h"
#include "decode/formats.h"
#include "decode/jpeg_tiles.h"
#include "store/part.h"
#include "transform/orientation.h"

namespace chunkhit {
namespace {

std::string shape_text(const SampleShape& shape) {
  return std::to_string(shape.width) + "x" + std::to_string(shape.height) + "x" +
         std::to_string(shape.channels);
}

void check_limit(std::uint64_t needed, const PackImagesSpec& spec) {
  if (needed > spec.max_decode_bytes)
    throw ImageError("needs " + size_text(needed) + " of memory to decode, over the limit of " +
                     size_text(spec.max_decode_bytes) + " (`max_decode_bytes`)");
}

/// A payload is one sample of a chunk.
void check_payload(std::uint64_t bytes, const PackImagesSpec& spec) {
  const std::uint64_t max_bytes = container(spec.container).max_chunk_bytes;
  const bool is_framed = container(spec.container).is_zstd_stream;
  if ((is_framed ? raw_frame_bytes(bytes) : bytes) > max_bytes)
    throw ImageError("would take " + bytes_text(static_cast<double>(bytes)) +
                     " in the pack, over the limit of " + bytes_text(static_cast<double>(max_bytes)) +
                     "; `max_side` or `short_side` makes it smaller" +
                     (is_framed ? ", `container` hdf5 takes larger ones" : ""));
}

}  // namespace

void throw_unreadable(std::string_view file, const MachineError& error) {
  throw Error(
      ErrorCode::try_again,
      std::string(file) + ": " + error.what() +
          " (tried three times); rerun the same command to resume when the disk, network or limit allows it");
}

std::uint64_t max_pixels(const PackImagesSpec& spec) {
  constexpr std::uint64_t kBytesPerPixel = 5;
  const std::uint64_t max_pixels =
      std::max(DecodeOptions().max_pixels, spec.max_decode_bytes / kBytesPerPixel);
  return spec.sizes == Sizes::own ? std::min(max_pixels, kMaxOwnPixels) : max_pixels;
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

TransformPlan plan_sample(const PackImagesSpec& spec, const ImageHeader& header) {
  const bool swapped = swaps_sides(effective_orientation(spec, header));
  TransformPlan plan = plan_transform(sample_transform(spec, header), swapped ? header.height : header.width,
                                      swapped ? header.width : header.height, header.channels, header.scales,
                                      effective_orientation(spec, header));
  plan.sample.has_mask = !spec.pair.empty();
  return plan;
}

/// An image of this header, how its aspect ratio changes, and what the crop removes of it.
InputImage input_image(const ImageHeader& header, int orientation, const TransformPlan& plan) {
  const bool swapped = swaps_sides(orientation);
  InputImage input{header.format, swapped ? header.height : header.width,
                   swapped ? header.width : header.height};
  const std::uint64_t wide = std::uint64_t{plan.resized_width} * input.height;
  const std::uint64_t high = std::uint64_t{plan.resized_height} * input.width;
  input.squeeze = static_cast<double>(std::max(wide, high)) / static_cast<double>(std::min(wide, high));
  input.crop_loss = 1 - static_cast<double>(std::uint64_t{plan.window.width} * plan.window.height) /
                            static_cast<double>(std::uint64_t{plan.resized_width} * plan.resized_height);
  input.loses_alpha = has_alpha(header.channels) && !has_alpha(plan.channels);
  return input;
}

/// Plans the transform of an image; one that yields another shape than the pack's ends the run.
void SampleDecoder::plan(std::string_view file, const ImageHeader& header) {
  orientation_ = effective_orientation(context_.spec, header);
  plan_ = plan_sample(context_.spec, header);
  if (!plan_.error.empty()) throw ImageError(plan_.error);
  input_ = input_image(header, orientation_, plan_);
  composes_ = input_.loses_alpha && context_.spec.transform.background.has_value();
  input_.loses_alpha = input_.loses_alpha && !composes_;
  if (is_sized()) return plan_sized(file, header);
  if (plan_.sample != context_.sample)
    throw Error(ErrorCode::bad_data, "images of different shapes: " + context_.first_file + " gives " +
                                         shape_text(context_.sample) + ", " + std::string(file) + " gives " +
                                         shape_text(plan_.sample) +
                                         " (width x height x channels); `resize` WxH, `crop` or `fit` make "
                                         "them alike, `sizes` own keeps them");
}

/// A JPEG that is kept is decoded as it is stored: its orientation is applied at reading.
void SampleDecoder::plan_sized(std::string_view file, const ImageHeader& header) {
  if (plan_.sample.channels != context_.sample.channels)
    throw Error(ErrorCode::bad_data, "images of different channels: " + context_.first_file + " gives " +
                                         std::to_string(context_.sample.channels) + ", " + std::string(file) +
                                         " gives " + std::to_string(plan_.sample.channels) +
                                         "; `channels` rgb, gray or rgba makes them alike");
  if (plan_.sample.channels == 2)
    throw Error(ErrorCode::bad_data, std::string(file) +
                                         ": has gray and alpha, which images of their own sizes cannot have; "
                                         "`channels` rgb, gray or rgba converts it");
  is_resized_ = sample_transform(context_.spec, header).resize != Resize::none;
  keeps_jpeg_ = header.format == "jpeg" && !is_resized_ && context_.spec.own_sizes.store == Store::jpeg;
  keeps_file_ = keeps_jpeg_ && context_.spec.own_sizes.jpeg_tile == 0 && !header.is_cmyk;
  if (keeps_jpeg_)
    plan_ = plan_transform(context_.spec.transform, header.width, header.height, header.channels, false);
}

/// The plan is for the upright image, decoders see it as it is stored: the region is turned back.
DecodePlan SampleDecoder::decode_plan() const {
  if (is_sized() && keeps_jpeg_) return {1, plan_.region, plan_.channels};
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
  const std::uint64_t made = is_sized() ? sized_bytes(header, held) : held + transform_.needed_bytes(plan_);
  return std::max(file_.size() + std::max(header.peak_bytes, header.extra_bytes + region_bytes), made);
}

/// Estimates what making a sample of its own size takes, with the file and the decoded region, which are
/// `held`: a JPEG's coefficients where it is cut into tiles, or the upright pixels and the transform; and the
/// payload. Where pixels are compressed, the pixels, their differences (photo) and the payload.
std::uint64_t SampleDecoder::sized_bytes(const ImageHeader& header, std::uint64_t held) const {
  const bool is_tiled = context_.spec.own_sizes.jpeg_tile != 0;
  if (keeps_jpeg_) return held + (is_tiled ? header.block_bytes : 0) + 2 * expected_payload();
  const std::uint64_t pixel_bytes = plan_.sample.pixel_bytes();
  const std::uint64_t transforming = held + pixel_bytes + transform_.needed_bytes(plan_);
  if (is_encoded()) return std::max(transforming, held + pixel_bytes + 2 * expected_payload());
  if (!is_compressed()) return transforming;
  const std::uint64_t copies = is_photo() ? 3 : 2;
  const int level = chunk_codec(is_photo() ? "photo" : "zstd").default_level;
  return std::max(transforming, zstd_context_bytes(level, pixel_bytes) + copies * pixel_bytes +
                                    (held > context_.kept_bytes ? 0 : held));
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

bool SampleDecoder::decode(std::string_view file) {
  ImageFile image(file_, {max_pixels(context_.spec), context_.spec.accept_warnings, context_.spec.check,
                          context_.spec.max_seconds_per_image});
  plan(file, image.header());
  const DecodePlan wanted = decode_plan();
  const std::uint64_t needed = needed_bytes(image.header(), wanted);
  if (is_sized() && context_.spec.own_sizes.store == Store::raw)
    check_payload(expected_payload(), context_.spec);
  check_limit(needed, context_.spec);
  check_budget(needed, file);
  if (is_sized()) {
    lacks_payload_share_ = !take_payload_share();
    if (lacks_payload_share_) return false;
  }
  if (!may_hold(needed)) {
    awaited_bytes_ = needed;
    return false;
  }
  image.decode(wanted, stored_);
  if (composes_) compose_over(*context_.spec.transform.background, plan_.channels, stored_);
  warnings_ = image.warnings();
  keeps_file_ = keeps_file_ && !image.is_damaged();
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

/// Keeps buffers up to kept_bytes for the next image.
void SampleDecoder::release_memory() {
  free_large_buffers();
  share_ = MemoryBudget::Share();
  payload_share_ = MemoryBudget::Share();
}

// Memory is released also after an error, because other threads may wait for it.
void SampleDecoder::read_and_decode(const SampleFile& opened, std::string_view file, const Finish& finish) {
  struct Release {
    SampleDecoder& decoder;
    ~Release() { decoder.release_memory(); }
  } release{*this};
  try {
    const std::string reason = opened.read(file_);
    if (!reason.empty()) throw ImageError(reason);
    if (decode(file)) finish();
  } catch (const std::bad_alloc&) {
    throw MachineError("needs more memory to decode than there is");
  }
}

void SampleDecoder::make(const SampleList& list, std::size_t index, std::uint8_t* slot) {
  make(list, index, [&] { transform(slot); });
  if (context_.masks) make_mask(list.file(index), slot + context_.sample.pixel_bytes());
}

void SampleDecoder::make_mask(std::string_view file, std::uint8_t* out) {
  try {
    with_retries([&] { mask_.make(*context_.masks, file, input_.width, input_.height, out); });
  } catch (const MachineError& error) {
    throw_unreadable(file, error);
  } catch (const ImageError&) {
    stamp_ = joined_stamp(stamp_, mask_.stamp());
    throw;
  }
  stamp_ = joined_stamp(stamp_, mask_.stamp());
}

/// Its rows are made upright; a class map shrinks to a few bytes.
void SampleDecoder::append_mask(std::string_view file, SizedSample& sample) {
  const SampleShape shape = mask_.plan(input_.width, input_.height).sample;
  ByteBuffer pixels(shape.byte_count()), compressed;
  make_mask(file, pixels.data());
  const ChunkCodec& codec = chunk_codec("deflate");
  codec.encode(pixels, shape, codec.default_level, false, compressed);
  sample.mask_bytes = static_cast<std::uint32_t>(compressed.size());
  sample.payload.insert(sample.payload.end(), compressed.begin(), compressed.end());
  check_payload(sample.payload.size(), context_.spec);
  sample.xxh3 = xxh3(sample.payload);
}

void SampleDecoder::make(const SampleList& list, std::size_t index, const Finish& finish) {
  try {
    with_retries([&] { try_make(list, index, finish); });
  } catch (const MachineError& error) {
    throw_unreadable(list.file(index), error);
  }
}

void SampleDecoder::try_make(const SampleList& list, std::size_t index, const Finish& finish) {
  // If too little memory is left, the thread releases everything, waits for the amount and starts over.
  for (std::uint64_t needed = 0;; needed = awaited_bytes_) {
    awaited_bytes_ = 0;
    stamp_ = {};
    warnings_.clear();
    const SampleFile opened = open_sample(context_.root, list, index);
    if (!opened.error.empty()) throw ImageError(opened.error);
    stamp_ = opened.stamp;
    check_limit(opened.bytes, context_.spec);
    check_budget(opened.bytes, list.file(index));
    needed = std::max(needed, opened.bytes);
    if (needed > context_.kept_bytes) share_ = MemoryBudget::Share(context_.budget, needed);
    read_and_decode(opened, list.file(index), finish);
    if (awaited_bytes_ == 0) return;
  }
}

bool SampleDecoder::make_sized(const SampleList& list, std::size_t index, SizedSample& sample,
                               MemoryBudget* payloads) {
  payloads_ = payloads;
  lacks_payload_share_ = false;
  make(list, index, [&] { store_sized(sample); });
  if (!lacks_payload_share_ && context_.masks) append_mask(list.file(index), sample);
  return !lacks_payload_share_;
}

bool SampleDecoder::is_encoded() const {
  constexpr std::uint32_t kMaxJpegSide = 65500;  // libjpeg's
  const OwnSizesSpec& own = context_.spec.own_sizes;
  return own.store == Store::jpeg && is_resized_ && plan_.channels != 4 && plan_.channels != 2 &&
         std::max(plan_.sample.height, plan_.sample.width) <= kMaxJpegSide;
}

bool SampleDecoder::is_compressed() const {
  return context_.spec.own_sizes.store != Store::raw && context_.spec.container != "hdf5";
}

bool SampleDecoder::is_photo() const {
  return context_.spec.own_sizes.store != Store::zstd && plan_.channels == 3;
}

std::uint64_t SampleDecoder::expected_payload() const {
  constexpr std::uint64_t kEncodedShare = 4;  // JPEG of quality 90 has an eighth of the pixels' bytes
  if (keeps_jpeg_) return file_.size();
  return std::max<std::uint64_t>(1, plan_.sample.pixel_bytes() / (is_encoded() ? kEncodedShare : 1));
}

bool SampleDecoder::take_payload_share() {
  payload_share_ = MemoryBudget::Share();
  if (payloads_ == nullptr) return true;
  payload_share_ = MemoryBudget::Share::of_what_is_left(*payloads_, expected_payload());
  return payload_share_.bytes() > 0;
}

void SampleDecoder::store_sized(SizedSample& sample) {
  sample.pixels = {};
  if (keeps_jpeg_ && keep_jpeg(sample.payload)) {
    sample.kind = PayloadKind::jpeg;
    sample.orientation = orientation_;
    sample.height = stored_.height;
    sample.width = stored_.width;
    sample.pixels.add_sample(stored_.pixels.data(), plan_.sample);
  } else {
    store_pixels(sample);
  }
  check_payload(sample.payload.size(), context_.spec);
  sample.xxh3 = xxh3(sample.payload);
  // JPEG that has no tiles, and noise, may be larger than expected.
  const std::uint64_t bytes = sample.payload.size();
  lacks_payload_share_ =
      payloads_ != nullptr && bytes > payload_share_.bytes() && !payload_share_.try_grow(bytes);
  if (lacks_payload_share_) ByteBuffer().swap(sample.payload);
  sample.share = std::move(payload_share_);
}

bool SampleDecoder::keep_jpeg(ByteBuffer& payload) {
  if (context_.spec.own_sizes.jpeg_tile == 0) {
    if (keeps_file_) payload = file_;
    return keeps_file_;
  }
  DecodeMonitor monitor({.max_seconds = context_.spec.max_seconds_per_image});
  try {
    write_tiled_jpeg(file_, context_.spec.own_sizes.jpeg_tile, monitor, payload);
    return true;
  } catch (const ImageError&) {
    if (monitor.is_out_of_time()) throw;
    return false;  // CMYK, say: its pixels are stored
  }
}

/// Stores upright pixels, raw or encoded.
void SampleDecoder::store_pixels(SizedSample& sample) {
  sample.orientation = 1;
  sample.kind = PayloadKind::raw;
  if (keeps_jpeg_) {
    if (orientation_ != 1) turn_upright(stored_.view(), orientation_, upright_);
    Image& image = orientation_ != 1 ? upright_ : stored_;
    sample.height = image.height;
    sample.width = image.width;
    sample.payload.swap(image.pixels);
  } else {
    sample.height = plan_.sample.height;
    sample.width = plan_.sample.width;
    resize_empty(sample.payload, plan_.sample.pixel_bytes());
    transform(sample.payload.data());
  }
  if (is_encoded()) return encode(sample);
  const SampleShape shape{sample.height, sample.width, plan_.channels, Layout::nhwc};
  sample.pixels.add_sample(sample.payload.data(), shape);
  compress(shape, sample);
}

/// Compresses a sample's pixels without loss, where that makes them smaller. In HDF5 they stay as h5py reads
/// them.
void SampleDecoder::compress(const SampleShape& shape, SizedSample& sample) {
  if (!is_compressed()) return;
  free_large_buffers();
  const ChunkCodec& codec = chunk_codec(is_photo() ? "photo" : "zstd");
  ByteBuffer compressed;
  codec.encode(sample.payload, shape, codec.default_level, false, compressed);
  if (compressed.size() >= sample.payload.size()) return;
  sample.payload.swap(compressed);
  sample.kind = is_photo() ? PayloadKind::photo : PayloadKind::zstd;
}

/// Encodes a sample's pixels; its statistics are those of what was encoded.
void SampleDecoder::encode(SizedSample& sample) {
  const std::uint32_t channels = plan_.channels;
  const ImageView pixels{sample.payload.data(), sample.width, sample.height, channels,
                         std::size_t{sample.width} * channels};
  ByteBuffer encoded;
  const OwnSizesSpec& own = context_.spec.own_sizes;
  DecodeMonitor monitor({.max_seconds = context_.spec.max_seconds_per_image});
  encode_tiled_jpeg(pixels, own.quality, own.jpeg_tile, monitor, encoded);
  open_jpeg(encoded, monitor)->decode({1, {0, 0, sample.width, sample.height}, channels}, stored_);
  sample.pixels.add_sample(stored_.pixels.data(), plan_.sample);
  sample.payload.swap(encoded);
  sample.kind = PayloadKind::jpeg;
}

}  // namespace chunkhit
