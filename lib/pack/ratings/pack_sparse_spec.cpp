#include "pack/ratings/pack_sparse_spec.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "base/throw_error.h"
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

std::string amount_text(const SplitAmount& amount) {
  return amount.count > 0 ? std::to_string(amount.count) : number_text(amount.share);
}

std::string limit_text(const std::optional<float>& limit) { return limit ? number_text(*limit) : "none"; }

/// Records the fields that it is shown.
class SpecWriter {
 public:
  template <class Enum>
  void word(const char* name, const Enum& value) {
    add(name, name_of(value));
  }
  void text(const char* name, const std::string& value, const char* if_empty = "") {
    add(name, value.empty() ? if_empty : value);
  }
  void flag(const char* name, bool value, const char* if_true = "true", const char* if_false = "false") {
    add(name, value ? if_true : if_false);
  }
  void count(const char* name, std::uint64_t value, const char* if_zero = "0") {
    add(name, value == 0 ? if_zero : std::to_string(value));
  }
  template <class Integer>
  void integer(const char* name, const std::optional<Integer>& value, const char* if_none) {
    add(name, value ? std::to_string(*value) : if_none);
  }
  void share(const char* name, double value) { add(name, number_text(value)); }
  void limit(const char* name, const std::optional<float>& value) { add(name, limit_text(value)); }
  void amount(const char* name, const SplitAmount& value) { add(name, amount_text(value)); }
  void values(const char* name, const std::optional<StoredValues>& value) {
    add(name, stored_values_text(value));
  }
  std::vector<SpecEntry> entries;

 private:
  void add(const char* name, std::string value) { entries.push_back({name, std::move(value)}); }
};

// Each shows the fields of a spec in the order in which they are recorded.

void show_input(const PackSparseSpec& spec, SpecWriter& fields) {
  const RatingTableSpec& table = spec.input.table;
  fields.text("format", spec.input.format, "auto");
  fields.text("delimiter", table.delimiter, "auto");
  fields.word("header", table.header);
  fields.text("user", table.user, "auto");
  fields.text("item", table.item, "auto");
  fields.text("value", table.value, "auto");
  fields.text("time", table.time, "auto");
  fields.word("quote", table.quoting);
  fields.text("comment", table.comment);
  fields.values("values", spec.packs.rules.values);
  fields.word("transpose", spec.input.transpose);
  fields.text("layer", spec.input.layer);
  const SharedRows shared = spec.input.shared_rows;
  if (shared != SharedRows::error) fields.word("shared-rows", shared);
  const Encoding encoding = spec.input.encoding;
  if (encoding != Encoding::utf8) fields.word("encoding", encoding);
}

void show_rules(const RatingRules& rules, SpecWriter& fields) {
  fields.word("duplicates", rules.duplicates);
  fields.word("zeros", rules.zeros);
  fields.limit("above", rules.above);
  fields.flag("binarize", rules.binarize);
  fields.count("min-user", rules.min_user);
  fields.count("min-item", rules.min_item);
}

/// Until this was recorded, splits by ratio and time hid the validation ratings, the other ones did not.
void show_hidden(const RatingSplitSpec& split, SpecWriter& fields) {
  const bool is_new = split.kind == SplitKind::ratio || split.kind == SplitKind::time;
  const bool has_both = split.has_validation() && split.has_test();
  if (split.hide_validation || (is_new && has_both)) fields.flag("hide-validation", split.hide_validation);
}

void show_split(const RatingSplitSpec& split, const RecordedIds& ids, SpecWriter& fields) {
  fields.word("split-by", split.kind);
  if (split.kind == SplitKind::none) return;
  if (split.kind == SplitKind::given) {
    fields.count("train-file", split.files.train);
    fields.count("validation-file", split.files.validation);
    fields.count("test-file", split.files.test);
    show_hidden(split, fields);
    return;
  }
  fields.amount("validation", split.validation);
  fields.amount("test", split.test);
  if (!ids.validation_users.empty()) fields.text("validation-users", ids.validation_users);
  if (!ids.test_users.empty()) fields.text("test-users", ids.test_users);
  if (split.is_by_user()) fields.share("fold-in", split.fold_in);
  if (split.kind == SplitKind::ratio || split.kind == SplitKind::leave_one_out)
    fields.word("split-order", split.order);
  if (split.before.has_value()) fields.integer("before", split.before, "none");
  show_hidden(split, fields);
}

void show_spec(const PackSparseSpec& spec, const RecordedIds& ids, SpecWriter& fields) {
  show_input(spec, fields);
  show_rules(spec.packs.rules, fields);
  show_split(spec.packs.split, ids, fields);
  fields.word("id-order", spec.packs.item_order);
  fields.text("reuse-ids", ids.reuse_ids, "none");
  fields.flag("order", spec.packs.shuffles_rows, "shuffle", "input");
  fields.count("seed", spec.packs.seed);
  fields.text("container", spec.container);
  fields.text("codec", spec.codec);
  if (spec.container == "shard") fields.count("chunk-rows", spec.chunk_rows, "auto");
  fields.count("part-bytes", spec.part_bytes);
  if (spec.packs.keep_times) fields.flag("keep-times", spec.packs.keep_times);
  if (!ids.item_columns.empty()) fields.text("item-columns", ids.item_columns);
  if (!ids.user_columns.empty()) fields.text("user-columns", ids.user_columns);
}

void check_sizes(const PackSparseSpec& spec) {
  const bool shard = spec.container == "shard";
  if (!shard && spec.container != "hdf5")
    throw_usage("`container`: expected shard or hdf5, found " + spec.container);
  if (spec.part_bytes < 1) throw_usage("`part_bytes`: must be at least 1");
  if (spec.chunk_rows > 0 && !shard) throw_usage("`chunk_rows` is for shards: give `container` shard");
  if (spec.chunk_rows > container("shard").max_chunk_bytes)
    throw_usage("`chunk_rows`: must be at most " + std::to_string(container("shard").max_chunk_bytes));
}

/// Throws cannot_write where the list of items would replace a folder, an input, or, but for `force`, a file.
void check_list_output(const PackSparseOptions& options) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(options.output, error)) return;
  const auto is_output = [&](const std::string& path) {
    std::error_code missing;
    return path != "-" && fs::equivalent(path, options.output, missing);
  };
  if (std::ranges::any_of(options.inputs, is_output))
    throw Error(ErrorCode::cannot_write, options.output + ": is an input; give another `output`");
  if (fs::is_directory(options.output, error))
    throw Error(ErrorCode::cannot_write, options.output + ": is a folder; expected a file for the items");
  if (!options.force)
    throw Error(ErrorCode::cannot_write, options.output + ": is there already; `force` replaces it");
}

}  // namespace

std::vector<SpecEntry> recorded_spec(const PackSparseSpec& spec, const RecordedIds& ids,
                                     const std::string& split_name) {
  PackSparseSpec chosen = spec;  // what "automatic" means is recorded
  chosen.codec = codec_text(codec_choice(spec));
  chosen.packs.split.order = spec.packs.split.resolved_order();
  SpecWriter writer;
  show_spec(chosen, ids, writer);
  if (!split_name.empty()) writer.text("split-name", split_name);
  return std::move(writer.entries);
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
  if (!format.empty() && !enum_of<RatingFormat>(format)) {
    std::string expected;
    for (const std::string_view word : kEnumWords<RatingFormat>)
      expected.append(expected.empty() ? "" : ", ").append(word);
    throw_usage("`format`: expected " + expected + ", found '" + format + "'");
  }
  check_sizes(spec);
  check_split(spec.packs.split);
  static_cast<void>(codec_choice(spec));
}

void check_countable(const PackSparseSpec& spec, const PackSparseOptions& options) {
  const PackSparseSpec plain;
  const RatingSplitSpec& split = spec.packs.split;
  const std::pair<const char*, bool> given[] = {{"reuse_ids", !spec.reuse_ids.empty()},
                                                {"item_columns", !spec.item_columns.empty()},
                                                {"user_columns", !spec.user_columns.empty()},
                                                {"keep_times", spec.packs.keep_times},
                                                {"order", !spec.packs.shuffles_rows},
                                                {"container", spec.container != plain.container},
                                                {"codec", !spec.codec.empty()},
                                                {"chunk_rows", spec.chunk_rows != plain.chunk_rows},
                                                {"part_bytes", spec.part_bytes != plain.part_bytes}};
  for (const auto& [field, is_given] : given)
    if (is_given) throw_usage("`count_items`: does not take `" + std::string(field) + "`");
  if (split.kind == SplitKind::users)
    throw_usage("`count_items`: needs `split_by` users-by-id, found users: parts would hold out others");
  if (split.kind == SplitKind::given) throw_usage("`count_items`: does not take `split_by` given");
  if (split.kind == SplitKind::time && (!split.before || !split.validation.is_none()))
    throw_usage("`count_items`: `split_by` time needs `before`, and no `validation`");
  if (split.kind == SplitKind::ratio && split.resolved_order() == SplitOrder::random)
    throw_usage("`count_items`: `split_by` ratio needs `split_order` time or input");
  if (split.kind == SplitKind::leave_one_out && split.resolved_order() == SplitOrder::random)
    throw_usage("`count_items`: `split_by` leave-one-out needs `split_order` time or input");
  if (options.output.empty()) throw_usage("`output` is required: a file for the items, as items.csv");
  check_list_output(options);
}

}  // namespace chunkhit
