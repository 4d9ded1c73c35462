#include "read/image_source.h"

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/throw_error.h"
#include "base/words.h"
#include "manifest/part_match.h"
#include "read/pack_info.h"
#include "read/sample_reader.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

/// -1 stands for "no label".
bool has_class_ids(const ChunkReader& part) {
  const std::vector<std::int64_t>& ids = part.samples().labels.ids;
  return std::ranges::any_of(ids, [](std::int64_t id) { return id != -1; });
}

/// Returns the parts of a source that have class ids.
std::vector<const ChunkReader*> labelled_parts(const ChunkSet& chunks, const SourceParts& source) {
  std::vector<const ChunkReader*> parts;
  for (std::size_t part = source.first; part < source.first + source.count; ++part)
    if (has_class_ids(*chunks.parts()[part])) parts.push_back(chunks.parts()[part].get());
  return parts;
}

/// Returns whether the sources have class names; throws if only some do.
bool have_names(const ChunkSet& chunks, std::span<const SourceParts> sources) {
  const SourceParts* named = nullptr;
  const SourceParts* unnamed = nullptr;
  for (const SourceParts& source : sources)
    for (const ChunkReader* const part : labelled_parts(chunks, source))
      (part->spec().images().classes.empty() ? unnamed : named) = &source;
  if (named != nullptr && unnamed != nullptr)
    throw_bad_data(unnamed->path + ": has class ids without names, but " + named->path +
                   " has names: whether equal ids are the same class cannot be known; "
                   "pack both with the same classes (`classes`)");
  return named != nullptr;
}

}  // namespace

JoinedClasses::JoinedClasses(const ChunkSet& chunks, std::span<const SourceParts> sources) {
  const bool keeps_ids = sources.size() == 1 && sources.front().class_ids.empty();
  if (!keeps_ids && have_names(chunks, sources)) join(chunks, sources);
}

/// Classes of equal names become one class. The ids of the first source stay, new names follow in order.
void JoinedClasses::join(const ChunkSet& chunks, std::span<const SourceParts> sources) {
  source_of_part_.resize(chunks.parts().size());
  std::unordered_map<std::string, std::int64_t> known;
  for (const SourceParts& source : sources) {
    for (std::size_t part = source.first; part < source.first + source.count; ++part)
      source_of_part_[part] = ids_.size();
    std::vector<std::int64_t>& ids = ids_.emplace_back();
    const std::vector<const ChunkReader*> parts = labelled_parts(chunks, source);
    if (parts.empty()) continue;
    // An external file may have two classes of one name: as the first source it keeps both ids.
    const bool is_first = names_.empty();
    const bool is_merged = !source.class_ids.empty();
    for (const std::string& name : is_merged ? source.classes : parts.front()->spec().images().classes) {
      const auto [found, is_new] = known.try_emplace(name, static_cast<std::int64_t>(names_.size()));
      ids.push_back(is_first ? static_cast<std::int64_t>(names_.size()) : found->second);
      if (is_new || is_first) names_.push_back(name);
    }
    if (!is_merged) continue;
    std::vector<std::int64_t> of_own_ids;
    for (const std::int64_t id : source.class_ids) of_own_ids.push_back(ids[static_cast<std::size_t>(id)]);
    ids = std::move(of_own_ids);
  }
}

std::vector<PackClass> JoinedClasses::count(const ChunkSet& chunks,
                                            const std::vector<PackClass>& first) const {
  std::map<std::int64_t, PackClass> classes;
  for (const PackClass& each : first) classes[each.id] = {each.id, each.name, 0};
  for (std::size_t id = 0; id < names_.size(); ++id)
    classes[static_cast<std::int64_t>(id)] = {static_cast<std::int64_t>(id), names_[id], 0};
  for (std::size_t part = 0; part < chunks.parts().size(); ++part)
    for (const std::int64_t own_id : chunks.parts()[part]->samples().labels.ids) {
      PackClass& counted = classes[id(part, own_id)];
      counted.id = id(part, own_id);
      ++counted.samples;
    }
  std::vector<PackClass> counted;
  counted.reserve(classes.size());
  for (auto& [id, each] : classes) counted.push_back(std::move(each));
  return counted;
}

namespace {

/// Appends the ranges of a pack's parts: one, or in a merged pack one for each pack in it.
void add_source_parts(const PackSource& source, std::size_t first, std::vector<SourceParts>& of_sources) {
  const Manifest& manifest = *source.manifest;
  if (!manifest.is_merged) return of_sources.push_back({source.path, first, manifest.parts.size()});
  std::vector<std::string> names;
  for (const PackClass& record : manifest.classes) names.push_back(record.name);
  for (std::size_t index = 0; index < manifest.parts.size(); ++index) {
    const std::size_t pack = manifest.parts[index].source;
    if (index == 0 || pack != manifest.parts[index - 1].source)
      of_sources.push_back({source.path, first + index, 0, names, manifest.sources[pack].class_ids});
    ++of_sources.back().count;
  }
}

/// Lists the chunks of a path's parts, which are the last ones from `first` on.
ImageSource::PathChunks path_chunks(const std::string& path,
                                    const std::vector<std::unique_ptr<ChunkReader>>& parts,
                                    std::size_t first) {
  ImageSource::PathChunks chunks{path, 0, 0};
  for (std::size_t part = 0; part < parts.size(); ++part)
    (part < first ? chunks.first_chunk : chunks.chunk_count) += parts[part]->chunks().size();
  return chunks;
}

/// Opens the parts of all sources; `of_sources` gets the range of parts of each source, `paths` the chunks.
std::vector<std::unique_ptr<ChunkReader>> open_all(const std::vector<PackSource>& sources,
                                                   const Hdf5Names& names,
                                                   std::vector<SourceParts>& of_sources,
                                                   std::vector<ImageSource::PathChunks>& paths) {
  for (const PackSource& source : sources)
    if (source.matrix)
      throw_bad_data(source.path + ": holds matrices, expected images; SparseLoader reads it");
  check_names(sources, names);
  std::vector<std::unique_ptr<ChunkReader>> parts;
  for (const PackSource& source : sources) {
    const std::size_t first = parts.size();
    if (source.manifest) {
      add_source_parts(source, first, of_sources);
      std::vector<std::unique_ptr<ChunkReader>> of_pack = open_pack_parts(source.folder, *source.manifest);
      for (std::size_t i = 0; i < of_pack.size(); ++i) {
        check_listed(*of_pack[i], *source.manifest, i);
        parts.push_back(std::move(of_pack[i]));
      }
    } else {
      of_sources.push_back({source.path, first, 1});
      parts.push_back(open_part(source.part, names));
    }
    paths.push_back(path_chunks(source.path, parts, first));
  }
  return parts;
}

/// The columns that all parts have with the same type, in the order of the first one.
std::vector<PackColumn> common_columns(const ChunkSet& chunks) {
  std::vector<PackColumn> columns = column_types(chunks.parts().front()->samples().columns);
  for (const auto& part : chunks.parts()) {
    const std::vector<PackColumn> found = column_types(part->samples().columns);
    std::erase_if(columns,
                  [&](const PackColumn& each) { return std::ranges::find(found, each) == found.end(); });
  }
  return columns;
}

/// Throws usage for a column that not all sources have, naming one that lacks it.
[[noreturn]] void refuse_column(std::string_view name, const std::vector<PackColumn>& common,
                                const ChunkSet& chunks, std::span<const SourceParts> sources) {
  const std::string found = "column: found \"" + printable_text(name) + '"';
  const std::string advice = "; `keep_columns` keeps columns when images are packed";
  for (const SourceParts& source : sources) {
    const std::vector<PackColumn> own = column_types(chunks.parts()[source.first]->samples().columns);
    const auto same = std::ranges::find(own, name, &PackColumn::name);
    if (same == own.end()) continue;
    for (const SourceParts& lacking : sources) {
      const std::vector<PackColumn> of_lacking =
          column_types(chunks.parts()[lacking.first]->samples().columns);
      const auto second = std::ranges::find(of_lacking, name, &PackColumn::name);
      if (second == of_lacking.end())
        throw_usage(found + ", which " + source.path + " has and " + lacking.path +
                    " lacks; a column is available only if all packs have it" + advice);
      if (second->type != same->type)
        throw_usage(found + ", which is " + name_of(same->type) + " in " + source.path + " and " +
                    name_of(second->type) + " in " + lacking.path + "; expected one type in all packs");
    }
  }
  if (common.empty())
    throw_usage(found + ", but " + sources.front().path +
                (sources.size() == 1 ? " has" : " and the other packs have in common") + " no columns" +
                advice);
  const std::vector<std::string> names = column_names(common);
  throw_usage(found + ", expected one of " + printable_text(joined(names)) + did_you_mean(name, names) +
              advice);
}

}  // namespace

ImageSource::ImageSource(const std::vector<std::string>& paths, const Hdf5Names& names)
    : ImageSource{OpeningScope(paths), open_sources(paths), names} {}

ImageSource::ImageSource(const OpeningScope& opening, const std::vector<PackSource>& sources,
                         const Hdf5Names& names)
    : chunks_(open_all(sources, names, sources_, paths_)),
      info_(source_info(sources.front(), chunks_)),
      classes_(chunks_, sources_) {
  opening.finish();
  if (chunks_.sample_count() == 0) throw_bad_data(sources.front().path + ": holds no samples");
  label_columns_ = count_label_columns(chunks_);
  auto& images = std::get<ImagesInfo>(info_.contents);
  images.columns = common_columns(chunks_);
  images.label_counts = count_labels(chunks_.parts());
  if (sources.size() > 1 && label_columns_ == 0) {
    images.classes = classes_.count(chunks_, images.classes);
  }
}

std::int64_t ImageSource::label(std::uint64_t sample) const {
  const ChunkSet::SampleLocation location = chunks_.find_sample(sample);
  const std::vector<std::int64_t>& ids = chunks_.parts()[location.part]->samples().labels.ids;
  return ids.empty() ? -1 : classes_.id(location.part, ids[location.sample]);
}

std::string_view ImageSource::key(std::uint64_t sample) const {
  require_below("key: sample", sample, size());
  const ChunkSet::SampleLocation location = chunks_.find_sample(sample);
  return chunks_.parts()[location.part]->samples().files[location.sample];
}

ColumnValues ImageSource::column(std::string_view name, std::span<const std::uint64_t> samples) const {
  const std::vector<PackColumn>& columns = info_.images().columns;
  const auto wanted = std::ranges::find(columns, name, &PackColumn::name);
  if (wanted == columns.end()) refuse_column(name, columns, chunks_, sources_);
  ColumnValues values;
  values.type = wanted->type;
  for (const std::uint64_t sample : samples) {
    require_below("column: sample", sample, size());
    const ChunkSet::SampleLocation location = chunks_.find_sample(sample);
    const auto& kept = chunks_.parts()[location.part]->samples().columns;
    const SampleColumn& column = *std::ranges::find(kept, name, &SampleColumn::name);
    if (wanted->type == ColumnType::int64)
      values.integers.push_back(std::get<std::vector<std::int64_t>>(column.values)[location.sample]);
    else if (wanted->type == ColumnType::float64)
      values.numbers.push_back(std::get<std::vector<double>>(column.values)[location.sample]);
    else
      values.texts.push_back(std::get<TextList>(column.values)[location.sample]);
  }
  return values;
}

std::span<const float> ImageSource::label_values(std::uint64_t sample) const {
  const ChunkSet::SampleLocation location = chunks_.find_sample(sample);
  const std::vector<float>& values = chunks_.parts()[location.part]->samples().labels.values;
  return std::span(values).subspan(location.sample * label_columns_, label_columns_);
}

}  // namespace chunkhit
