#include "binding_options.h"

#include <pybind11/stl.h>

namespace chunkhit {
namespace {

using std::pair;
using std::string_view;

constexpr std::array<pair<string_view, Shuffle>, 3> kShuffles{
    {{"none", Shuffle::none}, {"window", Shuffle::window}, {"global", Shuffle::global}}};
constexpr std::array<pair<string_view, Cache>, 4> kResidencies{{{"automatic", Cache::automatic},
                                                                {"decoded", Cache::decoded},
                                                                {"compressed", Cache::compressed},
                                                                {"none", Cache::none}}};
constexpr std::array<pair<string_view, Dtype>, 2> kDtypes{
    {{"uint8", Dtype::uint8}, {"float32", Dtype::float32}}};
constexpr std::array<pair<string_view, CheckHashes>, 3> kChecks{
    {{"first_use", CheckHashes::first_use}, {"always", CheckHashes::always}, {"never", CheckHashes::never}}};
constexpr std::array<pair<string_view, OnCorrupt>, 2> kOnCorrupt{
    {{"fail", OnCorrupt::fail}, {"skip", OnCorrupt::skip}}};
constexpr std::array<pair<string_view, RankRemainder>, 2> kUneven{
    {{"pad", RankRemainder::pad}, {"drop", RankRemainder::drop}}};
constexpr std::array<pair<string_view, Layout>, 2> kLayouts{{{"nhwc", Layout::nhwc}, {"nchw", Layout::nchw}}};
constexpr std::array<pair<string_view, SparseFormat>, 4> kSparseFormats{
    {{"dense_f32", SparseFormat::dense_f32},
     {"dense_f16", SparseFormat::dense_f16},
     {"dense_u8", SparseFormat::dense_u8},
     {"csr", SparseFormat::csr}}};
constexpr std::array<pair<string_view, RowNorm>, 3> kRowNorms{
    {{"none", RowNorm::none}, {"l1", RowNorm::l1}, {"l2", RowNorm::l2}}};

/// What loaders of all kinds of batches have in common.
template <class Options>
void take_loader_options(OptionDict& from, Options& options) {
  from.take("batch_size", options.batch_size);
  from.take_word("shuffle", options.shuffle, kShuffles);
  from.take("seed", options.seed);
  from.take("window_chunks", options.window_chunks);
  from.take("rank", options.rank);
  from.take("world_size", options.world_size);
  from.take_word("rank_remainder", options.rank_remainder, kUneven);
  from.take("drop_last", options.drop_last);
  from.take("echo", options.echo);
  from.take("threads", options.threads);
  from.take("prefetch", options.prefetch);
  from.take_word("on_corrupt", options.on_corrupt, kOnCorrupt);
  options.allocator = batch_allocator(from.take_value("allocator"));
}

/// What all readers have in common.
template <class Options>
void take_reader_options(OptionDict& from, Options& options) {
  from.take_word("cache", options.cache, kResidencies);
  from.take("cache_bytes", options.cache_bytes);
  from.take_word("check_hashes", options.check_hashes, kChecks);
  from.take("check_external", options.check_external);
}

py::dict dict_option(OptionDict& from, const char* name) {
  const py::object found = from.take_value(name);
  if (found.is_none()) return {};
  if (!py::isinstance<py::dict>(found)) from.refuse(name, found, "a dict");
  return found.cast<py::dict>();
}

/// A path, as bytes or text; empty where it is None.
std::string path_option(OptionDict& from, const char* name) {
  const py::object found = from.take_value(name);
  if (found.is_none()) return {};
  if (!py::isinstance<py::str>(found) && !py::isinstance<py::bytes>(found))
    from.refuse(name, found, "a path");
  return found.cast<std::string>();
}

AugmentSpec augment_spec(const py::dict& options) {
  AugmentSpec spec;
  OptionDict from(options, "augment.");
  from.take("flip_horizontal", spec.flip_horizontal);
  from.take("crop_height", spec.crop_height);
  from.take("crop_width", spec.crop_width);
  from.take("random_crop", spec.random_crop);
  from.take("crop_padding", spec.crop_padding);
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
  from.take_word("dtype", options.dtype, kDtypes);
  const py::dict normalize = dict_option(from, "normalize");
  options.normalize = normalize_spec(normalize);
  options.normalize_like = path_option(from, "normalize_like");
  if (!normalize.empty() && options.dtype != Dtype::float32)
    throw Error(ErrorCode::usage,
                "normalize: is for dtype=\"float32\"; uint8 batches have the pixels as they are");
  Layout layout = Layout::nhwc;
  const bool has_layout = keywords.contains("layout") && !keywords["layout"].is_none();
  from.take_word("layout", layout, kLayouts);
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
  from.take_word("format", options.format, kSparseFormats);
  from.take("binarize", options.binarize);
  from.take("scale", options.scale);
  from.take_word("normalize", options.normalize, kRowNorms);
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
