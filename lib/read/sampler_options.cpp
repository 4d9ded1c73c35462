#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/csv_reader.h"
#include "base/file.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "read/loader_core.h"

namespace chunkhit {
namespace {

using Samples = std::vector<std::uint64_t>;

/// What samples are chosen by.
struct Choosable {
  const ChunkSet& chunks;
  std::string path;                            ///< of the first source, for messages
  const char* unit;                            ///< "sample", "row" or "rating"
  bool has_classes;                            ///< labels are class ids
  std::size_t label_count;                     ///< numbers that a sample has as its label
  std::function<double(std::uint64_t)> label;  ///< a sample's class id, or its only label
  std::vector<std::string> label_names{};      ///< of label columns
  std::unordered_map<std::int64_t, std::string> class_names{};
  Samples path_ends{};  ///< where the samples of each path of a mixture end
};

std::string class_name(const Choosable& from, std::int64_t id) {
  const auto found = from.class_names.find(id);
  return found == from.class_names.end() || found->second.empty() ? std::to_string(id) : found->second;
}

/// Some of the names, for messages.
std::string some_of(std::span<const std::string> names) {
  constexpr std::size_t kNamed = 6;
  return joined(names.first(std::min(names.size(), kNamed))) + (names.size() > kNamed ? ", …" : "");
}

/// Throws usage for a class that no sample has; names the nearest one of those that are there, or some.
[[noreturn]] void fail_class(const std::string& option, const std::string& name, const Choosable& from,
                             const std::vector<std::string>& there) {
  std::string hint = did_you_mean(name, there);
  if (hint.empty()) hint = "; its classes are " + some_of(there);
  throw_usage(option + ": class \"" + name + "\": no sample of " + from.path + " has it" + hint);
}

/// Throws usage where classes are asked for and labels are numbers, of which a column may have the name.
[[noreturn]] void refuse_classes(const Choosable& from, const std::string& option, const std::string& name) {
  std::string advice;
  if (from.label_count > 0) advice = "; its labels are numbers (" + some_of(from.label_names) + "): give ";
  if (from.label_count > 0 && option == "sampler")
    advice += std::string("a weight for each ") + from.unit;
  else if (from.label_count > 0) {
    const auto column = std::ranges::find(from.label_names, name);
    advice +=
        "the numbers of " + std::string(from.unit) + "s, in Python numpy.flatnonzero(dataset.labels()[:, ";
    advice += column == from.label_names.end() ? "COLUMN]"
                                               : std::to_string(column - from.label_names.begin()) + "]";
    advice += ")";
  }
  throw_usage(option + ": needs samples with class labels, which " + from.path + " has not" + advice);
}

/// The class id of each sample. `name`: a class that is asked for.
std::vector<std::int64_t> class_ids(const Choosable& from, const char* option, const std::string& name = "") {
  if (!from.has_classes) refuse_classes(from, option, name);
  std::vector<std::int64_t> ids(from.chunks.epoch_count());
  for (std::uint64_t sample = 0; sample < ids.size(); ++sample)
    ids[sample] = static_cast<std::int64_t>(from.label(sample));
  return ids;
}

/// Sorts; throws usage for a sample that is not there, or is repeated. `where` names an entry.
Samples checked(Samples samples, const Choosable& from,
                const std::function<std::string(std::size_t)>& where) {
  const std::uint64_t count = from.chunks.epoch_count();
  const auto beyond = std::ranges::find_if(samples, [&](std::uint64_t sample) { return sample >= count; });
  if (beyond != samples.end())
    throw_usage(where(static_cast<std::size_t>(beyond - samples.begin())) + ": " + from.unit + " " +
                std::to_string(*beyond) + ", expected a number below " + std::to_string(count));
  Samples sorted = samples;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice == sorted.end()) return sorted;
  const auto first = std::ranges::find(samples, *twice);
  const auto second = std::find(first + 1, samples.end(), *twice);
  throw_usage(where(static_cast<std::size_t>(second - samples.begin())) + ": " + from.unit + " " +
              std::to_string(*twice) + " is given twice, expected each once");
}

Samples samples_where(const Choosable& from, const std::function<bool(std::uint64_t)>& is_chosen) {
  Samples samples;
  for (std::uint64_t sample = 0; sample < from.chunks.epoch_count(); ++sample)
    if (is_chosen(sample)) samples.push_back(sample);
  return samples;
}

Samples samples_of_classes(const std::vector<std::string>& classes, const Choosable& from) {
  const std::vector<std::int64_t> ids = class_ids(from, "subset", classes.front());
  std::map<std::string, bool> wanted;  // whether a sample was found
  for (const std::string& name : classes)
    if (!wanted.emplace(name, false).second) throw_usage("subset: class \"" + name + "\" is given twice");
  std::unordered_map<std::int64_t, bool*> by_id;
  Samples samples = samples_where(from, [&](std::uint64_t sample) {
    const auto [found, is_new] = by_id.try_emplace(ids[sample], nullptr);
    if (is_new) {
      const auto named = wanted.find(class_name(from, ids[sample]));
      if (named != wanted.end()) found->second = &named->second;
    }
    if (found->second != nullptr) *found->second = true;
    return found->second != nullptr;
  });
  std::vector<std::string> there;
  there.reserve(by_id.size());
  for (const auto& [id, is_found] : by_id) there.push_back(class_name(from, id));
  std::ranges::sort(there);
  for (const auto& [name, is_found] : wanted)
    if (!is_found) fail_class("subset", name, from, there);
  return samples;
}

Samples samples_in_range(const std::array<double, 2>& range, const Choosable& from) {
  const double low = range[0], high = range[1];
  if (!(low <= high))
    throw_usage("subset: labels from " + number_text(low) + " to " + number_text(high) +
                ", expected two numbers, the lesser first");
  if (!from.has_classes && from.label_count != 1)
    throw_usage("subset: a label range needs one label a sample, " + from.path + " has " +
                std::to_string(from.label_count));
  Samples samples = samples_where(from, [&](std::uint64_t sample) {
    const double label = from.label(sample);
    return low <= label && label <= high;
  });
  if (samples.empty())
    throw_usage("subset: no sample of " + from.path + " has a label from " + number_text(low) + " to " +
                number_text(high));
  return samples;
}

/// The samples of each file that the parts name.
std::unordered_multimap<std::string_view, std::uint64_t> samples_by_file(const Choosable& from) {
  std::unordered_multimap<std::string_view, std::uint64_t> samples;
  samples.reserve(from.chunks.epoch_count());
  for (std::uint64_t sample = 0; sample < from.chunks.epoch_count(); ++sample) {
    const ChunkSet::SampleLocation location = from.chunks.find_sample(sample);
    const TextList& files = from.chunks.parts()[location.part]->samples().files;
    if (location.sample < files.size()) samples.emplace(files[location.sample], sample);
  }
  return samples;
}

constexpr std::uint64_t kMaxCsvBytes = std::uint64_t{1} << 32;

/// Reads the samples that a CSV lists, and the line of each.
class SubsetCsv {
 public:
  SubsetCsv(const std::string& path, const Choosable& from)
      : from_(from),
        text_(read_file(path, kMaxCsvBytes)),
        table_(
            path, [this](MutableBytes out) { return give(out); }, 0) {}

  Samples read() {
    std::vector<std::string_view> fields;
    if (!table_.next_row(fields)) fail("is empty, expected a header with the column \"sample\" or \"file\"");
    const auto number = std::ranges::find(fields, "sample"), file = std::ranges::find(fields, "file");
    const bool has_numbers = number != fields.end();
    if (!has_numbers && file == fields.end())
      fail("line 1: has no column \"sample\" (numbers) or \"file\" (names)");
    const auto column = static_cast<std::size_t>((has_numbers ? number : file) - fields.begin());
    if (!has_numbers) by_file_ = samples_by_file(from_);
    while (table_.next_row(fields)) {
      if (column >= fields.size())
        fail(line() + std::to_string(fields.size()) + " fields, expected more than " +
             std::to_string(column));
      if (has_numbers)
        add_number(fields[column]);
      else
        add_file(fields[column]);
    }
    if (samples_.empty()) fail("lists no samples, expected at least 1");
    return checked(std::move(samples_), from_, [this](std::size_t at) {
      return "subset: " + table_.name() + ": line " + std::to_string(lines_[at]);
    });
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw_usage("subset: " + table_.name() + ": " + what);
  }
  [[nodiscard]] std::string line() const { return "line " + std::to_string(table_.line()) + ": "; }
  void add(std::uint64_t sample) {
    samples_.push_back(sample);
    lines_.push_back(table_.line());
  }
  void add_number(std::string_view field) {
    const std::optional<std::int64_t> number = parse_integer(field);
    if (!number || *number < 0)
      fail(line() + "\"" + std::string(field) + "\", expected the number of a " + from_.unit);
    add(static_cast<std::uint64_t>(*number));
  }
  void add_file(std::string_view file) {
    auto [first, end] = by_file_.equal_range(file);
    // As `pack-info --list` writes a name that a spreadsheet would take for a formula.
    if (first == end && file.starts_with("./")) std::tie(first, end) = by_file_.equal_range(file.substr(2));
    if (first == end)
      fail(line() + "\"" + std::string(file) + "\": no sample of " + from_.path + " is of it");
    for (; first != end; ++first) add(first->second);
  }

  std::size_t give(MutableBytes out) {
    const std::size_t count = std::min(out.size(), text_.size() - given_);
    std::copy_n(text_.begin() + static_cast<std::ptrdiff_t>(given_), count, out.begin());
    given_ += count;
    return count;
  }

  const Choosable& from_;
  ByteBuffer text_;
  std::size_t given_ = 0;  // bytes of it, to the table
  CsvReader table_;
  std::unordered_multimap<std::string_view, std::uint64_t> by_file_;
  Samples samples_;
  std::vector<std::uint64_t> lines_;
};

std::optional<Samples> subset_of(const SubsetSpec& spec, const Choosable& from) {
  const int given = (spec.samples ? 1 : 0) + (spec.classes.empty() ? 0 : 1) + (spec.label_range ? 1 : 0) +
                    (spec.csv.empty() ? 0 : 1);
  if (given == 0) return std::nullopt;
  if (given > 1) throw_usage("subset: expected one of samples, classes, label_range and csv, found several");
  if (!spec.classes.empty()) return samples_of_classes(spec.classes, from);
  if (spec.label_range) return samples_in_range(*spec.label_range, from);
  if (!spec.csv.empty()) return SubsetCsv(spec.csv, from).read();
  if (spec.samples->empty()) throw_usage("subset: has no samples, expected at least 1");
  return checked(*spec.samples, from, [](std::size_t at) { return "subset: entry " + std::to_string(at); });
}

void check_weight(double weight, const std::string& what) {
  if (!(weight >= 0) || !std::isfinite(weight))
    throw_usage("sampler: " + what + ": weight " + number_text(weight) + ", expected a finite number from 0");
}

std::vector<double> checked_weights(const std::vector<double>& weights, const Choosable& from) {
  if (weights.size() != from.chunks.epoch_count())
    throw_usage("sampler: " + std::to_string(weights.size()) + " weights, expected " +
                std::to_string(from.chunks.epoch_count()) + ", one for each " + from.unit + " of the source");
  for (std::size_t sample = 0; sample < weights.size(); ++sample)
    check_weight(weights[sample], std::string(from.unit) + " " + std::to_string(sample));
  return weights;
}

/// The weight of each class that samples of the subset have.
std::unordered_map<std::int64_t, double> weights_by_class(
    const SamplerSpec& spec, const Choosable& from,
    const std::unordered_map<std::int64_t, std::uint64_t>& counts) {
  std::unordered_map<std::int64_t, double> weights;
  if (spec.balanced) {
    for (const auto& [id, count] : counts) weights[id] = 1 / static_cast<double>(count);
    return weights;
  }
  std::unordered_map<std::string, double> named;
  for (const auto& [name, weight] : spec.class_weights) {
    check_weight(weight, "class \"" + name + "\"");
    if (!named.emplace(name, weight).second) throw_usage("sampler: class \"" + name + "\" is given twice");
  }
  std::vector<std::string> there;
  there.reserve(counts.size());
  for (const auto& [id, count] : counts) there.push_back(class_name(from, id));
  std::ranges::sort(there);
  for (const auto& [name, weight] : spec.class_weights)
    if (!std::ranges::binary_search(there, name)) fail_class("sampler", name, from, there);
  for (const auto& [id, count] : counts) {
    const std::string name = class_name(from, id);
    const auto found = named.find(name);
    if (found == named.end())
      throw_usage("sampler: class \"" + name + "\" of " + std::to_string(count) +
                  " samples has no weight; name it, with weight 0 to leave it out");
    weights[id] = found->second;
  }
  return weights;
}

std::vector<double> class_weights(const SamplerSpec& spec, const Choosable& from,
                                  const std::optional<Samples>& subset) {
  const std::vector<std::int64_t> ids = class_ids(from, "sampler");
  Samples all;
  if (!subset) {
    all.resize(ids.size());
    std::iota(all.begin(), all.end(), std::uint64_t{0});
  }
  std::vector<double> weights(ids.size(), 0.0);
  const auto add = [&](std::span<const std::uint64_t> samples) {
    std::unordered_map<std::int64_t, std::uint64_t> counts;
    for (const std::uint64_t sample : samples) {
      if (ids[sample] == -1)
        throw_usage("sampler: sample " + std::to_string(sample) +
                    " has no class; leave out those without one by a subset");
      ++counts[ids[sample]];
    }
    const std::unordered_map<std::int64_t, double> by_class = weights_by_class(spec, from, counts);
    for (const std::uint64_t sample : samples) weights[sample] = by_class.at(ids[sample]);
  };
  std::span<const std::uint64_t> left = subset ? *subset : all;
  // The classes of each path of a mixture are balanced by themselves: its share is another matter.
  for (const std::uint64_t end : spec.balanced ? from.path_ends : Samples{}) {
    const auto count = std::ranges::lower_bound(left, end) - left.begin();
    add(left.first(static_cast<std::size_t>(count)));
    left = left.subspan(static_cast<std::size_t>(count));
  }
  if (!left.empty()) add(left);
  return weights;
}

/// Which samples are drawn; nothing where each one of the source comes once.
std::optional<DrawSpec> draw_spec(const SamplerSpec& spec, const Choosable& from) {
  const int weighted =
      (spec.weights.empty() ? 0 : 1) + (spec.class_weights.empty() ? 0 : 1) + (spec.balanced ? 1 : 0);
  if (weighted > 1)
    throw_usage("sampler: expected one of weights, class_weights and balanced, found several");
  if (weighted == 1 && !spec.replacement && spec.epoch_samples == 0)
    throw_usage(
        "replacement: false needs epoch_samples: an epoch of all samples would not depend on weights");
  DrawSpec draws{.subset = subset_of(spec.subset, from),
                 .draws = weighted == 1 || spec.epoch_samples != 0,
                 .replacement = spec.replacement,
                 .epoch_samples = spec.epoch_samples};
  if (!spec.weights.empty()) draws.weights = checked_weights(spec.weights, from);
  if (spec.balanced || !spec.class_weights.empty()) draws.weights = class_weights(spec, from, draws.subset);
  if (!draws.draws && !draws.subset) return std::nullopt;
  return draws;
}

/// What of a sampler does not go with a mixture, and what it means there.
MixtureShape mixture_shape(const MixtureSpec& mixture, const SamplerSpec& sampler,
                           const ImageSource& source) {
  const std::vector<ImageSource::PathChunks>& paths = source.paths();
  if (mixture.weights.size() != paths.size())
    throw_usage("mixture: " + std::to_string(mixture.weights.size()) + " weights, expected " +
                std::to_string(paths.size()) + ", one for each path");
  if (!sampler.replacement) throw_usage("replacement: false does not go with a mixture");
  MixtureShape shape{.sources = {}, .shares = mixture.shares, .epoch_samples = sampler.epoch_samples};
  for (std::size_t path = 0; path < paths.size(); ++path)
    shape.sources.push_back(
        {paths[path].path, paths[path].first_chunk, paths[path].chunk_count, mixture.weights[path]});
  return shape;
}

/// Where the samples of each path end.
Samples path_ends(const ImageSource& source) {
  const ChunkSet& chunks = source.chunks();
  Samples ends;
  for (const ImageSource::PathChunks& path : source.paths()) {
    const std::size_t end = path.first_chunk + path.chunk_count;
    ends.push_back(end == chunks.chunk_count() ? chunks.sample_count()
                                               : chunks.first_sample(chunks.find(end)));
  }
  return ends;
}

}  // namespace

SamplingSpec sampling_spec(const ImageLoaderOptions& options, const ImageSource& source) {
  Choosable from{source.chunks(),
                 source.info().path,
                 "sample",
                 source.label_columns() == 0,
                 source.label_columns(),
                 {},
                 source.info().label_columns};
  from.label = [&source](std::uint64_t sample) {
    return source.label_columns() == 0 ? static_cast<double>(source.label(sample))
                                       : static_cast<double>(source.label_values(sample)[0]);
  };
  for (const PackClass& each : source.info().images().classes) from.class_names.emplace(each.id, each.name);
  if (!options.mixture.weights.empty()) from.path_ends = path_ends(source);
  SamplingSpec spec{.draws = draw_spec(options.sampler, from)};
  if (options.mixture.weights.empty() && options.mixture.shares != MixtureShares::batch)
    throw_usage("shares: need a mixture, weights of several paths");
  if (!options.mixture.weights.empty())
    spec.mixture = mixture_shape(options.mixture, options.sampler, source);
  return spec;
}

SamplingSpec sampling_spec(const SparseLoaderOptions& options, const SparseSource& source) {
  if (source.chunks().serves_ratings())  // which have no labels of their own
    return {.draws =
                draw_spec(options.sampler, {source.chunks(), source.info().path, "rating", false, 0, {}})};
  Choosable from{source.chunks(), source.info().path, "row", false, source.label_columns(), {}};
  from.label = [&source](std::uint64_t row) { return static_cast<double>(source.labels(row)[0]); };
  from.label_names = source.info().label_columns;
  return {.draws = draw_spec(options.sampler, from)};
}

}  // namespace chunkhit
