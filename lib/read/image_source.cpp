#include "read/image_source.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "chunkhit/error.h"
#include "read/pack_info.h"
#include "read/pack_source.h"

namespace chunkhit {
namespace {

std::vector<std::unique_ptr<ChunkReader>> open_parts(const std::vector<std::string>& paths,
                                                     const Hdf5Names& names) {
  if (paths.empty()) throw Error(ErrorCode::usage, "no path was given to read from");
  std::vector<std::unique_ptr<ChunkReader>> parts;
  for (const std::string& path : paths) {
    const PackSource source = open_source(path);
    if (!source.manifest) {
      parts.push_back(open_part(source.part, names));
      continue;
    }
    for (const PartRecord& part : source.manifest->parts)
      parts.push_back(open_part(source.folder + "/" + part.file));
  }
  return parts;
}

PackInfo first_info(const std::string& path, const ChunkSet& chunks) {
  const PackSource source = open_source(path);
  return source.manifest ? read_pack_info(path) : part_info(*chunks.parts().front());
}

std::size_t columns_of(const ChunkReader& part) {
  const std::size_t samples = part.samples().rows.size();
  return samples == 0 ? 0 : part.samples().labels.values.size() / samples;
}

}  // namespace

ImageSource::ImageSource(const std::vector<std::string>& paths, const Hdf5Names& names)
    : chunks_(open_parts(paths, names)), info_(first_info(paths.front(), chunks_)) {
  if (chunks_.sample_count() == 0) throw Error(ErrorCode::bad_data, paths.front() + ": holds no samples");
  label_columns_ = columns_of(*chunks_.parts().front());
  for (const auto& part : chunks_.parts())
    if (columns_of(*part) != label_columns_ && !part->chunks().empty())
      throw Error(ErrorCode::bad_data, part->path() + ": labels of " + std::to_string(columns_of(*part)) +
                                           " numbers, expected " + std::to_string(label_columns_) +
                                           " as in " + chunks_.parts().front()->path());
}

ImageSource::LabelPlace ImageSource::find_label(std::uint64_t sample) const {
  const std::vector<std::uint64_t>& firsts = chunks_.first_samples();
  const auto part =
      static_cast<std::size_t>(std::upper_bound(firsts.begin(), firsts.end(), sample) - firsts.begin()) - 1;
  return {&chunks_.parts()[part]->samples().labels, static_cast<std::size_t>(sample - firsts[part])};
}

std::int64_t ImageSource::label(std::uint64_t sample) const {
  const LabelPlace place = find_label(sample);
  return place.labels->ids.empty() ? -1 : place.labels->ids[place.sample];
}

std::span<const float> ImageSource::label_values(std::uint64_t sample) const {
  const LabelPlace place = find_label(sample);
  return std::span(place.labels->values).subspan(place.sample * label_columns_, label_columns_);
}

}  // namespace chunkhit
