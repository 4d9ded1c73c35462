#include "pack/pack_sparse_spec.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "ratings/rating_format.h"
#include "ratings/rating_packs.h"
#include "ratings/rating_table.h"
#include "ratings/stored_values.h"
#include "store/part.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

constexpr std::array<std::string_view, 2> kShardCodecs{"zstd", "none"};
constexpr std::array<std::string_view, 2> kHdf5Codecs{"deflate", "none"};

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::usage, message); }

std::string or_auto(const std::string& text) { return text.empty() ? "auto" : text; }
std::string bool_text(bool value) { return value ? "true" : "false"; }

std::string amount_text(const SplitAmount& amount) {
  return amount.count > 0 ? std::to_string(amount.count) : number_text(amount.share);
}

std::string limit_text(const std::optional<float>& limit) { return limit ? number_text(*limit) : "none"; }

void add_input(const RatingInputSpec& input, const std::optional<StoredValues>& values,
               std::vector<SpecEntry>& entries) {
  const RatingTableSpec& table = input.table;
  entries.push_back({"format", or_auto(input.format)});
  entries.push_back({"delimiter", or_auto(table.delimiter)});
  entries.push_back({"header", name_of(table.header)});
  entries.push_back({"user", or_auto(table.user)});
  entries.push_back({"item", or_auto(table.item)});
  entries.push_back({"value", or_auto(table.value)});
  entries.push_back({"time", or_auto(table.time)});
  entries.push_back({"quote", name_of(table.quoting)});
  entries.push_back({"comment", table.comment});
  entries.push_back({"decimal", std::string(1, table.decimal_point)});
  entries.push_back({"values", stored_values_text(values)});
  entries.push_back({"transpose", name_of(input.transpose)});
  entries.push_back({"layer", input.layer});
  entries.push_back({"index-base", input.index_base ? std::to_string(*input.index_base) : "auto"});
}

void add_rules(const RatingRules& rules, std::vector<SpecEntry>& entries) {
  entries.push_back({"duplicates", name_of(rules.duplicates)});
  entries.push_back({"zeros", name_of(rules.zeros)});
  entries.push_back({"min-value", limit_text(rules.min_value)});
  entries.push_back({"above", limit_text(rules.above)});
  entries.push_back({"binarize", bool_text(rules.binarize)});
  entries.push_back({"min-user", std::to_string(rules.min_user)});
  entries.push_back({"min-item", std::to_string(rules.min_item)});
  entries.push_back({"filter-once", bool_text(rules.filter_once)});
}

void add_split(const RatingSplitSpec& split, const RecordedIds& ids, std::vector<SpecEntry>& entries) {
  entries.push_back({"split-by", name_of(split.kind)});
  if (split.kind == SplitKind::none) return;
  if (split.kind == SplitKind::given) {
    entries.push_back({"train-file", std::to_string(split.files.train)});
    entries.push_back({"validation-file", std::to_string(split.files.validation)});
    entries.push_back({"test-file", std::to_string(split.files.test)});
    return;
  }
  entries.push_back({"validation", amount_text(split.validation)});
  entries.push_back({"test", amount_text(split.test)});
  if (!ids.validation_users.empty()) entries.push_back({"validation-users", ids.validation_users});
  if (!ids.test_users.empty()) entries.push_back({"test-users", ids.test_users});
  if (split.kind == SplitKind::users) entries.push_back({"fold-in", number_text(split.fold_in)});
  if (split.kind == SplitKind::ratio || split.kind == SplitKind::leave_one_out)
    entries.push_back({"split-order", name_of(split.resolved_order())});
  if (split.before) entries.push_back({"before", std::to_string(*split.before)});
}

void check_sizes(const PackSparseSpec& spec) {
  const bool shard = spec.container == "shard";
  if (!shard && spec.container != "hdf5")
    refuse("`container`: expected shard or hdf5, found " + spec.container);
  if (spec.part_bytes < 1) refuse("`part_bytes`: must be at least 1");
  if (spec.chunk_rows > 0 && !shard) refuse("`chunk_rows` is for shards: give `container` shard");
  if (spec.chunk_rows > container("shard").max_chunk_bytes)
    refuse("`chunk_rows`: must be at most " + std::to_string(container("shard").max_chunk_bytes));
  if (spec.storage == MatrixStorage::dense && shard)
    refuse("`storage` dense is for HDF5: give `container` hdf5");
}

}  // namespace

std::vector<SpecEntry> recorded_spec(const PackSparseSpec& spec, const RecordedIds& ids,
                                     const std::string& split_name) {
  std::vector<SpecEntry> entries;
  add_input(spec.input, spec.packs.rules.values, entries);
  add_rules(spec.packs.rules, entries);
  add_split(spec.packs.split, ids, entries);
  entries.push_back({"id-order", name_of(spec.packs.item_order)});
  entries.push_back({"reuse-ids", ids.reuse_ids.empty() ? "none" : ids.reuse_ids});
  entries.push_back({"order", spec.packs.shuffles_rows ? "shuffle" : "input"});
  entries.push_back({"seed", std::to_string(spec.packs.seed)});
  entries.push_back({"container", spec.container});
  entries.push_back({"codec", codec_text(codec_choice(spec))});
  if (spec.container == "hdf5") entries.push_back({"storage", name_of(spec.storage)});
  if (spec.container == "shard")
    entries.push_back({"chunk-rows", spec.chunk_rows == 0 ? "auto" : std::to_string(spec.chunk_rows)});
  entries.push_back({"part-bytes", std::to_string(spec.part_bytes)});
  if (!split_name.empty()) entries.push_back({"split-name", split_name});
  return entries;
}

CodecChoice codec_choice(const PackSparseSpec& spec) {
  const std::span<const std::string_view> codecs =
      spec.container == "hdf5" ? std::span<const std::string_view>(kHdf5Codecs) : kShardCodecs;
  return parse_codec(spec.codec.empty() ? std::string(codecs[0]) : spec.codec, spec.container, codecs);
}

std::vector<std::string> pack_names(const RatingSplitSpec& split) {
  if (split.kind == SplitKind::none) return {""};
  std::vector<std::string> names{"train"};
  if (split.has_validation()) names.emplace_back("validation");
  if (split.has_test()) names.emplace_back("test");
  return names;
}

void check_spec(const PackSparseSpec& spec) {
  const std::string& format = spec.input.format;
  if (!format.empty() && !enum_of<RatingFormat>(format)) refuse("`format`: '" + format + "' is not known");
  check_sizes(spec);
  check_split(spec.packs.split);
  static_cast<void>(codec_choice(spec));
}

}  // namespace chunkhit
