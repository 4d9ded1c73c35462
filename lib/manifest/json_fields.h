// What manifest.json and part-NNNNN.json share: format and version, the spec, a part's row, the naming of
// problems. Layout: schemas/manifest.md.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/throw_error.h"
#include "chunkhit/error.h"
#include "manifest/manifest.h"

namespace chunkhit {

/// Gives a whole number from 0 to 2^64 - 1. nlohmann's own `get` turns -1, 2.5 and 1e300 into some number.
[[nodiscard]] std::uint64_t count_field(const nlohmann::ordered_json& object, const char* key);

/// Gives a whole number of 64 bits with sign.
[[nodiscard]] std::int64_t integer_field(const nlohmann::ordered_json& object, const char* key);

/// Gives a list of exactly four whole numbers from 0 to 2^64 - 1.
[[nodiscard]] std::array<std::uint64_t, 4> four_counts_field(const nlohmann::ordered_json& object,
                                                             const char* key);

/// Gives the value of 16 hexadecimal digits.
[[nodiscard]] std::uint64_t hash_field(const nlohmann::ordered_json& object, const char* key);

/// Gives a list; its entries are not looked at.
[[nodiscard]] const nlohmann::ordered_json& list_field(const nlohmann::ordered_json& object, const char* key);

/// Writes a JSON object with a last key "xxh3": the hash of every byte before that key's line.
[[nodiscard]] std::string seal_json(const nlohmann::ordered_json& object);

/// Checks the hash and parses; throws bad_data naming `name`.
[[nodiscard]] nlohmann::ordered_json open_sealed_json(std::string_view text, const std::string& name);

inline constexpr std::uint64_t kManifestVersion = 1;
/// Version of the manifest of a merged pack.
inline constexpr std::uint64_t kMergedVersion = 2;
/// Of a pack of matrices, merged or not, with what earlier readers do not know: columns beside the ids.
inline constexpr std::uint64_t kColumnsVersion = 3;
/// Of a pack of matrices whose rows may have an item several times.
inline constexpr std::uint64_t kRepeatsVersion = 4;

/// Opens sealed JSON of a format and of a version up to `max_version`; throws bad_data for another.
[[nodiscard]] nlohmann::ordered_json open_format(std::string_view text, const std::string& name,
                                                 std::string_view format,
                                                 std::uint64_t max_version = kManifestVersion);

/// Writes and reads a spec: flag → value.
[[nodiscard]] nlohmann::ordered_json spec_json(const RecordedSpec& spec);
[[nodiscard]] RecordedSpec parse_spec(const nlohmann::ordered_json& object);

/// Writes the statistics that a split shares.
[[nodiscard]] nlohmann::ordered_json shared_stats_json(const SharedStats& stats);

/// Writes and reads the sizes of the input images.
[[nodiscard]] nlohmann::ordered_json input_sizes_json(const InputSizes& inputs);
[[nodiscard]] std::optional<InputSizes> parse_input_sizes(const nlohmann::ordered_json& parent);

/// Write what manifests and pack-info have in common.
[[nodiscard]] nlohmann::ordered_json sample_json(const SampleShape& sample);
[[nodiscard]] SampleShape parse_sample(const nlohmann::ordered_json& object);
[[nodiscard]] nlohmann::ordered_json labels_json(bool class_labels, const std::vector<std::string>& columns);
/// Whether the labels are class ids, else numbers.
[[nodiscard]] bool parse_class_labels(const nlohmann::ordered_json& labels);
[[nodiscard]] nlohmann::ordered_json classes_json(const std::vector<PackClass>& classes);
[[nodiscard]] nlohmann::ordered_json columns_json(const std::vector<PackColumn>& columns);
/// Adds what is kept beside ratings, where something is, and whether items repeat, where they do.
void add_kept(const std::vector<PackColumn>& item_columns, const std::vector<PackColumn>& user_columns,
              const std::string& times, bool has_repeats, nlohmann::ordered_json& json);
/// The columns under a key; none where it is missing. Throws bad_data for names that are empty or equal.
[[nodiscard]] std::vector<PackColumn> parse_columns(const nlohmann::ordered_json& object, const char* key);
[[nodiscard]] nlohmann::ordered_json matrices_json(const std::vector<PackMatrix>& matrices);
[[nodiscard]] nlohmann::ordered_json values_json(const StoredValues& values);
[[nodiscard]] nlohmann::ordered_json stats_json(const RatingStats& stats);

/// Writes and reads a part's row: without class counts, rejects, warnings and sums.
[[nodiscard]] nlohmann::ordered_json part_json(const PackPart& part);
[[nodiscard]] PartRecord parse_part(const nlohmann::ordered_json& object);

/// Writes and reads the record of a file beside the parts, which must have the name that is expected, or that
/// of a merged pack's table.
[[nodiscard]] nlohmann::ordered_json file_json(const FileRecord& file);
[[nodiscard]] FileRecord parse_file(const nlohmann::ordered_json& object, std::string_view expected,
                                    bool is_merged = false);

/// Runs `parse`; adds the file's name to whatever is wrong inside the file.
template <class Parse>
auto with_name(const std::string& name, Parse parse) {
  try {
    return parse();
  } catch (const nlohmann::json::exception& error) {
    const std::string_view what = error.what();  // "[json.exception.out_of_range.403] key 'inputs' not found"
    throw_bad_data(name + ": was written by another version, whose layout this one does not " + "read (" +
                   std::string(what.substr(what.find(' ') + 1)) + "); pack again");
  } catch (const Error& error) {
    const std::string message = error.what();
    throw Error(error.code(), message.starts_with(name) ? message : name + ": " + message);
  }
}

}  // namespace chunkhit
