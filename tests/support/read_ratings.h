// All ratings of a reader as text that a test can show.
#pragma once

#include <string>
#include <vector>

#include "ratings/rating_reader.h"

namespace chunkhit {

/// What a reader gave: "user item value" of every rating, and "line:column reason" of every bad line.
struct ReadRatings {
  std::vector<std::string> ratings;
  std::vector<std::string> bad_lines;
  std::uint64_t line_count = 0;
  MatrixFacts facts;
};

inline std::string id_of(const BlockIds& ids, std::size_t rating) {
  const std::uint32_t index = ids.of_rating[rating];
  return ids.are_text() ? std::string(ids.texts[index]) : std::to_string(ids.numbers[index]);
}

inline ReadRatings read_all(RatingReader& reader) {
  ReadRatings all;
  RatingBlock block;
  while (reader.next(block)) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      std::string value = std::to_string(block.values.empty() ? 1.0F : block.values[i]);
      value.erase(value.find_last_not_of('0') + 1);
      if (value.ends_with('.')) value.pop_back();
      all.ratings.push_back(id_of(block.users, i) + ' ' + id_of(block.items, i) + ' ' + value);
    }
    for (const BadLine& bad : block.bad_lines)
      all.bad_lines.push_back(std::to_string(bad.line) + ':' + std::to_string(bad.column) + ' ' +
                              bad.problem.reason());
    all.line_count += block.line_count;
  }
  all.facts = reader.facts();
  return all;
}

}  // namespace chunkhit
