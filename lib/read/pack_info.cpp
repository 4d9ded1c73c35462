#include "read/pack_info.h"

#include <filesystem>
#include <map>

#include "base/hash.h"
#include "chunk/cache_advice.h"
#include "chunkhit/pack.h"
#include "read/pack_source.h"
#include "store/part.h"

namespace chunkhit {
namespace {

void set_shape(PackInfo& info, const SampleShape& sample) {
  info.height = sample.height;
  info.width = sample.width;
  info.channels = sample.channels;
  info.layout = kLayoutNames[static_cast<std::size_t>(sample.layout)];
  info.raw_bytes = info.samples * sample.byte_count();
}

CachePrediction predict(const ChunkPlan& plan, std::uint64_t chunk_count, const CacheAdvice& cache) {
  const HitRates rates = predict_hit_rates(plan, chunk_count, cache.rdcc_nbytes);
  return {cache.rdcc_nbytes, cache.rdcc_nslots, cache.rdcc_w0, rates.sequential,
          rates.windowed,    rates.random,      rates.bypass};
}

void set_cache(PackInfo& info) {
  if (info.container != "hdf5" || info.parts.empty()) return;
  ChunkPlan plan;
  plan.chunk_samples = info.chunk_samples;
  plan.chunk_bytes = info.chunk_bytes;
  plan.compressed = info.filter != "none";
  info.default_cache = predict(plan, info.parts[0].chunks, kDefaultCache);
  info.advised_cache = predict(plan, info.parts[0].chunks, advise_cache(plan, info.parts[0].chunks));
}

std::vector<PackClass> count_classes(const PartSpec& spec, const std::vector<std::int64_t>& ids) {
  std::map<std::int64_t, std::uint64_t> counts;
  for (const std::int64_t id : ids) ++counts[id];
  std::vector<PackClass> classes;
  for (const auto& [id, samples] : counts) {
    const bool named = id >= 0 && static_cast<std::uint64_t>(id) < spec.classes.size();
    classes.push_back({id, named ? spec.classes[static_cast<std::size_t>(id)] : "", samples});
  }
  return classes;
}

PackInfo manifest_info(const std::string& folder, const Manifest& manifest) {
  PackInfo info;
  info.path = folder;
  info.container = manifest.container;
  info.filter = manifest.filter;
  info.samples = manifest.samples;
  info.rows = manifest.rows;
  info.rejected = manifest.rejected;
  info.class_labels = manifest.class_labels;
  info.label_columns = manifest.label_columns;
  for (const ClassRecord& record : manifest.classes)
    info.classes.push_back({record.id, record.name, record.samples});
  info.mean = manifest.mean;
  info.std = manifest.std;
  info.chunk_samples = manifest.chunk_samples;
  info.chunk_bytes = manifest.chunk_bytes;
  for (const PartRecord& part : manifest.parts) {
    info.stored_bytes += part.stored_bytes;
    info.parts.push_back({part.file, part.samples, part.chunks, part.bytes});
  }
  for (const SpecEntry& entry : manifest.spec) info.spec.emplace_back(entry.name, entry.value);
  info.tool = manifest.tool;
  info.pack_id = hash_text(manifest.pack_id);
  info.input_xxh3 = hash_text(manifest.input_xxh3);
  set_shape(info, manifest.sample);
  return info;
}

}  // namespace

PackInfo part_info(const ChunkReader& part) {
  PackInfo info;
  info.path = part.path();
  info.lone_part = true;
  info.container = container_of(part.path()).name;
  info.filter = part.spec().filter;
  info.label_columns = part.spec().label_columns;
  info.class_labels = part.samples().labels.values.empty();
  info.classes = count_classes(part.spec(), part.samples().labels.ids);
  info.mean = part.samples().mean;
  info.std = part.samples().std;
  info.chunk_samples = part.spec().chunk_samples;
  info.chunk_bytes = info.chunk_samples * part.spec().sample.byte_count();
  for (const StoredChunk& chunk : part.chunks()) {
    info.stored_bytes += chunk.stored_bytes;
    info.samples += chunk.sample_count;
  }
  info.parts.push_back({std::filesystem::path(part.path()).filename().string(), info.samples,
                        part.chunks().size(), part.byte_count()});
  info.pack_id = hash_text(part.spec().pack_id);
  set_shape(info, part.spec().sample);
  return info;
}

PackInfo read_pack_info(const std::string& path) {
  const PackSource source = open_source(path);
  PackInfo info =
      source.manifest ? manifest_info(source.folder, *source.manifest) : part_info(*open_part(source.part));
  set_cache(info);
  return info;
}

}  // namespace chunkhit
