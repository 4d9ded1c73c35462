#include "read/image_source.h"

#include <memory>
#include <utility>

#include "chunkhit/error.h"
#include "read/manifest_check.h"
#include "read/pack_info.h"

namespace chunkhit {
namespace {

/// Throws bad_data when a part is not the one that the manifest lists at its position: all but the bytes of
/// its chunks is hashed, and those are by their recorded hashes.
void check_listed(const ChunkReader& part, const Manifest& manifest, std::size_t index) {
  const auto check = [&](const char* what, std::uint64_t found, std::uint64_t expected) {
    if (found != expected)
      throw Error(ErrorCode::bad_data, part.path() + ": " + what + " " + std::to_string(found) +
                                           ", expected " + std::to_string(expected));
  };
  const PartRecord& listed = manifest.parts[index];
  const std::vector<std::string> problems = compare_with_part(part.path(), manifest, part.spec());
  if (!problems.empty()) throw Error(ErrorCode::bad_data, problems.front());
  check("is part", part.spec().part_index, index);
  check("bytes", part.byte_count(), listed.bytes);
  check("chunks", part.chunks().size(), listed.chunks);
  check("samples", part.samples().rows.size(), listed.samples);
  check_part_hash(part, listed);
}

/// Opens the parts of all sources, and says in `of_sources` which are whose.
std::vector<std::unique_ptr<ChunkReader>> open_all(const std::vector<PackSource>& sources,
                                                   const Hdf5Names& names,
                                                   std::vector<SourceParts>& of_sources) {
  for (const PackSource& source : sources)
    if (source.matrix)
      throw Error(ErrorCode::bad_data,
                  source.path + ": holds matrices, expected images; SparseLoader reads it");
  check_names(sources, names);
  std::vector<std::unique_ptr<ChunkReader>> parts;
  for (const PackSource& source : sources) {
    of_sources.push_back({source.path, parts.size(), source.manifest ? source.manifest->parts.size() : 1});
    if (!source.manifest) {
      parts.push_back(open_part(source.part, names));
      continue;
    }
    const std::vector<std::string> listed = part_paths(source.folder, source.manifest->parts);
    std::vector<std::unique_ptr<ChunkReader>> of_pack = open_parts(listed);
    for (std::size_t i = 0; i < of_pack.size(); ++i) {
      check_listed(*of_pack[i], *source.manifest, i);
      parts.push_back(std::move(of_pack[i]));
    }
  }
  return parts;
}

}  // namespace

ImageSource::ImageSource(const std::vector<std::string>& paths, const Hdf5Names& names)
    : ImageSource(open_sources(paths), names) {}

ImageSource::ImageSource(const std::vector<PackSource>& sources, const Hdf5Names& names)
    : chunks_(open_all(sources, names, sources_)),
      info_(source_info(sources.front(), chunks_)),
      classes_(chunks_, sources_) {
  if (chunks_.sample_count() == 0)
    throw Error(ErrorCode::bad_data, sources.front().path + ": holds no samples");
  label_columns_ = count_label_columns(chunks_);
  if (sources.size() > 1 && label_columns_ == 0) info_.classes = classes_.count(chunks_, info_.classes);
}

std::int64_t ImageSource::label(std::uint64_t sample) const {
  const ChunkSet::SamplePlace place = chunks_.find_sample(sample);
  const std::vector<std::int64_t>& ids = chunks_.parts()[place.part]->samples().labels.ids;
  return ids.empty() ? -1 : classes_.id(place.part, ids[place.sample]);
}

std::span<const float> ImageSource::label_values(std::uint64_t sample) const {
  const ChunkSet::SamplePlace place = chunks_.find_sample(sample);
  const std::vector<float>& values = chunks_.parts()[place.part]->samples().labels.values;
  return std::span(values).subspan(place.sample * label_columns_, label_columns_);
}

}  // namespace chunkhit
