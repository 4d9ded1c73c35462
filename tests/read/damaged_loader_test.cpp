// A loader over damaged files gives an Error, leaves a chunk out and counts it, or gives what was packed;
// never anything else.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "chunkhit/dataset.h"
#include "chunkhit/image_loader.h"
#include "chunkhit/verify.h"
#include "loaded_batches.h"
#include "manifest/manifest.h"
#include "support/depth.h"

namespace chunkhit {
namespace {

#ifdef __SANITIZE_THREAD__
// A new process, which each flip of an HDF5 part takes, starts slowly there.
constexpr std::uint64_t kStride = 12;
#else
constexpr std::uint64_t kStride = 4;
#endif
constexpr std::uint64_t kDamagedSamples = 30;
const SampleShape kDamagedShape{8, 7, 3, Layout::nhwc};

// What a loader may give.
enum Outcome { right, refused, left_out, wrong };

PartSpec damaged_spec(const std::string& filter) { return known_spec(kDamagedShape, filter); }

/// Writes a part, and the manifest of a pack that holds it; gives the part's path.
std::string write_pack(const TemporaryFolder& folder, const std::string& name, const std::string& filter) {
  const Container& kind = container(name);
  PartSpec spec = damaged_spec(filter);
  spec.part_index = 0;
  Manifest manifest;
  manifest.parts.resize(1);
  PartRecord& part = manifest.parts[0];
  part.file = "part-00000" + std::string(kind.extension);
  const PartReport report = write_known_part(kind, folder.path(part.file), spec, kDamagedSamples);
  part.bytes = report.bytes;
  part.xxh3 = report.xxh3;
  part.chunks = report.chunk_count;
  part.stored_bytes = report.stored_bytes;
  manifest.rows = manifest.samples = part.rows = part.samples = kDamagedSamples;
  manifest.pack_id = spec.pack_id;
  manifest.sample = spec.images().sample;
  manifest.container = name;
  manifest.codec = filter;
  manifest.chunk_samples = spec.chunk_samples;
  manifest.chunk_bytes = spec.chunk_samples * spec.images().sample.byte_count();
  manifest.label_columns = spec.label_columns;
  for (std::size_t i = 0; i < spec.images().classes.size(); ++i)
    manifest.classes.push_back({static_cast<std::int64_t>(i), spec.images().classes[i], kDamagedSamples / 3});
  manifest.mean = {0.1, 0.2, 0.3};
  manifest.std = {0.1, 0.2, 0.3};
  folder.write(kManifestName, manifest_text(manifest));
  return folder.path(part.file);
}

bool is_right(const ImageBatch& batch) {
  const std::size_t bytes = kDamagedShape.byte_count();
  for (std::size_t i = 0; i < batch.samples.size(); ++i) {
    const std::uint64_t sample = batch.samples[i];
    const ByteBuffer expected = known_samples(kDamagedShape, sample, 1);
    if (!std::equal(expected.begin(), expected.end(), batch.pixels().subspan(i * bytes, bytes).begin()) ||
        batch.labels()[i] != static_cast<std::int64_t>(sample % 3))
      return false;
  }
  return true;
}

Outcome load_all(const std::string& path, const ImageLoaderOptions& options) {
  try {
    ImageLoader loader(path, options);
    std::vector<int> seen(loader.size());
    for (const ImageBatch& batch : loader.epoch(0)) {
      if (!is_right(batch) || batch.shape.batch != batch.samples.size()) return wrong;
      for (const std::uint64_t sample : batch.samples) ++seen[sample];
    }
    const auto once = static_cast<std::uint64_t>(std::count(seen.begin(), seen.end(), 1));
    if (seen.size() != kDamagedSamples || once + loader.stats().corrupt_samples != kDamagedSamples)
      return wrong;
    return once == kDamagedSamples ? right : left_out;
  } catch (const Error&) {
    return refused;
  }
}

void flip(const std::string& path, std::uint64_t at, int bit) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const char byte = static_cast<char>(file.get() ^ (1 << bit));
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

/// Whether a byte belongs to the stored bytes of a chunk.
bool is_in_chunk(const std::vector<StoredChunk>& chunks, std::uint64_t at) {
  return std::any_of(chunks.begin(), chunks.end(), [&](const StoredChunk& chunk) {
    return at >= chunk.offset && at < chunk.offset + chunk.stored_bytes;
  });
}

/// Flips one bit after the other, some bytes apart, and loads the part, or its pack, with options that change
/// from flip to flip.
void expect_no_wrong_samples(const std::string& name, const std::string& filter, bool with_manifest) {
  const TemporaryFolder folder;
  const std::string path = write_pack(folder, name, filter);
  const std::vector<StoredChunk> chunks = open_part(path)->chunks();
  const std::uint64_t bytes = std::filesystem::file_size(path);
  const std::string source = with_manifest ? folder.path() : path;
  ASSERT_EQ(load_all(source, {.batch_size = 7}), right) << name << " " << filter;
  std::vector<int> outcomes(4);
  for (std::uint64_t at = with_manifest ? 5 : 0; at < bytes;
       at += sweep_stride(kStride) * (name == "hdf5" ? 53 : 23)) {
    const std::uint64_t choice = mix_bits(at);
    const bool skips = choice / 8 % 2 == 0;
    // Batches of 7 and of several chunks, which are read straight into them.
    const ImageLoaderOptions options{.batch_size = choice / 256 % 2 == 0 ? 7u : 24u,
                                     .shuffle = static_cast<Shuffle>(choice / 16 % 3),
                                     .cache = static_cast<Cache>(choice / 64 % 4),
                                     .threads = 2,
                                     .on_corrupt = skips ? OnCorrupt::skip : OnCorrupt::fail};
    flip(path, at, choice % 8);
    const Outcome outcome = load_all(source, options);
    flip(path, at, choice % 8);
    ASSERT_NE(outcome, wrong) << name << " " << filter << ": bit " << choice % 8 << " of byte " << at;
    if (is_in_chunk(chunks, at)) {
      ASSERT_EQ(outcome, skips ? left_out : refused) << name << " " << filter << ": byte " << at;
    }
    ++outcomes[static_cast<std::size_t>(outcome)];
  }
  EXPECT_GT(outcomes[refused], 0);
  EXPECT_GT(outcomes[left_out], 0);
}

TEST(DamagedLoader, OfAShardGivesNoWrongSamples) {
  for (const bool with_manifest : {false, true})
    for (const char* filter : {"photo", "none"}) expect_no_wrong_samples("shard", filter, with_manifest);
}

TEST(DamagedLoader, OfAnHdf5PartGivesNoWrongSamples) {
  for (const bool with_manifest : {false, true})
    for (const char* filter : {"none", "deflate"}) expect_no_wrong_samples("hdf5", filter, with_manifest);
}

TEST(DamagedLoader, OfAnEditedManifestGivesAnError) {
  const TemporaryFolder folder;
  write_pack(folder, "shard", "photo");
  const std::string manifest = folder.path(kManifestName);
  const std::uint64_t bytes = std::filesystem::file_size(manifest);
  ASSERT_EQ(load_all(folder.path(), {.batch_size = 7}), right);
  for (std::uint64_t at = 0; at < bytes; at += 3) {
    flip(manifest, at, static_cast<int>(mix_bits(at) % 8));
    EXPECT_EQ(load_all(folder.path(), {.batch_size = 7}), refused) << at;
    flip(manifest, at, static_cast<int>(mix_bits(at) % 8));
  }
}

// Whole parts, each right in itself: of another pack, at another position, with fewer samples.
TEST(DamagedLoader, OfAPartThatTheManifestDoesNotListGivesAnError) {
  const TemporaryFolder folder;
  const std::string path = write_pack(folder, "shard", "photo");
  PartSpec spec = damaged_spec("photo");
  const auto outcome_with = [&](std::uint64_t samples) {
    std::filesystem::remove(path);
    write_known_part(container("shard"), path, spec, samples);
    return load_all(folder.path(), {.batch_size = 7});
  };
  spec.part_index = 0;
  EXPECT_EQ(outcome_with(kDamagedSamples), right);
  EXPECT_EQ(outcome_with(kDamagedSamples - 1), refused);
  spec.part_index = 1;
  EXPECT_EQ(outcome_with(kDamagedSamples), refused);
  spec.part_index = 0;
  spec.pack_id ^= 1;
  EXPECT_EQ(outcome_with(kDamagedSamples), refused);
  spec = damaged_spec("photo");
  spec.part_index = 0;
  spec.images().classes[2] = "another";
  EXPECT_EQ(outcome_with(kDamagedSamples), refused);
}

// Loaders take the padding behind chunks as it must be; pack-verify reads it.
TEST(DamagedLoader, OfChangedPaddingGivesWhatWasPackedAndVerifyNamesIt) {
  const TemporaryFolder folder;
  const std::string path = write_pack(folder, "shard", "photo");
  const StoredChunk chunk = open_part(path)->chunks()[0];
  flip(path, chunk.offset + chunk.stored_bytes + 8, 0);
  EXPECT_EQ(load_all(folder.path(), {.batch_size = 7}), right);
  EXPECT_TRUE(std::ranges::any_of(verify_pack(folder.path(), {}).problems, [](const std::string& problem) {
    return problem.find("checksum of the part") != std::string::npos;
  }));
}

// Equal names, rows, labels, pack id and sizes: only the pixels differ, and the hashes that the part has of
// them.
TEST(DamagedLoader, OfAPartOfAPackWithAnEqualListGivesAnError) {
  for (const char* name : {"hdf5", "shard"}) {
    const TemporaryFolder folder;
    const std::string path = write_pack(folder, name, "none");
    const std::uint64_t bytes = std::filesystem::file_size(path);
    std::filesystem::remove(path);
    PartSpec spec = damaged_spec("none");
    spec.part_index = 0;
    spec.hashes_samples = container(name).hashes_samples("none");
    const std::unique_ptr<ChunkWriter> writer = container(name).create(path, spec);
    for (std::uint64_t first = 0; first < kDamagedSamples; first += spec.chunk_samples)
      append_known_chunk(*writer, container(name), spec, first + 1000,
                         std::min(spec.chunk_samples, kDamagedSamples - first));
    static_cast<void>(writer->finish(known_part_samples(spec, kDamagedSamples)));
    ASSERT_EQ(std::filesystem::file_size(path), bytes);
    EXPECT_EQ(load_all(path, {.batch_size = 7}), wrong) << "alone it is a part like any other";
    EXPECT_EQ(load_all(folder.path(), {.batch_size = 7}), refused);
    EXPECT_THROW(ImageDataset(folder.path()), Error);
  }
}

}  // namespace
}  // namespace chunkhit
