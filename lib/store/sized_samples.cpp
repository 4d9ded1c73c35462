// Images of their own sizes: their index's columns of sizes, and the rules of these. Layout:
// schemas/shard.md.
#include <string>

#include "base/throw_error.h"
#include "store/part_index.h"
#include "store/part_rules.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kPlaneBytes = 3 * sizeof(std::uint32_t) + 2;  // of a sample, without its hash

void require_zeros(Bytes bytes) {
  for (const std::uint8_t zero : bytes)
    if (zero != 0) throw_bad_index("bytes that should be zero are not");
}

/// The samples of a chunk of images of their own sizes, whose stored bytes must fill it.
std::uint64_t count_sized_samples(const ImageSizes& sizes, std::uint64_t first_sample,
                                  const StoredChunk& chunk) {
  const std::uint64_t left = sizes.payload_bytes.size() - first_sample;
  if (chunk.sample_count == 0 || chunk.sample_count > left)
    throw_bad_data("samples: " + std::to_string(chunk.sample_count) + ", expected 1 to " +
                   std::to_string(left));
  std::uint64_t bytes = 0;
  for (std::uint64_t i = first_sample; i < first_sample + chunk.sample_count; ++i)
    bytes += sizes.stored_bytes(i);
  check_count("raw bytes", chunk.raw_bytes, bytes);
  return chunk.sample_count;
}

/// Throws bad_data unless a size is one that can be decoded.
void check_size(const ImageSizes& sizes, std::size_t sample, std::uint32_t channels) {
  constexpr std::uint32_t kMaxSide = 1u << 20;
  constexpr std::uint8_t kOrientations = 8;
  const std::uint64_t height = sizes.heights[sample], width = sizes.widths[sample];
  if (height < 1 || height > kMaxSide || width < 1 || width > kMaxSide)
    throw_bad_data(std::to_string(height) + " x " + std::to_string(width) +
                   " pixels, expected sides of 1 to " + std::to_string(kMaxSide));
  if (height * width > kMaxOwnPixels)
    throw_bad_data(std::to_string(height) + " x " + std::to_string(width) + " pixels, expected at most " +
                   std::to_string(kMaxOwnPixels) + " in all");
  if (sizes.payload_bytes[sample] <= sizes.mask_bytes_of(sample)) throw_bad_data("no bytes");
  if (!sizes.mask_bytes.empty() && sizes.mask_bytes[sample] == 0) throw_bad_data("no bytes of a mask");
  const std::uint32_t image_bytes = sizes.payload_bytes[sample] - sizes.mask_bytes_of(sample);
  const auto kind = static_cast<PayloadKind>(sizes.kinds[sample]);
  if (!sizes.framed && kind != PayloadKind::jpeg && kind != PayloadKind::raw)
    throw_bad_data("kind " + std::to_string(sizes.kinds[sample]) + ", expected 1 (jpeg) or 2 (raw)");
  if (kind < PayloadKind::jpeg || kind > PayloadKind::photo)
    throw_bad_data("kind " + std::to_string(sizes.kinds[sample]) +
                   ", expected 1 (jpeg), 2 (raw), 3 (zstd) or 4 (photo)");
  if (kind == PayloadKind::photo && channels != 3)
    throw_bad_data("kind 4 (photo) with " + std::to_string(channels) + " channels, expected 3");
  if (kind == PayloadKind::raw) check_count("bytes", image_bytes, height * width * channels);
  if (sizes.orientations[sample] < 1 || sizes.orientations[sample] > kOrientations)
    throw_bad_data("orientation " + std::to_string(sizes.orientations[sample]) + ", expected 1 to 8");
}

void check_sizes(const PartContents& contents) {
  const std::uint64_t count = contents.samples.rows.size();
  const ImageSizes& sizes = contents.samples.sizes;
  const SampleShape& sample = contents.spec.images().sample;
  for (const std::size_t found : {sizes.payload_bytes.size(), sizes.heights.size(), sizes.widths.size(),
                                  sizes.kinds.size(), sizes.orientations.size(), sizes.payload_xxh3.size()})
    check_count("sizes of images", found, count);
  check_count("sizes of masks", sizes.mask_bytes.size(), sample.pairs.empty() ? 0 : count);
  for (std::size_t i = 0; i < count; ++i) {
    try {
      check_size(sizes, i, sample.channels);
    } catch (const Error& error) {
      throw_bad_data("sample " + std::to_string(i) + ": " + error.what());
    }
  }
}

}  // namespace

void SizedSamples::encode(PartSpecBytes& bytes) const {
  ImageSamples::encode(bytes);
  if (sample.pairs.empty()) store_little(bytes.data() + kFieldsAt, kImageAlone);
}

void SizedSamples::decode(const PartSpecBytes& bytes) {
  ImageSamples::decode(bytes);
  if (load_little<std::uint32_t>(bytes.data() + kFieldsAt) == 0)
    throw_bad_data("0 fields a sample, expected at least " + std::to_string(kImageAlone));
  for (const SampleField& field : sample.pairs)
    if (!traits_of(field.role).fits_own_sizes)
      throw_bad_data(plural_of(field) + ", which images of their own sizes cannot have");
}

void SizedSamples::append_more(const PartSpec&, const std::vector<StoredChunk>&, const PartSamples& samples,
                               ByteBuffer& bytes) const {
  const ImageSizes& sizes = samples.sizes;
  const auto append = [&](Bytes more) { bytes.insert(bytes.end(), more.begin(), more.end()); };
  for (const auto* plane : {&sizes.payload_bytes, &sizes.heights, &sizes.widths}) append(bytes_of(*plane));
  for (const auto* plane : {&sizes.kinds, &sizes.orientations}) append(*plane);
  const std::uint64_t filled = sizes.kinds.size() * kPlaneBytes;
  bytes.insert(bytes.end(), round_up(filled, 8) - filled, std::uint8_t{0});
  append(bytes_of(sizes.payload_xxh3));
  append(bytes_of(sizes.mask_bytes));
  if (sizes.mask_bytes.size() % 2 != 0) append_little(bytes, std::uint32_t{0});
}

void SizedSamples::decode_more(IndexCursor& cursor, PartContents& contents) const {
  ImageSizes& sizes = contents.samples.sizes;
  const std::uint64_t sample_count = contents.samples.rows.size();
  for (auto* plane : {&sizes.payload_bytes, &sizes.heights, &sizes.widths})
    *plane = cursor.numbers<std::uint32_t>(sample_count);
  for (auto* plane : {&sizes.kinds, &sizes.orientations}) *plane = cursor.numbers<std::uint8_t>(sample_count);
  const std::uint64_t bytes = sample_count * kPlaneBytes;
  require_zeros(cursor.take(round_up(bytes, 8) - bytes, 1));
  sizes.payload_xxh3 = cursor.numbers<std::uint64_t>(sample_count);
  if (sample.pairs.empty()) return;
  sizes.mask_bytes = cursor.numbers<std::uint32_t>(sample_count);
  if (sample_count % 2 != 0) require_zeros(cursor.take(1, sizeof(std::uint32_t)));
}

void SizedSamples::check_spec(const PartSpec& spec, const Container&) const {
  if (sample.height != 0 || sample.width != 0 || sample.layout != Layout::nhwc)
    throw_bad_data("images of their own sizes with a shape");
  if (sample.channels != 1 && sample.channels != 3 && sample.channels != 4)
    throw_bad_data(std::to_string(sample.channels) + " channels, expected 1, 3 or 4");
  check_count("samples of a chunk", spec.chunk_samples, 0);
  if (spec.codec != "none") throw_bad_data("images of their own sizes with a codec");
}

void SizedSamples::check_chunks(const PartContents& contents, const Container& container,
                                std::uint64_t file_bytes) const {
  check_sizes(contents);
  std::uint64_t first_sample = 0;
  for_each_chunk(contents, [&](std::size_t i) {
    const StoredChunk& chunk = contents.chunks[i];
    const std::uint64_t count = count_sized_samples(contents.samples.sizes, first_sample, chunk);
    check_chunk(contents, i, {first_sample, count}, container, file_bytes);
    if (chunk.stored_bytes > container.max_chunk_bytes)
      throw_bad_data("stored bytes: " + std::to_string(chunk.stored_bytes) + ", expected at most " +
                     std::to_string(container.max_chunk_bytes));
    first_sample += count;
  });
  check_count("samples of all chunks", first_sample, contents.samples.rows.size());
}

/// A chunk has fewer than 2^32 bytes.
std::vector<std::uint32_t> SizedSamples::sample_offsets(const std::vector<StoredChunk>& chunks,
                                                        const PartSamples& samples) const {
  std::vector<std::uint32_t> offsets;
  offsets.reserve(samples.sizes.payload_bytes.size());
  for (const StoredChunk& chunk : chunks) {
    std::uint64_t offset = 0;
    for (std::uint64_t i = 0; i < chunk.sample_count; ++i) {
      offsets.push_back(static_cast<std::uint32_t>(offset));
      offset += samples.sizes.stored_bytes(chunk.first_sample + i);
    }
  }
  return offsets;
}

}  // namespace chunkhit
