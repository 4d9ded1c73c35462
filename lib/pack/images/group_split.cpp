#include "pack/images/group_split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "types/fields.h"

namespace chunkhit {
namespace {

const SampleColumn& find_column(const SampleList& list, const std::string& name, const char* option) {
  const auto found = std::ranges::find(list.columns, name, &SampleColumn::name);
  if (found == list.columns.end())
    throw_bad_data(std::string(option) + ": the samples have no column \"" + name + '"');
  return *found;
}

/// Whether a value is one of "1-3,5": equal to an entry, or a number in a range.
bool is_among(const std::string& value, const std::string& values) {
  std::vector<std::string> entries;
  NamesForm().parse("", values, entries);
  double number = 0;
  const bool is_number = parse_all(value, number);
  return std::ranges::any_of(entries, [&](const std::string& entry) {
    const std::size_t dash = entry.find('-', 1);
    double from = 0, to = 0;
    const bool is_range = is_number && parse_all(entry.substr(0, dash), from) &&
                          parse_all(dash == std::string::npos ? entry : entry.substr(dash + 1), to);
    return entry == value || (is_range && from <= number && number <= to);
  });
}

/// The pack of a value.
std::uint8_t pack_of(const std::string& value, const PackImagesSpec& spec) {
  const std::string column = "`split_column` " + spec.split_column + ": ";
  const auto has_value = [&](const SplitShare& share) { return is_among(value, share.values); };
  const auto found = std::ranges::find_if(spec.split, has_value);
  const std::string shown = value.empty() ? "images without a value" : "the value " + value;
  if (found == spec.split.end()) throw_bad_data(column + "no pack of `split` has " + shown);
  const auto other = std::find_if(found + 1, spec.split.end(), has_value);
  if (other != spec.split.end())
    throw_bad_data(column + found->name + " and " + other->name + " both have " + shown);
  return static_cast<std::uint8_t>(found - spec.split.begin());
}

/// Joins samples to sets, each named by its first sample.
class SampleSets {
 public:
  explicit SampleSets(std::size_t count) : first_(count) { std::iota(first_.begin(), first_.end(), 0u); }
  [[nodiscard]] std::uint32_t first(std::uint32_t sample) {
    while (first_[sample] != sample) sample = first_[sample] = first_[first_[sample]];
    return sample;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    const auto [low, high] = std::minmax({first(a), first(b)});
    first_[high] = low;
  }

 private:
  std::vector<std::uint32_t> first_;
};

/// The first sample of each one's group.
std::vector<std::uint32_t> first_samples_of_groups(const SampleList& list, const SampleColumn& column) {
  SampleSets sets(list.size());
  const std::vector<std::uint32_t> files = first_samples_of_files(list);
  for (std::uint32_t sample = 0; sample < files.size(); ++sample) sets.join(sample, files[sample]);
  std::unordered_map<std::string, std::uint32_t> known;
  for (std::uint32_t sample = 0; sample < list.size(); ++sample) {
    std::string value = column.value_text(sample);
    if (!value.empty()) sets.join(sample, known.try_emplace(std::move(value), sample).first->second);
  }
  std::vector<std::uint32_t> firsts(list.size());
  for (std::uint32_t sample = 0; sample < firsts.size(); ++sample) firsts[sample] = sets.first(sample);
  return firsts;
}

/// A group: how many samples of each class it has.
struct Group {
  std::uint32_t first = 0;
  std::uint64_t samples = 0;
  std::map<std::int64_t, std::uint64_t> classes;
};

/// The groups in the order in which they are dealt: drawn by seed, larger ones first.
std::vector<Group> list_groups(const SampleList& list, const std::vector<std::uint32_t>& firsts,
                               std::uint64_t seed) {
  std::unordered_map<std::uint32_t, std::size_t> numbers;
  std::vector<Group> groups;
  for (std::uint32_t sample = 0; sample < firsts.size(); ++sample) {
    const auto [found, is_new] = numbers.try_emplace(firsts[sample], groups.size());
    if (is_new) groups.push_back({firsts[sample], 0, {}});
    Group& group = groups[found->second];
    ++group.samples;
    ++group.classes[list.label_kind == LabelKind::class_id ? list.class_ids[sample] : 0];
  }
  std::vector<std::uint32_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0u);
  shuffle(std::span(order), seed, Purpose::split);
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::uint32_t group) { return groups[group].samples; });
  std::vector<Group> sorted;
  sorted.reserve(groups.size());
  for (const std::uint32_t group : order) sorted.push_back(std::move(groups[group]));
  return sorted;
}

/// Deals groups to shares, each to the one that lacks most of its classes, and of all samples.
class GroupDealer {
 public:
  GroupDealer(const std::vector<Group>& groups, const std::vector<SplitShare>& shares) {
    for (const Group& group : groups) {
      all_ += static_cast<double>(group.samples);
      for (const auto& [id, count] : group.classes) of_class_[id] += static_cast<double>(count);
    }
    for (const SplitShare& share : shares) {
      Lack& lack = lacking_.emplace_back(Lack{share.share * all_, {}});
      for (const auto& [id, count] : of_class_) lack.of_class[id] = share.share * count;
    }
  }
  /// The change of the sum of squared gaps, as fractions of each class, is smallest for the share that it
  /// gives; of equal ones for the first.
  [[nodiscard]] std::uint8_t deal(const Group& group) {
    std::size_t best = 0;
    double best_score = -HUGE_VAL;
    for (std::size_t share = 0; share < lacking_.size(); ++share)
      if (const double found = score(group, lacking_[share]); found > best_score)
        best = share, best_score = found;
    lacking_[best].all -= static_cast<double>(group.samples);
    for (const auto& [id, count] : group.classes) lacking_[best].of_class[id] -= static_cast<double>(count);
    return static_cast<std::uint8_t>(best);
  }

 private:
  struct Lack {
    double all = 0;
    std::unordered_map<std::int64_t, double> of_class;
  };
  [[nodiscard]] double score(const Group& group, const Lack& lack) const {
    double sum = static_cast<double>(group.samples) * lack.all / all_;
    for (const auto& [id, count] : group.classes)
      sum += static_cast<double>(count) * lack.of_class.at(id) / of_class_.at(id);
    return sum;
  }

  double all_ = 0;
  std::map<std::int64_t, double> of_class_;
  std::vector<Lack> lacking_;
};

/// "column "patient": 97 of 98 values are in more than one pack of the split"; empty where none is.
std::string shared_values(const SampleColumn& column, const std::vector<PackSamples>& packs) {
  const bool is_text = column.type() == ColumnType::text;
  if (column.type() == ColumnType::float64 || !may_be_ids(column.name, is_text, column.size(), column.size()))
    return "";
  std::unordered_map<std::string, std::size_t> pack_of;
  std::map<std::string, bool> shared;
  for (std::size_t pack = 0; pack < packs.size(); ++pack)
    for (const std::uint32_t sample : packs[pack].indices) {
      std::string value = column.value_text(sample);
      if (value.empty()) continue;
      const auto [found, is_new] = pack_of.try_emplace(value, pack);
      if (!is_new && found->second != pack) shared[std::move(value)] = true;
    }
  if (shared.empty() || !may_be_ids(column.name, is_text, pack_of.size(), column.size())) return "";
  return "column \"" + column.name + "\": " + count_text(shared.size()) + " of " +
         count_text(pack_of.size(), "value") + (shared.size() == 1 ? " is" : " are") +
         " in several packs of the split, as " + shared.begin()->first;
}

std::string percent_text(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", share * 100);
  return text.data();
}

/// Names the shares that whole groups do not meet to a tenth of a percent.
std::string missed_shares(const SampleList& list, const PackImagesSpec& spec,
                          const std::vector<PackSamples>& packs) {
  std::string text;
  for (std::size_t pack = 0; pack < packs.size(); ++pack) {
    const double found = static_cast<double>(packs[pack].indices.size()) /
                         static_cast<double>(std::max<std::size_t>(1, list.size()));
    const std::string got = percent_text(found), asked = percent_text(spec.split[pack].share);
    if (got != asked)
      text += (text.empty() ? "" : ", ") + packs[pack].name + " has " + got + ", not " + asked;
  }
  return text;
}

}  // namespace

void keep_split_column(PackImagesSpec& spec) {
  const bool is_group = !spec.split_group.empty();
  const std::string& column = is_group ? spec.split_group : spec.split_column;
  if (column.empty()) return;
  if (spec.split.empty())
    throw_usage(is_group ? "`split_group`: is for `split`, whose packs get whole groups"
                         : "`split_column`: is for `split`, which names values: train=1-4,val=0");
  std::vector<std::string>& kept = spec.columns.keep_columns;
  if (std::ranges::find(kept, column) == kept.end()) kept.push_back(column);
}

std::vector<std::uint8_t> assign_values(const SampleList& list, const PackImagesSpec& spec) {
  const SampleColumn& column = find_column(list, spec.split_column, "`split_column`");
  std::unordered_map<std::string, std::uint8_t> known;
  std::vector<std::uint8_t> shares;
  std::vector<bool> is_used(spec.split.size());
  for (std::uint32_t sample = 0; sample < list.size(); ++sample) {
    std::string value = column.value_text(sample);
    auto found = known.find(value);
    if (found == known.end()) {
      const std::uint8_t pack = pack_of(value, spec);
      found = known.emplace(std::move(value), pack).first;
    }
    shares.push_back(found->second);
    is_used[found->second] = true;
  }
  for (std::size_t pack = 0; pack < is_used.size(); ++pack)
    if (!is_used[pack])
      throw_bad_data("`split_column` " + spec.split_column + ": no image has a value of " +
                     spec.split[pack].name + "=" + spec.split[pack].values);
  return shares;
}

std::vector<std::uint8_t> assign_groups(const SampleList& list, const PackImagesSpec& spec) {
  const SampleColumn& column = find_column(list, spec.split_group, "`split_group`");
  const std::vector<std::uint32_t> firsts = first_samples_of_groups(list, column);
  const std::vector<Group> groups = list_groups(list, firsts, spec.seed);
  GroupDealer dealer(groups, spec.split);
  std::vector<std::uint8_t> shares(list.size());
  for (const Group& group : groups) shares[group.first] = dealer.deal(group);
  for (std::uint32_t sample = 0; sample < firsts.size(); ++sample) shares[sample] = shares[firsts[sample]];
  return shares;
}

std::vector<std::string> split_notices(const SampleList& list, const PackImagesSpec& spec,
                                       const std::vector<PackSamples>& packs) {
  std::vector<std::string> notices;
  if (packs.size() < 2) return notices;
  if (!spec.split_group.empty())
    if (const std::string missed = missed_shares(list, spec, packs); !missed.empty())
      notices.push_back("`split_group` " + spec.split_group + " keeps groups whole: " + missed +
                        " of the images");
  for (const SampleColumn& column : list.columns)
    if (const std::string shared = shared_values(column, packs); !shared.empty())
      notices.push_back(shared + (spec.split.empty() ? "; the folders divide them"
                                                     : "; `split_group` " + column.name +
                                                           " keeps the images of a value in one pack"));
  return notices;
}

}  // namespace chunkhit
