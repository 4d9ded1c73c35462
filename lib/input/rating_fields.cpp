#include "input/rating_fields.h"

namespace chunkhit {
namespace {

constexpr const char* kLoneQuote =
    "quotes: one in a field without quotes (--quote none takes quotes for letters)";
constexpr const char* kTextBehindQuote =
    "quotes: text behind a closing one (--quote none takes quotes for letters)";
constexpr const char* kOpenQuote = "quotes: one is never closed (--quote none takes quotes for letters)";

}  // namespace

bool read_quoted_field(std::string_view line, std::string_view delimiter, std::size_t& at,
                       std::string_view& field, std::string& unquoted, SplitError& error) {
  const auto refuse = [&error](std::size_t place, const char* reason) {
    error = {place, reason, 0};
    return false;
  };
  const std::size_t begin = at;
  if (at == line.size() || line[at] != '"') {
    at = std::min(line.find(delimiter, at), line.size());
    field = line.substr(begin, at - begin);
    const std::size_t quote = field.find('"');
    return quote == std::string_view::npos || refuse(begin + quote, kLoneQuote);
  }
  unquoted.clear();
  for (++at;; at += 2) {
    const std::size_t quote = line.find('"', at);
    if (quote == std::string_view::npos) return refuse(begin, kOpenQuote);
    unquoted += line.substr(at, quote - at);
    at = quote;
    if (quote + 1 == line.size() || line[quote + 1] != '"') break;
    unquoted += '"';
  }
  ++at;
  field = unquoted;
  return at == line.size() || line.substr(at).starts_with(delimiter) || refuse(at, kTextBehindQuote);
}

std::size_t find_quoted_field(std::string_view line, std::string_view delimiter, std::size_t from) {
  const auto begins = [&](std::size_t at) {
    if (delimiter == kBlanks) return at == 0 || BlankDelimiter::is_blank(line[at - 1]);
    return at == 0 || line.substr(0, at).ends_with(delimiter);
  };
  std::size_t at = line.find('"', from);
  while (at != std::string_view::npos && !begins(at)) at = line.find('"', at + 1);
  return at;
}

bool ends_in_quote(std::string_view line, std::string_view delimiter, std::size_t at) {
  if (delimiter == kBlanks) return ends_in_quote(line, " ", at) || ends_in_quote(line, "\t", at);
  std::string_view field;
  std::string unquoted;
  SplitError error;
  return read_quoted_field(line, delimiter, at, field, unquoted, error);
}

std::vector<std::string> all_fields(std::string_view line, std::string_view delimiter, Quoting quoting) {
  std::vector<std::string> fields;
  const bool blanks = delimiter == kBlanks;
  if (blanks) line = BlankDelimiter().strip(line);
  std::string_view field;
  std::string unquoted;
  SplitError error;
  for (std::size_t at = 0;;) {
    if (quoting == Quoting::double_quote) {
      if (!read_quoted_field(line, delimiter, at, field, unquoted, error)) return fields;
    } else {
      const std::size_t end = blanks ? line.find_first_of(" \t", at) : line.find(delimiter, at);
      field = line.substr(at, end - at);
      at = std::min(end, line.size());
    }
    fields.emplace_back(field);
    if (at == line.size()) return fields;
    at = blanks ? line.find_first_not_of(" \t", at) : at + delimiter.size();
  }
}

bool QuotedSplitter::split(std::string_view line, RatingFields& fields) {
  error_ = {};
  std::size_t at = 0;
  for (std::size_t column = 0;; ++column) {
    const bool wanted = column < columns_.size();
    const auto what = static_cast<std::size_t>(wanted ? columns_[column] : RatingField::other);
    if (!read_quoted_field(line, delimiter_, at, fields.text[what], unquoted_[what], error_)) return false;
    if (at == line.size()) {
      error_.column_count = column + 1;
      return column + 1 >= columns_.size() && (max_columns_ == 0 || column < max_columns_);
    }
    at += delimiter_.size();
  }
}

}  // namespace chunkhit
