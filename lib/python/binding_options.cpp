#include "binding_options.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <vector>

namespace chunkhit {
namespace {

/// A path, as bytes or text; empty where it is None.
std::string path_option(OptionDict& from, const char* name) {
  const py::object found = from.take_value(name);
  if (found.is_none()) return {};
  if (!py::isinstance<py::str>(found) && !py::isinstance<py::bytes>(found))
    from.refuse(name, found, "a path");
  return found.cast<std::string>();
}

constexpr const char* kSamplers =
    "\"balanced\", a dict of weights by class, or an array of a weight per sample";

/// A weight per sample, from whatever NumPy makes an array of.
std::vector<double> weights_of(const OptionDict& from, const py::object& value) {
  const auto weights = py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(value);
  PyErr_Clear();
  if (!weights || weights.ndim() != 1 || weights.size() == 0) from.refuse("sampler", value, kSamplers);
  return {weights.data(), weights.data() + weights.size()};
}

void take_weights(OptionDict& from, SamplerSpec& sampler) {
  const py::object value = from.take_value("sampler");
  if (value.is_none()) return;
  if (py::isinstance<py::str>(value)) {
    if (value.cast<std::string>() != "balanced") from.refuse("sampler", value, kSamplers);
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
  const auto found = py::array::ensure(value);
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
    subset.csv = value.cast<std::string>();
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

void take_sampler(OptionDict& from, SamplerSpec& sampler) {
  take_weights(from, sampler);
  take_subset(from, sampler.subset);
  from.take("replacement", sampler.replacement);
  const bool has_length = from.has("epoch_samples");
  from.take("epoch_samples", sampler.epoch_samples);
  if (has_length && sampler.epoch_samples == 0)
    throw Error(ErrorCode::usage, "epoch_samples: found 0, expected at least 1, or None");
}

/// What loaders of all kinds of batches have in common.
template <class Options>
void take_loader_options(OptionDict& from, Options& options) {
  from.take("batch_size", options.batch_size);
  from.take_word("shuffle", options.shuffle);
  from.take("seed", options.seed);
  from.take("window_chunks", options.window_chunks);
  from.take("rank", options.rank);
  from.take("world_size", options.world_size);
  from.take_word("rank_remainder", options.rank_remainder);
  from.take("drop_last", options.drop_last);
  take_sampler(from, options.sampler);
  from.take("echo", options.echo);
  from.take("memory_bytes", options.memory_bytes);
  from.take_automatic("threads", options.threads);
  from.take_automatic("prefetch", options.prefetch);
  from.take_word("on_corrupt", options.on_corrupt);
  options.allocator = batch_allocator(from.take_value("allocator"));
}

/// What all readers have in common.
template <class Options>
void take_reader_options(OptionDict& from, Options& options) {
  options.cache_dir = path_option(from, "cache_dir");
  from.take("cache_disk_bytes", options.cache_disk_bytes);
  from.take_word("cache", options.cache);
  from.take("cache_bytes", options.cache_bytes);
  from.take_word("check_hashes", options.check_hashes);
}

py::dict dict_option(OptionDict& from, const char* name) {
  const py::object found = from.take_value(name);
  if (found.is_none()) return {};
  if (!py::isinstance<py::dict>(found)) from.refuse(name, found, "a dict");
  return found.cast<py::dict>();
}

/// Two numbers, the lesser first.
void take_range(OptionDict& from, const char* name, std::array<double, 2>& range) {
  std::vector<double> values(range.begin(), range.end());
  from.take(name, values);
  if (values.size() != range.size()) from.refuse(name, py::cast(values), "two numbers, the lesser first");
  std::ranges::copy(values, range.begin());
}

ResizedCropSpec resized_crop_spec(const py::dict& options) {
  ResizedCropSpec spec;
  OptionDict from(options, "augment.resized_crop.");
  from.take("height", spec.height);
  from.take("width", spec.width);
  take_range(from, "area", spec.area);
  take_range(from, "aspect", spec.aspect);
  from.finish();
  return spec;
}

AugmentSpec augment_spec(const py::dict& options) {
  AugmentSpec spec;
  OptionDict from(options, "augment.");
  from.take("flip_horizontal", spec.flip_horizontal);
  from.take("crop_height", spec.crop_height);
  from.take("crop_width", spec.crop_width);
  from.take("random_crop", spec.random_crop);
  from.take("crop_padding", spec.crop_padding);
  from.take("resize_short", spec.resize_short);
  const bool has_resized_crop = options.contains("resized_crop") && !options["resized_crop"].is_none();
  spec.resized_crop = resized_crop_spec(dict_option(from, "resized_crop"));
  if (has_resized_crop && spec.resized_crop.height == 0 && spec.resized_crop.width == 0)
    throw Error(ErrorCode::usage, "augment.resized_crop.height: is required, as is resized_crop.width");
  from.take_word("resample", spec.resample);
  from.finish();
  return spec;
}

NormalizeSpec normalize_spec(const py::dict& options) {
  NormalizeSpec spec;
  OptionDict from(options, "normalize.");
  from.take("mean", spec.mean);
  from.take("std", spec.std);
  from.finish();
  return spec;
}

}  // namespace

py::object OptionDict::take_value(const char* name) {
  taken_.emplace_back(name);
  return left_.attr("pop")(name, py::none());
}

void OptionDict::finish() const {
  if (left_.empty()) return;
  std::string expected;
  for (const std::string& name : taken_) expected.append(expected.empty() ? "" : ", ").append(name);
  const std::string found = py::str(left_.begin()->first).cast<std::string>();
  throw Error(ErrorCode::usage, location_ + found + ": no such option; expected " + expected);
}

std::optional<std::size_t> OptionDict::take_index(const char* name, std::span<const std::string_view> words) {
  const py::object value = take_value(name);
  if (value.is_none()) return std::nullopt;
  std::string expected;
  for (std::size_t index = 0; index < words.size(); ++index) {
    if (py::isinstance<py::str>(value) && value.cast<std::string>() == words[index]) return index;
    expected.append(expected.empty() ? "" : ", ").append(words[index]);
  }
  refuse(name, value, expected);
}

void OptionDict::take_automatic(const char* name, std::uint32_t& field) {
  const py::object value = take_value(name);
  if (value.is_none()) return;
  const std::string expected = "\"auto\" or a whole number from 0 and below 4097";
  if (py::isinstance<py::str>(value)) {
    if (value.cast<std::string>() != "auto") refuse(name, value, expected);
    field = kAutomatic;
    return;
  }
  constexpr std::uint32_t kMax = 4096;
  if (py::isinstance<py::bool_>(value)) refuse(name, value, expected);
  try {
    field = value.cast<std::uint32_t>();
  } catch (const py::cast_error&) {
    refuse(name, value, expected);
  }
  if (field > kMax) refuse(name, value, expected);
}

void OptionDict::refuse(const char* name, const py::object& value, const std::string& expected) const {
  throw Error(ErrorCode::usage,
              location_ + name + ": expected " + expected + ", found " + py::repr(value).cast<std::string>());
}

ImageLoaderOptions image_loader_options(const py::dict& keywords) {
  ImageLoaderOptions options;
  OptionDict from(keywords);
  take_loader_options(from, options);
  take_reader_options(from, options);
  from.take("mixture", options.mixture.weights);
  from.take_word("shares", options.mixture.shares);
  options.augment = augment_spec(dict_option(from, "augment"));
  from.take_word("dtype", options.dtype);
  const py::dict normalize = dict_option(from, "normalize");
  options.normalize = normalize_spec(normalize);
  options.normalize_like = path_option(from, "normalize_like");
  if (!normalize.empty() && options.dtype != Dtype::float32)
    throw Error(ErrorCode::usage,
                "normalize: is for dtype=\"float32\"; uint8 batches have the pixels as they are");
  Layout layout = Layout::nhwc;
  const bool has_layout = keywords.contains("layout") && !keywords["layout"].is_none();
  from.take_word("layout", layout);
  if (has_layout) options.layout = layout;
  from.take("images", options.images);
  from.take("labels", options.labels);
  from.finish();
  return options;
}

SparseLoaderOptions sparse_loader_options(const py::dict& keywords) {
  SparseLoaderOptions options;
  OptionDict from(keywords);
  take_loader_options(from, options);
  take_reader_options(from, options);
  from.take_word("format", options.format);
  from.take("binarize", options.binarize);
  from.take("scale", options.scale);
  from.take_word("normalize", options.normalize);
  from.take("held_out", options.held_out);
  from.take("times", options.times);
  from.finish();
  return options;
}

ImageDatasetOptions image_dataset_options(const py::dict& keywords) {
  ImageDatasetOptions options;
  OptionDict from(keywords);
  take_reader_options(from, options);
  from.take("images", options.images);
  from.take("labels", options.labels);
  from.finish();
  return options;
}

SparseDatasetOptions sparse_dataset_options(const py::dict& keywords) {
  SparseDatasetOptions options;
  OptionDict from(keywords);
  take_reader_options(from, options);
  from.finish();
  return options;
}

}  // namespace chunkhit
