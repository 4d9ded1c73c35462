#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "chunkhit/sparse_loader.h"
#include "loaded_rows.h"

namespace chunkhit {
namespace {

using Columns = std::vector<std::int32_t>;

constexpr std::size_t kCount = 40;
const MatrixShape kPaired = known_shape(ValueType::u8, 2);

/// Counts that fall from 700 to 1.
PopularitySampler falling_sampler() {
  std::vector<std::uint64_t> counts(kKnownColumns);
  for (std::size_t item = 0; item < counts.size(); ++item) counts[item] = counts.size() - item;
  return PopularitySampler(counts);
}

/// What is drawn for each row in an epoch of these options.
std::map<std::uint64_t, Columns> draw_epoch(const std::string& path, const SparseLoaderOptions& options,
                                            std::uint64_t epoch = 0) {
  const PopularitySampler sampler = falling_sampler();
  SparseLoader loader(path, options);
  std::map<std::uint64_t, Columns> drawn;
  for (const SparseBatch& batch : loader.epoch(epoch)) {
    Columns items(batch.rows.size() * kCount);
    sampler.draw_batch(batch, 5, items);
    for (std::size_t at = 0; at < batch.rows.size(); ++at)
      drawn[batch.rows[at]] = {items.begin() + static_cast<std::ptrdiff_t>(at * kCount),
                               items.begin() + static_cast<std::ptrdiff_t>((at + 1) * kCount)};
  }
  return drawn;
}

TEST(BatchNegatives, AreNeitherInXNorHeldOutInAnyForm) {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder, kPaired);
  const auto first = draw_epoch(path, {.format = SparseFormat::csr});
  ASSERT_EQ(first.size(), kRows);
  for (const auto& [row, items] : first)
    for (const std::int32_t item : items)
      ASSERT_EQ(known_matrix(row, static_cast<std::uint64_t>(item)), 2) << row << " " << item;
  for (const SparseFormat format : kSparseFormats) EXPECT_EQ(draw_epoch(path, {.format = format}), first);
}

TEST(BatchNegatives, LeaveOnlyXOutWhereNothingIsHeldOut) {
  const TemporaryFolder folder;
  std::size_t held_out = 0;
  const auto drawn =
      draw_epoch(write_shard(folder, kPaired), {.format = SparseFormat::csr, .held_out = false});
  for (const auto& [row, items] : drawn)
    for (const std::int32_t item : items) {
      ASSERT_NE(known_matrix(row, static_cast<std::uint64_t>(item)), 0);
      held_out += known_matrix(row, static_cast<std::uint64_t>(item)) == 1 ? 1 : 0;
    }
  EXPECT_GT(held_out, 0);
}

TEST(BatchNegatives, OfARowDependOnSeedEpochAndRowAlone) {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder, kPaired);
  const auto first = draw_epoch(path, {.format = SparseFormat::csr}, 3);
  for (const std::uint32_t threads : {1, 4})
    EXPECT_EQ(
        draw_epoch(path, {.batch_size = 7, .shuffle = Shuffle::global, .seed = 9, .threads = threads}, 3),
        first);
  EXPECT_NE(draw_epoch(path, {.format = SparseFormat::csr}, 4), first);
  EXPECT_NE(first.at(0), first.at(1));
}

TEST(BatchNegatives, AreTheSameFromEveryThread) {
  const PopularitySampler sampler = falling_sampler();
  const std::vector<std::uint64_t> rows{3, 1, 4, 1, 5};
  Columns expected(rows.size() * kCount);
  sampler.draw_batch(rows, {}, {}, 1, 2, expected);
  std::vector<Columns> found(4, Columns(expected.size()));
  std::vector<std::thread> threads;
  for (Columns& items : found) threads.emplace_back([&] { sampler.draw_batch(rows, {}, {}, 1, 2, items); });
  for (std::thread& thread : threads) thread.join();
  for (const Columns& items : found) EXPECT_EQ(items, expected);
  EXPECT_TRUE(std::equal(expected.begin() + kCount, expected.begin() + 2 * kCount,
                         expected.begin() + 3 * kCount));  // row 1, twice
}

RowItems csr_items(const Columns& indptr, const Columns& indices) {
  RowItems items;
  items.indptr = indptr;
  items.indices = indices;
  return items;
}

/// Σ (found − expected)² / expected over the items with a weight.
double chi_square(const Columns& drawn, const std::vector<double>& weights) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  std::vector<double> found(weights.size());
  for (const std::int32_t item : drawn) ++found[static_cast<std::size_t>(item)];
  double result = 0;
  for (std::size_t item = 0; item < weights.size(); ++item) {
    const double expected = weights[item] / sum * static_cast<double>(drawn.size());
    if (expected > 0)
      result += (found[item] - expected) * (found[item] - expected) / expected;
    else
      EXPECT_EQ(found[item], 0) << item;
  }
  return result;
}

TEST(BatchNegatives, FollowPopularityAmongTheItemsThatARowHasNot) {
  const std::vector<std::uint64_t> counts{1, 20, 3, 0, 50, 6, 7, 8, 9, 10, 11, 12};
  const Columns x{1, 7};
  const Columns held_out{4};
  constexpr std::size_t kDraws = 200;
  constexpr std::size_t kManyRows = 1000;
  std::vector<std::uint64_t> rows;
  Columns x_ends{0}, x_columns, held_ends{0}, held_columns;
  for (std::size_t row = 0; row < kManyRows; ++row) {
    rows.push_back(row);
    x_columns.insert(x_columns.end(), x.begin(), x.end());
    x_ends.push_back(static_cast<std::int32_t>(x_columns.size()));
    held_columns.insert(held_columns.end(), held_out.begin(), held_out.end());
    held_ends.push_back(static_cast<std::int32_t>(held_columns.size()));
  }
  for (const double power : {1.0, 0.5, 0.0}) {
    Columns drawn(kManyRows * kDraws);
    PopularitySampler(counts, power)
        .draw_batch(rows, csr_items(x_ends, x_columns), csr_items(held_ends, held_columns), 7, 0, drawn);
    std::vector<double> weights;
    for (std::size_t item = 0; item < counts.size(); ++item)
      weights.push_back(counts[item] == 0 || item == 1 || item == 7 || item == 4
                            ? 0
                            : std::pow(static_cast<double>(counts[item]), power));
    // 8 items are left: of 7 degrees of freedom, 24.3 is exceeded once in 1,000 seeds.
    EXPECT_LT(chi_square(drawn, weights), 24.3) << power;
  }
}

TEST(BatchNegatives, OfARowThatHasNearlyAllAreTheFewThatAreLeft) {
  std::vector<std::uint64_t> counts(5000, 1'000'000);
  const std::vector<std::int32_t> left{17, 600, 4999};
  for (std::size_t i = 0; i < left.size(); ++i) counts[static_cast<std::size_t>(left[i])] = i + 1;
  Columns own;
  for (std::int32_t item = 0; item < 5000; ++item)
    if (!std::ranges::count(left, item)) own.push_back(item);
  const Columns ends{0, static_cast<std::int32_t>(own.size())};
  const std::vector<std::uint64_t> rows{8};
  Columns drawn(6000);
  PopularitySampler(counts).draw_batch(rows, csr_items(ends, own), {}, 1, 0, drawn);
  std::vector<double> weights(5000);
  for (std::size_t i = 0; i < left.size(); ++i)
    weights[static_cast<std::size_t>(left[i])] = static_cast<double>(i + 1);
  EXPECT_LT(chi_square(drawn, weights), 13.9);  // 2 degrees of freedom, once in 1,000 seeds
}

/// The message of the usage error that drawing for rows of a sampler of three items throws.
std::string refusal(const std::vector<std::uint64_t>& rows, const RowItems& x, std::size_t items) {
  const PopularitySampler sampler(std::vector<std::uint64_t>{1, 0, 2});
  Columns drawn(items);
  try {
    sampler.draw_batch(rows, x, {}, 1, 0, drawn);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "";
}

TEST(BatchNegatives, RefuseARowThatHasAllAndRowsThatAreNone) {
  EXPECT_EQ(refusal({41, 42}, csr_items({0, 1, 3}, {0, 0, 2}), 2),
            "row 42: every item that can be drawn is the row's own");
  EXPECT_EQ(refusal({1, 2}, csr_items({0, 1, 2}, {0, 0}), 4), "");
  EXPECT_EQ(refusal({}, {}, 0), "");
  EXPECT_NE(refusal({1, 2}, {}, 3).find("3 cannot be shared out among 2 rows"), std::string::npos);
  EXPECT_NE(refusal({1}, csr_items({0, 2}, {2, 0}), 1).find("row 0 do not ascend"), std::string::npos);
  EXPECT_NE(refusal({1}, csr_items({0, 3}, {0, 2}), 1).find("outside"), std::string::npos);
  EXPECT_NE(refusal({1, 2}, csr_items({0, 2}, {0, 2}), 2).find("2 entries of indptr"), std::string::npos);
  const std::vector<std::uint8_t> cells(4);
  RowItems dense;
  dense.cells = cells;
  dense.cell_bytes = 1;
  EXPECT_NE(refusal({1}, dense, 1).find("4 cells, expected 1 rows of the sampler's 3 items"),
            std::string::npos);
}

}  // namespace
}  // namespace chunkhit
