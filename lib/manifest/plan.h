// plan.json: what the parts of packs are made of, frozen for many processes. Layout: schemas/plan.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chunkhit/pack_info.h"
#include "manifest/manifest.h"
#include "types/sample_shape.h"

namespace chunkhit {

inline constexpr std::string_view kPlanFormat = "chunkhit-plan";
inline constexpr std::string_view kPlanName = "plan.json";
inline constexpr std::string_view kPlanRowsName = "plan.rows";

/// One pack of a plan.
struct PlannedPack {
  std::string name;  ///< of its folder below the plan's; empty without a split
  std::uint64_t pack_id = 0;
  RecordedSpec spec;
  std::uint64_t samples = 0;  ///< rows that are to be packed
  std::uint64_t parts = 0;
};

/// A file that holds samples of a plan in ranges of its bytes.
struct PlannedContainer {
  std::string file;  ///< below the root
  std::uint64_t bytes = 0;
};

/// What plan.json holds.
struct PackPlan {
  std::string tool;          ///< "pack-images 0.1.0"
  RecordedSpec libraries;    ///< name, version
  std::string command_line;  ///< that planned; for run.json
  std::string root;          ///< absolute path of the folder of the images
  /// Absolute paths of the folders of the fields, in their order; empty: no fields, or in the containers.
  std::vector<std::string> masks{};
  /// Of the first row's file in each of these, so that swapped folders are noticed; 0: it could not be read.
  std::vector<std::uint64_t> masks_xxh3{};
  std::uint64_t tasks = 1;
  std::uint64_t input_xxh3 = 0;
  std::uint64_t rows = 0;          ///< of the input list: samples + rejects
  std::uint64_t max_rejected = 0;  ///< in all parts together
  SampleShape sample;
  std::string first_file;  ///< the image that the shape comes from
  std::uint64_t first_file_bytes = 0;
  std::string file_column;
  bool class_labels = true;  ///< class ids, else numbers
  std::vector<std::string> label_columns;
  std::vector<PackColumn> columns;           ///< kept beside the labels
  std::vector<std::string> classes;          ///< names by id
  std::vector<PlannedContainer> containers;  ///< none: each sample is a file of its own
  std::vector<PlannedPack> packs;
  FileRecord rows_file{std::string(kPlanRowsName)};  ///< its hash is that of the index

  /// The fields whose files rows name: those of a CSV with columns of them, and of tars.
  [[nodiscard]] std::vector<SampleField> listed_fields() const;
  /// Parts of all packs.
  [[nodiscard]] std::uint64_t parts() const;
};

/// Writes JSON text that ends in its own hash. Equal plans give equal bytes.
[[nodiscard]] std::string plan_text(const PackPlan& plan);

/// Reads and checks JSON text; `name` is for messages. Throws bad_data when the hash or a field is not right.
[[nodiscard]] PackPlan parse_plan(std::string_view text, const std::string& name);

}  // namespace chunkhit
