// Checks the numbers of a manifest against each other.
#pragma once

#include "manifest/manifest.h"

namespace chunkhit {

/// Throws bad_data unless counts add up, chunks and parts have sizes that their container allows, and no
/// product of them leaves 63 bits.
void check_numbers(const Manifest& manifest);
void check_numbers(const MatrixManifest& manifest);
/// The same of the record of one part, whose sums must be those of as many pixels of 8 bits.
void check_numbers(const PartRecord& part);

}  // namespace chunkhit
