#include "pack/images/pack_task.h"

#include <cstddef>
#include <utility>

#include "codec/chunk_codec.h"
#include "pack/images/pack_spec.h"
#include "store/part.h"

namespace chunkhit {

PackIdentity image_pack(const PackImagesSpec& spec, const SampleShape& sample, const SampleList& list,
                        const PackSamples& samples) {
  const ChunkPlan plan = plan_pack(spec, sample, samples.indices.size());
  PackIdentity pack{recorded_spec(spec, plan, samples.name, list)};
  pack.pack_id = pack_id(pack.spec, list.xxh3);
  pack.difference = [&spec, recorded = pack.spec, input_xxh3 = list.xxh3,
                     rows = samples.indices.size() + samples.rejects.size()](const EarlierPack& before) {
    return pack_difference(before, {spec, recorded, input_xxh3, rows});
  };
  return pack;
}

void check_earlier_pack(const PackImagesSpec& spec, const PackImagesOptions& options, const SampleList& list,
                        const SampleShape& sample, const PackSamples& samples) {
  if (options.force) return;
  check_same_pack(pack_path(options.output, samples.name), kImagePacks,
                  image_pack(spec, sample, list, samples));
}

namespace {

/// Chunks are cut by their stored bytes, which are known only once images are packed.
ChunkPlan plan_own_sizes(const PackImagesSpec& spec, std::uint64_t sample_count) {
  constexpr std::uint64_t kChunkBytes = 4 << 20;
  ChunkPlan plan;
  plan.chunk_samples = 0;
  plan.chunk_bytes = spec.chunk_bytes > 0 ? spec.chunk_bytes : kChunkBytes;
  plan.part_samples = spec.own_sizes.part_samples;
  plan.part_count = (sample_count + plan.part_samples - 1) / plan.part_samples;
  plan.reason = spec.chunk_bytes > 0 ? "as `chunk_bytes` says" : "images of up to 4 MiB in all";
  return plan;
}

}  // namespace

ChunkPlan plan_pack(const PackImagesSpec& spec, const SampleShape& sample, std::uint64_t sample_count) {
  if (spec.sizes == Sizes::own) return plan_own_sizes(spec, sample_count);
  ChunkPlanSpec plan;
  plan.sample_bytes = sample.byte_count();
  plan.sample_count = sample_count;
  const Container& kind = container(spec.container);
  plan.hdf5 = kind.is_read_by_library;
  plan.max_chunk_bytes = kind.max_chunk_bytes;
  plan.compressed = codec_choice(spec).codec != "none";
  plan.chunk_samples = spec.chunk_samples;
  plan.chunk_bytes = spec.chunk_bytes;
  plan.part_bytes = spec.part_bytes;
  return plan_chunks(plan);
}

PackTask listed_pack(const PackImagesSpec& spec, const SampleShape& sample, const SampleList& list,
                     PackSamples samples) {
  PackTask task{samples.name,
                image_pack(spec, sample, list, samples),
                samples.indices.size(),
                std::move(samples.rejects),
                {}};
  task.rows = [&list, indices = std::move(samples.indices)](std::uint64_t first, std::uint64_t count) {
    const auto begin = indices.begin() + static_cast<std::ptrdiff_t>(first);
    return PartRows{&list, {begin, begin + static_cast<std::ptrdiff_t>(count)}, nullptr};
  };
  return task;
}

}  // namespace chunkhit
