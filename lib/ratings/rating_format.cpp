#include "ratings/rating_format.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "ratings/rating_fields.h"

namespace chunkhit {
namespace {

constexpr std::size_t kLinesLookedAt = 1000;
constexpr std::size_t kMaxTableColumns = 4;  // user, item, value, time

[[noreturn]] void refuse(std::string_view name, const std::string& what) {
  throw_bad_data(std::string(name) + ": " + what);
}

bool are_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Takes the next word off the front of a line; nothing at its end.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

bool is_hdf5(std::string_view text) {
  // The signature lies at 0, 512, 1024, 2048, ... (HDF5 File Format Specification, II.A).
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  for (std::size_t at = 0; at < text.size(); at = at == 0 ? 512 : at * 2)
    if (text.substr(at).starts_with(kSignature)) return true;
  return false;
}

bool is_matrix_market(std::string_view text) {
  constexpr std::string_view kBanner = "matrixmarket";
  text.remove_prefix(std::min(text.find_first_not_of('%'), text.size()));
  return std::equal(kBanner.begin(), kBanner.end(), text.begin(),
                    text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), kBanner.size())),
                    [](char banner, char c) { return banner == (c | 0x20); });
}

/// Returns whether a word is index:value, or a query's id.
bool is_entry(std::string_view word) {
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view index = word.substr(0, colon);
  return (are_digits(index) || index == "qid") && parse_number(word.substr(colon + 1)).has_value();
}

bool is_svmlight(std::string_view line) {
  line = line.substr(0, line.find('#'));
  const std::string_view first = take_word(line);
  bool has_entry = is_entry(first);
  if (!has_entry && !parse_number(first.substr(0, first.find(',')))) return false;
  for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
    if (!is_entry(word)) return false;
    has_entry = true;
  }
  return has_entry;
}

/// Rows may have a label and nothing else; the first one that has more tells.
bool are_svmlight(const std::vector<std::string_view>& lines) {
  for (const std::string_view line : lines) {
    if (line.starts_with('#')) continue;
    std::string_view rest = line.substr(0, line.find('#'));
    const std::string_view label = take_word(rest);
    const bool is_lone = take_word(rest).empty() && parse_number(label).has_value();
    if (!is_lone) return is_svmlight(line);
  }
  return false;
}

/// How many integers a line of nothing else has; 0 for other lines.
std::size_t integer_count(std::string_view line) {
  std::size_t count = 0;
  for (std::string_view word = take_word(line); !word.empty(); word = take_word(line), ++count)
    if (!are_digits(word)) return 0;
  return count;
}

/// How many integers, with blanks between them, all lines have.
struct IntegerCounts {
  std::size_t least = 0;  ///< 0: some line has something else
  std::size_t most = 0;
};

IntegerCounts integer_counts(const std::vector<std::string_view>& lines) {
  IntegerCounts counts;
  for (const std::string_view line : lines) {
    const std::size_t count = integer_count(line);
    if (count == 0 || line.find('\t') != std::string_view::npos) return {};
    counts.least = counts.most == 0 ? count : std::min(counts.least, count);
    counts.most = std::max(counts.most, count);
  }
  return counts;
}

bool are_user_items(const std::vector<std::string_view>& lines) {
  const IntegerCounts counts = integer_counts(lines);
  return counts.least > 0 && (counts.least != counts.most || counts.most > kMaxTableColumns);
}

/// Throws bad_data where each line begins with how many items follow (CiteULike): no user stands there.
void check_no_counts(const std::vector<std::string_view>& lines, std::string_view name) {
  constexpr std::size_t kMinLines = 3;
  const bool are_counts = std::ranges::all_of(lines, [](std::string_view line) {
    const std::size_t count = integer_count(line);
    return take_word(line) == std::to_string(count - 1);
  });
  if (lines.size() >= kMinLines && are_counts)
    refuse(name,
           "each line begins with the count of its items, not with a user; write the line's number there: "
           "awk '{$1 = NR; print}' FILE | pack-sparse - ...; `format` user-items takes it as the user");
}

/// What a file is not, though its name says so.
std::string named_text(std::string_view name) {
  const std::optional<RatingFormat> named = rating_format_of_name(name);
  if (named != RatingFormat::npz && named != RatingFormat::hdf5) return "";
  return ", nor " + name_of(*named) + ", as its name says";
}

/// The name of the first file in a zip; empty where it is none.
std::string_view first_member(std::string_view zip) {
  constexpr std::size_t kLength = 26, kHeaderBytes = 30;
  if (zip.size() < kHeaderBytes || !zip.starts_with("PK\x03\x04")) return {};
  return zip.substr(kHeaderBytes, load_little<std::uint16_t>(as_bytes(zip).data() + kLength));
}

/// Throws bad_data, naming what it is and how it is read, for formats of other programs.
void check_no_binary(std::string_view text, std::string_view name) {
  constexpr std::size_t kTarMagic = 257;
  constexpr std::pair<std::string_view, std::string_view> kMagics[] = {
      {"PAR1", "Parquet"},          {"ARROW1", "Feather (Arrow IPC)"}, {"FEA1", "Feather"},
      {"\x93NUMPY", "NumPy's npy"}, {"SQLite format 3", "SQLite"},     {"MATLAB 5.0", "MATLAB's mat"}};
  std::string_view kind;
  for (const auto& [magic, program] : kMagics)
    if (text.starts_with(magic)) kind = program;
  if (text.starts_with("PK") && text.find("[Content_Types].xml") != std::string_view::npos)
    kind = "Excel's xlsx";
  const std::string_view member = first_member(text);
  if (kind.empty() && !member.empty() && !member.ends_with(".npy"))
    refuse(name, "is a zip of " + printable_text(member) + ", which is not read; unpack it: unzip -p " +
                     std::string(name) + " | pack-sparse - ...");
  if (!kind.empty())
    refuse(name, "is " + std::string(kind) +
                     ", which is not read; write it as CSV to stdin, by pandas' to_csv, or "
                     "where DuckDB reads it: duckdb -csv -c \"from '" +
                     std::string(name) + "'\" | pack-sparse - ...");
  if (text.substr(std::min(kTarMagic, text.size())).starts_with("ustar"))
    refuse(name, "is a tar, which is not read; unpack it: tar -xf " + std::string(name));
}

void check_text(std::string_view text, std::string_view name) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    refuse(name, "looks like UTF-16; save the table as UTF-8");
  if (text.find('\0') != std::string_view::npos)
    refuse(name, "holds NUL bytes, which no text does, and is of no kind that is known" + named_text(name));
  if (text.find('\r') != std::string_view::npos && text.find('\n') == std::string_view::npos)
    refuse(name, "lines end in CR alone; expected LF or CRLF");
}

}  // namespace

std::vector<std::string_view> first_lines(const TextHead& head, std::size_t most) {
  std::string_view text = head.text;
  if (!head.is_whole && text.find('\n') != std::string_view::npos)
    text = text.substr(0, text.rfind('\n') + 1);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::vector<std::string_view> lines;
  LineCursor cursor(text);
  std::string_view line;
  while (lines.size() < most && cursor.next(line)) {
    const bool is_comment = !head.comment.empty() && line.starts_with(head.comment);
    if (!is_comment && line.find_first_not_of(" \t") != std::string_view::npos) lines.push_back(line);
  }
  return lines;
}

std::optional<RatingFormat> rating_format_of_name(std::string_view name) {
  constexpr std::pair<std::string_view, RatingFormat> kEndings[] = {
      {".json", RatingFormat::json_lines},   {".jsonl", RatingFormat::json_lines},
      {".ndjson", RatingFormat::json_lines}, {".mtx", RatingFormat::matrix_market},
      {".svm", RatingFormat::svmlight},      {".svmlight", RatingFormat::svmlight},
      {".libsvm", RatingFormat::svmlight},   {".npz", RatingFormat::npz},
      {".h5ad", RatingFormat::hdf5},         {".h5", RatingFormat::hdf5},
      {".hdf5", RatingFormat::hdf5}};
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  std::string_view stem = lower;
  for (const std::string_view packed : {".gz", ".zst", ".xz", ".bz2"})
    if (stem.ends_with(packed)) stem.remove_suffix(packed.size());
  for (const auto& [ending, format] : kEndings)
    if (stem.ends_with(ending)) return format;
  return std::nullopt;
}

RatingFormat detect_rating_format(const TextHead& head, std::string_view name) {
  check_no_binary(head.text, name);
  if (head.text.starts_with("PK\x03\x04")) return RatingFormat::npz;
  if (is_hdf5(head.text)) return RatingFormat::hdf5;
  check_text(head.text, name);
  const std::vector<std::string_view> lines = first_lines(head, kLinesLookedAt);
  if (lines.empty()) return RatingFormat::text;
  if (lines[0].starts_with('%') && is_matrix_market(lines[0])) return RatingFormat::matrix_market;
  if (const char first = lines[0][lines[0].find_first_not_of(" \t")]; first == '{' || first == '[')
    return RatingFormat::json_lines;
  if (lines[0].ends_with(':') && are_digits(lines[0].substr(0, lines[0].size() - 1)))
    return RatingFormat::netflix;
  if (are_svmlight(lines)) return RatingFormat::svmlight;
  if (!are_user_items(lines)) return RatingFormat::text;
  check_no_counts(lines, name);
  return RatingFormat::user_items;
}

bool may_be_user_items(const TextHead& head) {
  const std::vector<std::string_view> lines = first_lines(head, kLinesLookedAt);
  const IntegerCounts counts = integer_counts(lines);
  // Two integers are a user and an item either way.
  if (lines.size() < 2 || counts.least != counts.most || counts.most < 3 || counts.most > kMaxTableColumns)
    return false;
  std::set<std::string_view> users;
  return std::ranges::all_of(lines,
                             [&](std::string_view line) { return users.insert(take_word(line)).second; });
}

}  // namespace chunkhit
