#include "read/manifest_check.h"

#include <map>

#include "base/hash.h"

namespace chunkhit {
namespace {

std::string differ(const std::string& place, const std::string& what, const std::string& found,
                   const std::string& expected) {
  return place + ": " + what + " " + found + ", expected " + expected;
}

std::map<std::int64_t, std::uint64_t> counts_of(const std::vector<ClassRecord>& classes) {
  std::map<std::int64_t, std::uint64_t> counts;
  for (const ClassRecord& record : classes)
    if (record.samples > 0) counts[record.id] = record.samples;
  return counts;
}

}  // namespace

std::vector<std::string> compare_with_parts(const std::string& manifest_path, const Manifest& manifest,
                                            const std::vector<PartManifest>& parts) {
  std::vector<std::string> problems;
  PixelSums pixels;
  std::map<std::int64_t, std::uint64_t> counts;
  std::uint64_t warned = 0;
  for (const PartManifest& part : parts) {
    pixels.add(part.part.pixels);
    warned += part.part.warnings.size();
    for (const auto& [id, samples] : part.part.class_counts) counts[id] += samples;
    if (part.spec != manifest.spec)
      problems.push_back(manifest_path + ": its spec differs from that of " + part.part.file + ": " +
                         first_difference(part.spec, manifest.spec));
  }
  if (manifest.class_labels && counts != counts_of(manifest.classes))
    problems.push_back(manifest_path + ": the classes' samples are not those of the parts");
  if (manifest.warned != warned)
    problems.push_back(differ(manifest_path, "samples packed with warnings", std::to_string(manifest.warned),
                              std::to_string(warned)));
  const std::uint32_t channels = manifest.sample.channels;
  if (pixels.mean(channels) != manifest.mean || pixels.std(channels) != manifest.std)
    problems.push_back(manifest_path + ": mean and std are not those of the parts' pixels");
  const std::uint64_t chunk_bytes = manifest.chunk_samples * manifest.sample.byte_count();
  if (manifest.chunk_bytes != chunk_bytes)
    problems.push_back(differ(manifest_path, "bytes of a chunk", std::to_string(manifest.chunk_bytes),
                              std::to_string(chunk_bytes)));
  return problems;
}

std::vector<std::string> compare_with_part(const std::string& part_path, const Manifest& manifest,
                                           const PartSpec& part) {
  std::vector<std::string> problems;
  if (part.pack_id != manifest.pack_id)
    problems.push_back(
        differ(part_path, "belongs to pack", hash_text(part.pack_id), hash_text(manifest.pack_id)));
  if (part.sample != manifest.sample)
    problems.push_back(part_path + ": holds samples of another shape than the manifest says");
  if (part.codec != manifest.codec)
    problems.push_back(differ(part_path, "codec", part.codec, manifest.codec));
  if (part.chunk_samples != manifest.chunk_samples)
    problems.push_back(differ(part_path, "samples of a chunk", std::to_string(part.chunk_samples),
                              std::to_string(manifest.chunk_samples)));
  for (const ClassRecord& record : manifest.classes) {
    const auto id = static_cast<std::uint64_t>(record.id);
    const std::string name = record.id >= 0 && id < part.classes.size() ? part.classes[id] : "";
    if (name != record.name)
      problems.push_back(differ(part_path, "name of class " + std::to_string(record.id), name, record.name));
  }
  return problems;
}

}  // namespace chunkhit
