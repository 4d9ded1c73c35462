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
  from.take("echo", options.echo);
  options.cache_dir = path_option(from, "cache_dir");
  from.take("cache_disk_bytes", options.cache_disk_bytes);
  from.take("memory_bytes", options.memory_bytes);
  from.take_automatic("threads", options.threads);
  from.take_automatic("prefetch", options.prefetch);
  from.take_word("on_corrupt", options.on_corrupt);
  options.allocator = batch_allocator(from.take_value("allocator"));
}

/// What all readers have in common.
template <class Options>
void take_reader_options(OptionDict& from, Options& options) {
  from.take_word("cache", options.cache);
  from.take("cache_bytes", options.cache_bytes);
  from.take_word("check_hashes", options.check_hashes);
  from.take("check_external", options.check_external);
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

py::object OptionDict::take_value(const char* name) { return left_.attr("pop")(name, py::none()); }

void OptionDict::finish() const {
  for (const auto& [name, value] : left_)
    throw Error(ErrorCode::usage, location_ + py::str(name).cast<std::string>() + ": no such option");
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
