// A plan in a folder: plan.json, and plan.rows with the rows of each part in packing order. Layout:
// schemas/plan.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "listing/sample_list.h"
#include "manifest/plan.h"
#include "types/reject.h"

namespace chunkhit {

/// Reads the plan in a folder; nothing where there is none. Throws bad_data for a damaged one, try_again when
/// the machine cannot read it.
[[nodiscard]] std::optional<PackPlan> read_plan(const std::string& folder);

/// Whether all packs of a plan are finished; looks at each, and throws bad_data where one is of another plan.
[[nodiscard]] bool are_finished(const std::string& folder, const PackPlan& plan);

/// Removes the plan in a folder, plan.json last; a folder without one stays as it is.
void remove_plan(const std::string& folder);

/// Says how this version of chunkhit differs from the one that planned ("pack-images 0.1.0 here, pack-images
/// 0.2.0 in the plan"); empty where it is the same.
[[nodiscard]] std::string version_difference(const PackPlan& plan);

/// Names the libraries of which this build has another version than the one that planned ("zstd 1.5.7 here,
/// 1.5.4 in the plan"); empty where all are the same.
[[nodiscard]] std::string library_differences(const PackPlan& plan);

/// Removes what killed runs left of a plan's files.
void remove_plan_left_overs(const std::string& folder);

/// A frame of plan.rows.
struct PlanFrame {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;
};

/// Writes plan.rows aside, frame by frame.
class PlanRowsWriter {
 public:
  explicit PlanRowsWriter(const std::string& folder);
  /// Appends the rows of the next parts: `part_samples` samples of `list` each, by index. Several threads
  /// compress them.
  void add_parts(const SampleList& list, std::span<const std::uint32_t> indices, std::uint64_t part_samples);
  /// Appends the rows of the next pack that were rejected while listing.
  void add_rejects(const std::vector<Reject>& rejects);
  /// Publishes the file; returns its record for plan.json.
  [[nodiscard]] FileRecord publish();

 private:
  void append_skippable(std::uint32_t magic, Bytes content);
  void add_frame(Bytes stored);

  PendingFile file_;
  std::vector<PlanFrame> index_;
};

/// Reads plan.rows.
class PlanRows {
 public:
  /// Reads the index; throws bad_data where it is not the plan's, try_again when the machine cannot read it.
  /// With a `root`, opens the plan's containers below it; throws try_again where one is not as it was
  /// planned.
  PlanRows(const std::string& folder, const PackPlan& plan, const std::string& root = "");
  /// The list that the parts' rows belong to, without rows: labels, classes, fields, hash.
  [[nodiscard]] const SampleList& header() const { return header_; }
  /// The rows of a part, which is numbered through all packs. Thread-safe.
  [[nodiscard]] SampleList part(std::uint64_t part) const;
  /// The rows of a pack that were rejected while listing.
  [[nodiscard]] std::vector<Reject> rejects(std::uint64_t pack) const;

 private:
  [[nodiscard]] FileRange range_of(std::span<const std::string_view> fields, const CsvReader& rows) const;
  [[nodiscard]] std::string read_frame(std::uint64_t frame) const;
  [[nodiscard]] std::string frame_name(std::uint64_t frame) const;

  std::string path_;
  std::uint64_t row_count_;
  std::uint64_t part_count_;
  std::size_t container_count_;
  std::vector<PlanFrame> index_;
  SampleList header_;
};

}  // namespace chunkhit
