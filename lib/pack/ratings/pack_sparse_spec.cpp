#include "pack/ratings/pack_sparse_spec.h"

#include <algorithm>
#include <array>
#include <charconv>
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
  /// A field that is recorded only where something is chosen.
  [[nodiscard]] static bool has(const char*, bool is_chosen) { return is_chosen; }
  std::vector<SpecEntry> entries;

 private:
  void add(const char* name, std::string value) { entries.push_back({name, std::move(value)}); }
};

/// Sets the fields that it is shown from recorded entries; throws bad_data for what no field records.
class SpecReader {
 public:
  explicit SpecReader(const std::vector<SpecEntry>& entries) : entries_(entries) {}
  template <class Enum>
  void word(const char* name, Enum& value) const {
    const std::optional<Enum> found = enum_of<Enum>(entry(name));
    if (!found) refuse(name);
    value = *found;
  }
  void text(const char* name, std::string& value, const char* if_empty = "") const {
    value = entry(name) == if_empty ? "" : entry(name);
  }
  void flag(const char* name, bool& value, const char* if_true = "true",
            const char* if_false = "false") const {
    value = entry(name) == if_true;
    if (!value && entry(name) != if_false) refuse(name);
  }
  void count(const char* name, std::uint64_t& value, const char* if_zero = "0") const {
    value = entry(name) == if_zero ? 0 : number<std::uint64_t>(name);
  }
  template <class Integer>
  void integer(const char* name, std::optional<Integer>& value, const char* if_none) const {
    value.reset();
    if (entry(name) != if_none) value = number<Integer>(name);
  }
  void share(const char* name, double& value) const { value = number<double>(name); }
  void limit(const char* name, std::optional<float>& value) const {
    value.reset();
    if (entry(name) != "none") value = number<float>(name);
  }
  void amount(const char* name, SplitAmount& value) const {
    value = {};
    if (entry(name).find_first_not_of("0123456789") == std::string::npos)
      value.count = number<std::uint64_t>(name);
    else
      value.share = number<double>(name);
  }
  void values(const char* name, std::optional<StoredValues>& value) const {
    value = parse_stored_values(entry(name));
  }
  [[nodiscard]] bool has(const char* name, bool) const {
    return std::ranges::find(entries_, name, &SpecEntry::name) != entries_.end();
  }

 private:
  [[nodiscard]] const std::string& entry(const char* name) const {
    const auto found = std::ranges::find(entries_, name, &SpecEntry::name);
    if (found == entries_.end())
      throw Error(ErrorCode::bad_data, "spec: " + std::string(name) + " is missing");
    return found->value;
  }
  template <class Number>
  [[nodiscard]] Number number(const char* name) const {
    const std::string& text = entry(name);
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) refuse(name);
    return value;
  }
  [[noreturn]] void refuse(const char* name) const {
    throw Error(ErrorCode::bad_data, "spec: " + std::string(name) + ": found '" + entry(name) + "'");
  }

  const std::vector<SpecEntry>& entries_;
};

// Each shows the fields of a spec in the order in which they are recorded; `Spec` is const for a SpecWriter.

template <class Spec, class Fields>
void show_input(Spec& spec, Fields& fields) {
  auto& table = spec.input.table;
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
  auto& shared = spec.input.shared_rows;
  if (fields.has("shared-rows", shared != SharedRows::error)) fields.word("shared-rows", shared);
  auto& encoding = spec.input.encoding;
  if (fields.has("encoding", encoding != Encoding::utf8)) fields.word("encoding", encoding);
}

template <class Rules, class Fields>
void show_rules(Rules& rules, Fields& fields) {
  fields.word("duplicates", rules.duplicates);
  fields.word("zeros", rules.zeros);
  fields.limit("above", rules.above);
  fields.flag("binarize", rules.binarize);
  fields.count("min-user", rules.min_user);
  fields.count("min-item", rules.min_item);
}

/// Until this was recorded, splits by ratio and time hid the validation ratings, the other ones did not.
template <class Split, class Fields>
void show_hidden(Split& split, Fields& fields) {
  const bool is_new = split.kind == SplitKind::ratio || split.kind == SplitKind::time;
  const bool has_both = split.has_validation() && split.has_test();
  if (fields.has("hide-validation", split.hide_validation || (is_new && has_both)))
    fields.flag("hide-validation", split.hide_validation);
}

template <class Split, class Ids, class Fields>
void show_split(Split& split, Ids& ids, Fields& fields) {
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
  const bool has_lists = !ids.validation_users.empty(), has_test_list = !ids.test_users.empty();
  if (fields.has("validation-users", has_lists)) fields.text("validation-users", ids.validation_users);
  if (fields.has("test-users", has_test_list)) fields.text("test-users", ids.test_users);
  if (split.kind == SplitKind::users) {
    fields.share("fold-in", split.fold_in);
    if (fields.has("users-by-id", split.users_by_id)) fields.flag("users-by-id", split.users_by_id);
  }
  if (split.kind == SplitKind::ratio || split.kind == SplitKind::leave_one_out)
    fields.word("split-order", split.order);
  if (fields.has("before", split.before.has_value())) fields.integer("before", split.before, "none");
  show_hidden(split, fields);
}

template <class Spec, class Ids, class Fields>
void show_spec(Spec& spec, Ids& ids, Fields& fields) {
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
  if (fields.has("keep-times", spec.packs.keep_times)) fields.flag("keep-times", spec.packs.keep_times);
  if (fields.has("item-columns", !ids.item_columns.empty())) fields.text("item-columns", ids.item_columns);
  if (fields.has("user-columns", !ids.user_columns.empty())) fields.text("user-columns", ids.user_columns);
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

}  // namespace

std::vector<SpecEntry> recorded_spec(const PackSparseSpec& spec, const RecordedIds& ids,
                                     const std::string& split_name) {
  PackSparseSpec chosen = spec;  // what "automatic" means is recorded
  chosen.codec = codec_text(codec_choice(spec));
  chosen.packs.split.order = spec.packs.split.resolved_order();
  SpecWriter writer;
  show_spec(std::as_const(chosen), ids, writer);
  if (!split_name.empty()) writer.text("split-name", split_name);
  return std::move(writer.entries);
}

PackSparseSpec sparse_spec_of(const std::vector<SpecEntry>& recorded, RecordedIds& ids) {
  PackSparseSpec spec;
  SpecReader reader(recorded);
  show_spec(spec, ids, reader);
  try {
    check_spec(spec);
  } catch (const Error& error) {
    throw Error(ErrorCode::bad_data, std::string("spec: ") + error.what());
  }
  return spec;
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

}  // namespace chunkhit
