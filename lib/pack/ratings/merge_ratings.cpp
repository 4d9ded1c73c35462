// Merged packs of ratings: the same items in all, each user in one.
#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "manifest/id_list.h"
#include "pack/merge_inputs.h"
#include "pack/ratings/sparse_fields.h"
#include "ratings/rating_packs.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

using NamedCounts = std::vector<std::pair<std::string, std::uint64_t>>;

std::string packing_advice(const MergeInput& input, const MergeInput& first) {
  if (first.ratings->spec.get("split-by") != name_of(SplitKind::none))
    return "pack again from the ratings of both";
  return "pack both as one: pack-sparse " + first.folder + " " + input.folder + " --duplicates last" +
         (first.ratings->times.empty() || input.ratings->times.empty() ? "" : " --keep-times") + " -o …";
}

/// Throws bad_data where the matrices of a pack have another form than the first one's.
void check_ratings(const MergeInput& input, const MergeInput& first) {
  const auto compare = [&](const char* what, const auto& text_of) {
    check_equal(input, first, what, text_of(*input.ratings), text_of(*first.ratings),
                packing_advice(input, first));
  };
  compare("has items:", [](const MatrixManifest& each) { return std::to_string(each.columns); });
  compare("has matrices:", [](const MatrixManifest& each) {
    return each.matrices.size() > 1 ? "X and held_out" : std::string("X");
  });
  compare("has values of", [](const MatrixManifest& each) {
    return name_of(each.value_type) + " times " + number_text(each.scale);
  });
  const std::string& times = first.ratings->times;
  compare("has times of ratings:", [&](const MatrixManifest& each) {
    if (each.times.empty()) return std::string("none");
    return are_times_alike(each.times, times) ? times : each.times;
  });
  compare("has items that repeat in a row:",
          [](const MatrixManifest& each) { return std::string(each.has_repeats ? "yes" : "no"); });
  compare("has columns of items:",
          [&](const MatrixManifest& each) { return columns_text(each.item_columns); });
  compare("has columns of users:",
          [&](const MatrixManifest& each) { return columns_text(each.user_columns); });
  compare("has labels:", [](const MatrixManifest& each) {
    return each.label_columns.empty() ? "none" : joined(each.label_columns);
  });
}

/// Reads users.csv or items.csv of a pack, an id at a time; at the end its checksum must be the manifest's.
class ListedIds {
 public:
  ListedIds(const std::string& folder, const FileRecord& list, std::string_view header)
      : file_(folder + "/" + list.file), expected_(list.xxh3), ids_(file_.path(), source(), header) {}

  [[nodiscard]] bool next() {
    if (ids_.next()) return true;
    if (hash_.value() != expected_)
      throw_bad_data(file_.path() + ": checksum " + hash_text(hash_.value()) + ", expected " +
                     hash_text(expected_) + "; see pack-verify");
    return false;
  }
  [[nodiscard]] const IdListReader& ids() const { return ids_; }

 private:
  ByteSource source() {
    return [this](MutableBytes out) {
      const MutableBytes read = out.first(std::min<std::uint64_t>(out.size(), file_.byte_count() - offset_));
      file_.read_at(offset_, read);
      hash_.update(read);
      offset_ += read.size();
      return read.size();
    };
  }

  InputFile file_;
  std::uint64_t expected_;
  std::uint64_t offset_ = 0;
  Xxh3Stream hash_;
  IdListReader ids_;  // last: it reads at once
};

/// The texts of the kept columns of an item or user.
std::vector<std::string> texts_of(const IdListReader& list) {
  return {list.kept().begin(), list.kept().end()};
}

/// The items of all packs, by column, and their ratings in all of them.
struct MergedItems {
  std::vector<std::string> ids;
  std::vector<std::uint64_t> ratings;
  std::vector<std::vector<std::string>> kept;  ///< texts of kept columns, as the first pack has them
};

/// Reads the items; throws bad_data naming the first column in which two packs have different ones.
MergedItems merge_items(std::span<const MergeInput> inputs) {
  MergedItems merged;
  for (const MergeInput& input : inputs) {
    ListedIds list(input.folder, input.ratings->items, kItemsHeader);
    std::size_t column = 0;
    for (; list.next(); ++column) {
      if (&input == &inputs.front()) {
        merged.ids.emplace_back(list.ids().id());
        merged.ratings.push_back(0);
        merged.kept.push_back(texts_of(list.ids()));
      }
      if (column < merged.ids.size() && merged.ids[column] == list.ids().id())
        merged.ratings[column] += list.ids().ratings();
      else
        check_equal(
            input, inputs.front(), "column " + std::to_string(column) + " is item",
            std::string(list.ids().id()), column < merged.ids.size() ? merged.ids[column] : "none",
            packing_advice(input, inputs.front()) + ", or one again with the other's items (`reuse_ids`)");
    }
    if (column != input.ratings->columns)
      throw_bad_data(input.folder + ": items.csv has " + count_text(column, "item") + ", expected " +
                     count_text(input.ratings->columns));
  }
  return merged;
}

void visit_users(std::span<const MergeInput> inputs, const auto& visit) {
  for (const MergeInput& input : inputs) {
    ListedIds list(input.folder, input.ratings->users, kUsersHeader);
    while (list.next()) visit(input, list.ids());
  }
}

/// Throws bad_data where a user is in two packs. Holds a hash for each user; the ids of equal hashes, which
/// nearly always are equal ids, are read again.
void check_disjoint(std::span<const MergeInput> inputs) {
  std::vector<std::uint64_t> hashes;
  visit_users(inputs, [&](const MergeInput&, const IdListReader& user) {
    hashes.push_back(xxh3(as_bytes(user.id())));
  });
  std::ranges::sort(hashes);
  std::vector<std::uint64_t> shared;
  for (std::size_t i = 1; i < hashes.size(); ++i)
    if (hashes[i] == hashes[i - 1]) shared.push_back(hashes[i]);
  if (shared.empty()) return;
  std::unordered_map<std::string, const MergeInput*> pack_of_user;
  visit_users(inputs, [&](const MergeInput& input, const IdListReader& user) {
    if (!std::ranges::binary_search(shared, xxh3(as_bytes(user.id())))) return;
    const auto [found, is_new] = pack_of_user.try_emplace(std::string(user.id()), &input);
    if (!is_new)
      throw_bad_data(input.folder + ": user " + std::string(user.id()) + " is also in " +
                     found->second->folder + ": a merged pack has each user once; " +
                     packing_advice(input, *found->second));
  });
}

void add_counts(const NamedCounts& more, NamedCounts& sums) {
  for (const auto& [name, count] : more) {
    const auto found = std::ranges::find(sums, name, &NamedCounts::value_type::first);
    if (found == sums.end())
      sums.emplace_back(name, count);
    else
      found->second += count;
  }
}

/// Adds how often values occur in a pack.
void add_values(const RatingStats& stats, ValueStats& values) {
  for (const ValueCount& each : stats.values)
    stats.value_ranges ? values.add_from_range(each.value, each.ratings)
                       : values.add(each.value, each.ratings);
}

/// Adds up what can be added. Steps are left out: an item may be in several packs, and so may a user that a
/// step removed from one of them.
RatingStats merge_stats(std::span<const MergeInput> inputs) {
  RatingStats merged;
  ValueStats values;
  for (const MergeInput& input : inputs) {
    const RatingStats& stats = input.ratings->stats;
    merged.inputs.insert(merged.inputs.end(), stats.inputs.begin(), stats.inputs.end());
    merged.bad_lines += stats.bad_lines;
    add_counts(stats.reasons, merged.reasons);
    add_counts(stats.left_out, merged.left_out);
    add_values(stats, values);
  }
  const ValueHistogram histogram = values.histogram();
  for (const ValueHistogram::Bin& bin : histogram.bins) merged.values.push_back({bin.low, bin.count});
  merged.value_ranges = histogram.has_ranges;
  return merged;
}

}  // namespace

MatrixManifest merge_ratings(std::span<const MergeInput> inputs) {
  const MatrixManifest& first = *inputs.front().ratings;
  MatrixManifest merged;
  merge_common(inputs, merged);
  merged.columns = first.columns;
  merged.value_type = first.value_type;
  merged.scale = first.scale;
  merged.times = first.times;
  merged.has_repeats = first.has_repeats;
  merged.chunk_rows = first.chunk_rows;
  merged.item_columns = first.item_columns;
  merged.user_columns = first.user_columns;
  for (const PackMatrix& matrix : first.matrices) merged.matrices.push_back({matrix.name, 0, 0});
  for (const MergeInput& input : inputs) {
    check_ratings(input, inputs.front());
    if (merged.times == kUnknownTimes) merged.times = input.ratings->times;
    for (std::size_t matrix = 0; matrix < merged.matrices.size(); ++matrix) {
      PackMatrix& sum = merged.matrices[matrix];
      sum.nnz += input.ratings->matrices[matrix].nnz;
      sum.longest_row = std::max(sum.longest_row, input.ratings->matrices[matrix].longest_row);
    }
  }
  static_cast<void>(merge_items(inputs));
  check_disjoint(inputs);
  merged.stats = merge_stats(inputs);
  return merged;
}

namespace {

FileRecord publish_list(IdListWriter& writer) {
  CompleteList list = writer.complete();
  list.file.publish();
  return list.record;
}

}  // namespace

void publish_tables(std::span<const MergeInput> inputs, const std::string& folder, const TableName& name,
                    MatrixManifest& merged) {
  const MergedItems items = merge_items(inputs);
  IdListWriter item_list(folder, name(kItemsName), kItemsHeader, merged.item_columns);
  for (std::size_t column = 0; column < items.ids.size(); ++column)
    item_list.add(items.ratings[column], items.ids[column], items.kept[column]);
  merged.items = publish_list(item_list);
  IdListWriter user_list(folder, name(kUsersName), kUsersHeader, merged.user_columns);
  visit_users(inputs, [&](const MergeInput&, const IdListReader& user) {
    user_list.add(user.ratings(), user.id(), texts_of(user));
  });
  merged.users = publish_list(user_list);
}

std::vector<std::string> rating_settings() {
  MeaningCollector settings;
  PackSparseSpec spec;
  show(spec, settings);
  std::erase(settings.names, "values");  // packs of other stored types are not merged
  return std::move(settings.names);
}

}  // namespace chunkhit
