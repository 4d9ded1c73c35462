#include "pack/images/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace chunkhit {
namespace {

/// `counts[c]` samples of class c, in the order of classes.
SampleList list_of(const std::vector<std::size_t>& counts) {
  SampleList list;
  list.label_columns = {"label"};
  for (std::size_t id = 0; id < counts.size(); ++id)
    for (std::size_t sample = 0; sample < counts[id]; ++sample) {
      list.files.add(std::to_string(id) + "/" + std::to_string(sample));
      list.class_ids.push_back(static_cast<std::int64_t>(id));
    }
  list.row_count = list.size();
  return list;
}

TEST(SampleOrder, ShufflesBySeedAndAlwaysTheSameWay) {
  PackImagesSpec spec;
  const SampleList list = list_of({1000});
  const std::vector<std::uint32_t> first = order_samples(list, spec)[0].indices;
  EXPECT_EQ(order_samples(list, spec)[0].indices, first);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  EXPECT_EQ(std::set<std::uint32_t>(first.begin(), first.end()).size(), 1000u);
  spec.seed = 1;
  EXPECT_NE(order_samples(list, spec)[0].indices, first);
}

TEST(SampleOrder, KeepsTheListsOrderWhenAsked) {
  PackImagesSpec spec;
  spec.order = PackOrder::input;
  EXPECT_EQ(order_samples(list_of({3}), spec)[0].indices, (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(Split, DividesEveryClassToWithinOneSample) {
  PackImagesSpec spec;
  spec.split = {{"train", 0.9}, {"val", 0.1}};
  const std::vector<std::size_t> counts{10, 100, 37, 1, 0, 2};
  const SampleList list = list_of(counts);
  const std::vector<PackSamples> packs = order_samples(list, spec);
  std::map<std::int64_t, std::size_t> train;
  for (const std::uint32_t index : packs[0].indices) ++train[list.class_ids[index]];
  for (std::size_t id = 0; id < counts.size(); ++id)
    EXPECT_NEAR(static_cast<double>(train[static_cast<std::int64_t>(id)]),
                0.9 * static_cast<double>(counts[id]), 1)
        << id;
  EXPECT_EQ(train[0], 9u);
  EXPECT_EQ(train[1], 90u);
}

TEST(Split, PutsEverySampleIntoExactlyOnePack) {
  PackImagesSpec spec;
  spec.split = {{"a", 0.333}, {"b", 0.333}, {"c", 0.334}};
  const SampleList list = list_of({7, 11, 13, 17});
  std::multiset<std::uint32_t> all;
  for (const PackSamples& pack : order_samples(list, spec))
    all.insert(pack.indices.begin(), pack.indices.end());
  EXPECT_EQ(all.size(), 48u);
  EXPECT_EQ(std::set<std::uint32_t>(all.begin(), all.end()).size(), 48u);
}

TEST(Split, PutsAllRowsOfAFileIntoOnePack) {
  PackImagesSpec spec;
  spec.split = {{"train", 0.8}, {"val", 0.2}};
  SampleList list;
  list.label_columns = {"label"};
  for (std::size_t row = 0; row < 300; ++row) {
    list.files.add((row >= 200 && row % 2 == 0 ? "./" : "") + std::to_string(row % 100));
    list.class_ids.push_back(static_cast<std::int64_t>(row % 2));
  }
  const std::vector<PackSamples> packs = order_samples(list, spec);
  EXPECT_EQ(packs[0].indices.size(), 240u) << "80 files of three rows";
  std::set<std::uint32_t> in_training;
  for (const std::uint32_t index : packs[0].indices) in_training.insert(index % 100);
  for (const std::uint32_t index : packs[1].indices) EXPECT_FALSE(in_training.contains(index % 100)) << index;
}

TEST(Split, DividesRowsWhereFewFilesAreRepeatedOften) {
  PackImagesSpec spec;
  spec.split = {{"train", 0.5}, {"val", 0.5}};
  SampleList list = list_of({200});
  for (int row = 0; row < 100; ++row) {
    list.files.add("0/7");
    list.class_ids.push_back(0);
  }
  const std::vector<PackSamples> packs = order_samples(list, spec);
  EXPECT_EQ(packs[0].indices.size(), 150u);
  EXPECT_EQ(packs[1].indices.size(), 150u);
}

}  // namespace
}  // namespace chunkhit
