// What a run packs, also of samples that a program adds: spec and options, checked, and their one source.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "chunkhit/pack.h"
#include "listing/sample_list.h"
#include "types/sample_shape.h"

namespace chunkhit {

/// Class folders below the root; with `pair` all files at any depth.
struct FolderSource {};
/// Files below the root, by the rows of the CSV `labels`.
struct CsvSource {};
/// Members of tars; `has_rows`: by the rows of the CSV `labels`.
struct TarSource {
  std::vector<std::string> paths;
  bool has_rows = false;
};
/// Images of an IDX file, whose labels are in `labels`.
struct IdxSource {
  std::string path;
};
/// Images that a program added.
struct WriterSource {};
/// Rows of a plan. Other processes write parts of the same packs; every listed file was there when they were
/// planned.
struct PlanSource {
  bool of_folders = false;
  bool lacks_first_file = false;  ///< that was deleted between planning and this run
};
using ImageSource = std::variant<FolderSource, CsvSource, TarSource, IdxSource, WriterSource, PlanSource>;

/// A run of pack_images.
struct ImageRun {
  PackImagesSpec spec;
  PackImagesOptions options;
  ImageSource source;
};

/// Checks spec and options, and detects their source. Fills in the root where it is that of the labels or of
/// archives, and `pair` where a CSV names masks below the root. Throws usage, also for a sheet that is no
/// preview's, and bad_data for an input that is not there.
[[nodiscard]] ImageRun checked_run(const PackImagesSpec& spec, PackImagesOptions options,
                                   bool is_preview = false);

/// Checks spec and options of a program that adds the samples, and the folders of the packs. Throws as
/// pack_images.
[[nodiscard]] PackImagesOptions checked_writer_options(const PackImagesSpec& spec, PackImagesOptions options);

/// The header that pixels would have in a file: binary PNM, or with alpha PAM. Hashes and sizes of samples
/// count it, as when the writer made such files.
[[nodiscard]] std::string pnm_header(const SampleShape& pixels);

/// pack_images of the samples that a program added.
[[nodiscard]] PackImagesReport pack_list(const PackImagesSpec& spec, const PackImagesOptions& options,
                                         SampleList list);

}  // namespace chunkhit
