#include "input/column_names.h"

#include <algorithm>

namespace chunkhit {
namespace {

constexpr std::string_view kUsers[] = {"userid",     "user",      "uid",       "customerid", "customer",
                                       "reviewerid", "reviewer",  "sessionid", "session",    "users",
                                       "memberid",   "accountid", "visitorid", "username"};
constexpr std::string_view kItems[] = {
    "itemid",     "item",     "iid",        "movieid",  "movie",  "productid", "product",
    "parentasin", "asin",     "businessid", "artistid", "songid", "bookid",    "sid",
    "trackid",    "recipeid", "gameid",     "animeid",  "isbn",   "newsid",    "articleid"};
constexpr std::string_view kValues[] = {"rating",      "ratings", "value",      "score",      "stars",
                                        "star",        "overall", "count",      "counts",     "plays",
                                        "playcount",   "weight",  "userrating", "starrating", "bookrating",
                                        "ratingvalue", "grade"};
constexpr std::string_view kTimes[] = {"timestamp",  "time",    "unixreviewtime", "unixtime",   "datetime",
                                       "ts",         "date",    "reviewdate",     "reviewtime", "ratingdate",
                                       "ratingtime", "ratedat", "createdat",      "dateadded",  "eventtime"};

}  // namespace

std::string_view without_type(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string_view::npos) return name;
  const std::string_view type = name.substr(colon + 1);
  const bool known = type == "token" || type == "token_seq" || type == "float" || type == "float_seq";
  return known ? name.substr(0, colon) : name;
}

std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : without_type(name))
    if (c != '_' && c != '-' && c != ' ') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
  return plain;
}

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

}  // namespace chunkhit
