// What must hold in every part, of whatever container; checked before any number of a file is used.
#pragma once

#include <cstdint>

#include "store/part.h"

namespace chunkhit {

/// Throws bad_data unless the sample's or matrix's shape, the filter and the chunk's size suit the container.
void check_part_spec(const PartSpec& spec, const Container& container);

/// Throws bad_data unless chunks and samples fit each other, the spec, and a file of `file_bytes`.
void check_part_contents(const PartContents& contents, const Container& container, std::uint64_t file_bytes);

/// Throws bad_data unless the places that an external file's chunks and tiles claim lie in a file of
/// `file_bytes`, and its labels fit its samples.
void check_external_contents(const PartContents& contents, const Container& container,
                             std::uint64_t file_bytes);

}  // namespace chunkhit
