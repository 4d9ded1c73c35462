// pack_images and pack_sparse: keywords → spec and options. The packing runs in a thread of its own, so that
// the caller's sees Ctrl-C and shows progress.
#include "binding_pack.h"

#include <pybind11/stl.h>

#include <algorithm>

namespace chunkhit {

template <>
[[gnu::visibility("hidden")]] inline constexpr Words<3> kEnumWords<PackProgress::Phase>{"listing", "packing",
                                                                                        "finishing"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<4> kEnumWords<PackSparseProgress::Phase>{
    "reading", "sorting", "packing", "finishing"};

namespace {

/// Takes a word that stands for one of the two states of a bool.
void take_choice(OptionDict& from, const char* name, bool& field, const char* off, const char* on) {
  if (const auto index = from.take_index(name, std::array<std::string_view, 2>{off, on})) field = *index == 1;
}

/// Takes one text or a list of texts.
void take_texts(OptionDict& from, const char* name, std::vector<std::string>& texts) {
  const py::object value = from.take_value(name);
  if (value.is_none()) return;
  try {
    if (py::isinstance<py::str>(value) || py::isinstance<py::bytes>(value))
      texts = {value.cast<std::string>()};
    else
      texts = value.cast<std::vector<std::string>>();
  } catch (const py::cast_error&) {
    from.refuse(name, value, "a text or a list of texts");
  }
}

using Size = std::pair<std::uint32_t, std::uint32_t>;

/// (width, height), or one number; returns whether it was a pair. Throws usage for a side of 0.
bool take_size(OptionDict& from, const char* name, Size& size, const char* expected) {
  const py::object value = from.take_value(name);
  if (value.is_none()) return false;
  const bool is_pair = py::isinstance<py::tuple>(value) || py::isinstance<py::list>(value);
  try {
    if (py::isinstance<py::bool_>(value)) throw py::cast_error();
    size = is_pair ? value.cast<Size>() : Size{value.cast<std::uint32_t>(), 0};
  } catch (const py::cast_error&) {
    from.refuse(name, value, expected);
  }
  if (size.first == 0 || size.first > 65535 || (is_pair && size.second == 0) || size.second > 65535)
    from.refuse(name, value, "sides of 1 to 65535 pixels");
  return is_pair;
}

void take_resize(OptionDict& from, TransformSpec& transform) {
  Size exact{};
  Size long_side{};
  Size fit{};
  const bool is_pair = take_size(from, "resize", exact, "(width, height) or the short side");
  if (take_size(from, "resize_long", long_side, "a number of pixels"))
    throw Error(ErrorCode::usage, "`resize_long`: expected a number of pixels, found two");
  if (!take_size(from, "fit", fit, "(width, height) or one side")) fit.second = fit.first;
  if ((exact.first > 0) + (long_side.first > 0) + (fit.first > 0) > 1)
    throw Error(ErrorCode::usage, "`resize`, `resize_long` and `fit` exclude each other");
  if (exact.first > 0) transform.resize = is_pair ? Resize::exact : Resize::short_side;
  if (long_side.first > 0) transform.resize = Resize::long_side;
  if (fit.first > 0) transform.resize = Resize::fit;
  const Size chosen = exact.first > 0 ? exact : long_side.first > 0 ? long_side : fit;
  transform.resize_width = chosen.first;
  transform.resize_height = chosen.second;
}

TransformSpec transform_spec(OptionDict& from) {
  TransformSpec transform;
  take_resize(from, transform);
  Size crop{};
  const bool is_pair = take_size(from, "crop", crop, "(width, height) or one side");
  transform.crop_width = crop.first;
  transform.crop_height = is_pair ? crop.second : crop.first;
  from.take("pad_color", transform.pad_color);
  if (from.has("background")) from.take("background", transform.background.emplace());
  from.take_word("resample", transform.resample);
  from.take_word("channels", transform.channels);
  from.take_word("layout", transform.layout);
  take_choice(from, "decode", transform.fast_decode, "exact", "fast");
  return transform;
}

void take_character(OptionDict& from, const char* name, char& character) {
  std::string text;
  from.take(name, text);
  if (text.size() > 1)
    throw Error(ErrorCode::usage,
                "`" + std::string(name) + "`: expected one character, found '" + text + "'");
  if (!text.empty()) character = text[0];
}

void take_own_sizes(OptionDict& from, PackImagesSpec& spec) {
  from.take_word("sizes", spec.sizes);
  from.take("max_side", spec.own_sizes.max_side);
  from.take("short_side", spec.own_sizes.short_side);
  from.take_word("store", spec.own_sizes.store);
  from.take_word("others", spec.own_sizes.others);
  from.take("quality", spec.own_sizes.quality);
  from.take("jpeg_tile", spec.own_sizes.jpeg_tile);
  from.take("part_samples", spec.own_sizes.part_samples);
}

}  // namespace

PackImagesSpec images_spec(OptionDict& from) {
  PackImagesSpec spec;
  from.take("labels", spec.labels);
  from.take("file_column", spec.columns.file_column);
  take_texts(from, "label_column", spec.columns.label_columns);
  take_texts(from, "keep_columns", spec.columns.keep_columns);
  take_character(from, "delimiter", spec.columns.delimiter);
  from.take("classes", spec.classes);
  from.take_word("classes_extra", spec.classes_extra);
  from.take_word("label_type", spec.columns.label_type);
  take_texts(from, "include", spec.folders.include);
  take_texts(from, "split_folders", spec.folders.split_folders);
  from.take("follow_symlinks", spec.follow_symlinks);
  spec.transform = transform_spec(from);
  take_own_sizes(from, spec);
  from.take_word("exif", spec.exif);
  from.take_word("check", spec.check);
  from.take("accept_warnings", spec.accept_warnings);
  from.take("max_seconds_per_image", spec.max_seconds_per_image);
  from.take("max_pixels", spec.max_pixels);
  from.take("max_input_bytes", spec.max_input_bytes);
  from.take("max_decode_bytes", spec.max_decode_bytes);
  if (spec.sizes == Sizes::own) spec.container = "shard";
  from.take("container", spec.container);
  from.take("codec", spec.codec);
  from.take("chunk_samples", spec.chunk_samples);
  from.take("chunk_bytes", spec.chunk_bytes);
  from.take("part_bytes", spec.part_bytes);
  from.take_word("order", spec.order);
  from.take("seed", spec.seed);
  py::dict shares;
  from.take("split", shares);
  for (const auto& [name, share] : shares)
    spec.split.push_back({py::str(name).cast<std::string>(), share.cast<double>()});
  return spec;
}

namespace {

/// Takes a count given as an int, or a share given as a float.
template <class Amount>
void take_amount(OptionDict& from, const char* name, Amount& amount) {
  const py::object value = from.take_value(name);
  if (value.is_none()) return;
  try {
    if (py::isinstance<py::bool_>(value)) throw py::cast_error();
    if (py::isinstance<py::float_>(value))
      amount = {.count = 0, .share = value.cast<double>()};
    else
      amount = {.count = value.cast<std::uint64_t>(), .share = 0};
  } catch (const py::cast_error&) {
    from.refuse(name, value, "a count as an int or a share as a float");
  }
}

/// Takes the options that both ways of packing have in common.
template <class Options>
void take_run_options(OptionDict& from, Options& options) {
  from.take("output", options.output);
  from.take_word("on_error", options.on_error);
  SplitAmount given{options.max_errors.count, options.max_errors.share};
  take_amount(from, "max_errors", given);
  options.max_errors = {given.share, given.count};
  from.take("threads", options.threads);
  from.take("memory_bytes", options.memory_bytes);
  from.take("force", options.force);
  from.take("command_line", options.command_line);
}

}  // namespace

PackImagesOptions images_options(OptionDict& from) {
  PackImagesOptions options;
  from.take("root", options.root);
  take_texts(from, "inputs", options.inputs);
  take_run_options(from, options);
  from.take("trust_inputs", options.trust_inputs);
  from.take_word("on_io_error", options.on_io_error);
  from.take("sheet", options.sheet);
  return options;
}

namespace {

RatingInputSpec rating_input(OptionDict& from) {
  RatingInputSpec input;
  RatingTableSpec& table = input.table;
  from.take("format", input.format);
  from.take("delimiter", table.delimiter);
  std::optional<bool> header;
  from.take("header", header);
  if (header) table.header = *header ? Header::yes : Header::no;
  from.take("user", table.user);
  from.take("item", table.item);
  from.take("value", table.value);
  from.take("time", table.time);
  from.take_word("quote", table.quoting);
  from.take("comment", table.comment);
  take_character(from, "decimal", table.decimal_point);
  std::optional<bool> transpose;
  from.take("transpose", transpose);
  if (transpose) input.transpose = *transpose ? Transpose::yes : Transpose::no;
  from.take("layer", input.layer);
  from.take("index_base", input.index_base);
  from.take_word("shared_rows", input.shared_rows);
  from.take_word("encoding", input.encoding);
  return input;
}

RatingSplitSpec rating_split(OptionDict& from, RatingSplitSpec split, std::vector<std::string>& inputs) {
  from.take_word("split_by", split.kind);
  from.take("validation_users", split.validation_users);
  from.take("test_users", split.test_users);
  if (!split.validation_users.empty()) split.validation = {};
  if (!split.test_users.empty()) split.test = {};
  take_amount(from, "validation", split.validation);
  take_amount(from, "test", split.test);
  from.take("fold_in", split.fold_in);
  from.take("before", split.before);
  from.take_word("split_order", split.order);
  from.take("hide_validation", split.hide_validation);
  std::array<std::vector<std::string>, 3> files;
  take_texts(from, "train_file", files[0]);
  take_texts(from, "validation_file", files[1]);
  take_texts(from, "test_file", files[2]);
  split.files = {files[0].size(), files[1].size(), files[2].size()};
  if (split.files.count() == 0) return split;
  if (!inputs.empty())
    throw Error(ErrorCode::usage,
                "`inputs`: found " + inputs[0] + " beside a split given as files; give it as `train_file`");
  if (split.kind != SplitKind::none && split.kind != SplitKind::given)
    throw Error(ErrorCode::usage, "`train_file`, `validation_file`, `test_file`: are a split of their own");
  split.kind = SplitKind::given;
  for (const auto& each : files) inputs.insert(inputs.end(), each.begin(), each.end());
  return split;
}

}  // namespace

PackSparseSpec sparse_spec(OptionDict& from, std::vector<std::string>& inputs) {
  PackSparseSpec spec;
  bool is_vae_cf = false;
  take_choice(from, "preset", is_vae_cf, "", "vae-cf");
  if (is_vae_cf) spec.packs = vae_cf_spec();
  spec.input = rating_input(from);
  RatingRules& rules = spec.packs.rules;
  std::string values = "auto";
  from.take("values", values);
  rules.values = parse_stored_values(values);
  from.take_word("duplicates", rules.duplicates);
  from.take_word("zeros", rules.zeros);
  from.take("min_value", rules.min_value);
  from.take("above", rules.above);
  from.take("binarize", rules.binarize);
  from.take("min_user", rules.min_user);
  from.take("min_item", rules.min_item);
  from.take("filter_once", rules.filter_once);
  spec.packs.split = rating_split(from, spec.packs.split, inputs);
  from.take_word("id_order", spec.packs.item_order);
  take_choice(from, "order", spec.packs.shuffles_rows, "input", "shuffle");
  from.take("seed", spec.packs.seed);
  from.take("reuse_ids", spec.reuse_ids);
  from.take("container", spec.container);
  from.take("codec", spec.codec);
  from.take_word("storage", spec.storage);
  from.take("chunk_rows", spec.chunk_rows);
  from.take("part_bytes", spec.part_bytes);
  from.take("item_columns", spec.item_columns);
  from.take("user_columns", spec.user_columns);
  std::optional<bool> table_header;
  from.take("table_header", table_header);
  if (table_header) spec.table_header = *table_header ? Header::yes : Header::no;
  from.take_word("table_quote", spec.table_quoting);
  from.take("keep_times", spec.packs.keep_times);
  return spec;
}

PackSparseOptions sparse_options(OptionDict& from) {
  PackSparseOptions options;
  take_texts(from, "inputs", options.inputs);
  take_run_options(from, options);
  return options;
}

py::dict progress_dict(const PackProgress& progress) {
  py::dict dict;
  dict["phase"] = name_of(progress.phase);
  dict["pack"] = text_of(progress.pack);
  dict["rows_done"] = progress.rows_done;
  dict["rows_total"] = progress.rows_total;
  dict["rejected"] = progress.rejected;
  return dict;
}

py::dict progress_dict(const PackSparseProgress& progress) {
  py::dict dict;
  dict["phase"] = name_of(progress.phase);
  dict["pack"] = text_of(progress.pack);
  dict["bytes_done"] = progress.bytes_done;
  dict["bytes_total"] = progress.bytes_total;
  dict["rows_done"] = progress.rows_done;
  dict["rows_total"] = progress.rows_total;
  dict["rejected"] = progress.bad_lines;
  return dict;
}

namespace {

/// Runs `pack` in a thread of its own, watched by this one.
template <class Progress, class Options, class Pack>
auto run_reporting(Options options, const py::object& on_progress, Pack pack) {
  RunWatch<Progress> watch(on_progress);
  watch.watch(options);
  return watch.run([&] { return pack(options); });
}

std::vector<std::string> with_labels(std::vector<std::string> warnings, const LabelSummary& labels) {
  if (labels.kind == LabelKind::class_id && labels.classes.empty() && labels.is_detected)
    warnings.push_back("labels are whole numbers, which were taken for the ids of " +
                       std::to_string(labels.class_count) +
                       (labels.class_count == 1 ? " class" : " classes") +
                       ": `label_type`=\"numbers\" packs them as floats, \"classes\" says that they are ids");
  return warnings;
}

}  // namespace

std::vector<std::string> warnings_of(const PackImagesReport& report) {
  std::vector<std::string> warnings = with_labels(report.notices, report.labels);
  for (const PackReport& pack : report.packs)
    for (const std::string& notice : pack.notices) warnings.push_back(pack.path + ": " + notice);
  return warnings;
}

std::vector<std::string> warnings_of(const PlanReport& report) {
  return with_labels(report.notices, report.labels);
}

std::vector<std::string> warnings_of(const PackSparseReport& report) {
  if (report.bad_lines.empty()) return {};
  return {std::to_string(report.stats.bad_lines) +
          " bad lines were left out; the first: " + report.bad_lines.front()};
}

namespace {

/// Packs and returns warnings, or with `dry_run` what would be packed: {folder: (samples, raw bytes)}.
py::object bind_pack_images(const py::dict& keywords, const py::object& on_progress, bool dry_run) {
  OptionDict from(keywords);
  PackImagesOptions options = images_options(from);
  const PackImagesSpec spec = images_spec(from);
  from.finish();
  if (dry_run) {
    py::dict packs;
    const PackImagesPreview preview =
        run_reporting<PackProgress>(std::move(options), on_progress,
                                    [&](const PackImagesOptions& how) { return preview_images(spec, how); });
    for (const PackImagesPlan& plan : preview.packs)
      packs[text_of(plan.path)] =
          py::dict(py::arg("samples") = plan.rows, py::arg("raw_bytes") = plan.raw_bytes,
                   py::arg("parts") = plan.parts, py::arg("chunks") = plan.chunks);
    return packs;
  }
  return py::cast(warnings_of(
      run_reporting<PackProgress>(std::move(options), on_progress,
                                  [&](const PackImagesOptions& how) { return pack_images(spec, how); })));
}

/// Plans and returns warnings.
std::vector<std::string> bind_plan_images(const py::dict& keywords, const py::object& on_progress,
                                          std::uint64_t tasks) {
  OptionDict from(keywords);
  PackImagesOptions options = images_options(from);
  const PackImagesSpec spec = images_spec(from);
  from.finish();
  return warnings_of(run_reporting<PackProgress>(
      std::move(options), on_progress,
      [&](const PackImagesOptions& how) { return plan_images(spec, how, tasks); }));
}

/// Runs tasks of a plan, or all of it; returns whether the packs are finished.
bool bind_run_plan(const py::dict& keywords, const py::object& on_progress) {
  OptionDict from(keywords);
  RunPlanOptions options;
  from.take("folder", options.folder);
  from.take("task", options.tasks);
  from.take_word("stage", options.stage);
  from.take("root", options.root);
  from.take("threads", options.threads);
  from.take("memory_bytes", options.memory_bytes);
  from.take_word("on_io_error", options.on_io_error);
  from.finish();
  return run_reporting<PackProgress>(std::move(options), on_progress,
                                     [](const RunPlanOptions& how) { return run_plan(how); })
      .finished;
}

/// Returns the status of a plan's packs as JSON; nothing where the folder has no plan or they are finished.
std::optional<std::string> bind_plan_status_json(const std::string& folder) {
  const ReleasedGil release;
  if (!has_plan(folder)) return std::nullopt;
  try {
    return plan_status_json(read_plan_status(folder));
  } catch (const Error&) {
    if (has_plan(folder)) throw;
    return std::nullopt;  // another process finishes it meanwhile
  }
}

py::object bind_pack_sparse(const py::dict& keywords, const py::object& on_progress, bool dry_run) {
  OptionDict from(keywords);
  PackSparseOptions options = sparse_options(from);
  const PackSparseSpec spec = sparse_spec(from, options.inputs);
  from.finish();
  const PackSparseReport report =
      run_reporting<PackSparseProgress>(std::move(options), on_progress, [&](const PackSparseOptions& how) {
        return dry_run ? preview_sparse(spec, how) : pack_sparse(spec, how);
      });
  if (!dry_run) return py::cast(warnings_of(report));
  py::dict packs;
  for (const MatrixPackReport& pack : report.packs)
    packs[text_of(pack.path)] = py::dict(py::arg("rows") = pack.rows, py::arg("columns") = pack.columns);
  return packs;
}

void bind_plan_sparse(const py::dict& keywords, std::uint64_t tasks) {
  OptionDict from(keywords);
  PackSparseOptions options = sparse_options(from);
  const PackSparseSpec spec = sparse_spec(from, options.inputs);
  from.finish();
  const ReleasedGil release;
  static_cast<void>(plan_sparse(spec, options, tasks));
}

std::vector<std::string> bind_merge_packs(const std::vector<std::string>& packs, const std::string& output,
                                          const std::string& command_line) {
  const ReleasedGil release;
  MergeOptions options;
  options.output = output;
  options.packs = packs;
  options.command_line = command_line;
  return merge_packs(options).notices;
}

}  // namespace

void bind_packing(py::module_& module) {
  module.def("merge_packs", &bind_merge_packs, py::arg("packs"), py::arg("output"), py::arg("command_line"));
  module.def("pack_images", &bind_pack_images, py::arg("options"), py::arg("on_progress"),
             py::arg("dry_run"));
  module.def("plan_images", &bind_plan_images, py::arg("options"), py::arg("on_progress"), py::arg("tasks"));
  module.def("plan_sparse", &bind_plan_sparse, py::arg("options"), py::arg("tasks"));
  module.def("run_plan", &bind_run_plan, py::arg("options"), py::arg("on_progress"));
  module.def("plan_status_json", &bind_plan_status_json, py::arg("folder"));
  module.def("pack_sparse", &bind_pack_sparse, py::arg("options"), py::arg("on_progress"),
             py::arg("dry_run"));
}

}  // namespace chunkhit
