// Splits by a column: all samples of one patient, scene or video in one pack, or packs by their values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chunkhit/image_spec.h"
#include "listing/sample_list.h"
#include "pack/images/sample_order.h"

namespace chunkhit {

/// Adds `split_group` or `split_column` to the kept columns, so that reports can compare packs. Throws usage.
void keep_split_column(PackImagesSpec& spec);

/// Which share each sample belongs to by its value of `split_column`. Throws bad_data for a value that no
/// pack or two packs name, and for a pack without samples.
[[nodiscard]] std::vector<std::uint8_t> assign_values(const SampleList& list, const PackImagesSpec& spec);

/// Which share each sample belongs to: all that have one value in `split_group`, or one file, to the same
/// one. Samples without a value are groups of their own. Throws bad_data where the list lacks the column.
[[nodiscard]] std::vector<std::uint8_t> assign_groups(const SampleList& list, const PackImagesSpec& spec);

/// Says where packs of a split do not have their shares, and which columns of ids have values that several of
/// them share: a model would be tested on what it was trained on.
[[nodiscard]] std::vector<std::string> split_notices(const SampleList& list, const PackImagesSpec& spec,
                                                     const std::vector<PackSamples>& packs);

}  // namespace chunkhit
