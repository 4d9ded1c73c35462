#include "base/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

#include "base/text.h"

namespace chunkhit {
namespace {

std::string escaped(unsigned char byte) {
  if (byte == '\n') return "\\n";
  if (byte == '\r') return "\\r";
  if (byte == '\t') return "\\t";
  constexpr std::string_view kDigits = "0123456789abcdef";
  return {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

/// Bytes of the character in front that changes how the text behind it is shown; 0 where it does not.
std::size_t control_bytes(std::string_view text) {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
  };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  // U+0080 to U+009F, of which 9B begins a terminal's command, too.
  if (byte(0) == 0xc2 && (byte(1) & 0xe0) == 0x80) return 2;
  // Marks of direction, which show a name from its end: U+061C, 200E, 200F, 202A to 202E, 2066 to 2069. Line
  // ends U+2028 and 2029 are between them.
  if (byte(0) == 0xd8 && byte(1) == 0x9c) return 2;
  if (byte(0) != 0xe2) return 0;
  const unsigned second = byte(1), third = byte(2);
  const bool is_mark = second == 0x80 && (third == 0x8e || third == 0x8f || (third >= 0xa8 && third <= 0xae));
  return is_mark || (second == 0x81 && third >= 0xa6 && third <= 0xa9) ? 3 : 0;
}

/// Counts the letters to insert, delete, replace or swap with their neighbour (Damerau 1964).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool equal = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (equal ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last.back();
}

}  // namespace

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 6> kUnits{"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  // What would be rounded to 1000.0 is 1.0 of the next unit.
  for (; bytes >= (unit == 0 ? 999.5 : 999.95) && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text.data();
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30, kMinShown = 10;
  if (bytes >= kGiB && bytes % kGiB == 0) return std::to_string(bytes / kGiB) + "G";
  if (bytes >= kMinShown * kMiB || (bytes >= kMiB && bytes % kMiB == 0))
    return std::to_string(bytes / kMiB + (bytes % kMiB == 0 ? 0 : 1)) + "M";
  if (bytes >= kKiB) return std::to_string(bytes / kKiB + (bytes % kKiB == 0 ? 0 : 1)) + "K";
  return std::to_string(bytes);
}

std::string memory_text(double bytes) {
  const double mib = std::ceil(bytes / static_cast<double>(1 << 20));
  const double step = mib <= 512 ? 32 : mib <= 4096 ? 256 : 1024;
  const auto rounded = static_cast<std::uint64_t>(std::ceil(mib / step) * step);
  return rounded % 1024 == 0 ? std::to_string(rounded / 1024) + "G" : std::to_string(rounded) + "M";
}

std::string count_text(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string count_text(std::uint64_t count, const char* thing) {
  const std::string_view name = thing;
  const char* const ending = name.ends_with('s') || name.ends_with("ch") ? "es" : "s";  // classes, batches
  return count_text(count) + " " + thing + (count == 1 ? "" : ending);
}

std::string joined_where(std::span<const std::string> texts, std::span<const float> values,
                         std::string_view between) {
  std::string list;
  bool is_first = true;
  for (std::size_t at = 0; at < texts.size(); ++at)
    if (values[at] != 0) list.append(std::exchange(is_first, false) ? "" : between).append(texts[at]);
  return list;
}

std::string printable_text(std::string_view text) {
  std::string printable;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t count = control_bytes(text.substr(at));
    if (count == 0) printable += text[at++];
    for (const std::size_t end = at + count; at < end; ++at)
      printable += escaped(static_cast<unsigned char>(text[at]));
  }
  return printable;
}

namespace {

/// What other tools call an option, and what it is called here; of several rows the first that is valid.
constexpr std::array<std::pair<std::string_view, std::string_view>, 27> kOtherWords{{
    {"workers", "threads"},        {"num-workers", "threads"}, {"jobs", "threads"},
    {"n-jobs", "threads"},         {"size", "resize"},         {"image-size", "resize"},
    {"img-size", "resize"},        {"test-size", "test"},      {"test-size", "split"},
    {"val-size", "validation"},    {"val-size", "split"},      {"train-size", "split"},
    {"random-state", "seed"},      {"random-seed", "seed"},    {"compression", "codec"},
    {"compress", "codec"},         {"batch", "batch-size"},    {"extensions", "include"},
    {"stratify", "split"},         {"groups", "split-group"},  {"group-column", "split-group"},
    {"ignore-errors", "on-error"}, {"user-column", "user"},    {"item-column", "item"},
    {"rating-column", "value"},    {"rating", "value"},        {"timestamp", "time"},
}};

/// Words that mean the opposite: a name of one is no misspelling of the other's.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kOpposites{
    {{"horizontal", "vertical"}, {"train", "test"}, {"min", "max"}, {"user", "item"}, {"width", "height"}}};

/// A name in lower case with dashes, without those in front.
std::string plain_option(std::string_view name) {
  std::string plain = lower(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  std::ranges::replace(plain, '_', '-');
  return plain;
}

const std::string* other_word(std::string_view given, std::span<const std::string> valid) {
  const std::string plain = plain_option(given);
  for (const auto& [other, own] : kOtherWords) {
    if (plain != other) continue;
    const auto found =
        std::ranges::find_if(valid, [&, own = own](const auto& name) { return plain_option(name) == own; });
    if (found != valid.end()) return &*found;
  }
  return nullptr;
}

bool are_opposites(std::string_view given, std::string_view name) {
  const auto has = [](std::string_view text, std::string_view word) { return text.find(word) != text.npos; };
  return std::ranges::any_of(kOpposites, [&](const auto& words) {
    const auto& [a, b] = words;
    return (has(given, a) && !has(given, b) && has(name, b) && !has(name, a)) ||
           (has(given, b) && !has(given, a) && has(name, a) && !has(name, b));
  });
}

/// Splits a name where a letter does not follow a letter, or a capital follows another: patient_id, scanID.
std::vector<std::string> words_in(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    const bool is_capital = c >= 'A' && c <= 'Z', is_letter = is_capital || (c >= 'a' && c <= 'z');
    const bool begins = is_capital && !words.back().empty() && words.back().back() >= 'a';
    if (!is_letter || begins) words.emplace_back();
    if (is_letter) words.back() += c;
  }
  return words;
}

}  // namespace

bool may_be_ids(std::string_view name, bool is_text, std::size_t different, std::size_t count) {
  constexpr std::array<std::string_view, 9> kIdWords{"id",    "ids",    "patient", "subject", "study",
                                                     "scene", "series", "video",   "person"};
  constexpr std::size_t kMinValues = 10, kMaxImagesOfText = 20;  // on average: categories have more
  if (different < kMinValues) return false;
  return (is_text && count <= kMaxImagesOfText * different) ||
         std::ranges::any_of(words_in(name), [&](const std::string& word) {
           return std::ranges::find(kIdWords, lower(word)) != kIdWords.end();
         });
}

std::string did_you_mean(std::string_view given, std::span<const std::string> valid) {
  constexpr std::size_t kMaxLetters = 64, kLettersOfEdit = 3;
  if (given.empty() || given.size() > kMaxLetters) return "";
  const std::string* nearest = other_word(given, valid);
  if (nearest != nullptr) return "; did you mean \"" + printable_text(*nearest) + "\"?";
  std::size_t least = given.size() / kLettersOfEdit + 1;
  for (const std::string& name : valid) {
    if (name.size() > kMaxLetters || are_opposites(given, name)) continue;
    const std::size_t distance = edit_distance(lower(given), lower(name));
    if (distance >= least || distance >= name.size()) continue;
    least = distance;
    nearest = &name;
  }
  if (nearest == nullptr && given.size() >= kLettersOfEdit)
    for (const std::string& name : valid)
      if (nearest == nullptr && name.starts_with(std::string(given) + "-")) nearest = &name;
  return nearest == nullptr ? "" : "; did you mean \"" + printable_text(*nearest) + "\"?";
}

}  // namespace chunkhit
