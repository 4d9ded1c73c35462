#include "pack/ratings/pack_sparse_spec.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "manifest/recorded_fields.h"
#include "pack/ratings/sparse_fields.h"
#include "ratings/rating_format.h"
#include "ratings/rating_packs.h"
#include "store/part.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

void check_sizes(const PackSparseSpec& spec) {
  const auto kind = std::ranges::find(containers(), spec.container, &Container::name);
  if (kind == containers().end()) throw_usage("`container`: expected shard or hdf5, found " + spec.container);
  if (spec.part_bytes < 1) throw_usage("`part_bytes`: must be at least 1");
  if (spec.chunk_rows > 0 && !kind->holds_row_blocks)
    throw_usage("`chunk_rows` is for shards: give `container` shard");
  if (spec.chunk_rows > kind->max_chunk_bytes)
    throw_usage("`chunk_rows`: must be at most " + std::to_string(kind->max_chunk_bytes));
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
    throw_cannot_write(options.output + ": is an input; give another `output`");
  if (fs::is_directory(options.output, error))
    throw_cannot_write(options.output + ": is a folder; expected a file for the items");
  if (!options.force) throw_cannot_write(options.output + ": is there already; `force` replaces it");
}

}  // namespace

RecordedSpec recorded_spec(const PackSparseSpec& spec, const RecordedIds& ids,
                           const std::string& split_name) {
  // leave-one-out holds one rating out, whether `test` says so or not.
  PackSparseSpec recorded = spec;
  if (spec.packs.split.split_by == SplitKind::leave_one_out) recorded.packs.split.test = {};
  FieldRecorder recorder({{"codec", codec_text(codec_choice(spec))},
                          {"split-order", name_of(spec.packs.split.resolved_order())},
                          {"reuse-ids", ids.reuse_ids.empty() ? "none" : ids.reuse_ids},
                          {"validation-users", ids.validation_users},
                          {"test-users", ids.test_users},
                          {"item-columns", ids.item_columns},
                          {"user-columns", ids.user_columns}});
  show(recorded, recorder);
  if (!split_name.empty()) recorder.entries.push_back({"split-name", split_name});
  return std::move(recorder.entries);
}

CodecChoice codec_choice(const PackSparseSpec& spec) {
  const std::span<const std::string_view> codecs = container(spec.container).matrix_codecs;
  return parse_codec(spec.codec.empty() ? std::string(codecs[0]) : spec.codec, spec.container, codecs);
}

std::vector<std::string> pack_names(const RatingSplitSpec& split) {
  if (split.split_by == SplitKind::none) return {""};
  std::vector<std::string> names{"train"};
  if (split.has_validation()) names.emplace_back("validation");
  if (split.has_test()) names.emplace_back("test");
  return names;
}

void check_spec(const PackSparseSpec& spec) {
  const std::string& format = spec.input.format;
  if (!format.empty() && !enum_of<RatingFormat>(format))
    throw_usage("`format`: expected " + joined(kEnumWords<RatingFormat>) + ", found '" + format + "'");
  check_sizes(spec);
  const PackSparseSpec plain;
  if (spec.item_columns.empty() && spec.user_columns.empty() &&
      (spec.table_header != plain.table_header || spec.table_quote != plain.table_quote))
    throw_usage("`table_header` and `table_quote` are for `item_columns` and `user_columns`");
  if (spec.packs.rules.duplicates == Duplicates::keep && !spec.packs.keep_times)
    throw_usage("`duplicates` keep: expected `keep_times`, which orders the ratings of one user and item");
  check_split(spec.packs.split);
  static_cast<void>(codec_choice(spec));
}

std::string problem_of_counting(const RatingSplitSpec& split) {
  if (split.split_by == SplitKind::users)
    return "needs `split_by` users-by-id, found users: parts would hold out others";
  if (split.split_by == SplitKind::given) return "does not take `split_by` given";
  if (split.split_by == SplitKind::time && (!split.before || !split.validation.is_none()))
    return "`split_by` time needs `before`, and no `validation`";
  const bool divides_by_user =
      split.split_by == SplitKind::ratio || split.split_by == SplitKind::leave_one_out;
  if (divides_by_user && split.resolved_order() == SplitOrder::random)
    return "`split_by` " + name_of(split.split_by) + " needs `split_order` time or input";
  return "";
}

void check_countable(const PackSparseSpec& spec, const PackSparseOptions& options) {
  if (!spec.reuse_ids.empty()) throw_usage("`count_items`: does not take `reuse_ids`, whose items are known");
  if (const std::string problem = problem_of_counting(spec.packs.split); !problem.empty())
    throw_usage("`count_items`: " + problem);
  if (options.output.empty()) throw_usage("`output` is required: a file for the items, as items.csv");
  check_list_output(options);
}

}  // namespace chunkhit
