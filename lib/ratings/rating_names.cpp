#include "ratings/rating_names.h"

#include <algorithm>

#include "base/text.h"

namespace chunkhit {
namespace {

// Names are compared as plain_name gives them: lower case, without blanks, - and _.
constexpr std::string_view kUsers[] = {"userid",     "user",      "uid",       "customerid", "customer",
                                       "reviewerid", "reviewer",  "sessionid", "session",    "users",
                                       "memberid",   "accountid", "visitorid", "username"};
constexpr std::string_view kItems[] = {
    "itemid", "item",       "iid",      "movieid", "movie",     "productid", "product", "parentasin",
    "asin",   "businessid", "artistid", "songid",  "bookid",    "sid",       "trackid", "recipeid",
    "gameid", "animeid",    "isbn",     "newsid",  "articleid", "videoid"};
constexpr std::string_view kValues[] = {
    "rating",     "ratings",     "value", "score",     "stars",  "star",       "overall",
    "count",      "counts",      "plays", "playcount", "weight", "userrating", "starrating",
    "bookrating", "ratingvalue", "grade", "label",     "click",  "isclick",    "clicked"};
constexpr std::string_view kTimes[] = {
    "timestamp",  "time",    "unixreviewtime", "unixtime",   "timestampms", "timems",
    "datetime",   "ts",      "date",           "reviewdate", "reviewtime",  "ratingdate",
    "ratingtime", "ratedat", "createdat",      "dateadded",  "eventtime"};

}  // namespace

std::span<const std::string_view> usual_names(RatingField field) {
  switch (field) {
    case RatingField::user:
      return kUsers;
    case RatingField::item:
      return kItems;
    case RatingField::value:
      return kValues;
    case RatingField::time:
      return kTimes;
    case RatingField::other:
      break;
  }
  return {};
}

bool is_usual_name(std::string_view name, RatingField field) {
  const auto names = usual_names(field);
  return std::find(names.begin(), names.end(), plain_name(name)) != names.end();
}

std::optional<std::size_t> find_usual_column(std::span<const std::string_view> names, RatingField field) {
  if (names.empty()) return std::nullopt;
  if (plain_name(names[0]) == "id" || is_usual_name(names[0], field)) return 0;
  for (const std::string_view usual : usual_names(field))
    for (std::size_t column = 0; column < names.size(); ++column)
      if (plain_name(names[column]) == usual) return column;
  return std::nullopt;
}

}  // namespace chunkhit
