#include "ratings/json_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chunkhit/error.h"
#include "ratings/json_fields.h"
#include "support/rating_rows.h"

namespace chunkhit {
namespace {

using namespace std::string_view_literals;
using Rows = std::vector<std::string>;

RatingTable detected(std::string_view text, const RatingTableSpec& spec = {},
                     const RatingTable* earlier = nullptr) {
  return detect_json_fields({text, true, ""}, spec, "r.jsonl", earlier);
}

std::string error_of(std::string_view text, const RatingTableSpec& spec = {}) {
  try {
    static_cast<void>(detected(text, spec));
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

RatingTable user_item_value() {
  RatingTable table;
  table.column_names = {"u", "i", "v"};
  table.text.columns = {0, 1, 2, {}};
  return table;
}

/// Parses a copy that ends where its memory ends, so that a sanitizer sees what is read behind it.
RatingBlock parsed(std::string_view text, const RatingTable& table = user_item_value()) {
  const auto copy = std::make_unique<char[]>(text.size());
  std::copy(text.begin(), text.end(), copy.get());
  RatingBlock block;
  parse_json_lines({copy.get(), text.size()}, table, block);
  return block;
}

/// The only bad line of a line, with others around it.
std::string bad_row(std::string_view line) {
  const std::string good = "{\"u\": 7, \"i\": 8, \"v\": 9}\n";
  const RatingBlock block = parsed(good + std::string(line) + "\n" + good);
  EXPECT_EQ(rating_rows(block), (Rows{"7 8 9", "7 8 9"}));
  const Rows bad = bad_rows(block);
  return bad.size() == 1 ? bad[0] : std::to_string(bad.size()) + " bad lines";
}

TEST(JsonLines, FindTheFieldsOfKnownSets) {
  const auto names = [](std::string_view line) {
    const RatingTable table = detected(line);
    const RatingColumns& columns = table.text.columns;
    return Rows{table.column_names[columns.user], table.column_names[columns.item],
                columns.value ? table.column_names[*columns.value] : "none",
                columns.time ? table.column_names[*columns.time] : "none"};
  };
  EXPECT_EQ(
      names(
          R"({"reviewerID": "A2", "asin": "0000013714", "reviewerName": "J.", "helpful": [0, 0],)"
          R"( "reviewText": "I", "overall": 5.0, "unixReviewTime": 1252800000, "reviewTime": "09 13, 2009"})"),
      (Rows{"reviewerID", "asin", "overall", "unixReviewTime"}));
  EXPECT_EQ(names(R"({"rating": 5.0, "title": "S", "asin": "B0", "parent_asin": "B1", "user_id": "AG",)"
                  R"( "timestamp": 1588615855070, "helpful_vote": 0})"),
            (Rows{"user_id", "parent_asin", "rating", "timestamp"}));
  EXPECT_EQ(
      names(R"({"review_id":"K","user_id":"m","business_id":"X","stars":3.0,"date":"2018-07-07 22:09:11"})"),
      (Rows{"user_id", "business_id", "stars", "date"}));
  EXPECT_EQ(names(R"({"user_id": "8", "book_id": "24375664", "review_id": "5", "rating": 5,)"
                  R"( "date_added": "Fri Aug 25 13:55:02 -0700 2017"})"),
            (Rows{"user_id", "book_id", "rating", "date_added"}));
  EXPECT_EQ(names(R"({"user": 1, "item": 2})"), (Rows{"user", "item", "none", "none"}));
}

TEST(JsonLines, NamesWithDotsLeadIntoObjects) {
  RatingTableSpec spec;
  spec.user = "reviewer.id", spec.item = "a.b.c", spec.value = "x.y", spec.time = "t";
  const std::string_view text =
      R"({"a": {"z": [1, {"b": 2}], "b": {"c": "i1"}}, "reviewer": {"id": "u1"}, "x.y": 4, "t": 1e9})"
      "\n"
      R"({"t": "5", "x": {"y": "2.5"}, "reviewer": {"name": "n", "id": "u2"}, "a": {"b": {"c": "i2"}}})";
  EXPECT_EQ(rating_rows(parsed(text, detected(text, spec))), (Rows{"u1 i1 4 1000000000", "u2 i2 2.5 5"}));
}

TEST(JsonLines, KeepIdsAsTheyAreWritten) {
  const RatingBlock numbers = parsed("{\"u\": 9007199254740993, \"i\": -9223372036854775808, \"v\": 1}\n");
  EXPECT_EQ(numbers.users.numbers, (std::vector<std::int64_t>{9007199254740993}));
  EXPECT_EQ(numbers.items.numbers, (std::vector<std::int64_t>{INT64_MIN}));
  EXPECT_EQ(rating_rows(parsed(R"({"u": 18446744073709551617, "i": 5.0, "v": 1})"
                               "\n"
                               R"({"u": "a\"b\\c\/\u00e9\ud83d\ude00", "i": "1e3", "v": 1})")),
            (Rows{"18446744073709551617 5.0 1", "a\"b\\c/\u00e9\U0001F600 1e3 1"}));
  // A number and a text of the same digits are one id.
  EXPECT_EQ(parsed("{\"u\":7,\"i\":1,\"v\":1}\n{\"u\":\"7\",\"i\":1,\"v\":1}\n").users.numbers.size(), 1u);
}

TEST(JsonLines, TakeNumbersInTextsAndTrueAndFalse) {
  EXPECT_EQ(rating_rows(parsed("{\"u\":1,\"i\":2,\"v\":\"3.5\"}\n{\"u\":1,\"i\":2,\"v\":true}\r\n"
                               "\n \t\n{ \"v\" : false , \"i\" : 2, \"u\" : 1 }  ")),
            (Rows{"1 2 3.5", "1 2 1", "1 2 0"}));
}

TEST(JsonLines, ReadNamesWithEscapes) {
  const std::string_view text = R"({"\u0075": 1, "i\"": 0, "i": 2, "v": 3})";
  EXPECT_EQ(rating_rows(parsed(text)), (Rows{"1 2 3"}));
}

TEST(JsonLines, MissingFieldsAndOnesThatComeTwiceAreBad) {
  EXPECT_EQ(bad_row(R"({"i": 2, "v": 3})"), "2:1: user: expected one field \"u\", found none");
  EXPECT_EQ(bad_row("{}"), "2:1: user: expected one field \"u\", found none");
  EXPECT_EQ(bad_row(R"({"u": 1, "v": 3})"), "2:1: item: expected one field \"i\", found none");
  EXPECT_EQ(bad_row(R"({"u": 1, "i": 2, "x": {"v": 3}})"),
            "2:1: value: expected one field \"v\", found none");
  EXPECT_EQ(bad_row(R"({"u": 1, "i": 2, "v": 3, "u": 1})"), "2:1: user: expected one field \"u\", found 2");
}

TEST(JsonLines, ValuesOfOtherTypesAreBad) {
  EXPECT_EQ(bad_row(R"({"u": null, "i": 2, "v": 3})"), "2:7: user: expected an id, found \"null\"");
  EXPECT_EQ(bad_row(R"({"u": "", "i": 2, "v": 3})"), "2:7: user: expected an id, found nothing");
  EXPECT_EQ(bad_row(R"({"u": 1, "i": [2], "v": 3})"), "2:15: item: expected an id, found \"[\"");
  EXPECT_EQ(bad_row(R"({"u": 1, "i": {"x": 2}, "v": 3})"), "2:15: item: expected an id, found \"{\"");
  EXPECT_EQ(bad_row(R"({"u": true, "i": 2, "v": 3})"), "2:7: user: expected an id, found \"true\"");
  EXPECT_EQ(bad_row(R"({"u": 1, "i": 2, "v": null})"), "2:23: value: expected a number, found \"null\"");
  EXPECT_EQ(bad_row(R"({"u": 1, "i": 2, "v": NaN})"), "2:23: value: expected a number, found \"NaN\"");
  EXPECT_EQ(bad_row(R"({"u": 1, "i": 2, "v": "five"})"), "2:23: value: expected a number, found \"five\"");
  for (const char* number : {"01", "+1", ".5", "5.", "1e", "0x1", "1_0", "-", "--1"})
    EXPECT_NE(bad_row("{\"u\": 1, \"i\": 2, \"v\": " + std::string(number) + "}").find("expected a number"),
              std::string::npos)
        << number;
  EXPECT_EQ(bad_row(R"({"u": "a\u0000b", "i": 2, "v": 3})"), "2:7: user: expected an id, found \"a\\x00b\"");
  EXPECT_EQ(bad_row(R"({"u": 1, "i": 2, "v": 16777217})"),
            "2:23: value: expected a number that 32-bit floats hold (`values` f32 takes the nearest), found "
            "\"16777217\"");
}

TEST(JsonLines, WhatIsNoObjectIsBad) {
  const std::string no_object = "2:1: line: expected a JSON object, found ";
  EXPECT_EQ(bad_row("7,8,9"), no_object + "\"7,8,9\"");
  EXPECT_EQ(bad_row("[1, 2]"), no_object + "\"[1, 2]\"");
  EXPECT_EQ(bad_row("null"), no_object + "\"null\"");
  EXPECT_EQ(bad_row(R"({"u": 1, "i": 2, "v": 3)"), no_object + "no } at its end");
  EXPECT_EQ(bad_row(R"({"u": 1, "i": 2, "v": 3}})"), no_object + "\"{\"u\": 1, \"i\": 2, \"v\": 3}}\"");
  EXPECT_EQ(bad_row(R"({"u": 1, "i": 2, "v": 3},)"), no_object + "no } at its end");
  EXPECT_EQ(bad_row(R"({"u": 1, "i": 2, "v": 3} {})"), no_object + "\"{\"u\": 1, \"i\": 2, \"v\": 3} {}\"");
  EXPECT_EQ(bad_row(R"({"u": 1 "i": 2, "v": 3})"), no_object + "\"{\"u\": 1 \"i\": 2, \"v\": 3}\"");
  EXPECT_EQ(bad_row(R"({u: 1, "i": 2, "v": 3})"), no_object + "\"{u: 1, \"i\": 2, \"v\": 3}\"");
  EXPECT_EQ(bad_row(R"({"u": 1, "i": 2, "v": 3, "x": "y)"), no_object + "a text without its end");
  EXPECT_EQ(bad_row(R"({"u": "\x", "i": 2, "v": 3})"), no_object + "an escape that stands for no character");
  EXPECT_EQ(bad_row(R"({"u": "\ud83d", "i": 2, "v": 3})"),
            no_object + "an escape that stands for no character");
  EXPECT_EQ(bad_row("{\"u\": \"a\0b\", \"i\": 2, \"v\": 3}"sv), no_object + "a control character in a text");
  EXPECT_EQ(bad_row("{\"u\": \"\xe9\", \"i\": 2, \"v\": 3}"),
            "2:1: line: expected UTF-8; `encoding` latin-1 reads ISO 8859-1");
}

TEST(JsonLines, PassOverDeepNestingAndLongTexts) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_EQ(rating_rows(parsed("{\"x\": " + deep + ", \"u\": 1, \"i\": 2, \"v\": 3}")), (Rows{"1 2 3"}));
  const std::string objects = [] {
    std::string text;
    for (int depth = 0; depth < 100'000; ++depth) text += "{\"x\":";
    return text + "1" + std::string(100'000, '}');
  }();
  const std::string line = "{\"x\": " + objects + ", \"u\": 1, \"i\": 2, \"v\": 3}";
  EXPECT_EQ(rating_rows(parsed(line)), (Rows{"1 2 3"}));
  RatingTableSpec spec;
  spec.user = "u", spec.item = "i", spec.value = "v";
  EXPECT_EQ(detected(line, spec).text.columns.user, 1u);
  EXPECT_EQ(
      rating_rows(parsed("{\"x\": \"" + std::string(1'000'000, 'x') + "\", \"u\": 1, \"i\": 2, \"v\": 3}")),
      (Rows{"1 2 3"}));
  const RatingBlock block = parsed("{\"x\": \"" + std::string(kMaxLineBytes, 'x') + "\"}\n");
  EXPECT_TRUE(block.ends_with_long_line);
}

TEST(JsonLines, NameTheWayForWhatHasNoObjectOnEachLine) {
  EXPECT_EQ(
      error_of("[{\"u\": 1}]"),
      "r.jsonl: line 1: found a JSON array, expected an object on each line; of an array of objects: jq "
      "-c '.[]' FILE | pack-sparse - ...");
  EXPECT_EQ(error_of("{\n  \"u\": 1\n}\n"),
            "r.jsonl: line 1: found an object of several lines, expected a whole one on each line: jq -c . "
            "FILE | pack-sparse - ...");
  EXPECT_NE(error_of("{u'username': u'Chaos', u'hours': 0.1}").find("ast.literal_eval"), std::string::npos);
  EXPECT_EQ(error_of("{\"u\": 1, \"i\"\n"),
            "r.jsonl: first line: expected a JSON object, found no } at its end");
  EXPECT_EQ(error_of("{}\n"), "r.jsonl: first line: found no field");
}

TEST(JsonLines, NameTheFieldsThatThereAre) {
  RatingTableSpec spec;
  spec.user = "reviewer";
  EXPECT_EQ(
      error_of("{\"reviewerID\": 1, \"asin\": {\"id\": 2}}", spec),
      "r.jsonl: line 1: no field \"reviewer\" for `user` among \"reviewerID\", \"asin.id\"; did you mean "
      "\"reviewerID\"?");
  EXPECT_EQ(error_of("{\"user\": 1, \"thing\": 2}"),
            "r.jsonl: line 1: no field for `item` among \"user\", \"thing\"; give its name");
  EXPECT_EQ(
      error_of("{\"user\": 1, \"thing\": {\"no\": 2}}"),
      "r.jsonl: line 1: no field for `item` among \"user\", \"thing.no\"; give its name, of a nested one "
      "with dots: thing.no");
  EXPECT_EQ(error_of("{\"review\": {\"t\": 1}, \"reviewer\": {\"id\": 2}}", spec),
            "r.jsonl: line 1: no field \"reviewer\" for `user` among \"review.t\", \"reviewer.id\"; it is an "
            "object: give one of its fields, such as \"reviewer.id\"");
  EXPECT_EQ(error_of("{\"user_id\": 1, \"userId\": 2, \"item\": 3}"),
            "r.jsonl: line 1: two fields for `user`, \"user_id\" and \"userId\"; give its name");
  spec.user = spec.item = "asin";
  EXPECT_EQ(error_of("{\"asin\": 1}", spec), "`user` and `item` both name field \"asin\"");
}

TEST(JsonLines, TakeGivenFieldsOfALineThatIsTooLongToLookAt) {
  const std::string_view cut = "{\"text\": \"xxxxx";
  RatingTableSpec spec;
  const auto table = [&] { return detect_json_fields({cut, false, ""}, spec, "r.jsonl"); };
  EXPECT_THROW(static_cast<void>(table()), Error);
  spec.user = "u", spec.item = "i", spec.value = "v", spec.time = "none";
  EXPECT_EQ(table().text.columns, (RatingColumns{0, 1, 2, {}}));
}

TEST(JsonLines, LeaveOutATimeThatCannotBeRead) {
  const RatingTable table = detected(R"({"user": 1, "item": 2, "date": "yesterday"})");
  EXPECT_EQ(table.text.columns.time, std::nullopt);
  EXPECT_EQ(table.notices, (Rows{"field date is not used as time: \"yesterday\" is neither a number nor "
                                 "YYYY-MM-DD nor YYYY-MM-DDTHH:MM:SS"}));
  EXPECT_EQ(detected(R"({"user": 1, "item": 2, "time": 1112486027.25})").text.time_scale, 1'000'000);
}

TEST(JsonLines, SayThatANestedFieldMayBeTheValue) {
  const RatingTable table = detected(R"({"user": 1, "item": 2, "review": {"rating": 4}})");
  EXPECT_EQ(table.text.columns.value, std::nullopt);
  EXPECT_EQ(table.notices, (Rows{"no field is used as value, every rating is 1; the nested field "
                                 "\"review.rating\" is read by `value` review.rating"}));
}

TEST(JsonLines, NameTheWayForAnArrayInAnObject) {
  const std::string one = R"({ "reviews" : [ {"user": 1, "item": 2}]})";
  const std::string error =
      "r.jsonl: line 1: found one object with the array \"reviews\", expected an object on each line: "
      "jq -c '.reviews[]' FILE | pack-sparse - ...";
  EXPECT_EQ(error_of(one), error);
  EXPECT_EQ(error_of(one + "\n"), error);
  EXPECT_EQ(detected(R"({"shelves": [{"n": 1}], "user": 1, "item": 2})").text.columns, (RatingColumns{1, 2}));
}

TEST(JsonLines, LaterInputsMayHaveTheFieldsInAnotherOrder) {
  const RatingTable first = detected(R"({"user": 1, "item": 2, "rating": 3})");
  EXPECT_EQ(detected(R"({"item": 2, "new": 0, "rating": 3, "user": 1})", {}, &first), first);
  EXPECT_FALSE(detected(R"({"item": 2, "user": 1})", {}, &first) == first);
  EXPECT_EQ(detected("", {}, &first), first);
}

}  // namespace
}  // namespace chunkhit
