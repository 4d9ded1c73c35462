// Ratings as tests write them down, and rows as they read them.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "ratings/rating_packs.h"
#include "ratings/rating_store.h"

namespace chunkhit {

/// A line of the input, by numbers.
struct Rating {
  std::uint32_t user;
  std::uint32_t item;
  float value = 1;
  std::int64_t time = 0;
};

/// Appends ratings in blocks of so many.
inline void append(RatingStore& store, const std::vector<Rating>& ratings, std::size_t block = 1000) {
  for (std::size_t begin = 0; begin < ratings.size(); begin += block) {
    std::vector<std::uint32_t> users;
    std::vector<std::uint32_t> items;
    std::vector<float> values;
    std::vector<std::int64_t> times;
    for (std::size_t at = begin; at < std::min(begin + block, ratings.size()); ++at) {
      users.push_back(ratings[at].user);
      items.push_back(ratings[at].item);
      values.push_back(ratings[at].value);
      times.push_back(ratings[at].time);
    }
    store.append(users, items, values, times);
  }
}

/// Rows as text: "3=0.5 7=1 | | 2=4".
inline std::string text_of(const CsrRows& rows) {
  std::ostringstream text;
  for (std::size_t row = 0; row < rows.row_count(); ++row) {
    if (row > 0) text << "| ";
    for (std::uint64_t at = rows.indptr[row]; at < rows.indptr[row + 1]; ++at)
      text << rows.indices[at] << '=' << (rows.values.empty() ? 1 : rows.values[at]) << ' ';
  }
  return text.str();
}

/// All rows of a pack, X and held out.
struct FilledPack {
  CsrRows x;
  CsrRows held_out;
};

inline FilledPack fill(const PackRows& pack) {
  FilledPack filled;
  pack.fill(0, pack.row_count(), filled.x, filled.held_out);
  return filled;
}

/// Steps as text: "input 3x2 5, zeros 3x2 4".
inline std::string text_of(const std::vector<PackStep>& steps) {
  std::string text;
  for (const PackStep& step : steps)
    text += (text.empty() ? "" : ", ") + step.name + " " + std::to_string(step.users) + "x" +
            std::to_string(step.items) + " " + std::to_string(step.ratings);
  return text;
}

}  // namespace chunkhit
