// The packs that pack-merge joins, and the manifests that it makes of theirs.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chunkhit/pack.h"
#include "manifest/manifest.h"
#include "types/pixel_sums.h"

namespace chunkhit {

/// A finished pack to be merged.
struct MergeInput : AnyManifest {
  std::string folder;
  bool is_output = false;  ///< the merged pack takes its place
  PixelSums pixels{};      ///< of images: of all parts, once check_merge_inputs read their records
};

/// Opens the packs; throws bad_data for what is no finished pack, or not of the first one's kind.
[[nodiscard]] std::vector<MergeInput> open_merge_inputs(const MergeOptions& options);

/// Throws bad_data where a pack is there twice, or its parts are not.
void check_merge_inputs(std::span<MergeInput> inputs);

/// Throws bad_data where a merge would need the packs to agree: "b: samples of 9x9x3, expected 8x9x3 as in
/// a: …"; `advice` says what to do instead.
void check_equal(const MergeInput& input, const MergeInput& first, const std::string& what,
                 const std::string& found, const std::string& expected, const std::string& advice);

/// Fills what manifests of both kinds have in common.
void merge_common(std::span<const MergeInput> inputs, PackManifest& merged);

/// The manifests of the merged pack, but its tables and the names of its parts. Throw bad_data where the
/// packs cannot be merged.
[[nodiscard]] Manifest merge_images(std::span<const MergeInput> inputs, const std::string& output);
[[nodiscard]] MatrixManifest merge_ratings(std::span<const MergeInput> inputs);

/// Recorded settings on which it depends what a sample means.
[[nodiscard]] std::vector<std::string> image_settings();
[[nodiscard]] std::vector<std::string> rating_settings();

/// Publishes the tables of the merged pack under the names that `name` gives them, and records them.
using TableName = std::function<std::string(std::string_view table)>;
void publish_tables(std::span<const MergeInput> inputs, const std::string& folder, const TableName& name,
                    Manifest& merged);
void publish_tables(std::span<const MergeInput> inputs, const std::string& folder, const TableName& name,
                    MatrixManifest& merged);

}  // namespace chunkhit
