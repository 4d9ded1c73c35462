// Samples of tars: shards of WebDataset, and class folders in a tar.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "listing/class_folders.h"
#include "listing/kept_columns.h"
#include "listing/label_rows.h"
#include "listing/sample_list.h"
#include "listing/tar_groups.h"

namespace chunkhit {

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
