// A spec as recorded text, and what makes two packs the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chunk/chunk_plan.h"
#include "chunkhit/image_spec.h"
#include "codec/chunk_codec.h"
#include "listing/sample_list.h"
#include "pack/output_pack.h"

namespace chunkhit {

/// Returns the codec that a spec means; throws usage.
[[nodiscard]] CodecChoice codec_choice(const PackImagesSpec& spec);

/// The libraries that compress what the pack stores, with their versions; empty for raw pixels.
[[nodiscard]] std::string codec_libraries(const PackImagesSpec& spec, const SampleShape& sample);

/// Every choice that the output depends on, under its flag's name; of `--classes` a hash of the list's names
/// by id.
[[nodiscard]] RecordedSpec recorded_spec(const PackImagesSpec& spec, const ChunkPlan& plan,
                                         const std::string& split_name, const SampleList& list);

/// The spec behind recorded entries, as far as it says how samples are made and stored. Throws bad_data for a
/// value that no spec has.
[[nodiscard]] PackImagesSpec spec_of(const RecordedSpec& recorded);

/// The pack that is to be written there.
struct WantedPack {
  const PackImagesSpec& flags;
  const RecordedSpec& spec;
  std::uint64_t input_xxh3 = 0;
  std::uint64_t rows = 0;
};

/// Says what differs between two packs of different ids, the input list first: "the input list changed: 30
/// rows before, 31 now", "seed: 0 before, 1 now". A value that was computed is named only where nothing else
/// differs.
[[nodiscard]] std::string pack_difference(const EarlierPack& before, const WantedPack& now);

/// Whether a column can be kept under this name, which is that of a dataset of HDF5.
[[nodiscard]] bool is_column_name(const std::string& name);

/// Throws usage for fields that images of their own sizes cannot have.
void check_fields(const PackImagesSpec& spec, const std::vector<SampleField>& fields);

/// Checks the spec at the door; throws usage naming the field.
void check_spec(const PackImagesSpec& spec);

}  // namespace chunkhit
