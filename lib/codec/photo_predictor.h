// The photo codec's first half: green subtracted, planes apart, gradient predicted. Layout:
// schemas/codecs.md.
#pragma once

#include "base/bytes.h"
#include "types/sample_shape.h"

namespace chunkhit {

/// Turns whole samples into residuals of the same size. The buffers do not overlap.
void predict_photo(Bytes samples, const SampleShape& shape, MutableBytes residuals);

/// Turns residuals into the samples that they came from. The buffers do not overlap.
void restore_photo(Bytes residuals, const SampleShape& shape, MutableBytes samples);

}  // namespace chunkhit
