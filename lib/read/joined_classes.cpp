#include "read/joined_classes.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

bool has_class_ids(const ChunkReader& part) {
  const std::vector<std::int64_t>& ids = part.samples().labels.ids;
  return std::ranges::any_of(ids, [](std::int64_t id) { return id != -1; });
}

/// The parts of a source that have class ids.
std::vector<const ChunkReader*> labelled_parts(const ChunkSet& chunks, const SourceParts& source) {
  std::vector<const ChunkReader*> parts;
  for (std::size_t part = source.first; part < source.first + source.count; ++part)
    if (has_class_ids(*chunks.parts()[part])) parts.push_back(chunks.parts()[part].get());
  return parts;
}

/// Whether the sources have names; throws where only some do.
bool have_names(const ChunkSet& chunks, std::span<const SourceParts> sources) {
  const SourceParts* named = nullptr;
  const SourceParts* unnamed = nullptr;
  for (const SourceParts& source : sources)
    for (const ChunkReader* const part : labelled_parts(chunks, source))
      (part->spec().classes.empty() ? unnamed : named) = &source;
  if (named != nullptr && unnamed != nullptr)
    throw Error(ErrorCode::bad_data, unnamed->path + ": has class ids without names, but " + named->path +
                                         " has names: whether equal ids are the same class cannot be known; "
                                         "pack both with the same classes (--classes)");
  return named != nullptr;
}

}  // namespace

JoinedClasses::JoinedClasses(const ChunkSet& chunks, std::span<const SourceParts> sources) {
  if (sources.size() > 1 && have_names(chunks, sources)) join(chunks, sources);
}

void JoinedClasses::join(const ChunkSet& chunks, std::span<const SourceParts> sources) {
  source_of_part_.resize(chunks.parts().size());
  std::unordered_map<std::string, std::int64_t> known;
  for (const SourceParts& source : sources) {
    for (std::size_t part = source.first; part < source.first + source.count; ++part)
      source_of_part_[part] = ids_.size();
    std::vector<std::int64_t>& ids = ids_.emplace_back();
    const std::vector<const ChunkReader*> parts = labelled_parts(chunks, source);
    if (parts.empty()) continue;
    // An external file may name two classes alike: its own ids stay apart where they come first.
    const bool is_first = names_.empty();
    for (const std::string& name : parts.front()->spec().classes) {
      const auto [found, is_new] = known.try_emplace(name, static_cast<std::int64_t>(names_.size()));
      ids.push_back(is_first ? static_cast<std::int64_t>(names_.size()) : found->second);
      if (is_new || is_first) names_.push_back(name);
    }
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

}  // namespace chunkhit
