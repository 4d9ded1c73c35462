#include "pack/images/sample_decoder.h"

#include <algorithm>
#include <new>
#include <optional>
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

std::uint64_t SampleDecoder::plan(std::string_view file, const ImageHeader& header) {
  orientation_ = effective_orientation(context_.spec, header);
  plan_ = plan_sample(context_.spec, header);
  if (!plan_.error.empty()) throw ImageError(plan_.error);
  input_ = input_image(header, orientation_, plan_);
  composes_ = input_.loses_alpha && context_.spec.transform.background.has_value();
  input_.loses_alpha = input_.loses_alpha && !composes_;
  if (is_sized())
    plan_sized(file, header);
  else
    check_shape(file);
  const std::uint64_t needed = needed_bytes(header, decode_plan());
  if (is_sized() && context_.spec.own_sizes.store == Store::raw)
    check_payload(expected_payload(), context_.spec);
  check_limit(needed, context_.spec);
  check_budget(needed, file);
  return needed;
}

/// Ends the run where the sample has another shape than the pack's.
void SampleDecoder::check_shape(std::string_view file) const {
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
  SampleFile opened = open_sample(context_.root, list, index);
  if (!opened.error.empty()) throw ImageError(opened.error);
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
    const std::string reason = opened.read(file_);
    if (!reason.empty()) throw ImageError(reason);
    const bool is_file = opened.pixels.channels == 0;
    std::optional<ImageFile> file;
    if (is_file)
      file.emplace(file_, DecodeOptions{max_pixels(context_.spec), context_.spec.accept_warnings,
                                        context_.spec.check, context_.spec.max_seconds_per_image});
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
  warnings_ = file.warnings();
  keeps_file_ = keeps_file_ && !file.is_damaged();
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

/// Makes a sample without its mask. That of a reject is stamped, too, as by who looks for changes.
template <class Make>
auto SampleDecoder::make_image(const SampleList& list, std::size_t index, Make make) -> decltype(make()) {
  try {
    return make_with_retries(list.file(index), make);
  } catch (const ImageError&) {
    if (stamp_ != FileStamp{}) stamp_ = joined_stamp(context_.folders(), list, index, stamp_);
    throw;
  }
}

void SampleDecoder::make(const SampleList& list, std::size_t index, std::uint8_t* slot) {
  make_image(list, index, [&] { transform(read(list, index), slot); });
  if (context_.sample.has_mask) make_mask(list, index, slot + context_.sample.pixel_bytes());
}

void SampleDecoder::make_mask(const SampleList& list, std::size_t index, std::uint8_t* out) {
  const std::string_view file = list.file(index);
  // The file, its pixels, and what is made of them for a sample of its own size.
  constexpr std::uint64_t kMaskCopies = 4;
  const std::uint64_t bytes = kMaskCopies * input_.width * input_.height;
  MemoryBudget::Share share;
  if (bytes > context_.kept_bytes) {
    check_limit(bytes, context_.spec);
    check_budget(bytes, file);
    share = MemoryBudget::Share(context_.budget, bytes);
  }
  try {
    make_with_retries(file, [&] {
      mask_.make(context_.folders(), list, index, {input_.width, input_.height}, out);
    });
  } catch (const ImageError&) {
    stamp_ = joined_stamp(stamp_, mask_.stamp());
    throw;
  }
  stamp_ = joined_stamp(stamp_, mask_.stamp());
  if (bytes > context_.kept_bytes) mask_.release();
}

/// Its rows are made upright; a class map shrinks to a few bytes.
void SampleDecoder::append_mask(const SampleList& list, std::size_t index, SizedSample& sample) {
  const SampleShape shape = mask_.plan({input_.width, input_.height}).sample;
  ByteBuffer pixels(shape.byte_count()), compressed;
  make_mask(list, index, pixels.data());
  const ChunkCodec& codec = chunk_codec("deflate");
  codec.encode(pixels, shape, codec.default_level, false, compressed);
  sample.mask_bytes = static_cast<std::uint32_t>(compressed.size());
  sample.payload.insert(sample.payload.end(), compressed.begin(), compressed.end());
  check_payload(sample.payload.size(), context_.spec);
  sample.xxh3 = xxh3(sample.payload);
}

SizedSample SampleDecoder::make_sized(const SampleList& list, std::size_t index,
                                      MemoryBudget::Share& payload) {
  SizedSample sample = make_image(list, index, [&] { return store(read(list, index, &payload)); });
  if (context_.sample.has_mask) append_mask(list, index, sample);
  return sample;
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

SizedSample SampleDecoder::store(const Decoded& image) {
  SizedSample sample;
  if (keeps_jpeg_ && keep_jpeg(sample.payload)) {
    sample.kind = PayloadKind::jpeg;
    sample.orientation = orientation_;
    sample.height = image.pixels.height;
    sample.width = image.pixels.width;
    sample.pixels.add_sample(image.pixels.pixels.data(), plan_.sample);
  } else {
    store_pixels(image, sample);
  }
  check_payload(sample.payload.size(), context_.spec);
  sample.xxh3 = xxh3(sample.payload);
  return sample;
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
void SampleDecoder::store_pixels(const Decoded& image, SizedSample& sample) {
  if (keeps_jpeg_) {
    Image& pixels = upright(image);
    sample.height = pixels.height;
    sample.width = pixels.width;
    sample.payload.swap(pixels.pixels);
  } else {
    sample.height = plan_.sample.height;
    sample.width = plan_.sample.width;
    resize_empty(sample.payload, plan_.sample.pixel_bytes());
    transform(image, sample.payload.data());
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
