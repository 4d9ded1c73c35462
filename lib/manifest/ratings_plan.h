// plan.json of ratings, and what the stages of its tasks leave for each other. Layout: schemas/plan.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chunkhit/pack_info.h"
#include "manifest/manifest.h"

namespace chunkhit {

inline constexpr std::string_view kRatingsPlanFormat = "chunkhit-ratings-plan";
/// Begin of the name of the folder for what stages leave; the plan's id follows.
inline constexpr std::string_view kStageFolderBegin = "plan-";
/// The columns in it, where they are given.
inline constexpr std::string_view kGivenItemsName = "given-items.csv";
/// The tables of columns in it, where there are some.
inline constexpr std::string_view kItemColumnsName = "item-columns.csv";
inline constexpr std::string_view kUserColumnsName = "user-columns.csv";

/// One file of a plan; each user is in one of them.
struct PlannedInput {
  std::string file;  ///< below the plan's root
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;  ///< when it was planned: a plan of changed inputs is another one
};

/// What plan.json of ratings holds.
struct RatingsPlan {
  std::string tool;                  ///< "pack-sparse 0.1.0"
  std::vector<SpecEntry> libraries;  ///< name, version
  std::string command_line;          ///< that planned
  std::string root;                  ///< absolute path of the folder that holds all inputs
  std::uint64_t tasks = 1;
  bool skips_bad_lines = false;
  std::uint64_t max_errors = 0;  ///< bad lines in all inputs; 0: `max_error_share`
  double max_error_share = 0;    ///< of the lines of each input
  bool reuses_items = false;     ///< the columns are given
  std::vector<SpecEntry> spec;
  std::vector<PlannedInput> inputs;

  /// Stands for all that the packs depend on, and not for tasks.
  [[nodiscard]] std::uint64_t id() const;
};

/// What count-NNNNN.json holds: what one input adds to columns.json.
struct PlanCount {
  std::uint64_t plan_id = 0;
  std::uint64_t input_xxh3 = 0;  ///< of the ratings that were read
  std::uint64_t lines = 0;
  std::uint64_t bad_lines = 0;
  std::string columns_text;  ///< which columns of a table were read; empty for other formats
  bool all_one = true;       ///< all values are 1
  std::vector<std::optional<std::uint64_t>> value_scales;  ///< largest stored number by scale, where it fits
  std::uint64_t rows = 0;
  std::uint64_t ratings = 0;
  std::uint64_t longest_row = 0;
  FileRecord items;  ///< ids and ratings for training, by first appearance
  FileRecord users;  ///< hashes of the ids of all users, ascending, 8 bytes each
};

/// What columns.json holds: what the packs of all inputs have in common.
struct PlanColumns {
  std::uint64_t plan_id = 0;
  StoredValues values;
  std::uint64_t chunk_rows = 0;  ///< 0: HDF5
  FileRecord items;
  bool lacks_users = false;  ///< the table of user columns has no row of some user
};

/// Write JSON text that ends in its own hash. Equal ones give equal bytes.
[[nodiscard]] std::string ratings_plan_text(const RatingsPlan& plan);
[[nodiscard]] std::string plan_count_text(const PlanCount& count);
[[nodiscard]] std::string plan_columns_text(const PlanColumns& columns);

/// Read and check JSON text; `name` is for messages. Throw bad_data when the hash or a field is not right.
[[nodiscard]] RatingsPlan parse_ratings_plan(std::string_view text, const std::string& name);
[[nodiscard]] PlanCount parse_plan_count(std::string_view text, const std::string& name);
[[nodiscard]] PlanColumns parse_plan_columns(std::string_view text, const std::string& name);

}  // namespace chunkhit
