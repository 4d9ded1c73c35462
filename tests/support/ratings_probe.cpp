// Reads files that hold a matrix, for a script to compare: ratings_probe FORMAT TRANSPOSE LAYER BASE FILE...
// prints a line "user TAB item TAB value" for each rating, in order; then lines that begin with #: the shape,
// what was rounded, notices, bad lines, and of svmlight the labels of each row. LAYER and BASE may be "-".
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "chunkhit/error.h"
#include "pack/ratings/read_inputs.h"
#include "ratings/svmlight.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

RatingFormat format_of(const std::string& name) {
  const std::optional<RatingFormat> found = enum_of<RatingFormat>(name);
  if (!found) throw Error(ErrorCode::usage, name + ": is no format");
  return *found;
}

bool transpose_of(const std::string& name) { return name == "yes"; }

std::string id_text(const BlockIds& ids, std::size_t rating) {
  const std::uint32_t index = ids.of_rating[rating];
  return ids.are_text() ? std::string(ids.texts[index]) : std::to_string(ids.numbers[index]);
}

void print_block(const RatingBlock& block) {
  for (std::size_t i = 0; i < block.size(); ++i)
    std::printf("%s\t%s\t%.9g\n", id_text(block.users, i).c_str(), id_text(block.items, i).c_str(),
                static_cast<double>(block.values.empty() ? 1 : block.values[i]));
  for (const BadLine& bad : block.bad_lines)
    std::printf("#bad %zu:%zu: %s\n", static_cast<std::size_t>(bad.line),
                static_cast<std::size_t>(bad.column), bad.problem.reason().c_str());
}

void print_facts(const MatrixFacts& facts) {
  std::printf("#shape %zu %zu\n#rounded %zu\n", static_cast<std::size_t>(facts.user_count),
              static_cast<std::size_t>(facts.item_count), static_cast<std::size_t>(facts.rounded.count));
  for (const std::string& notice : facts.notices) std::printf("#notice %s\n", notice.c_str());
}

void print_labels(const RowLabels& labels) {
  for (std::size_t row = 0; row < labels.row_count(); ++row) {
    std::printf("#row");
    for (const float label : labels.of_row(row)) std::printf(" %.9g", static_cast<double>(label));
    if (!labels.groups.empty()) std::printf(" qid:%lld", static_cast<long long>(labels.groups[row]));
    std::printf("\n");
  }
}

void probe(char** arguments, int count) {
  MatrixFileSpec spec;
  spec.transpose = transpose_of(arguments[1]);
  if (std::string(arguments[2]) != "-") spec.layer = arguments[2];
  const std::vector<std::string> paths(arguments + 3, arguments + count);
  for (const auto& reader : open_matrix_files(format_of(arguments[0]), paths, spec)) {
    RatingBlock block;
    while (reader->next(block)) print_block(block);
    print_facts(reader->facts());
    if (auto* const svmlight = dynamic_cast<SvmlightReader*>(reader.get()))
      print_labels(svmlight->take_row_labels());
  }
}

}  // namespace
}  // namespace chunkhit

int main(int count, char** arguments) {
  if (count < 5) return 2;
  try {
    chunkhit::probe(arguments + 1, count - 1);
  } catch (const chunkhit::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
