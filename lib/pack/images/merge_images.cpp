// Merged packs of images: one numbering of classes, statistics from exact sums, tables with a column `pack`.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/bytes.h"
#include "base/csv_reader.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "pack/images/image_fields.h"
#include "pack/merge_inputs.h"
#include "pack/pack_folder.h"
#include "types/enum_names.h"
#include "types/input_sizes.h"

namespace chunkhit {
namespace {

/// Throws bad_data where samples or labels of a pack have another form than the first one's.
void check_images(const MergeInput& input, const MergeInput& first) {
  const Manifest& found = *input.images;
  const Manifest& expected = *first.images;
  check_equal(input, first, "samples of", shape_text(found.sample), shape_text(expected.sample),
              "pack one of them again with the shape, layout and fields of the other");
  const auto labels = [](const Manifest& manifest) {
    return manifest.class_labels ? std::string("class ids") : "the numbers " + joined(manifest.label_columns);
  };
  check_equal(input, first, "labels are", labels(found), labels(expected),
              "pack one of them again with labels like the other's");
  check_equal(input, first, "columns are", columns_text(found.columns), columns_text(expected.columns),
              "pack one of them again with the other's `keep_columns`, and values of the same types");
}

/// Names of the classes of a source, by its own ids; empty where it has ids only.
std::vector<std::string> class_names(const MergeInput& input, const SourcePack& source) {
  const std::vector<PackClass>& classes = input.images->classes;
  std::vector<std::string> names;
  for (const std::int64_t id : source.class_ids) names.push_back(classes[static_cast<std::size_t>(id)].name);
  for (std::size_t index = 0; index < classes.size() && source.class_ids.empty(); ++index) {
    if (classes[index].name.empty()) return {};
    if (classes[index].id != static_cast<std::int64_t>(index))
      throw_bad_data(input.folder + ": its named classes do not count up from 0");
    names.push_back(classes[index].name);
  }
  return names;
}

/// Numbers classes by name over all packs: those of the first keep their ids, new names of each other follow
/// sorted, so that a pack that is appended renumbers nothing.
class ClassNumbers {
 public:
  /// Adds the names of a source; returns their ids.
  std::vector<std::int64_t> add(const std::vector<std::string>& names) {
    std::vector<std::string> added;
    std::ranges::copy_if(names, std::back_inserter(added),
                         [&](const std::string& name) { return !ids_.contains(name); });
    if (!classes_.empty()) std::ranges::sort(added);
    for (const std::string& name : added) {
      const auto id = static_cast<std::int64_t>(classes_.size());
      ids_.emplace(name, id);
      classes_.push_back({id, name, 0});
    }
    std::vector<std::int64_t> ids;
    ids.reserve(names.size());
    for (const std::string& name : names) ids.push_back(ids_.at(name));
    return ids;
  }
  void count(const PackClass& record) {
    classes_[static_cast<std::size_t>(ids_.at(record.name))].samples += record.samples;
  }
  [[nodiscard]] const std::vector<PackClass>& classes() const { return classes_; }

 private:
  std::unordered_map<std::string, std::int64_t> ids_;
  std::vector<PackClass> classes_;
};

bool has_names(const MergeInput& input) {
  return std::ranges::any_of(input.images->classes, [](const PackClass& each) { return !each.name.empty(); });
}

/// Throws bad_data where one pack has names of classes and another ids only.
void check_all_named(std::span<const MergeInput> inputs) {
  const MergeInput* unlike[2] = {nullptr, nullptr};
  for (const MergeInput& input : inputs)
    if (!input.images->classes.empty()) unlike[has_names(input) ? 1 : 0] = &input;
  if (unlike[0] != nullptr && unlike[1] != nullptr)
    throw_bad_data(unlike[0]->folder + ": has class ids without names, but " + unlike[1]->folder +
                   " has names: pack one of them again with the other's `classes`");
}

void merge_classes(std::span<const MergeInput> inputs, Manifest& merged) {
  check_all_named(inputs);
  ClassNumbers numbers;
  std::map<std::int64_t, std::uint64_t> samples_of_id;
  std::size_t source = 0;
  for (const MergeInput& input : inputs) {
    for (const SourcePack& own : input.images->sources)
      merged.sources[source++].class_ids = numbers.add(class_names(input, own));
    for (const PackClass& record : input.images->classes) {
      if (record.name.empty())
        samples_of_id[record.id] += record.samples;
      else
        numbers.count(record);
    }
  }
  merged.classes = numbers.classes();
  for (const auto& [id, samples] : samples_of_id) merged.classes.push_back({id, "", samples});
}

/// What all packs of a merged split are normalized with: of its first pack its own mean and std, of the
/// others those of the merged first pack, which lies beside them.
std::optional<SharedStats> merge_normalize(std::span<const MergeInput> inputs, const std::string& output,
                                           const Manifest& merged) {
  const std::optional<SharedStats>& first = inputs.front().images->normalize;
  if (!first || std::ranges::any_of(inputs, [&](const MergeInput& input) {
        return !input.images->normalize || input.images->normalize->from != first->from;
      }))
    return std::nullopt;
  if (std::ranges::find(merged.spec, SpecEntry{"split-name", first->from}) != merged.spec.end())
    return SharedStats{first->from, merged.mean, merged.std};
  const std::filesystem::path beside =
      std::filesystem::absolute(output).lexically_normal().parent_path() / first->from;
  const std::optional<AnyManifest> normalizing = find_manifest(beside.string());
  if (!normalizing || !normalizing->images || normalizing->images->input_xxh3 != merged.input_xxh3)
    return std::nullopt;
  return SharedStats{first->from, normalizing->images->mean, normalizing->images->std};
}

}  // namespace

Manifest merge_images(std::span<const MergeInput> inputs, const std::string& output) {
  const Manifest& first = *inputs.front().images;
  Manifest merged;
  merge_common(inputs, merged);
  merged.sample = first.sample;
  merged.chunk_samples = first.chunk_samples;
  merged.chunk_bytes = first.chunk_bytes;
  merged.class_labels = first.class_labels;
  merged.columns = first.columns;
  PixelSums pixels;
  merged.inputs.emplace();
  for (const MergeInput& input : inputs) {
    check_images(input, inputs.front());
    merged.samples += input.images->samples;
    merged.rejected += input.images->rejected;
    merged.warned += input.images->warned;
    merged.raw_bytes += input.images->raw_bytes;
    pixels.add(input.pixels);
    add_sizes(input.images->inputs, merged.inputs);
  }
  merge_classes(inputs, merged);
  merged.mean = pixels.mean(merged.sample.channels);
  merged.std = pixels.std(merged.sample.channels);
  merged.normalize = merge_normalize(inputs, output, merged);
  return merged;
}

namespace {

std::string read_table(const std::string& folder, const FileRecord& table) {
  const std::string path = folder + "/" + table.file;
  const ByteBuffer bytes = read_file(path, table.bytes);
  if (xxh3(bytes) != table.xxh3)
    throw_bad_data(path + ": checksum " + hash_text(xxh3(bytes)) + ", expected " + hash_text(table.xxh3) +
                   "; see pack-verify " + folder);
  return std::string(as_text(bytes));
}

/// The position among all packs of the pack that a row of a merged table names in its first field.
std::uint64_t pack_of(std::string_view field, const MergeInput& input) {
  const std::vector<SourcePack>& sources = input.images->sources;
  const std::optional<std::int64_t> position = parse_integer(field);
  if (position && *position >= 0 && static_cast<std::uint64_t>(*position) < sources.size())
    return static_cast<std::uint64_t>(*position);
  throw_bad_data(input.folder + ": a table names pack " + std::string(field) + " of " +
                 count_text(sources.size()) + "; merge its packs again");
}

/// Gives a row `count` fields: labels of 0 and 1 may stand in one column in one pack and in several in
/// another, and are left blank then. `kept`: the columns between labels and reason.
void fit_row(std::vector<std::string_view>& fields, std::size_t count, std::size_t kept) {
  const std::size_t behind = kept + 1;
  if (fields.size() == count || std::min(fields.size(), count) < 2 + behind) return;
  fields.erase(fields.begin() + 2, fields.end() - static_cast<std::ptrdiff_t>(behind));
  fields.insert(fields.begin() + 2, count - 2 - behind, std::string_view());
}

void append_row(const std::string& first, std::span<const std::string_view> fields, std::string& table) {
  table += first;
  for (const std::string_view field : fields) append_csv_field(table += ',', field);
  table += '\n';
}

/// Joins a table of all packs; each row begins with the position of its pack among all.
std::string join_tables(std::span<const MergeInput> inputs,
                        const std::function<const FileRecord*(const Manifest&)>& table) {
  std::string joined;
  std::uint64_t first_pack = 0;
  std::size_t count = 0;  // fields behind `pack`
  for (const MergeInput& input : inputs) {
    const std::uint64_t own_first = first_pack;
    first_pack += input.images->sources.size();
    const FileRecord* const record = table(*input.images);
    if (record == nullptr) continue;
    const std::string text = read_table(input.folder, *record);
    CsvReader rows(input.folder + "/" + record->file, source_of(text), ',');
    for (std::vector<std::string_view> fields; rows.next_row(fields);) {
      const bool is_merged = input.images->is_merged, is_header = rows.line() == 1;
      const std::uint64_t pack = own_first + (is_merged && !is_header ? pack_of(fields.front(), input) : 0);
      if (is_merged) fields.erase(fields.begin());
      if (joined.empty()) {
        append_row("pack", fields, joined);
        count = fields.size();
      } else if (!is_header) {
        fit_row(fields, count, input.images->columns.size());
        append_row(std::to_string(pack), fields, joined);
      }
    }
  }
  return joined;
}

FileRecord publish_table(const std::string& folder, const std::string& name, const std::string& text) {
  publish_file(folder + "/" + name, text);
  return {name, text.size(), xxh3(as_bytes(text))};
}

}  // namespace

void publish_tables(std::span<const MergeInput> inputs, const std::string& folder, const TableName& name,
                    Manifest& merged) {
  merged.rejects =
      publish_table(folder, name(kRejectsName),
                    join_tables(inputs, [](const Manifest& manifest) { return &manifest.rejects; }));
  // Packs of builds that listed no warnings have no table of them.
  const std::string warnings = join_tables(
      inputs, [](const Manifest& manifest) { return manifest.warnings ? &*manifest.warnings : nullptr; });
  if (!warnings.empty()) merged.warnings = publish_table(folder, name(kWarningsName), warnings);
}

std::vector<std::string> image_settings() {
  MeaningCollector settings;
  PackImagesSpec spec;
  show(spec, settings);
  return std::move(settings.names);
}

}  // namespace chunkhit
