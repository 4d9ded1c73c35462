#include "store/part.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/hash.h"
#include "chunkhit/error.h"
#include "support/known_parts.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kSamples = 10;

std::string file_bytes(const std::string& path) { return std::string(as_text(read_file(path, 1 << 30))); }

/// Calls `check` with a part of every container, filter, layout and label kind.
void for_each_part(
    std::uint64_t sample_count,
    const std::function<void(const Container&, const std::string& path, const PartSpec&)>& check) {
  const TemporaryFolder folder;
  for (const Container& kind : containers())
    for (const std::string_view filter : kind.codecs)
      for (const Layout layout : {Layout::nhwc, Layout::nchw})
        for (const std::size_t columns : {1, 5}) {
          const PartSpec spec = known_spec({20, 17, 3, layout}, std::string(filter), columns);
          const std::string path = folder.path("part-00007" + std::string(kind.extension));
          write_known_part(kind, path, spec, sample_count);
          SCOPED_TRACE(std::string(kind.name) + " " + std::string(filter));
          check(kind, path, spec);
          std::filesystem::remove(path);
        }
}

std::string error_of(const std::function<void()>& step) {
  try {
    step();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Part, GivesBackItsSamples) {
  for_each_part(kSamples, [](const Container&, const std::string& path, const PartSpec& spec) {
    const std::unique_ptr<ChunkReader> part = open_part(path);
    ByteBuffer stored;
    std::uint64_t samples = 0;
    for (std::size_t i = 0; i < part->chunks().size(); ++i) {
      const StoredChunk& chunk = part->chunks()[i];
      ByteBuffer raw(chunk.raw_bytes);
      part->fetch(i, stored);
      decode_chunk(*part, i, stored, raw);
      const ByteBuffer expected = known_samples(spec.images().sample, chunk.first_sample, chunk.sample_count);
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), raw.begin()));
      samples += chunk.sample_count;
    }
    EXPECT_EQ(samples, kSamples);
    EXPECT_TRUE(part->has_hashes());
  });
}

TEST(Part, GivesBackWhatStandsBesideThePixels) {
  for_each_part(kSamples, [](const Container&, const std::string& path, const PartSpec& spec) {
    const std::unique_ptr<ChunkReader> part = open_part(path);
    const PartSamples expected = known_part_samples(spec, kSamples);
    EXPECT_EQ(part->samples().labels.ids, expected.labels.ids);
    EXPECT_EQ(part->samples().labels.values, expected.labels.values);
    EXPECT_EQ(part->samples().rows, expected.rows);
    EXPECT_EQ(part->samples().files.text, expected.files.text);
    EXPECT_EQ(part->samples().files.ends, expected.files.ends);
    EXPECT_EQ(part->samples().mean, expected.mean);
    EXPECT_EQ(part->samples().std, expected.std);
    EXPECT_EQ(part->spec().images().sample, spec.images().sample);
    EXPECT_EQ(part->spec().codec, spec.codec);
    EXPECT_EQ(part->spec().chunk_samples, spec.chunk_samples);
    EXPECT_EQ(part->spec().images().classes, spec.images().classes);
    EXPECT_EQ(part->spec().label_columns, spec.label_columns);
    EXPECT_EQ(part->spec().pack_id, spec.pack_id);
    EXPECT_EQ(part->spec().part_index, spec.part_index);
  });
}

TEST(Part, StoresNoiseRaw) {
  for_each_part(kSamples, [](const Container&, const std::string& path, const PartSpec& spec) {
    const std::unique_ptr<ChunkReader> part = open_part(path);
    const bool filters = spec.codec != "none";
    ASSERT_EQ(part->chunks().size(), 3u);
    EXPECT_EQ(part->chunks()[0].filtered, filters);
    EXPECT_FALSE(part->chunks()[1].filtered);
    EXPECT_EQ(part->chunks()[2].filtered, filters);
  });
}

/// The hash of a file whose chunks are replaced by their hashes.
std::uint64_t hash_with_chunks(const std::string& file, const std::vector<StoredChunk>& chunks,
                               std::uint64_t block_bytes) {
  std::string hashed;
  std::size_t at = 0;
  for (const StoredChunk& chunk : chunks) {
    hashed += file.substr(at, chunk.offset - at);
    const Bytes stored = as_bytes(file).subspan(chunk.offset, chunk.stored_bytes);
    const std::uint64_t of_chunk = hash_chunk(stored, block_bytes).chunk;
    hashed.append(reinterpret_cast<const char*>(&of_chunk), sizeof of_chunk);
    at = chunk.offset + chunk.stored_bytes;
  }
  return xxh3(as_bytes(hashed + file.substr(at)));
}

/// As schemas/manifest.md and, of the trailer, schemas/images-hdf5.md say.
std::uint64_t expected_hash(const std::string& file, const std::vector<StoredChunk>& chunks, bool is_hdf5,
                            std::uint64_t block_bytes) {
  if (!is_hdf5) return hash_with_chunks(file, chunks, block_bytes);
  const Bytes trailer = as_bytes(file).last(64);
  const auto number = [&](std::size_t at) { return load_little<std::uint64_t>(trailer.data() + at); };
  const std::uint64_t hdf5_bytes = load_little<std::uint64_t>(as_bytes(file).data() + 40);
  EXPECT_EQ(number(24), hdf5_bytes);
  EXPECT_EQ(number(32), file.size() - hdf5_bytes - trailer.size());
  EXPECT_EQ(number(40), xxh3(as_bytes(file).subspan(hdf5_bytes, number(32))));
  EXPECT_EQ(number(48), hash_with_chunks(file.substr(0, hdf5_bytes), chunks, block_bytes));
  return xxh3(trailer.first(56));
}

TEST(Part, ReportsWhatItPublished) {
  const TemporaryFolder folder;
  for (const Container& kind : containers()) {
    const std::string path = folder.path("part" + std::string(kind.extension));
    const PartSpec spec = known_spec({6, 5, 3, Layout::nhwc}, std::string(kind.codecs[0]));
    const PartReport report = write_known_part(kind, path, spec, kSamples);
    std::uint64_t stored_bytes = 0;
    const std::unique_ptr<ChunkReader> part = open_part(path);
    for (const StoredChunk& chunk : part->chunks()) stored_bytes += chunk.stored_bytes;
    EXPECT_EQ(report.bytes, std::filesystem::file_size(path));
    EXPECT_EQ(report.xxh3, expected_hash(file_bytes(path), part->chunks(), kind.name == "hdf5",
                                         part->spec().block_bytes()));
    EXPECT_EQ(report.sample_count, kSamples);
    EXPECT_EQ(report.chunk_count, 3u);
    EXPECT_EQ(report.stored_bytes, stored_bytes);
  }
}

TEST(Part, OfTheSameSamplesHasTheSameBytes) {
  for_each_part(kSamples, [](const Container& kind, const std::string& path, const PartSpec& spec) {
    const std::string first = file_bytes(path);
    write_known_part(kind, path, spec, kSamples);
    EXPECT_TRUE(first == file_bytes(path));
  });
}

TEST(Part, MayBeEmptyOrHoldOneSample) {
  for (const std::uint64_t count : {0, 1})
    for_each_part(count, [count](const Container&, const std::string& path, const PartSpec&) {
      const std::unique_ptr<ChunkReader> part = open_part(path);
      EXPECT_EQ(part->samples().rows.size(), count);
      EXPECT_EQ(part->chunks().size(), count);
    });
}

TEST(Part, IsNotThereBeforeItIsFinished) {
  const TemporaryFolder folder;
  for (const Container& kind : containers()) {
    const PartSpec spec = known_spec({6, 5, 3, Layout::nhwc}, "none");
    {
      const std::unique_ptr<ChunkWriter> writer = kind.create(folder.path("part"), spec);
      append_known_chunk(*writer, kind, spec, 0, 4);
      EXPECT_FALSE(std::filesystem::exists(folder.path("part")));
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << kind.name;
  }
}

TEST(Part, NamesFileChunkAndSamplesOfADamagedChunk) {
  for_each_part(kSamples, [](const Container&, const std::string& path, const PartSpec&) {
    const std::uint64_t at = open_part(path)->chunks()[1].offset + 50;
    std::string bytes = file_bytes(path);
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    std::ofstream(path, std::ios::binary) << bytes;
    const std::unique_ptr<ChunkReader> part = open_part(path);
    ByteBuffer stored;
    part->fetch(0, stored);
    const std::string error = error_of([&] { part->fetch(1, stored); });
    EXPECT_EQ(error.find(path + ": chunk 1 (samples 4-7): checksum "), 0u) << error;
    const StoredChunk& chunk = part->chunks()[1];
    const std::uint64_t expected = chunk.sample_hashes.empty() ? chunk.xxh3 : chunk.sample_hashes[0];
    EXPECT_NE(error.find(", expected " + hash_text(expected)), std::string::npos) << error;
  });
}

TEST(Part, NamesThePlaceOfAChunkThatDoesNotDecode) {
  for_each_part(kSamples, [](const Container&, const std::string& path, const PartSpec&) {
    const std::unique_ptr<ChunkReader> part = open_part(path);
    const ByteBuffer stored(7);
    ByteBuffer raw(part->chunks()[2].raw_bytes);
    const std::string error = error_of([&] { decode_chunk(*part, 2, stored, raw); });
    EXPECT_EQ(error.find(path + ": chunk 2 (samples 8-9): "), 0u) << error;
  });
}

TEST(Part, RefusesFilesThatAreNone) {
  const TemporaryFolder folder;
  for (const std::string content : {"", "x", "a text that is longer than thirty-two bytes, but no part"}) {
    const std::string path = folder.write("part", content);
    EXPECT_NE(error_of([&] { static_cast<void>(open_part(path)); }).find("neither"), std::string::npos);
  }
  EXPECT_NE(error_of([&] { static_cast<void>(open_part(folder.path("missing"))); }), "");
  EXPECT_NE(error_of([&] { static_cast<void>(open_part(folder.path())); }), "");
}

TEST(Part, NamesTheContainersWhereOneIsMisspelt) {
  EXPECT_EQ(error_of([] { static_cast<void>(container("hdf")); }),
            "container \"hdf\": expected one of hdf5, shard");
}

TEST(Part, RefusesChunksThatTheContainerCannotHold) {
  const TemporaryFolder folder;
  for (const Container& kind : containers()) {
    PartSpec spec = known_spec({1024, 1024, 1, Layout::nhwc}, "none");
    spec.chunk_samples = (kind.max_chunk_bytes >> 20) + 1;
    EXPECT_THROW(kind.create(folder.path("part"), spec), Error) << kind.name;
    spec.chunk_samples = 0;
    EXPECT_THROW(kind.create(folder.path("part"), spec), Error) << kind.name;
  }
}

}  // namespace
}  // namespace chunkhit
