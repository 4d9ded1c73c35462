#include "ratings/number_lines.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ratings/id_map.h"
#include "support/rating_rows.h"
#include "support/simd_targets.h"

namespace chunkhit {
namespace {

using Rows = std::vector<std::string>;
using Fields = std::vector<std::string>;

const Fields kPlainIds{"1", "42", "0", "99999999", "123456789", "1234567890123456"};
const Fields kOddIds{"007", "00",  "12345678901234567", "9223372036854775807", "-3", "", "1 ", "+1", "a",
                     "1a",  "\xff"};
const Fields kPlainValues{"4", "4.5", "0.5", ".5", "5.", "0", "0.0", "3.25", "16777215", "1.234567"};
const Fields kOddValues{".",   "",    "16777216",  "99999999", "1.2.3",         "..",        "-1", "+2",
                        "1e3", "3,5", "1234567.8", "nan",      "0.00000000001", "1.23456789"};
const Fields kPlainTimes{"0", "7", "978300760", "1112486027", "1112486027123"};
const Fields kOddTimes{"", "007", "-1", "2014-01-03", "964982703.5", "x", "12345678901234567"};

RatingTextSpec table(std::size_t column_count, const RatingColumns& columns) {
  RatingTextSpec spec;
  spec.columns = columns;
  spec.column_count = column_count;
  return spec;
}

/// Parses a copy that ends where its memory ends, so that a sanitizer sees what is read behind it.
RatingBlock parsed(const std::string& text, const RatingTextSpec& spec) {
  const auto copy = std::make_unique<char[]>(text.size());
  std::copy(text.begin(), text.end(), copy.get());
  RatingBlock block;
  parse_rating_text({copy.get(), text.size()}, spec, block);
  return block;
}

/// Parses the lines one by one.
RatingBlock parsed_slowly(const std::string& text, RatingTextSpec spec) {
  spec.comment = "0 begins no line like this";
  EXPECT_FALSE(NumberLines::can_read(text, spec));
  return parsed(text, spec);
}

/// Random lines, of whose fields and ends as many percent are odd.
class Lines {
 public:
  explicit Lines(unsigned seed) : random_(seed) {}
  std::string next(const RatingTextSpec& spec, std::size_t count, unsigned odd_percent,
                   const std::string& end) {
    std::string text;
    for (std::size_t line = 0; line < count; ++line) {
      for (std::size_t column = 0; column < spec.column_count; ++column)
        text += (column > 0 ? "," : "") + field(spec.columns, column, odd_percent);
      if (is_odd(odd_percent)) text += Fields{",", ",9,9", "\r", "\r\r"}[random_() % 4];
      text += is_odd(odd_percent) ? Fields{"\n", "\r\n", "\n\n"}[random_() % 3] : end;
    }
    return text;
  }

 private:
  bool is_odd(unsigned percent) { return random_() % 100 < percent; }
  std::string one_of(const Fields& plain, const Fields& odd, unsigned odd_percent) {
    const Fields& fields = is_odd(odd_percent) ? odd : plain;
    return fields[random_() % fields.size()];
  }
  std::string field(const RatingColumns& columns, std::size_t column, unsigned odd_percent) {
    if (columns.value == column) return one_of(kPlainValues, kOddValues, odd_percent);
    if (columns.time == column) return one_of(kPlainTimes, kOddTimes, odd_percent);
    if (columns.user == column || columns.item == column) return one_of(kPlainIds, kOddIds, odd_percent);
    return one_of({"", "some words"}, {"\r", " "}, odd_percent);
  }

  std::mt19937 random_;
};

void expect_same(const RatingBlock& fast, const RatingBlock& slow, const std::string& what) {
  EXPECT_EQ(rating_rows(fast), rating_rows(slow)) << what;
  EXPECT_EQ(bad_rows(fast), bad_rows(slow)) << what;
  EXPECT_EQ(fast.line_count, slow.line_count) << what;
  EXPECT_EQ(fast.blank_lines, slow.blank_lines) << what;
  EXPECT_EQ(fast.users.numbers, slow.users.numbers) << what;
}

TEST(NumberLines, GiveWhatLinesGiveOneByOne) {
  const std::vector<RatingTextSpec> specs{
      table(4, {0, 1, 2, 3}),  table(4, {3, 1, 0, 2}),  table(2, {0, 1, {}, {}}), table(3, {0, 1, {}, 2}),
      table(6, {1, 3, 5, {}}), table(3, {1, 0, 2, {}}), table(40, {0, 39, 20, 7})};
  unsigned seed = 0;
  for (const RatingTextSpec& spec : specs)
    for (const unsigned odd_percent : {0u, 1u, 5u, 50u})
      for (const std::string end : {"\n", "\r\n"}) {
        const std::string text = Lines(++seed).next(spec, 500, odd_percent, end);
        const RatingBlock slow = parsed_slowly(text, spec);
        for_each_simd_target([&](const char* target) {
          expect_same(parsed(text, spec), slow, std::string(target) + ", seed " + std::to_string(seed));
        });
      }
}

TEST(NumberLines, ReadAllLinesOfNumbersButThoseAtTheEnd) {
  std::string text;
  for (int line = 0; line < 10'000; ++line) text += std::to_string(line) + ",1,3.5,978300760\n";
  NumberLines lines(text, table(4, {0, 1, 2, 3}));
  NumberRatings ratings;
  std::size_t begin = 0;
  std::int64_t count = 0;
  do {
    begin = lines.read(begin, ratings);
    for (std::size_t at = 0; at < ratings.count; ++at) {
      ASSERT_EQ(ratings.users[at], count++);
      ASSERT_EQ(ratings.values[at], 3.5F);
      ASSERT_EQ(ratings.times[at], 978300760);
    }
  } while (!ratings.is_other_next);
  EXPECT_GE(count, 10'000 - 8);
}

TEST(NumberLines, StopAtALineThatIsTooLong) {
  const std::string number = "1,2,3,4," + std::string(kMaxLineBytes, '5');
  std::string text;
  for (int line = 0; line < 20; ++line) text += line == 12 ? number + "\n" : "1,2,3,4,5\n";
  const RatingBlock block = parsed(text, table(5, {0, 1, 2, 3}));
  EXPECT_EQ(block.size(), 12u);
  ASSERT_EQ(block.bad_lines.size(), 1u);
  EXPECT_TRUE(block.ends_with_long_line);
}

TEST(NumberLines, TakeNumbersThatTheWholeInputKnows) {
  IdMap users;
  IdMap items;
  for (const int item : {7, 9}) items.add(item);
  BlockMaps maps{&users.share_small(), &items.share_small()};
  RatingBlock block;
  parse_rating_text("1,9\n1,8\n2,7\n1,8\n", table(2, {0, 1, {}, {}}), block, &maps);
  EXPECT_EQ(block.users.of_rating, (std::vector<std::uint32_t>{0, 0, 1, 0}));
  EXPECT_EQ(block.items.of_rating,
            (std::vector<std::uint32_t>{BlockIds::kKnown + 1, 0, BlockIds::kKnown, 0}));
  EXPECT_EQ(block.items.numbers, (std::vector<std::int64_t>{8}));
  parse_rating_text("3,8\n", table(2, {0, 1, {}, {}}), block, &maps);
  EXPECT_EQ(block.items.of_rating, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(block.users.numbers, (std::vector<std::int64_t>{3}));
  parse_rating_text("3,4\n5,1000000\n5,6\n1000000,9\n7,1000000\n7,4\n", table(2, {0, 1, {}, {}}), block,
                    &maps);
  EXPECT_EQ(block.users.numbers, (std::vector<std::int64_t>{3, 5, 1'000'000, 7}));
  EXPECT_EQ(block.users.of_rating, (std::vector<std::uint32_t>{0, 1, 1, 2, 3, 3}));
  EXPECT_EQ(block.items.numbers, (std::vector<std::int64_t>{4, 1'000'000, 6}))
      << "in the order they appear in";
  EXPECT_EQ(block.items.of_rating, (std::vector<std::uint32_t>{0, 1, 2, BlockIds::kKnown + 1, 1, 0}));
}

}  // namespace
}  // namespace chunkhit
