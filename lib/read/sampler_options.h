// A loader's sampler, from names of classes, labels and files to numbers of samples.
#pragma once

#include "batch/loader_order.h"
#include "chunkhit/image_loader.h"
#include "chunkhit/sparse_loader.h"
#include "read/image_source.h"
#include "read/sparse_source.h"

namespace chunkhit {

/// Resolves a loader's sampler and mixture. Throws usage, naming the field and the entry, where options
/// contradict each other or do not fit the source; bad_data for a CSV that cannot be read.
[[nodiscard]] SamplingSpec sampling_spec(const ImageLoaderOptions& options, const ImageSource& source);
[[nodiscard]] SamplingSpec sampling_spec(const SparseLoaderOptions& options, const SparseSource& source);

}  // namespace chunkhit
