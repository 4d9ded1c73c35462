#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "chunkhit/dataset.h"
#include "chunkhit/sparse_loader.h"
#include "loaded_rows.h"
#include "store/hdf5/matrix.h"

namespace chunkhit {
namespace {

/// Writes a part whose users and items have these ids, a row and a column each.
std::string write_part(const TemporaryFolder& folder, const std::string& name,
                       const std::vector<std::string>& ids, const std::vector<std::string>& items) {
  PartSpec spec = known_matrix_spec({.column_count = items.size(), .matrix_count = 1}, "zstd");
  spec.rows().item_ids = items;
  PartSamples samples;
  for (std::size_t row = 0; row < ids.size(); ++row) {
    samples.rows.push_back(row);
    samples.labels.ids.push_back(-1);
    samples.row_ids.add(ids[row]);
  }
  const std::string path = folder.path(name);
  if (name.ends_with(".h5")) {
    MatrixHdf5Writer writer(path, spec);
    writer.append(known_rows(spec.rows().matrix, 0, 0, ids.size()).view(), {});
    static_cast<void>(writer.finish(samples));
    return path;
  }
  const std::unique_ptr<ChunkWriter> writer = container("shard").create(path, spec);
  for (std::uint64_t first = 0; first < ids.size(); first += kKnownChunkRows) {
    const std::uint64_t rows = std::min<std::uint64_t>(kKnownChunkRows, ids.size() - first);
    const ByteBuffer raw = known_row_block(spec, first, rows);
    writer->append({Bytes(raw), raw.size(), rows, xxh3(raw), false});
  }
  static_cast<void>(writer->finish(samples));
  return path;
}

std::string write_part(const TemporaryFolder& folder, const std::string& name,
                       const std::vector<std::string>& ids) {
  return write_part(folder, name, ids, ids);
}

const std::vector<std::string> kNumbers{"17", "0", "-4", "9223372036854775807", "-9223372036854775808", "8"};
const std::vector<std::string> kTexts{"17", "007", "bob", "", "ítem 9", "9223372036854775808"};

TEST(SparseIds, EveryIdHasItsRowAndColumn) {
  const TemporaryFolder folder;
  for (const std::string name : {"part.zst", "part.h5"})
    for (const auto& ids : {kNumbers, kTexts}) {
      const SparseDataset dataset(write_part(folder, name, ids));
      for (std::size_t i = 0; i < ids.size(); ++i) {
        EXPECT_EQ(dataset.row_of(ids[i]), i) << ids[i];
        EXPECT_EQ(dataset.column_of(ids[i]), i) << ids[i];
      }
      EXPECT_EQ(dataset.row_of("nobody"), std::nullopt);
      EXPECT_EQ(dataset.column_of("7"), std::nullopt);
    }
}

TEST(SparseIds, AreNumbersOnlyWhereEachIsOne) {
  const TemporaryFolder folder;
  const SparseDataset numbers(write_part(folder, "numbers.zst", kNumbers));
  EXPECT_EQ(numbers.row_ids().integers, (std::vector<std::int64_t>{17, 0, -4, INT64_MAX, INT64_MIN, 8}));
  EXPECT_TRUE(numbers.row_ids().texts.empty());
  const SparseDataset texts(write_part(folder, "texts.zst", kTexts));
  EXPECT_TRUE(texts.column_ids().integers.empty());
  EXPECT_TRUE(std::ranges::equal(texts.column_ids().texts, kTexts));
}

TEST(SparseIds, OfSeveralPacksCountRowsThroughAndFindTheFirst) {
  const TemporaryFolder folder;
  const std::string first = write_part(folder, "first.zst", kTexts);
  const std::string second = write_part(folder, "second.zst", kTexts);
  SparseLoader loader({first, second}, {.batch_size = 2, .format = SparseFormat::csr});
  EXPECT_EQ(loader.row_ids().texts.size(), 2 * kTexts.size());
  EXPECT_EQ(loader.column_ids().texts.size(), kTexts.size());
  for (std::size_t i = 0; i < kTexts.size(); ++i) EXPECT_EQ(loader.row_of(kTexts[i]), i);
  EXPECT_EQ(loader.row_of("carol"), std::nullopt);
}

TEST(SparseIds, AreFoundByManyThreadsOfWhichTheFirstBuildsTheIndex) {
  const TemporaryFolder folder;
  std::vector<std::string> ids;
  for (int i = 0; i < 20000; ++i) ids.push_back("user " + std::to_string(i * 7919 % 20011));
  const SparseDataset dataset(write_part(folder, "many.h5", ids, kTexts));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < ids.size(); ++i)
        if (dataset.row_of(ids[i]) != i || dataset.row_of(ids[i] + "x")) ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace chunkhit
