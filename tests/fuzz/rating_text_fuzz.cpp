// Any bytes as ratings: they end in blocks whose vectors agree or in an Error, and however the text is cut
// into blocks the ratings are the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "chunkhit/error.h"
#include "ratings/id_map.h"
#include "ratings/json_fields.h"
#include "ratings/json_lines.h"
#include "ratings/rating_format.h"
#include "ratings/rating_table.h"
#include "ratings/rating_text.h"

namespace {

using namespace chunkhit;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_ids(const BlockIds& ids, std::size_t ratings) {
  require(ids.of_rating.size() == ratings);
  const std::size_t count = ids.are_text() ? ids.texts.size() : ids.numbers.size();
  require(count <= ratings);
  std::uint32_t next = 0;  // by first appearance
  for (const std::uint32_t index : ids.of_rating) {
    require(index <= next && index < count);
    if (index == next) ++next;
  }
  require(next == count);
}

void check_block(const RatingBlock& block, std::string_view text) {
  check_ids(block.users, block.size());
  check_ids(block.items, block.size());
  require(block.values.empty() || block.values.size() == block.size());
  require(block.times.empty() || block.times.size() == block.size());
  require(block.bad_lines.size() <= kMaxBadLines);
  for (const BadLine& bad : block.bad_lines)
    require(bad.line >= 1 && bad.line <= block.line_count && bad.column >= 1);
  require(block.line_count <= text.size());
}

/// Numbers of all ratings, from one block or from one a line.
struct Numbered {
  IdMap users;
  IdMap items;
  std::vector<std::uint64_t> pairs;
  std::uint64_t lines = 0;
  std::uint64_t bad = 0;
  void add(const RatingBlock& block) {
    const auto user_numbers = users.add(block.users);
    const auto item_numbers = items.add(block.items);
    for (std::size_t at = 0; at < block.size(); ++at)
      pairs.push_back(std::uint64_t{user_numbers[block.users.of_rating[at]]} << 32 |
                      item_numbers[block.items.of_rating[at]]);
    lines += block.line_count;
    bad += bad_line_count(block);
  }
};

template <class Parse>
void compare_cuts(std::string_view text, Parse parse) {
  Numbered whole;
  Numbered cut;
  RatingBlock block;
  parse(text, block);
  check_block(block, text);
  whole.add(block);
  const std::size_t middle = text.find('\n', text.size() / 2) + 1;
  if (middle == 0) return;
  for (const std::string_view piece : {text.substr(0, middle), text.substr(middle)}) {
    parse(piece, block);
    cut.add(block);
  }
  require(whole.pairs == cut.pairs && whole.lines == cut.lines && whole.bad == cut.bad);
  require(whole.users.are_text() == cut.users.are_text() && whole.users.size() == cut.users.size());
}

void parse_table(std::string_view text, const RatingTableSpec& wanted) {
  const RatingTextSpec spec = detect_rating_table({text, true, wanted.comment}, wanted, "fuzz", nullptr).text;
  if (spec.quoting != TextQuoting::double_quote)
    return compare_cuts(
        text, [&](std::string_view piece, RatingBlock& block) { parse_rating_text(piece, spec, block); });
  RatingBlock block;
  parse_rating_text(text, spec, block);
  check_block(block, text);
}

void parse_json(std::string_view text) {
  const RatingTable table = detect_json_fields({text, true, {}}, {}, "fuzz");
  compare_cuts(text,
               [&](std::string_view piece, RatingBlock& block) { parse_json_lines(piece, table, block); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = as_text({data, size});
  RatingTableSpec plain;
  RatingTableSpec quoted;
  quoted.quote = TextQuoting::double_quote;
  RatingTableSpec blanks;
  blanks.delimiter = kBlanks;
  blanks.comment = "#";
  blanks.user = "2";
  blanks.item = "1";
  for (const RatingTableSpec& spec : {plain, quoted, blanks}) {
    try {
      parse_table(text, spec);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): what a table may end in
    }
  }
  try {
    parse_json(text);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): what JSON may end in
  }
  try {
    (void)detect_rating_format({text, size % 2 == 0, {}}, "fuzz");
  } catch (const Error& error) {
    require(error.code() == ErrorCode::bad_data);
  }
  compare_cuts(text, [](std::string_view piece, RatingBlock& block) { parse_user_items(piece, block); });
  RatingBlock block;
  parse_netflix(text, last_netflix_item(text, 1), block);
  check_block(block, text);
  return 0;
}
