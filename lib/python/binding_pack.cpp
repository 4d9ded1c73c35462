// pack_images and pack_sparse: keywords → spec and options. The packing runs in a thread of its own, so that
// the caller's sees Ctrl-C and shows progress.
#include "binding_pack.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/throw_error.h"
#include "base/words.h"
#include "binding_fields.h"
#include "pack/images/image_fields.h"
#include "pack/ratings/sparse_fields.h"
#include "types/fields.h"

namespace chunkhit {

constexpr Words<3> words_of(PackProgress::Phase) { return {"listing", "packing", "finishing"}; }
constexpr Words<4> words_of(PackSparseProgress::Phase) {
  return {"reading", "sorting", "packing", "finishing"};
}

namespace {

/// Takes a color's name or its red, green and blue as text.
std::string take_color(OptionDict& from, const char* name) {
  const py::object value = from.take_value(name);
  if (value.is_none()) return "";
  if (const auto text = py::isinstance<py::str>(value) ? text_in(value) : std::nullopt) return *text;
  try {
    const auto color = value.cast<std::array<std::uint8_t, 3>>();
    return ColorForm().text(color);
  } catch (const py::cast_error&) {
    from.refuse(name, value, "three whole numbers from 0 to 255, or a color as black, white, #rrggbb");
  }
}

/// Takes (width, height) or one number as the text of a size.
std::string take_size(OptionDict& from, const char* name) {
  const py::object value = from.take_value(name);
  if (value.is_none()) return "";
  std::vector<std::uint32_t> sides;
  try {
    if (py::isinstance<py::bool_>(value)) throw py::cast_error();
    const bool is_pair = py::isinstance<py::tuple>(value) || py::isinstance<py::list>(value);
    if (is_pair)
      sides = value.cast<std::vector<std::uint32_t>>();
    else
      sides = {value.cast<std::uint32_t>()};
    if (is_pair && sides.size() != 2) throw py::cast_error();
  } catch (const py::cast_error&) {
    from.refuse(name, value, "(width, height) or one side");
  }
  if (std::ranges::any_of(sides, [](std::uint32_t side) { return side < 1 || side > kMaxSide; }))
    from.refuse(name, value, "sides of 1 to 65535 pixels");
  return std::to_string(sides[0]) + (sides.size() > 1 ? "x" + std::to_string(sides[1]) : "");
}

}  // namespace

template <class Form>
void take_field(OptionDict& from, const char* name, TransformSpec& value, const Form& form) {
  form.parse(quoted(name), take_size(from, name), value);
}

template <class Value, class Form>
void take_field(OptionDict& from, const char* name, Value& value, const Form& form) requires
    std::is_same_v<Form, ColorForm> || std::is_same_v<Form, OptionalColorForm> {
  const std::string color = take_color(from, name);
  if (!color.empty()) form.parse(quoted(name), color, value);
}

template <class Value>
void take_field(OptionDict& from, const char* name, Value& value, const MomentForm& form) {
  if (from.has_text(name))
    take_written(from, name, value, form);
  else
    from.take(name, value);
}

template <class Value>
void take_field(OptionDict& from, const char* name, Value& value, const ColumnForm& form) {
  const py::object found = from.take_value(name);
  if (found.is_none()) return;
  const bool is_number = PyLong_Check(found.ptr()) != 0 && !py::isinstance<py::bool_>(found);
  if (!is_number && !py::isinstance<py::str>(found)) from.refuse(name, found, "a name, or a number from 1");
  form.parse(quoted(name), py::str(found), value);
}

template <class Value>
void take_field(OptionDict& from, const char* name, Value& value, const StoredValuesForm& form) {
  take_written(from, name, value, form);
}

template <class Value>
void take_field(OptionDict& from, const char* name, Value& value, const RangeForm&) {
  const py::object range = from.take_value(name);
  if (range.is_none()) return;
  try {
    value = range.cast<RangeForm::Range>();
  } catch (const py::cast_error&) {
    from.refuse(name, range, "two whole numbers from 0 to 65535, as (0, 4095)");
  }
}

/// A folder or a column as it is written for one field, several, or a dict of them by name; `what` says so.
void take_pairs(OptionDict& from, const char* name, std::vector<std::string>& pairs, const char* what) {
  const py::object value = from.take_value(name);
  if (value.is_none()) return;
  const auto path_of = [](const py::handle& path) {
    return py::module_::import("os").attr("fsencode")(path).cast<std::string>();
  };
  try {
    if (py::isinstance<py::dict>(value))
      for (const auto& [field, folder] : value.cast<py::dict>())
        pairs.push_back(field.cast<std::string>() + "=" + path_of(folder));
    else if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value))
      for (const py::handle folder : value) pairs.push_back(path_of(folder));
    else
      pairs.push_back(path_of(value));
  } catch (const py::error_already_set&) {
    from.refuse(name, value, what);
  } catch (const py::cast_error&) {
    from.refuse(name, value, what);
  }
}
template <class Value>
void take_field(OptionDict& from, const char* name, Value& value, const PairsForm&) {
  take_pairs(from, name, value, "a folder, a list of them, or a dict of folders by name");
}
template <class Value>
void take_field(OptionDict& from, const char* name, Value& value, const FieldColumnsForm&) {
  take_pairs(from, name, value, "a column, a list of them, or a dict of columns by name");
}

template <class Value>
void take_field(OptionDict& from, const char* name, Value& value, const SharesForm&) {
  py::dict shares;
  from.take(name, shares);
  try {
    for (const auto& [pack, share] : shares) {
      const bool is_text = py::isinstance<py::str>(share);
      value.push_back({pack.template cast<std::string>(), is_text ? 0 : share.template cast<double>(),
                       py::str(share).template cast<std::string>()});
    }
  } catch (const py::cast_error&) {
    from.refuse(name, shares, "a dict of numbers, or values of a column as texts, by names of packs");
  }
}

PackImagesSpec images_spec(OptionDict& from) {
  PackImagesSpec spec;
  if (!from.has("container")) spec.container.clear();
  KeywordReader reader(from);
  show(spec, reader);
  if (spec.container.empty()) spec.container = default_container(spec.sizes);
  return spec;
}

PackImagesOptions images_options(OptionDict& from) {
  PackImagesOptions options;
  KeywordReader reader(from);
  show(options, reader);
  from.take("root", options.root);
  take_texts(from, "inputs", options.inputs);
  from.take("sheet", options.sheet);
  from.take("command_line", options.command_line);
  return options;
}

PackSparseSpec sparse_spec(OptionDict& from, std::vector<std::string>& inputs) {
  const auto list_of = [&](const char* name) {
    std::vector<std::string> texts;
    take_texts(from, name, texts);
    return texts;
  };
  const auto read = [&](PackSparseSpec& spec) {
    KeywordReader reader(from);
    show(spec, reader);
  };
  const bool has_preset = from.take_index("preset", std::array<std::string_view, 1>{"vae-cf"}).has_value();
  return read_sparse_spec(
      has_preset, [&](const char* name) { return from.has(name); }, list_of, read, inputs);
}

PackSparseOptions sparse_options(OptionDict& from) {
  PackSparseOptions options;
  KeywordReader reader(from);
  show(options, reader);
  take_texts(from, "inputs", options.inputs);
  from.take("command_line", options.command_line);
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
  std::vector<std::string> warnings;
  const std::uint64_t count = report.stats.bad_lines;
  if (!report.bad_lines.empty())
    warnings.push_back(count_text(count, "bad line") + (count == 1 ? " was" : " were") +
                       " left out; the first: " + report.bad_lines.front());
  const std::vector<PackStep>& steps = report.stats.steps;
  const auto zeros = std::ranges::find(steps, "zeros", &PackStep::name);
  if (zeros != steps.end() && zeros != steps.begin() && zeros->ratings < std::prev(zeros)->ratings)
    warnings.push_back(count_text(std::prev(zeros)->ratings - zeros->ratings, "rating") +
                       " of 0 left out; `zeros` keep stores them");
  constexpr std::string_view kWarning = "warning: ";
  for (const std::string& notice : report.notices)
    warnings.push_back(notice.starts_with(kWarning) ? notice.substr(kWarning.size()) : "note: " + notice);
  return warnings;
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
  from.take("root", options.root);
  take_field(from, "pair", options.pair, PairsForm{});
  from.take_count("threads", options.threads, 1, kMaxThreads);
  take_bytes(from, "memory_bytes", options.memory_bytes);
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

/// Counts items; returns how many there are, and the type of the values.
py::dict bind_count_items(const py::dict& keywords, const py::object& on_progress) {
  OptionDict from(keywords);
  PackSparseOptions options = sparse_options(from);
  const PackSparseSpec spec = sparse_spec(from, options.inputs);
  from.finish();
  const PackSparseReport report = run_reporting<PackSparseProgress>(
      std::move(options), on_progress, [&](const PackSparseOptions& how) { return count_items(spec, how); });
  py::object values = py::none();  // of lists
  if (!report.stats.inputs.empty()) values = py::str(stored_values_text(report.values));
  return py::dict(py::arg("items") = report.items_counted, py::arg("values") = values,
                  py::arg("warnings") = warnings_of(report));
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

template <class Spec, class Options>
py::list list_fields() {
  const Spec spec;
  const Options options;
  FieldLister<false> lister;
  show(spec, lister);
  show(options, lister);
  return lister.rows();
}

}  // namespace

py::list fields_of_packing(const std::string& table) {
  if (table == "pack_images") return list_fields<PackImagesSpec, PackImagesOptions>();
  if (table == "pack_sparse") return list_fields<PackSparseSpec, PackSparseOptions>();
  throw_usage("fields_of: no table " + table);
}

void bind_packing(py::module_& module) {
  module.def("merge_packs", &bind_merge_packs, py::arg("packs"), py::arg("output"), py::arg("command_line"));
  module.def("pack_images", &bind_pack_images, py::arg("options"), py::arg("on_progress"),
             py::arg("dry_run"));
  module.def("plan_images", &bind_plan_images, py::arg("options"), py::arg("on_progress"), py::arg("tasks"));
  module.def("run_plan", &bind_run_plan, py::arg("options"), py::arg("on_progress"));
  module.def("plan_status_json", &bind_plan_status_json, py::arg("folder"));
  module.def("count_items", &bind_count_items, py::arg("options"), py::arg("on_progress"));
  module.def("pack_sparse", &bind_pack_sparse, py::arg("options"), py::arg("on_progress"),
             py::arg("dry_run"));
}

}  // namespace chunkhit
