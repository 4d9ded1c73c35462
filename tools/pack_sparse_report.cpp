#include "pack_sparse_report.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

#include "base/text.h"
#include "base/words.h"
#include "cli.h"
#include "progress.h"
#include "ratings/stored_values.h"
#include "types/csr_rows.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

constexpr std::size_t kShownInputs = 10;
constexpr std::size_t kShownValues = 12;

void print_inputs(const RatingStats& stats) {
  for (std::size_t index = 0; index < std::min(stats.inputs.size(), kShownInputs); ++index) {
    const InputStats& input = stats.inputs[index];
    std::printf("%s: %s", printable_text(input.file).c_str(), count_text(input.ratings, "rating").c_str());
    if (input.lines > 0) std::printf(" in %s", count_text(input.lines, "line").c_str());
    std::printf("\n");
  }
  if (stats.inputs.size() > kShownInputs)
    std::printf("… and %s\n", count_text(stats.inputs.size() - kShownInputs, "more input").c_str());
}

void print_bad_lines(const PackSparseReport& report) {
  if (report.stats.bad_lines == 0) return;
  std::printf("%s left out:\n", count_text(report.stats.bad_lines, "bad line").c_str());
  for (const auto& [reason, count] : report.stats.reasons)
    std::printf("  %s: %s\n", count_text(count, "time").c_str(), printable_text(flag_text(reason)).c_str());
  for (const std::string& line : report.bad_lines)
    std::printf("  %s\n", printable_text(flag_text(line)).c_str());
}

void print_steps(const RatingStats& stats) {
  std::printf("%-24s %12s %12s %14s\n", "", "users", "items", "ratings");
  for (const PackStep& step : changing_steps(stats.steps))
    std::printf("%-24s %12s %12s %14s\n", step.name.c_str(), count_text(step.users).c_str(),
                count_text(step.items).c_str(), count_text(step.ratings).c_str());
  for (const auto& [what, count] : stats.left_out)
    std::printf("left out: %s: %s\n", what.c_str(), count_text(count).c_str());
}

/// What an interrupted run leaves of the pack that it was writing.
void print_begun_pack(const MatrixPackReport& pack) {
  std::printf("%s: %s of %s finished, %s\n", printable_text(pack.path).c_str(),
              count_text(pack.parts, "part").c_str(), count_text(pack.rows, "row").c_str(),
              bytes_text(static_cast<double>(pack.bytes)).c_str());
}

void print_pack(const MatrixPackReport& pack, bool dry_run) {
  std::uint64_t ratings = 0;
  for (const PackMatrix& matrix : pack.matrices) ratings += matrix.nnz;
  if (pack.already_finished)
    std::printf("%s: already packed, nothing to do; ", printable_text(pack.path).c_str());
  else
    std::printf("%s: ", printable_text(pack.path).c_str());
  std::printf("%s x %s", count_text(pack.rows, "row").c_str(), count_text(pack.columns, "column").c_str());
  for (const PackMatrix& matrix : pack.matrices)
    std::printf(", %s %s (longest row %s)", matrix.name.c_str(), count_text(matrix.nnz, "rating").c_str(),
                count_text(matrix.longest_row).c_str());
  if (!dry_run)
    std::printf("; %s, %s, %.2f bytes a rating", count_text(pack.parts, "part").c_str(),
                bytes_text(static_cast<double>(pack.bytes)).c_str(),
                static_cast<double>(pack.bytes) / static_cast<double>(std::max<std::uint64_t>(1, ratings)));
  if (pack.parts_kept > 0)
    std::printf("; %s kept from earlier runs", count_text(pack.parts_kept, "part").c_str());
  if (pack.chunk_rows > 0) std::printf("; blocks of %s", count_text(pack.chunk_rows, "row").c_str());
  std::printf("\n");
}

void print_values(const StoredValues& values) {
  if (values.type == ValueType::none)
    std::printf("values: none are stored, every rating is 1\n");
  else if (values.type == ValueType::f32)
    std::printf("values: f32\n");
  else if (values.scale == 1)
    std::printf("values: %s\n", name_of(values.type).c_str());
  else
    std::printf("values: %s, a rating is the stored number times %s, exactly\n", name_of(values.type).c_str(),
                number_text(static_cast<float>(values.scale)).c_str());
}

/// The values, and how many ratings have each; where there are many, the most frequent ones.
void print_histogram(const std::vector<ValueCount>& values) {
  std::vector<ValueCount> shown = values;
  const auto is_more = [](const ValueCount& one, const ValueCount& other) {
    return one.ratings > other.ratings;
  };
  std::stable_sort(shown.begin(), shown.end(), is_more);
  shown.resize(std::min(shown.size(), kShownValues));
  const auto is_less = [](const ValueCount& one, const ValueCount& other) { return one.value < other.value; };
  std::sort(shown.begin(), shown.end(), is_less);
  std::uint64_t others = 0;
  for (const ValueCount& each : values) others += each.ratings;
  for (const ValueCount& each : shown) {
    std::printf("  %12s %14s\n", number_text(each.value).c_str(), count_text(each.ratings).c_str());
    others -= each.ratings;
  }
  if (shown.size() < values.size())
    std::printf("  %12s %14s: the manifest has all %s\n", "others", count_text(others).c_str(),
                count_text(values.size()).c_str());
}

void print_speed(const PackSparseReport& report) {
  std::printf("%.2f s, of them reading %.2f s", report.seconds, report.read_seconds);
  if (report.input_bytes > 0)
    std::printf(" (%s of input at %s/s, all at %s/s)",
                bytes_text(static_cast<double>(report.input_bytes)).c_str(),
                bytes_text(static_cast<double>(report.input_bytes) / report.read_seconds).c_str(),
                bytes_text(static_cast<double>(report.input_bytes) / report.seconds).c_str());
  std::printf("\n");
}

void print_read(const PackSparseReport& report) {
  print_inputs(report.stats);
  print_bad_lines(report);
  for (const std::string& notice : report.notices)
    std::printf("%s%s\n",
                notice.starts_with("warning: ") ? "" : "note: ", printable_text(flag_text(notice)).c_str());
  if (!report.stats.steps.empty()) {
    print_steps(report.stats);
    if (report.stats.steps.back().ratings == 0) return;
    print_values(report.values);
    print_histogram(report.stats.values);
  }
}

}  // namespace

void print_report(const PackSparseReport& report, bool dry_run) {
  print_read(report);
  for (const MatrixPackReport& pack : report.packs) {
    const bool is_begun = report.interrupted && &pack == &report.packs.back();
    is_begun ? print_begun_pack(pack) : print_pack(pack, dry_run);
  }
  if (report.interrupted) {
    std::uint64_t parts = 0;
    for (const MatrixPackReport& pack : report.packs) parts += pack.parts;
    print_interrupted(parts);
    return;
  }
  print_speed(report);
  if (dry_run) std::printf("nothing was written (--dry-run)\n");
  if (dry_run || report.packs.empty()) return;
  const std::string& first = report.packs[0].path;
  const std::string all =
      report.packs.size() > 1 ? std::filesystem::path(first).parent_path().string() : first;
  std::printf("next: pack-verify %s; pack-bench %s\n", printable_text(all).c_str(),
              printable_text(first).c_str());
}

void print_counted(const std::string& output, const PackSparseReport& report) {
  print_read(report);
  if (report.interrupted) {
    std::printf("interrupted; nothing was written\n");
    return;
  }
  const std::string items = printable_text(shell_word(output));
  std::printf("%s: %s\n", printable_text(output).c_str(), count_text(report.items_counted, "item").c_str());
  print_speed(report);
  if (report.items_counted == 0) return;
  const bool is_sum = report.stats.inputs.empty();  // lists do not say what values there are
  std::printf(
      "next, for each part, with the same rules but --min-item, and the same split: pack-sparse PART "
      "--reuse-ids %s --values %s -o "
      "packs/PART\n",
      items.c_str(), is_sum ? "TYPE" : stored_values_text(report.values).c_str());
  std::printf(
      "then: pack-merge all packs/*, of a split for each of its packs: pack-merge all/train packs/*/train\n");
}

}  // namespace chunkhit
