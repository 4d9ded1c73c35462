#include "read/list_samples.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <numeric>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/csv_reader.h"
#include "base/file.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "read/image_source.h"
#include "read/pack_source.h"
#include "types/fields.h"
#include "types/sample_shape.h"

namespace chunkhit {
namespace {

constexpr std::size_t kWrittenBytes = 1 << 16;

/// Throws bad_data for what has no names of files.
void check_listable(const std::vector<std::string>& packs) {
  for (const PackSource& source : open_sources(packs)) {
    if (source.matrix)
      throw_bad_data(source.folder + ": holds ratings; " + source.matrix->users.file + " and " +
                     source.matrix->items.file +
                     " in it list rows and columns, and pack-sparse takes it as input");
    if (source.part.empty()) continue;
    const auto part = open_part(source.part);
    if (!part->has_hashes())
      throw_bad_data(source.part + ": an external file, which names no files of images");
  }
}

/// Where the parts come from that are listed.
struct Origins {
  std::vector<std::size_t> packs;  ///< by part: the index of its pack in a merged pack, else 0
  std::vector<std::string> roots;  ///< by part: the folder of its images, where merged packs have several
  std::string common_root;         ///< of all of these folders
  bool are_roots_unknown = false;
};

Origins origins_of(const std::vector<PackSource>& sources) {
  Origins origins;
  std::set<std::string> roots;
  bool is_merged = false;
  for (const PackSource& source : sources) {
    if (!source.manifest) {
      origins.packs.push_back(0);
      origins.roots.emplace_back();
      continue;
    }
    const std::vector<std::string> known = roots_of(source.folder, *source.manifest);
    is_merged = is_merged || known.size() > 1;
    roots.insert(known.begin(), known.end());
    for (const PartRecord& part : source.manifest->parts) {
      origins.packs.push_back(part.source);
      origins.roots.push_back(known[part.source]);
    }
  }
  origins.are_roots_unknown = is_merged && roots.contains("");
  if (is_merged && roots.size() > 1 && !origins.are_roots_unknown)
    origins.common_root = common_folder(std::vector(roots.begin(), roots.end()));
  else
    origins.roots.assign(origins.roots.size(), "");
  return origins;
}

/// The samples in the order of their rows; in a merged pack, pack by pack.
std::vector<std::uint64_t> order_by_row(const ChunkSet& chunks, const Origins& origins) {
  std::vector<std::uint64_t> rows;
  std::vector<std::size_t> packs;
  for (const auto& part : chunks.parts()) {
    const std::size_t pack = origins.packs[static_cast<std::size_t>(&part - chunks.parts().data())];
    rows.insert(rows.end(), part->samples().rows.begin(), part->samples().rows.end());
    packs.resize(rows.size(), pack);
  }
  std::vector<std::uint64_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::ranges::sort(order, [&](std::uint64_t a, std::uint64_t b) {
    return packs[a] != packs[b] ? packs[a] < packs[b] : rows[a] < rows[b];
  });
  return order;
}

std::string recorded(const PackInfo& info, std::string_view name) {
  const auto found = std::ranges::find(info.spec, name, [](const auto& entry) { return entry.first; });
  return found == info.spec.end() ? "" : found->second;
}

/// Extensions of the fields of images that are members of tars, as seg.png: they are columns of the table.
std::vector<std::string> member_extensions(const PackInfo& info) {
  const std::string places = recorded(info, "mask-column");
  if (places.empty() || recorded(info, "labels") == "csv") return {};  // a CSV's are kept columns
  std::vector<std::string> columns, extensions;
  RepeatedForm().parse("mask-column", places, columns);
  for (const FieldPlace& field : parse_fields(columns, "mask-column", "[NAME=]COLUMN[:view]"))
    extensions.push_back(lower(field.place));
  return extensions;
}

/// The member of a key, which is all up to the first dot of a name.
std::string member_of(const std::string& file, const std::string& extension) {
  return file.substr(0, file.find('.', file.rfind('/') + 1)) + "." + extension;
}

/// Names of the table's columns: as in the CSV that the pack is of, else as pack-images expects them.
struct Columns {
  std::string file = "file";
  std::vector<std::string> labels;
  std::string separator;  ///< between the names in a cell; empty: a column for each label
  std::vector<std::string> members;
  bool has_row = true;  ///< false: another column is named so

  explicit Columns(const ImageSource& source)
      : labels(source.info().label_columns), separator(recorded(source.info(), "label-separator")) {
    if (std::string name = recorded(source.info(), "file-column"); !name.empty()) file = std::move(name);
    if (!separator.empty()) labels = {recorded(source.info(), "label-column")};
    if (labels.empty()) labels = {"label"};
    for (const PackColumn& column : source.info().images().columns) labels.push_back(column.name);
    members = member_extensions(source.info());
    std::erase_if(members, [&](const std::string& name) { return std::ranges::count(labels, name) > 0; });
    labels.insert(labels.end(), members.begin(), members.end());
    has_row = file != "row" && std::ranges::find(labels, "row") == labels.end();
  }
  [[nodiscard]] std::string header() const {
    std::string line;
    append_csv_field(line, file);
    for (const std::string& label : labels) append_csv_field(line += ',', label);
    return line + (has_row ? ",row\n" : "\n");
  }
};

/// Writes one sample after the other.
class SampleLines {
 public:
  SampleLines(const ImageSource& source, const Origins& origins)
      : source_(source), roots_(origins.roots), columns_(source) {
    for (const PackClass& each : source.info().images().classes) names_.emplace(each.id, each.name);
  }
  [[nodiscard]] std::string header() const { return columns_.header(); }
  void append(std::uint64_t sample, std::string& text) const {
    const ChunkSet::SampleLocation location = source_.chunks().find_sample(sample);
    const PartSamples& samples = source_.chunks().parts()[location.part]->samples();
    const std::string_view file = samples.files[location.sample];
    const std::string& root = roots_[location.part];
    const std::string path =
        root.empty() ? harmless_path(file) : (std::filesystem::path(root) / file).string();
    append_csv_field(text, path);
    if (source_.label_columns() == 0) append_csv_field(text += ',', class_text(source_.label(sample)));
    append_labels(source_.label_values(sample), text);
    for (const PackColumn& column : source_.info().images().columns) {
      const auto kept = std::ranges::find(samples.columns, column.name, &SampleColumn::name);
      append_csv_field(text += ',', kept->value_text(location.sample));
    }
    for (const std::string& extension : columns_.members)
      append_csv_field(text += ',', member_of(path, extension));
    if (columns_.has_row) text += ',' + std::to_string(samples.rows[location.sample]);
    text += '\n';
  }
  [[nodiscard]] bool are_names_numbers() const {
    return !names_.empty() && std::ranges::all_of(names_, [](const auto& each) {
      return parse_integer(each.second).has_value();
    });
  }

 private:
  void append_labels(std::span<const float> values, std::string& text) const {
    if (!columns_.separator.empty()) {
      const std::vector<std::string>& names = source_.info().label_columns;
      return append_csv_field(text += ',', joined_where(names, values, columns_.separator));
    }
    for (const float value : values) text += ',' + label_number_text(value, values.size() == 1);
  }
  [[nodiscard]] std::string class_text(std::int64_t id) const {
    const auto found = names_.find(id);
    return found == names_.end() || found->second.empty() ? std::to_string(id) : found->second;
  }

  const ImageSource& source_;
  const std::vector<std::string>& roots_;
  Columns columns_;
  std::unordered_map<std::int64_t, std::string> names_;
};

}  // namespace

ListedSamples list_samples(const std::string& path, const std::function<void(std::string_view)>& write) {
  const std::vector<std::string> packs = packs_of(path);
  check_listable(packs);
  const ImageSource source(packs, {});
  const Origins origins = origins_of(open_sources(packs));
  const SampleLines lines(source, origins);
  std::string text = lines.header();
  for (const std::uint64_t sample : order_by_row(source.chunks(), origins)) {
    lines.append(sample, text);
    if (text.size() < kWrittenBytes) continue;
    write(text);
    text.clear();
  }
  write(text);
  ListedSamples listed{source.size(), 0, lines.are_names_numbers(), origins.common_root,
                       origins.are_roots_unknown};
  for (const PackSource& pack : open_sources(packs))
    if (pack.manifest) listed.rejected += pack.manifest->rejected;
  return listed;
}

}  // namespace chunkhit
