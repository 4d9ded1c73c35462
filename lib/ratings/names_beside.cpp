#include "ratings/names_beside.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/line_reader.h"
#include "base/text.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMaxNameLineBytes = std::size_t{1} << 16;
constexpr std::string_view kMatrixName = "matrix.mtx";
constexpr std::array<std::string_view, 1> kUserFiles{"barcodes.tsv"};
constexpr std::array<std::string_view, 2> kItemFiles{"features.tsv", "genes.tsv"};
constexpr std::array<std::string_view, 3> kEndings{"", ".gz", ".zst"};

struct NamesFile {
  std::string path;
  IdNames names;
  std::uint64_t line_count = 0;
  bool is_used = false;
};

/// Finds the first file of those names; nothing where there is none.
std::string find_file(const std::string& matrix_path, std::span<const std::string_view> file_names) {
  const std::filesystem::path path(matrix_path);
  const std::string name = path.filename();
  const std::size_t at = name.find(kMatrixName);
  const std::string prefix = at == std::string::npos ? "" : name.substr(0, at);
  for (const std::string_view file_name : file_names) {
    for (const std::string_view ending : kEndings) {
      const auto candidate = path.parent_path() / (prefix + std::string(file_name) + std::string(ending));
      std::error_code ignored;
      if (std::filesystem::is_regular_file(candidate, ignored)) return candidate;
    }
  }
  return "";
}

/// Reads the first column, but not more lines than could be of use.
NamesFile read_names(const std::string& path, std::uint64_t max_lines) {
  NamesFile file;
  file.path = path;
  if (path.empty()) return file;
  LineReader lines(path, kMaxNameLineBytes);
  std::string_view line;
  while (file.line_count <= max_lines && lines.next(line)) {
    ++file.line_count;
    const std::string_view name = line.substr(0, line.find('\t'));
    if (name.empty()) lines.fail(1, "expected a name, found an empty one");
    if (!is_utf8(name)) lines.fail(1, "name: expected UTF-8");
    file.names.add(name);
  }
  return file;
}

bool fits(const NamesFile& file, std::uint64_t count) {
  return !file.path.empty() && count > 0 && file.line_count == count;
}

std::string line_count_text(const NamesFile& file, std::uint64_t max_lines) {
  const bool more = file.line_count > max_lines;
  return (more ? "more than " + std::to_string(max_lines) : std::to_string(file.line_count)) + " lines";
}

/// Which way round a matrix is cannot be detected from files of which one does not fit.
void check_fit(const NamesFile& users, const NamesFile& items, std::uint64_t row_count,
               std::uint64_t column_count) {
  const auto may_name = [](const NamesFile& file, std::uint64_t count) {
    return file.path.empty() || fits(file, count);
  };
  if (may_name(users, column_count) && may_name(items, row_count)) return;
  if (may_name(users, row_count) && may_name(items, column_count)) return;
  std::string text;
  for (const NamesFile* file : {&users, &items})
    if (!file->path.empty())
      text += (text.empty() ? "" : ", ") + file->path + " has " +
              line_count_text(*file, std::max(row_count, column_count));
  throw Error(ErrorCode::bad_data, text + "; the matrix has " + std::to_string(row_count) + " rows and " +
                                       std::to_string(column_count) +
                                       " columns; --transpose or --no-transpose takes what fits");
}

void take(NamesFile& file, IdNames& names, const char* axis, std::vector<std::string>& notices) {
  names = std::move(file.names);
  file.is_used = true;
  notices.push_back(file.path + ": names the " + axis);
  if (const std::size_t changed = make_unique_names(names); changed > 0)
    notices.push_back(file.path + ": " + std::to_string(changed) +
                      " names were there before; they got -1, -2, ... appended");
}

void note_unused(const NamesFile& file, std::uint64_t row_count, std::uint64_t column_count,
                 std::vector<std::string>& notices) {
  if (file.path.empty() || file.is_used) return;
  notices.push_back(file.path + ": not used: it has " +
                    line_count_text(file, std::max(row_count, column_count)) + ", the matrix " +
                    std::to_string(row_count) + " rows and " + std::to_string(column_count) + " columns");
}

}  // namespace

NamesBeside find_names_beside(const std::string& matrix_path, std::uint64_t row_count,
                              std::uint64_t column_count, bool must_fit, std::vector<std::string>& notices) {
  NamesBeside names;
  if (matrix_path == "-") return names;
  const std::uint64_t max_lines = std::max(row_count, column_count);
  NamesFile users = read_names(find_file(matrix_path, kUserFiles), max_lines);
  NamesFile items = read_names(find_file(matrix_path, kItemFiles), max_lines);
  if (must_fit) check_fit(users, items, row_count, column_count);
  // Where a square matrix leaves both open, 10x's own way is taken: features × barcodes.
  const bool users_in_columns =
      fits(users, column_count) && (items.path.empty() || fits(items, row_count) || !fits(users, row_count));
  names.columns_are_users = users_in_columns;
  if (users_in_columns)
    take(users, names.columns, "columns", notices);
  else if (fits(users, row_count))
    take(users, names.rows, "rows", notices);
  const bool rows_are_free = names.rows.size() == 0;
  if (rows_are_free && fits(items, row_count))
    take(items, names.rows, "rows", notices);
  else if (names.columns.size() == 0 && fits(items, column_count))
    take(items, names.columns, "columns", notices);
  note_unused(users, row_count, column_count, notices);
  note_unused(items, row_count, column_count, notices);
  return names;
}

}  // namespace chunkhit
