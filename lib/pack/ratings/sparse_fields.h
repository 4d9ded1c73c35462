// The fields of PackSparseSpec and PackSparseOptions: one table for the record of a pack, flags, recipes and
// Python's keywords.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/throw_error.h"
#include "chunkhit/pack.h"
#include "chunkhit/sparse_spec.h"
#include "pack/run_fields.h"
#include "ratings/rating_fields.h"
#include "ratings/stored_values.h"
#include "types/fields.h"

namespace chunkhit {

/// A column: its name, or its number from 1.
struct ColumnForm : TextForm {
  static constexpr const char* kShape = "NAME|N";
  static constexpr const char* kPythonType = "Union[str, int]";
};

/// A delimiter: text, where "tab" is one.
struct DelimiterForm : TextForm {
  void parse(const std::string& name, const std::string& text, std::string& value) const {
    TextForm::parse(name, text == "tab" || text == "\\t" ? "\t" : text, value);
  }
};

/// Whether columns of matrices are users; recorded as "yes", else "auto".
struct TransposeForm : SwitchForm {
  [[nodiscard]] std::string text(bool value) const { return value ? "yes" : "auto"; }
};

/// A limit of values, or none.
struct LimitForm {
  static constexpr const char* kShape = "V";
  static constexpr const char* kPythonType = "float";
  [[nodiscard]] std::string text(const std::optional<float>& value) const {
    return value ? number_text(*value) : "none";
  }
  void parse(const std::string& name, const std::string& text, std::optional<float>& value) const {
    float number = 0;
    value.reset();
    if (text.empty() || text == "none") return;
    if (!parse_value(text, number)) refuse_text(name, "a number", text);
    value = number;
  }
};

/// A time as the input has it, or a day or moment; or none.
struct MomentForm {
  static constexpr const char* kShape = "TIME";
  static constexpr const char* kPythonType = "Union[int, str]";
  [[nodiscard]] std::string text(const std::optional<std::int64_t>& value) const {
    return value ? std::to_string(*value) : "none";
  }
  void parse(const std::string& name, const std::string& text, std::optional<std::int64_t>& value) const {
    std::int64_t time = 0;
    value.reset();
    if (text.empty() || text == "none") return;
    if (!parse_time(text, time))
      refuse_text(name, "a time as the input has it, YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS", text);
    value = time;
  }
};

/// A type of values, with its scale.
struct StoredValuesForm {
  static constexpr const char* kShape = "TYPE";
  static constexpr const char* kPythonType = "str";
  [[nodiscard]] std::string text(const std::optional<StoredValues>& value) const {
    return stored_values_text(value);
  }
  void parse(const std::string&, const std::string& text, std::optional<StoredValues>& value) const {
    value = parse_stored_values(text);
  }
};

/// Completes what was given: users that a preset holds out are for `users` alone, and leave-one-out holds out
/// one rating for test; throws usage where `test` was given as none.
inline void resolve_split(RatingSplitSpec& split, bool is_validation_given, bool is_test_given) {
  if (split.split_by == SplitKind::users) return;
  if (!is_validation_given) split.validation = {};
  if (!is_test_given) split.test = {};
  if (split.split_by != SplitKind::leave_one_out || !split.test.is_none()) return;
  if (is_test_given)
    throw_usage(
        "`test`: expected 1, or nothing, for `split_by` leave-one-out, which always holds out one "
        "rating of each user for test; found 0");
  split.test.count = 1;
}

/// Reads a spec, which a preset begins: `is_given` says whether a field is given, `list_of` gives the files
/// of a split, and `read` reads all other fields. The files become the inputs. Throws usage.
template <class IsGiven, class ListOf, class Read>
[[nodiscard]] PackSparseSpec read_sparse_spec(bool has_preset, const IsGiven& is_given, const ListOf& list_of,
                                              const Read& read, std::vector<std::string>& inputs) {
  PackSparseSpec spec;
  RatingSplitSpec& split = spec.packs.split;
  if (has_preset) spec.packs = vae_cf_spec();
  if (has_preset && is_given("validation_users")) split.validation = {};
  if (has_preset && is_given("test_users")) split.test = {};
  const bool is_validation_given = is_given("validation"), is_test_given = is_given("test");
  read(spec);
  resolve_split(split, is_validation_given, is_test_given);
  const std::array files{list_of("train_file"), list_of("validation_file"), list_of("test_file")};
  split.files = {files[0].size(), files[1].size(), files[2].size()};
  if (split.files.count() == 0) return spec;
  if (!inputs.empty())
    throw_usage("`inputs`: found " + inputs[0] + " beside a split given as files; give it as `train_file`");
  if (split.split_by != SplitKind::none && split.split_by != SplitKind::given)
    throw_usage("`train_file`, `validation_file`, `test_file`: are a split of their own, found `split_by` " +
                name_of(split.split_by));
  split.split_by = SplitKind::given;
  for (const auto& each : files) inputs.insert(inputs.end(), each.begin(), each.end());
  return spec;
}

// Fields stand in the order in which they are recorded. `Spec` is const for a recorder.

template <class Spec, class Fields>
void show_input(Spec& spec, Fields& fields) {
  auto& input = spec.input;
  auto& table = input.table;
  fields.group("Input");
  fields(
      Field{"format", "Format of all inputs: text, json-lines, npz, hdf5 ...", "WORD"}.that_may_differ(),
      input.format,
      ChoiceForm{{"auto"}, "auto text user-items netflix json-lines matrix-market svmlight npz hdf5 pack"});
  fields(Field{"delimiter", "Field delimiter: , :: tab blanks ..."}.that_may_differ(), table.delimiter,
         DelimiterForm{{"auto"}});
  fields(Field{"header", "Whether the first line is a header"}.that_may_differ(), table.header, WordForm{});
  fields(Field{"user", "User column: a name, or a number from 1"}.that_may_differ(), table.user,
         ColumnForm{{"auto"}});
  fields(Field{"item", "Item column, in the same way"}.that_may_differ(), table.item, ColumnForm{{"auto"}});
  fields(Field{"value", "Value column; the word none: implicit feedback, every rating is 1"}, table.value,
         ColumnForm{{"auto"}});
  fields(Field{"time", "Time column; the word none: ignore times"}.that_may_differ(), table.time,
         ColumnForm{{"auto"}});
  fields(Field{"quote", "Quoting of fields; double: \"...\""}.that_may_differ(), table.quote, WordForm{});
  fields(Field{"comment", "Skip lines that start with TEXT"}.that_may_differ(), table.comment, TextForm{});
  fields.group("Ratings");
  fields(Field{"values", "Stored type: auto, none, u8, u16, u8:SCALE, u16:SCALE, f32 (rounds)"},
         spec.packs.rules.values, StoredValuesForm{});
  fields.group("Input");
  fields(Field{"transpose", "Matrix inputs have items as rows, users as columns"}, input.transpose,
         TransposeForm{});
  fields(Field{"layer", "hdf5: an AnnData layer, the word raw, or a genome; empty: X", "NAME"}, input.layer,
         TextForm{});
  fields.record_if(!input.feature_type.empty(),
                   Field{"feature_type", "hdf5 of 10x Genomics: only features of this type", "NAME"},
                   input.feature_type, TextForm{});
  fields.record_if(input.shared_rows != SharedRows::error,
                   Field{"shared_rows", "Row names of several matrices"}, input.shared_rows, WordForm{});
  fields.record_if(input.encoding != TextEncoding::utf8, Field{"encoding", "Encoding of ratings and tables"},
                   input.encoding, WordForm{});
}

template <class Rules, class Fields>
void show_rules(Rules& rules, Fields& fields) {
  fields.group("Ratings");
  fields(Field{"duplicates", "Ratings of one user and item"}, rules.duplicates, WordForm{});
  fields(Field{"zeros", "Ratings of 0"}, rules.zeros, WordForm{});
  fields(Field{"above", "Keep ratings > V"}, rules.above, LimitForm{});
  fields(Field{"binarize", "Replace every rating by 1"}, rules.binarize, SwitchForm{});
  fields(Field{"min_user", "Minimum ratings per user"}.that_may_differ(), rules.min_user, CountForm{});
  fields(Field{"min_item", "Minimum ratings per item; with min-user: k-core"}.that_may_differ(),
         rules.min_item, CountForm{});
}

/// A split given as files records how many there are; the others record what they draw by.
template <class Split, class Fields>
void show_split(Split& split, Fields& fields) {
  const bool is_given = split.split_by == SplitKind::given;
  const bool draws = !is_given && split.split_by != SplitKind::none;
  const bool hides = split.hide_validation ||  // until this was recorded these splits hid validation
                     ((split.split_by == SplitKind::ratio || split.split_by == SplitKind::time) &&
                      split.has_validation() && split.has_test());
  fields.group("Split");
  fields(Field{"split_by", "Method"}, split.split_by, WordForm{});
  fields.recorded_only(is_given, Field{"train_file", ""}, split.files.train, CountForm{});
  fields.recorded_only(is_given, Field{"validation_file", ""}, split.files.validation, CountForm{});
  fields.recorded_only(is_given, Field{"test_file", ""}, split.files.test, CountForm{});
  fields.record_if(draws,
                   Field{"validation", "For validation: users, or ratings (ratio, time); leave-one-out: 1"}
                       .that_may_differ(),
                   split.validation, AmountForm{});
  fields.record_if(draws, Field{"test", "The same for test; leave-one-out: always 1"}.that_may_differ(),
                   split.test, AmountForm{});
  fields.record_if(
      draws && !split.validation_users.empty(),
      Field{"validation_users", "users: hold out the ids in FILE, one per line, for validation", "FILE"}
          .that_may_differ(),
      split.validation_users, PathForm{});
  fields.record_if(draws && !split.test_users.empty(),
                   Field{"test_users", "users: the same for test", "FILE"}.that_may_differ(),
                   split.test_users, PathForm{});
  fields.record_if(draws && split.is_by_user(),
                   Field{"fold_in", "users: share of a held-out user's items used as input"}, split.fold_in,
                   ShareForm{});
  fields.record_if(split.split_by == SplitKind::ratio || split.split_by == SplitKind::leave_one_out,
                   Field{"split_order", "Which ratings"}.that_may_differ(), split.split_order, WordForm{});
  fields.record_if(draws && split.before.has_value(),
                   Field{"before", "time: start of the test period, a number or YYYY-MM-DD"}, split.before,
                   MomentForm{});
  fields.record_if(
      hides,
      Field{"hide_validation", "Leave the ratings of validation out of X of test; not with split-by users"},
      split.hide_validation, SwitchForm{});
}

template <class Spec, class Fields>
void show(Spec& spec, Fields& fields) requires std::is_same_v<std::remove_const_t<Spec>, PackSparseSpec> {
  const bool is_shard = spec.container == "shard";
  show_input(spec, fields);
  show_rules(spec.packs.rules, fields);
  show_split(spec.packs.split, fields);
  fields.group("Output");
  fields(Field{"id_order", "Order of columns"}.that_may_differ(), spec.packs.id_order, WordForm{});
  fields(
      Field{"reuse_ids", "Use the item columns of another pack or its items.csv", "PACK"}.that_may_differ(),
      spec.reuse_ids, PathForm{{"none"}});
  fields(Field{"order", "Order of rows"}.that_may_differ(), spec.packs.order, WordForm{});
  fields(Field{"seed", "Seed of the shuffle and the split"}.that_may_differ(), spec.packs.seed, CountForm{});
  fields(Field{"container", "File format: shard, hdf5 as AnnData"}.that_may_differ(), spec.container,
         ChoiceForm{{""}, "shard hdf5"});
  fields(Field{"codec", "Codec and its level. shard: (zstd), none; hdf5: (deflate), none", "NAME[:N]"}
             .that_may_differ(),
         spec.codec, TextForm{});
  fields.record_if(is_shard, Field{"chunk_rows", "shard: rows per block"}.that_may_differ(), spec.chunk_rows,
                   CountForm{1, UINT32_MAX, "auto"});
  fields(Field{"part_bytes", "Maximum raw bytes per part, at least one chunk"}.that_may_differ(),
         spec.part_bytes, BytesForm{});
  fields.record_if(spec.packs.keep_times,
                   Field{"keep_times", "Keep the time of each rating"}.that_may_differ(),
                   spec.packs.keep_times, SwitchForm{});
  fields.record_if(
      !spec.item_columns.empty(),
      Field{"item_columns", "Keep columns of a CSV of items (ids: column of the ratings' name, or first)",
            "FILE"}
          .that_may_differ(),
      spec.item_columns, PathForm{});
  fields.record_if(!spec.user_columns.empty(),
                   Field{"user_columns", "The same for users", "FILE"}.that_may_differ(), spec.user_columns,
                   PathForm{});
  fields.unrecorded(Field{"table_header", "Whether the first line of these CSVs is a header"},
                    spec.table_header, WordForm{});
  fields.unrecorded(Field{"table_quote", "Quoting of fields in these CSVs"}, spec.table_quote, WordForm{});
}

template <class Options, class Fields>
void show(Options& options,
          Fields& fields) requires std::is_same_v<std::remove_const_t<Options>, PackSparseOptions> {
  show_run(options, "Output folder (with split-by: one subfolder per pack)", "Bad lines: skip them, or fail",
           "Maximum number or share of bad lines to skip, at least 1", fields);
}

}  // namespace chunkhit
