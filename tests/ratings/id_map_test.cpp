#include "ratings/id_map.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace chunkhit {
namespace {

using Numbers = std::vector<std::uint32_t>;

BlockIds block_of(std::vector<std::int64_t> numbers) {
  BlockIds ids;
  ids.numbers = std::move(numbers);
  return ids;
}

BlockIds block_of(const std::vector<std::string>& texts) {
  BlockIds ids;
  for (const std::string& text : texts) {
    ids.texts.add(text);
  }
  return ids;
}

TEST(IdMap, NumbersIdsByFirstAppearance) {
  IdMap map;
  EXPECT_EQ(map.add(700), 0u);
  EXPECT_EQ(map.add(-3), 1u);
  EXPECT_EQ(map.add(700), 0u);
  EXPECT_EQ(map.add("701"), 2u);
  EXPECT_EQ(map.size(), 3u);
  EXPECT_FALSE(map.are_text());
}

TEST(IdMap, KeepsIntegersOf64BitsApart) {
  IdMap map;
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(map.add(largest), 0u);
  EXPECT_EQ(map.add(largest - 1), 1u);
  EXPECT_EQ(map.add(std::numeric_limits<std::int64_t>::min()), 2u);
  EXPECT_EQ(map.text(0), "9223372036854775807");
  EXPECT_EQ(map.text(1), "9223372036854775806");
  EXPECT_EQ(map.text(2), "-9223372036854775808");
}

TEST(IdMap, KeepsNumbersWhenATextComes) {
  IdMap map;
  for (std::int64_t id = 0; id < 1000; ++id) EXPECT_EQ(map.add(id * 7), id);
  EXPECT_EQ(map.add("x"), 1000u);
  EXPECT_TRUE(map.are_text());
  EXPECT_EQ(map.add(7), 1u);
  EXPECT_EQ(map.add("7"), 1u);
  EXPECT_EQ(map.add("07"), 1001u);
  EXPECT_EQ(map.text(999), "6993");
}

TEST(IdMap, KeepsSmallAndLargeIntegersApartAndInTheirOrder) {
  for (const std::uint64_t end : {SmallIds::kEnd, SmallIds::kMaxEnd}) {
    IdMap map(end);
    const auto limit = static_cast<std::int64_t>(end);  // of those that are looked up by themselves
    const std::vector<std::int64_t> ids{limit, limit - 1, limit - 1, 0, -1, limit + 1, 0, limit, limit};
    EXPECT_EQ(map.add(block_of(ids)), (Numbers{0, 1, 1, 2, 3, 4, 2, 0, 0}));
    EXPECT_EQ(map.size(), 5u);
    EXPECT_EQ(map.find(std::to_string(limit - 1)), 1u);
    EXPECT_EQ(map.find(std::to_string(limit)), 0u);
    EXPECT_EQ(map.find("5"), map.size());
    EXPECT_EQ(map.add("a"), 5u);
    EXPECT_EQ(map.find(std::to_string(limit - 1)), 1u);
    EXPECT_EQ(map.find("-1"), 3u);
    EXPECT_EQ(map.add(block_of(ids)), (Numbers{0, 1, 1, 2, 3, 4, 2, 0, 0}));
  }
}

TEST(IdMap, FindsWhatIsThereAndNothingElse) {
  IdMap map;
  EXPECT_EQ(map.find("1"), 0u);
  map.add(1);
  EXPECT_EQ(map.find("1"), 0u);
  EXPECT_EQ(map.find("01"), map.size());
  EXPECT_EQ(map.find("2"), map.size());
  map.add("a");
  EXPECT_EQ(map.find("1"), 0u);
  EXPECT_EQ(map.find("a"), 1u);
  EXPECT_EQ(map.find("b"), map.size());
}

TEST(IdMap, SortsIntegersByValueAndTextsByBytes) {
  IdMap integers;
  for (const std::int64_t id : {10, 9, -1}) integers.add(id);
  EXPECT_EQ(integers.sorted(), (Numbers{2, 1, 0}));
  IdMap texts;
  for (const char* id : {"b", "10", "9"}) texts.add(id);
  EXPECT_EQ(texts.sorted(), (Numbers{1, 2, 0}));
}

TEST(IdMap, NumbersBlocksAsOneIdAfterTheOther) {
  IdMap map;
  EXPECT_EQ(map.add(block_of(std::vector<std::int64_t>{5, 6, 7})), (Numbers{0, 1, 2}));
  EXPECT_EQ(map.add(block_of(std::vector<std::int64_t>{7, 8, 5})), (Numbers{2, 3, 0}));
  EXPECT_EQ(map.add(block_of(std::vector<std::string>{"8", "a", "5"})), (Numbers{3, 4, 0}));
  EXPECT_EQ(map.add(block_of(std::vector<std::string>{"a", "b", "9"})), (Numbers{4, 5, 6}));
  EXPECT_EQ(map.add(block_of(std::vector<std::int64_t>{9, 10})), (Numbers{6, 7}));
  EXPECT_TRUE(map.add(BlockIds()).empty());
}

TEST(IdMap, StaysWithIntegersWhenTextsAreWrittenAsIntegers) {
  IdMap map;
  map.add(1);
  EXPECT_EQ(map.add(block_of(std::vector<std::string>{"2", "1"})), (Numbers{1, 0}));
  EXPECT_FALSE(map.are_text());
}

TEST(IdMap, AgreesWithAMapOfManyIds) {
  std::mt19937_64 random(3);
  IdMap integers;
  IdMap texts;
  std::map<std::int64_t, std::uint32_t> expected;
  for (int block = 0; block < 30; ++block) {
    BlockIds ids;
    std::vector<std::string> words;
    for (int at = 0; at < 1000; ++at) {
      // A few bits at one position of the number, so that ids come again and hashes of like numbers are
      // tried.
      ids.numbers.push_back(static_cast<std::int64_t>((random() & 0x3fff) << (block % 3 * 20)));
      words.push_back("id " + std::to_string(ids.numbers.back()));
    }
    Numbers wanted;
    for (const std::int64_t id : ids.numbers)
      wanted.push_back(expected.try_emplace(id, static_cast<std::uint32_t>(expected.size())).first->second);
    ASSERT_EQ(integers.add(ids), wanted);
    ASSERT_EQ(texts.add(block_of(words)), wanted);
  }
  EXPECT_EQ(integers.size(), expected.size());
  for (const auto& [id, number] : expected) ASSERT_EQ(integers.text(number), std::to_string(id));
}

TEST(IdMap, MayBeginWithAnEmptyId) {
  IdMap map;
  const std::vector<std::string_view> ids{"", "a", "", "b", "a"};
  std::vector<std::uint32_t> numbers;
  map.add(ids, numbers);
  map.add(ids, numbers);
  EXPECT_EQ(numbers, (std::vector<std::uint32_t>{0, 1, 0, 2, 1, 0, 1, 0, 2, 1}));
  EXPECT_EQ(map.text(0), "");
  EXPECT_EQ(map.find(""), 0u);
}

TEST(IdMap, HandsItsIdsOverAndBeginsAnew) {
  IdMap map;
  map.add(4);
  map.add("x");
  BlockIds block;
  map.move_to(block);
  EXPECT_EQ(block.texts[0], "4");
  EXPECT_EQ(block.texts[1], "x");
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map.add(9), 0u);
}

}  // namespace
}  // namespace chunkhit
