// The spec of pack-sparse as recorded text, and whether it makes sense.
#pragma once

#include <string>
#include <vector>

#include "chunkhit/pack.h"
#include "chunkhit/sparse_spec.h"
#include "codec/chunk_codec.h"
#include "manifest/manifest.h"

namespace chunkhit {

/// What stands for ids and columns that a spec takes from files, whatever the paths to them; empty where it
/// takes none.
struct RecordedIds {
  std::string reuse_ids;
  std::string validation_users;
  std::string test_users;
  std::string item_columns{};
  std::string user_columns{};
};

/// Every choice that the output depends on, under its flag's name.
[[nodiscard]] RecordedSpec recorded_spec(const PackSparseSpec& spec, const RecordedIds& ids,
                                         const std::string& split_name);

/// Returns the codec that a spec means; throws usage.
[[nodiscard]] CodecChoice codec_choice(const PackSparseSpec& spec);

/// Names the packs that a spec makes, train first: one empty name without a split.
[[nodiscard]] std::vector<std::string> pack_names(const RatingSplitSpec& split);

/// Checks the spec at the door; throws usage naming the flag.
void check_spec(const PackSparseSpec& spec);

/// Says why parts of an input would not be divided as the whole, so that items cannot be counted; empty where
/// they would.
[[nodiscard]] std::string problem_of_counting(const RatingSplitSpec& split);

/// Throws usage for what a list of items does not depend on, and for splits that see all users at once: parts
/// that are packed separately with the list would hold out others. Throws cannot_write where
/// `output` must not be replaced.
void check_countable(const PackSparseSpec& spec, const PackSparseOptions& options);

}  // namespace chunkhit
