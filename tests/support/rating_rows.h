// Ratings of a block as lines that a test can show.
#pragma once

#include <charconv>
#include <string>
#include <vector>

#include "types/rating_block.h"

namespace chunkhit {

inline std::string id_text(const BlockIds& ids, std::size_t rating) {
  const std::size_t index = ids.of_rating.at(rating);
  return ids.are_text() ? std::string(ids.texts[index]) : std::to_string(ids.numbers.at(index));
}

/// "user item value time" of each rating, without a value or time that the block has not.
inline std::vector<std::string> rating_rows(const RatingBlock& block) {
  std::vector<std::string> rows;
  for (std::size_t at = 0; at < block.size(); ++at) {
    std::string row = id_text(block.users, at) + " " + id_text(block.items, at);
    if (!block.values.empty()) {
      char text[32];
      row.append(" ").append(text, std::to_chars(text, text + sizeof text, block.values.at(at)).ptr);
    }
    if (!block.times.empty()) row.append(" ").append(std::to_string(block.times.at(at)));
    rows.push_back(row);
  }
  return rows;
}

/// "line:column: reason" of each bad line.
inline std::vector<std::string> bad_rows(const RatingBlock& block) {
  std::vector<std::string> rows;
  for (const BadLine& bad : block.bad_lines)
    rows.push_back(std::to_string(bad.line) + ":" + std::to_string(bad.column) + ": " + bad.problem.reason());
  return rows;
}

}  // namespace chunkhit
