#include "binding_options.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/words.h"
#include "binding_fields.h"
#include "read/loader_fields.h"

namespace chunkhit {
namespace {

constexpr const char* kSamplers =
    "\"balanced\", a dict of weights by class, or an array of a weight per sample";

/// The numbers as an array. Those of a range are counted: listed as objects, a long one would take all
/// memory.
py::array numbers_array(const py::object& value) {
  if (PyRange_Check(value.ptr()) == 0) return py::array::ensure(value);
  constexpr std::size_t kMaxNumbers = std::size_t{1} << 32;  // more than any pack's samples
  const Py_ssize_t count = PyObject_Length(value.ptr());
  PyErr_Clear();
  if (count < 0 || static_cast<std::size_t>(count) > kMaxNumbers) return {};
  const py::object arange = py::module_::import("numpy").attr("arange");
  return arange(value.attr("start"), value.attr("stop"), value.attr("step"));
}

/// A weight per sample, from what NumPy makes an array of.
std::vector<double> weights_of(const OptionDict& from, const py::object& value) {
  const auto weights =
      py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(numbers_array(value));
  PyErr_Clear();
  if (!weights || weights.ndim() != 1 || weights.size() == 0) from.refuse("sampler", value, kSamplers);
  return {weights.data(), weights.data() + weights.size()};
}

void take_weights(OptionDict& from, SamplerSpec& sampler) {
  const py::object value = from.take_value("sampler");
  if (value.is_none()) return;
  if (py::isinstance<py::str>(value)) {
    if (text_in(value) != "balanced") from.refuse("sampler", value, kSamplers);
    sampler.balanced = true;
  } else if (py::isinstance<py::dict>(value)) {
    try {
      for (const auto& [name, weight] : value.cast<py::dict>())
        sampler.class_weights.push_back({name.cast<std::string>(), weight.cast<double>()});
    } catch (const py::cast_error&) {
      from.refuse("sampler", value, "a dict of numbers by names of classes");
    }
    if (sampler.class_weights.empty()) from.refuse("sampler", value, kSamplers);
  } else {
    sampler.weights = weights_of(from, value);
  }
}

constexpr const char* kSubsets =
    "an array of sample numbers, a list of class names, a pair of the least and the greatest label, or the "
    "path "
    "of a CSV";

std::vector<std::uint64_t> sample_numbers(const OptionDict& from, const py::object& value) {
  const auto found = numbers_array(value);
  PyErr_Clear();
  const char kind = found ? found.dtype().kind() : ' ';
  const bool is_empty = found && found.size() == 0;
  if (!found || found.ndim() != 1 || (kind != 'i' && kind != 'u' && !is_empty))
    from.refuse("subset", value, kSubsets);
  if (kind == 'i') {
    const auto numbers = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>::ensure(found);
    for (py::ssize_t at = 0; at < numbers.size(); ++at)
      if (numbers.at(at) < 0)
        throw Error(ErrorCode::usage, "subset: entry " + std::to_string(at) + ": sample " +
                                          std::to_string(numbers.at(at)) + ", expected a number from 0");
  }
  const auto numbers = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>::ensure(found);
  return {numbers.data(), numbers.data() + numbers.size()};
}

void take_subset(OptionDict& from, SubsetSpec& subset) {
  const py::object value = from.take_value("subset");
  if (value.is_none()) return;
  const bool is_list = py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value);
  if (py::isinstance<py::str>(value) || py::isinstance<py::bytes>(value)) {
    subset.csv = text_in(value).value_or("");
    if (subset.csv.empty()) from.refuse("subset", value, kSubsets);
  } else if (is_list && py::len(value) > 0 && py::isinstance<py::str>(value[py::int_(0)])) {
    try {
      subset.classes = value.cast<std::vector<std::string>>();
    } catch (const py::cast_error&) {
      from.refuse("subset", value, kSubsets);
    }
  } else if (py::isinstance<py::tuple>(value)) {
    std::vector<double> range;
    try {
      range = value.cast<std::vector<double>>();
    } catch (const py::cast_error&) {
      from.refuse("subset", value, kSubsets);
    }
    if (range.size() != 2) from.refuse("subset", value, kSubsets);
    subset.label_range = {range[0], range[1]};
  } else {
    subset.samples = sample_numbers(from, value);
  }
}

/// Two numbers, the lesser first.
void take_range(OptionDict& from, const char* name, std::array<double, 2>& range) {
  std::vector<double> values(range.begin(), range.end());
  from.take(name, values);
  if (values.size() != range.size()) from.refuse(name, py::cast(values), "two numbers, the lesser first");
  std::ranges::copy(values, range.begin());
}

/// Takes a dict of the fields of a struct.
template <class Struct>
void take_struct(OptionDict& from, const char* name, Struct& values) {
  const py::object found = from.take_value(name);
  if (found.is_none()) return;
  if (!py::isinstance<py::dict>(found)) from.refuse(name, found, "a dict");
  OptionDict keywords(found.cast<py::dict>(), from.location() + name + ".");
  KeywordReader reader(keywords);
  show(values, reader);
  keywords.finish();
}

}  // namespace

template <class Value>
void take_field(OptionDict& from, const char* name, Value& value, const CodeForm&) {
  if constexpr (std::is_same_v<Value, SamplerSpec>)
    take_weights(from, value);
  else if constexpr (std::is_same_v<Value, SubsetSpec>)
    take_subset(from, value);
  else if constexpr (std::is_same_v<Value, AugmentSpec> || std::is_same_v<Value, NormalizeSpec>)
    take_struct(from, name, value);
  else if constexpr (std::is_same_v<Value, BatchAllocator>)
    value = batch_allocator(from.take_value(name));
  else if constexpr (std::is_same_v<Value, std::array<double, 2>>)
    take_range(from, name, value);
  else
    from.take(name, value);
}
inline void take_field(OptionDict& from, const char* name, ResizedCropSpec& value, const CodeForm&) {
  const bool is_given = from.has(name);
  take_struct(from, name, value);
  if (is_given && value.height == 0 && value.width == 0)
    throw Error(ErrorCode::usage, from.location() + name + ".height: is required, as is " + name + ".width");
}

template <class Value>
void take_field(OptionDict& from, const char* name, Value& value, const AutomaticForm& form) {
  const py::object found = from.take_value(name);
  if (found.is_none()) return;
  const std::string expected = "\"auto\" or a whole number from 0 and below " + std::to_string(form.kMax + 1);
  if (py::isinstance<py::str>(found) && text_in(found) == "auto") {
    value = kAutomatic;
    return;
  }
  try {
    if (py::isinstance<py::bool_>(found)) throw py::cast_error();
    value = found.template cast<std::uint32_t>();
    if (value > form.kMax) throw py::cast_error();
  } catch (const py::cast_error&) {
    from.refuse(name, found, expected);
  }
}

template <class Enum>
void take_field(OptionDict& from, const char* name, std::optional<Enum>& value, const OptionalWordForm&) {
  Enum word{};
  const bool is_given = from.has(name);
  from.take_word(name, word);
  if (is_given) value = word;
}
template <class Enum>
[[nodiscard]] std::string python_type(const std::optional<Enum>&, const OptionalWordForm&) {
  return word_type(kEnumWords<Enum>);
}

py::object OptionDict::take_value(const char* name) {
  taken_.emplace_back(name);
  return left_.attr("pop")(name, py::none());
}

void OptionDict::finish() const {
  if (left_.empty()) return;
  const py::object key = py::reinterpret_borrow<py::object>(left_.begin()->first);
  const std::string found = text_in(key).value_or(py::repr(key).cast<std::string>());
  throw Error(ErrorCode::usage, location_ + found + ": no such option; expected " + joined(taken_) +
                                    did_you_mean(found, taken_));
}

std::optional<std::size_t> OptionDict::take_index(const char* name, std::span<const std::string_view> words) {
  const py::object value = take_value(name);
  if (value.is_none()) return std::nullopt;
  const bool is_number = py::isinstance<py::int_>(value) && !py::isinstance<py::bool_>(value);
  const std::optional<std::string> text = is_number                        ? text_in(py::str(value))
                                          : py::isinstance<py::str>(value) ? text_in(value)
                                                                           : std::nullopt;
  for (std::size_t index = 0; index < words.size(); ++index)
    if (text == words[index]) return index;
  const std::vector<std::string> names(words.begin(), words.end());
  const std::string expected = joined(names);
  if (!text || is_number) refuse(name, value, expected);
  throw Error(ErrorCode::usage, location_ + name + ": expected " + expected + ", found " +
                                    py::repr(value).cast<std::string>() + did_you_mean(*text, names));
}

void OptionDict::refuse(const char* name, const py::object& value, const std::string& expected) const {
  throw Error(ErrorCode::usage,
              location_ + name + ": expected " + expected + ", found " + py::repr(value).cast<std::string>());
}

void take_texts(OptionDict& from, const char* name, std::vector<std::string>& texts) {
  const py::object value = from.take_value(name);
  if (value.is_none()) return;
  try {
    if (py::isinstance<py::str>(value) || py::isinstance<py::bytes>(value))
      texts = {value.cast<std::string>()};
    else if (PyRange_Check(value.ptr()) != 0)
      throw py::cast_error();
    else
      texts = value.cast<std::vector<std::string>>();
  } catch (const py::cast_error&) {
    from.refuse(name, value, "a text or a list of texts");
  }
}

namespace {

template <class Options>
void read_fields(OptionDict& from, Options& options) {
  KeywordReader reader(from);
  show(options, reader);
  from.finish();
}

template <class Options>
py::list list_fields() {
  const Options defaults;
  FieldLister<true> lister;
  show(defaults, lister);
  return lister.rows();
}

}  // namespace

ImageLoaderOptions image_loader_options(const py::dict& keywords) {
  ImageLoaderOptions options;
  OptionDict from(keywords);
  from.take("mixture", options.mixture.weights);
  read_fields(from, options);
  const bool normalizes = !options.normalize.mean.empty() || !options.normalize.std.empty();
  if (normalizes && options.dtype == Dtype::uint8)
    throw Error(ErrorCode::usage,
                "normalize: is for dtype=\"float32\", \"float16\" or \"bfloat16\"; uint8 batches have the "
                "pixels as they "
                "are");
  return options;
}

template <class Options>
Options options_of(const py::dict& keywords) {
  Options options;
  OptionDict from(keywords);
  read_fields(from, options);
  return options;
}

template SparseLoaderOptions options_of(const py::dict&);
template ImageDatasetOptions options_of(const py::dict&);
template SparseDatasetOptions options_of(const py::dict&);

void bind_options(py::module_& module) {
  module.def(
      "fields_of",
      [](const std::string& table) {
        if (table == "image_loader") return list_fields<ImageLoaderOptions>();
        if (table == "sparse_loader") return list_fields<SparseLoaderOptions>();
        if (table == "image_dataset") return list_fields<ImageDatasetOptions>();
        if (table == "sparse_dataset") return list_fields<SparseDatasetOptions>();
        return fields_of_packing(table);
      },
      py::arg("table"));
}

}  // namespace chunkhit
