// manifest.json of packs of images and of matrices, merged or not, and the names of their tables. Layouts:
// schemas/manifest.md, schemas/matrix-manifest.md.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chunkhit/pack_info.h"
#include "manifest/part_record.h"
#include "types/csr_rows.h"
#include "types/sample_shape.h"

namespace chunkhit {

inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kRejectsName = "rejects.csv";
inline constexpr std::string_view kWarningsName = "warnings.csv";
inline constexpr std::string_view kUsersName = "users.csv";
inline constexpr std::string_view kItemsName = "items.csv";
/// Beside a part's own file and record: part-NNNNN.inputs.
inline constexpr std::string_view kInputsExtension = ".inputs";

/// A manifest.json or part-NNNNN.json above this is an error, unread.
inline constexpr std::uint64_t kMaxManifestBytes = 1ull << 30;

/// A kind of pack; one static row each.
struct PackKind {
  std::string_view format;                 ///< as its manifests say: "chunkhit-images"
  std::string_view name;                   ///< with its command, for messages
  std::array<std::string_view, 2> tables;  ///< files that only this kind has
  bool has_inputs;  ///< a part is of input files: it has rejects, sums of pixels and kInputsExtension
};
inline constexpr PackKind kImagePacks{
    "chunkhit-images", "a pack of images (pack-images)", {kRejectsName, kWarningsName}, true};
inline constexpr PackKind kMatrixPacks{
    "chunkhit-matrix", "a pack of matrices (pack-sparse)", {kUsersName, kItemsName}, false};
inline constexpr std::array kPackKinds{kImagePacks, kMatrixPacks};

/// The kind of a format; null where it is none of a pack.
[[nodiscard]] inline const PackKind* kind_of_format(std::string_view format) {
  const auto* const kind = std::ranges::find(kPackKinds, format, &PackKind::format);
  return kind == kPackKinds.end() ? nullptr : kind;
}

/// A file beside the parts.
struct FileRecord {
  std::string file;
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;
};

/// A pack that the parts of a manifest were packed for: the manifest's own, or one that pack-merge joined.
struct SourcePack {
  std::uint64_t pack_id = 0;
  std::string tool;
  RecordedSpec spec;
  std::uint64_t input_xxh3 = 0;
  std::uint64_t rows = 0;
  std::string codec;
  std::uint64_t chunk_samples = 0;      ///< samples, or rows, of every chunk but a part's last
  std::vector<std::int64_t> class_ids;  ///< its classes' ids in the merged pack, by own id; empty: its own
  /// The id that one of its classes has in the merged pack.
  [[nodiscard]] std::int64_t class_id(std::int64_t own_id) const {
    const auto index = static_cast<std::size_t>(own_id);
    return own_id >= 0 && index < class_ids.size() ? class_ids[index] : own_id;
  }
};

/// What the manifests of both kinds of packs hold.
struct PackManifest {
  std::uint64_t pack_id = 0;
  std::string tool;  ///< "pack-images 0.1.0"
  RecordedSpec spec;
  std::uint64_t input_xxh3 = 0;  ///< of the list of images; of all bytes of the rating files, uncompressed
  std::string container;
  std::string codec;
  std::uint64_t rows = 0;  ///< input rows of images; users
  std::vector<std::string> label_columns;
  std::vector<PartRecord> parts;  ///< without class counts, rejects, warnings and sums
  bool is_merged = false;
  std::vector<SourcePack>
      sources;  ///< of a manifest that was parsed: the packs of its parts, itself if not merged
  /// The pack that a part was packed for.
  [[nodiscard]] std::uint64_t pack_id_of(const PartRecord& part) const {
    return is_merged ? sources[part.source].pack_id : pack_id;
  }
};

/// Identities of the packs in a merged pack, in order; of another pack its own. Each is the hash of the
/// pack's id and of its parts' hashes: the id alone is the same for other images with the same names and
/// labels.
[[nodiscard]] std::vector<std::uint64_t> content_ids(const PackManifest& manifest);

/// Hash of the ids' lines, as 16 digits each. A merged pack's own id is that of its packs' content_ids.
[[nodiscard]] std::uint64_t hash_of_ids(std::span<const std::uint64_t> ids);

/// What manifest.json of a pack of images holds.
struct Manifest : PackManifest {
  SampleShape sample;               ///< without sides where images have sizes of their own
  std::uint64_t chunk_samples = 0;  ///< 0 with own sizes
  std::uint64_t chunk_bytes = 0;    ///< raw; with own sizes of the chunk's frames, unless one image has more
  std::uint64_t raw_bytes = 0;      ///< of the pixels of all samples
  [[nodiscard]] bool own_sizes() const { return sample.height == 0; }
  std::uint64_t samples = 0;
  std::uint64_t rejected = 0;
  std::uint64_t warned = 0;         ///< samples that were packed with warnings
  bool class_labels = true;         ///< class ids, else numbers
  std::vector<PackColumn> columns;  ///< kept beside the labels
  std::vector<PackClass> classes;
  std::vector<double> mean;
  std::vector<double> std;
  std::optional<InputSizes> inputs;      ///< packs of builds that did not record them lack it
  std::optional<SharedStats> normalize;  ///< of the packs of a split
  FileRecord rejects{std::string(kRejectsName)};
  std::optional<FileRecord> warnings;  ///< packs of builds that listed none lack it
};

/// Writes JSON text that ends in its own hash. Equal manifests give equal bytes.
[[nodiscard]] std::string manifest_text(const Manifest& manifest);

/// Reads and checks JSON text; `name` is for messages. Throws bad_data when the hash or a field is not right.
[[nodiscard]] Manifest parse_manifest(std::string_view text, const std::string& name);

/// MatrixManifest::times where they are too near to 0 to have a unit, or of a single part.
inline constexpr std::string_view kUnknownTimes = "numbers";
/// Whether ratings with such times can be of one pack.
[[nodiscard]] inline bool are_times_alike(const std::string& a, const std::string& b) {
  return a == b || (!a.empty() && !b.empty() && (a == kUnknownTimes || b == kUnknownTimes));
}

/// What manifest.json of a pack of matrices holds.
struct MatrixManifest : PackManifest {
  std::uint64_t columns = 0;
  std::vector<PackMatrix> matrices;  ///< X; held_out, where the rows have a second one
  ValueType value_type = ValueType::none;
  double scale = 1;
  std::string times{};           ///< unit of the ratings' times, a TimeUnit or "numbers"; empty: not kept
  bool has_repeats = false;      ///< a row may have an item several times: MatrixInfo::has_repeats
  std::uint64_t chunk_rows = 0;  ///< in every chunk but a part's last; 0 where chunks are not rows
  FileRecord users;
  FileRecord items;
  std::vector<PackColumn> item_columns{};  ///< kept in `items`
  std::vector<PackColumn> user_columns{};  ///< kept in `users`
  RatingStats stats;
};

/// Name of a table of a merged pack that replaces an earlier one: "rejects-0123456789abcdef.csv".
[[nodiscard]] std::string merged_table_name(std::string_view table, std::uint64_t pack_id);
/// The table that such a name stands for ("rejects.csv"); any other name as it is.
[[nodiscard]] std::string plain_table_name(std::string_view name);

/// The tables beside the parts that a manifest lists.
[[nodiscard]] std::vector<FileRecord> tables(const Manifest& manifest);
[[nodiscard]] std::vector<FileRecord> tables(const MatrixManifest& manifest);

/// The manifest of a pack of either kind: exactly one of both is set.
struct AnyManifest {
  std::optional<Manifest> images{};
  std::optional<MatrixManifest> ratings{};
  [[nodiscard]] const PackManifest& manifest() const {
    return images ? static_cast<const PackManifest&>(*images) : *ratings;
  }
  [[nodiscard]] const PackKind& kind() const { return images ? kImagePacks : kMatrixPacks; }
  [[nodiscard]] std::vector<FileRecord> tables() const {
    return images ? chunkhit::tables(*images) : chunkhit::tables(*ratings);
  }
};

/// The path of a pack's manifest.
[[nodiscard]] inline std::string manifest_path(const std::string& folder) {
  return folder + "/" + std::string(kManifestName);
}

/// Reads and checks JSON text of a kind, as `parse_manifest` and `parse_matrix_manifest`.
[[nodiscard]] AnyManifest parse_any_manifest(const PackKind& kind, std::string_view text,
                                             const std::string& name);

/// Reads and checks the manifest in a folder; throws bad_data.
[[nodiscard]] AnyManifest read_manifest(const std::string& folder);

/// The same; nothing where the folder has no manifest.
[[nodiscard]] std::optional<AnyManifest> find_manifest(const std::string& folder);

/// Writes JSON text that ends in its own hash. Equal manifests give equal bytes.
[[nodiscard]] std::string matrix_manifest_text(const MatrixManifest& manifest);

/// Reads and checks JSON text; `name` is for messages. Throws bad_data when the hash or a field is not right.
[[nodiscard]] MatrixManifest parse_matrix_manifest(std::string_view text, const std::string& name);

/// Detects the format that a manifest says it has: "chunkhit-images", "chunkhit-matrix"; throws bad_data when
/// it is no sealed JSON.
[[nodiscard]] std::string manifest_format(std::string_view text, const std::string& name);

}  // namespace chunkhit
