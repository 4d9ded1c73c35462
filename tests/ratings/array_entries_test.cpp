#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "chunkhit/error.h"
#include "ratings/entry_collector.h"
#include "support/read_ratings.h"

namespace chunkhit {
namespace {

using Texts = std::vector<std::string>;
using Integers = std::vector<std::int64_t>;
using Floats = std::vector<float>;

/// Gives the numbers of a list, and no more than there are.
template <class Number>
std::function<void(std::span<Number>)> source(std::vector<Number> numbers) {
  return [numbers = std::move(numbers), at = std::size_t{0}](std::span<Number> out) mutable {
    ASSERT_LE(at + out.size(), numbers.size());
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(at), out.size(), out.begin());
    at += out.size();
  };
}

class Reader : public RatingReader {
 public:
  explicit Reader(EntrySource entries) : entries_(std::move(entries)) {}
  bool next(RatingBlock& block) override {
    collector_.begin(block);
    while (!at_end_ && !collector_.is_full()) at_end_ = !entries_(collector_);
    return collector_.finish();
  }

 private:
  EntrySource entries_;
  EntryCollector collector_{"a", {}, {}, false};
  bool at_end_ = false;
};

Texts entries_of(EntrySource entries) {
  Reader reader(std::move(entries));
  return read_all(reader).ratings;
}

Texts compressed(std::uint64_t rows, std::uint64_t columns, const Integers& indptr, const Integers& indices,
                 bool by_columns = false) {
  Floats values(indices.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  return entries_of(compressed_entries({"a", rows, columns}, {.entry_count = indices.size(),
                                                              .by_columns = by_columns,
                                                              .indptr = source(indptr),
                                                              .indices = source(indices),
                                                              .values = source(values)}));
}

std::string error(const Integers& indptr, const Integers& indices) {
  try {
    static_cast<void>(compressed(3, 4, indptr, indices));
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(ArrayEntries, WalksOverCompressedRows) {
  EXPECT_EQ(compressed(3, 4, {0, 2, 2, 3}, {3, 1, 3}), Texts({"0 3 1", "0 1 2", "2 3 3"}));
  EXPECT_EQ(compressed(3, 4, {0, 0, 0, 0}, {}), Texts());
  EXPECT_EQ(compressed(0, 4, {0}, {}), Texts());
}

TEST(ArrayEntries, WalksOverCompressedColumns) {
  EXPECT_EQ(compressed(4, 3, {0, 2, 2, 3}, {3, 1, 3}, true), Texts({"3 0 1", "1 0 2", "3 2 3"}));
}

TEST(ArrayEntries, RefusesPointersThatDoNotFit) {
  EXPECT_EQ(error({1, 2, 2, 3}, {1, 1, 1}), "a: indptr does not begin with 0");
  EXPECT_EQ(error({0, 2, 1, 3}, {1, 1, 1}),
            "a: indptr has 1 behind 2; it must not fall, nor exceed 3 entries");
  EXPECT_EQ(error({0, 2, 4, 4}, {1, 1, 1}),
            "a: indptr has 4 behind 2; it must not fall, nor exceed 3 entries");
  EXPECT_EQ(error({0, -2, 1, 3}, {1, 1, 1}),
            "a: indptr has -2 behind 0; it must not fall, nor exceed 3 entries");
  EXPECT_EQ(error({0, 1, 2, 2}, {1, 1, 1}), "a: indptr ends with 2, but there are 3 entries");
}

TEST(ArrayEntries, RefusesIndicesBeyondTheShape) {
  EXPECT_EQ(error({0, 1, 1, 1}, {4}), "a: has index 4, expected 0 to 3");
  EXPECT_EQ(error({0, 1, 1, 1}, {-1}), "a: has index -1, expected 0 to 3");
}

TEST(ArrayEntries, FindsTheColumnsThatNobodyTold) {
  std::uint64_t columns = 0;
  EXPECT_EQ(entries_of(compressed_entries({"a", 1, ArrayShape::kUnknown, &columns},
                                          {.entry_count = 2,
                                           .indptr = source(Integers{0, 2}),
                                           .indices = source(Integers{7, 3}),
                                           .values = source(Floats{1, 1})})),
            Texts({"0 7 1", "0 3 1"}));
  EXPECT_EQ(columns, 8u);
}

TEST(ArrayEntries, ReadsCoordinates) {
  EXPECT_EQ(entries_of(coordinate_entries({"a", 3, 4}, 2, source(Integers{2, 0}), source(Integers{3, 1}),
                                          source(Floats{5, 0}))),
            Texts({"2 3 5", "0 1 0"}));
  EXPECT_THROW(entries_of(coordinate_entries({"a", 3, 4}, 1, source(Integers{3}), source(Integers{3}),
                                             source(Floats{5}))),
               Error);
}

TEST(ArrayEntries, ReadsCellsThatAreNotZero) {
  EXPECT_EQ(entries_of(dense_entries({"a", 2, 3}, false, source(Floats{1, 0, 2, 0, 0, 3}))),
            Texts({"0 0 1", "0 2 2", "1 2 3"}));
  EXPECT_EQ(entries_of(dense_entries({"a", 3, 2}, true, source(Floats{1, 0, 2, 0, 0, 3}))),
            Texts({"0 0 1", "2 0 2", "2 1 3"}));
  EXPECT_EQ(entries_of(dense_entries({"a", 3, 0}, false, source(Floats{}))), Texts());
}

TEST(ArrayEntries, RefusesValuesThatAreNoNumbers) {
  EXPECT_THROW(entries_of(dense_entries({"a", 1, 1}, false, source(Floats{NAN}))), Error);
  EXPECT_THROW(entries_of(dense_entries({"a", 1, 1}, false, source(Floats{INFINITY}))), Error);
}

TEST(EntryCollector, GivesEachRowAndColumnOfABlockOneId) {
  EntryCollector collector("a", {}, {{}, 1}, false);
  RatingBlock block;
  for (int round = 0; round < 2; ++round) {
    collector.begin(block);
    for (std::uint64_t i = 0; i < 20'000; ++i) collector.add(i % 7'919, i % 3, 2);
    EXPECT_TRUE(collector.finish());
    ASSERT_EQ(block.users.numbers.size(), 7'919u);
    EXPECT_EQ(block.items.numbers, std::vector<std::int64_t>({1, 2, 3}));
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      ASSERT_EQ(block.users.numbers[block.users.of_rating[i]], static_cast<std::int64_t>(i % 7'919));
      ASSERT_EQ(block.items.of_rating[i], i % 3);
    }
  }
}

TEST(UniqueNames, AreMadeUniqueAsAnnDataDoes) {
  TextList names;
  for (const char* name : {"a", "a", "b", "a-1", "a", "b"}) names.add(name);
  EXPECT_EQ(make_unique_names(names), 3u);
  Texts found;
  for (std::size_t i = 0; i < names.size(); ++i) found.emplace_back(names[i]);
  EXPECT_EQ(found, Texts({"a", "a-2", "b", "a-1", "a-3", "b-1"}));
}

}  // namespace
}  // namespace chunkhit
