// Samples of tars: shards of WebDataset, and class folders in a tar. What a tar may look like is in
// schemas/tar-input.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "listing/class_folders.h"
#include "listing/kept_columns.h"
#include "listing/label_rows.h"
#include "listing/sample_list.h"

namespace chunkhit {

/// The labels of a sample as texts, one per column, or why there are none: then `error` is not empty.
struct LabelTexts {
  std::vector<std::string> labels;
  std::string error;
};

/// The values of a sample's columns, or why there are none: then `error` is not empty.
struct ColumnTexts {
  std::vector<KeptValue> values;
  std::vector<std::string> keys;  ///< of the object, the first few, where it lacks one that is wanted
  std::vector<bool> lacks;        ///< by column; empty where it lacks none
  std::string error;
};

/// Takes the texts and numbers that a JSON object has under `keys`.
[[nodiscard]] LabelTexts json_labels(std::string_view text, std::span<const std::string> keys,
                                     std::string_view separator = {});

/// Takes the texts, numbers and truth values ("true", "false") that a JSON object has under `keys`. A key
/// that it lacks, or that is null, is a missing value.
[[nodiscard]] ColumnTexts json_columns(std::string_view text, std::span<const std::string> keys);

/// Where a tar lies, and what its samples are named.
struct TarInput {
  std::string name;             ///< begins the names of its samples: "shards/000.tar"
  std::uint32_t container = 0;  ///< of the list
  std::uint64_t begin = 0;      ///< of the tar in its container
  std::uint64_t bytes = 0;
};

/// A member that may be an image, or why it can be none.
struct TarImage {
  std::string name;
  FileRange range;
  std::string error;
};

/// The members of a key: all of a folder whose names are the same up to their first dot.
struct TarGroup {
  std::string key;
  std::vector<TarImage> images;
  std::string label_from;  ///< "cls", "json"; empty: there is no label
  LabelTexts label;
  ColumnTexts kept;             ///< without values where there is no .json
  bool has_class_name = false;  ///< looked at of the first .json beside a .cls: it names the class
};

/// Reads the headers of a tar, and the labels and kept columns in it, whose names are keys of a .json. Throws
/// as TarReader.
[[nodiscard]] std::vector<TarGroup> read_tar(const SampleContainer& container, const TarInput& input,
                                             const LabelColumns& columns);

/// Makes rows of a list from the groups of tars, in their order.
class TarSamples {
 public:
  /// `list` has no rows yet. `columns` has the keys of labels and kept columns in a .json, and the extensions
  /// of fields. Throws usage.
  TarSamples(SampleList& list, const LabelColumns& columns, std::vector<std::string> include);
  /// Adds the rows of the next tar. Throws bad_data where labels lie beside the images of one tar and not of
  /// another.
  void add(const TarInput& input, const std::vector<TarGroup>& groups);
  /// Gives all samples their labels. Throws bad_data where there are none, or no .json has a kept column.
  void finish();

 private:
  /// Whether labels lie beside the images, and are wanted.
  [[nodiscard]] bool has_labels() const { return source_ == LabelSource::members && !is_unlabelled_; }
  void find_source(const TarInput& input, const std::vector<TarGroup>& groups);
  void take_kept(const TarGroup& group);
  void check_kept() const;
  [[nodiscard]] bool is_image(const TarImage& image) const;
  [[nodiscard]] std::vector<const TarImage*> fields_of(const TarGroup& group) const;
  [[nodiscard]] std::vector<const TarImage*> images_of(const TarGroup& group);
  [[nodiscard]] std::string problem_of(const TarGroup& group,
                                       const std::vector<const TarImage*>& images) const;
  void add_group(const TarInput& input, const TarGroup& group);
  void add_listed(const TarInput& input, const TarGroup& group);
  void reject(const std::string& file, std::vector<std::string> labels, std::string reason);
  [[nodiscard]] std::string_view member(std::size_t index) const;
  [[nodiscard]] std::size_t common_folder() const;
  [[nodiscard]] bool tars_are_classes() const;
  void reject_without_folder();
  void number_classes(bool are_tars);

  SampleList& list_;
  std::vector<std::string> include_;
  std::vector<FieldPlace> fields_;  ///< behind the keys of their members, in lower case
  FileNames file_names_;
  LabelRows rows_;
  std::vector<std::string> keep_columns_;
  std::vector<KeptValue> kept_;         ///< of the sample in hand
  std::vector<bool> has_kept_;          ///< by column: a .json has it
  std::vector<std::string> json_keys_;  ///< of the first .json that lacks one
  std::optional<LabelSource> source_;   // once a tar has shown it
  bool is_unlabelled_;                  ///< by `label_type`
  bool has_class_names_ = false;        ///< a .json names the class whose id was taken
  bool has_texts_ = false;              ///< a .txt stands beside an image
  std::string dotted_label_;            // a label whose extension has a second dot
  std::vector<std::string> inputs_;     ///< names, by container
};

}  // namespace chunkhit
