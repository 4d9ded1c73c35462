// Which samples go into which pack, and in which order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chunkhit/image_spec.h"
#include "listing/sample_list.h"

namespace chunkhit {

/// The samples of one pack: indices into the list, in the order of packing.
struct PackSamples {
  std::string name;  ///< empty without a split
  std::vector<std::uint32_t> indices;
  std::vector<Reject> rejects;  ///< rows that were rejected while listing and are accounted for here
};

/// Orders and splits: shuffled by seed or as listed; every class is divided by the shares as evenly as whole
/// samples allow (largest remainders), so that no share is more than one sample a class off; all rows of a
/// file go into one pack, which may put a share as many rows off; folders of a split are a pack each.
/// Rejected rows belong to the first pack, or to their folder's.
[[nodiscard]] std::vector<PackSamples> order_samples(const SampleList& list, const PackImagesSpec& spec);

}  // namespace chunkhit
