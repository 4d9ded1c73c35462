// part-NNNNN.json: a finished part, by which a rerun keeps it, and the spec that it was packed by. Layout:
// schemas/manifest.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chunkhit/pack_info.h"
#include "types/pixel_sums.h"
#include "types/reject.h"

namespace chunkhit {

/// One recorded choice: the flag's name and its effective value as text.
struct SpecEntry {
  std::string name;
  std::string value;
  bool operator==(const SpecEntry&) const = default;
};

/// The recorded choices of a run, in their order.
class RecordedSpec : public std::vector<SpecEntry> {
 public:
  using vector::vector;
  [[nodiscard]] bool has(std::string_view name) const;
  /// The value of a choice; empty where it was not recorded.
  [[nodiscard]] std::string get(std::string_view name) const;
};

/// The first difference between two specs in words ("resize: 96x128 before, 64x64 now"); empty when they are
/// equal.
[[nodiscard]] std::string first_difference(const RecordedSpec& before, const RecordedSpec& now);

/// A finished part, as its part-NNNNN.json has it.
struct PartRecord : PackPart {
  std::size_t source = 0;    ///< index of its pack in PackManifest::sources
  std::uint64_t number = 0;  ///< its number in that pack, which the part itself records
  PixelSums pixels;
  std::optional<InputSizes> inputs;                    ///< builds that did not record them lack it
  std::map<std::int64_t, std::uint64_t> class_counts;  ///< samples by class id
  std::vector<Reject> rejects;
  bool has_sample_hashes = false;  ///< PartSpec::hashes_samples
  std::string codec_library;  ///< with its version; empty of raw chunks, and where an earlier build packed it
  std::vector<Reject> warnings;  ///< rows that were packed; the reason is what their decoding warned of
};

/// What part-NNNNN.json holds: the part, and which pack it belongs to.
struct PartManifest {
  std::string format;  ///< of its pack: PackKind::format
  std::uint64_t pack_id = 0;
  RecordedSpec spec;
  PartRecord part;
};

/// Writes JSON text that ends in its own hash. Equal records give equal bytes.
[[nodiscard]] std::string part_manifest_text(const PartManifest& manifest);

/// Reads and checks JSON text; `name` is for messages. Throws bad_data when the hash or a field is not right.
[[nodiscard]] PartManifest parse_part_manifest(std::string_view text, const std::string& name);

/// Returns the name of a part's record: "part-00000.json".
[[nodiscard]] std::string part_record_name(const std::string& part_file);

}  // namespace chunkhit
