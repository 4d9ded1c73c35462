// A spec as recorded text, and what makes two packs the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "manifest/manifest.h"
#include "pack/pack_images.h"

namespace chunkhit {

/// Every choice that the output depends on, under its flag's name.
[[nodiscard]] std::vector<SpecEntry> recorded_spec(const PackImagesSpec& spec, const ChunkPlan& plan,
                                                   const std::string& split_name);

/// The same for the same input list and spec, whatever the machine.
[[nodiscard]] std::uint64_t pack_id(const std::vector<SpecEntry>& spec, std::uint64_t input_xxh3);

/// Checks the spec at the door; throws usage naming the field.
void check_spec(const PackImagesSpec& spec);

}  // namespace chunkhit
