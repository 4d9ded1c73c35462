// The fields of the options of loaders and datasets: one table for Python's keywords, signatures and help(),
// and for the flags of pack-bench.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "chunkhit/dataset.h"
#include "chunkhit/image_loader.h"
#include "chunkhit/loader.h"
#include "chunkhit/sparse_loader.h"
#include "types/fields.h"

namespace chunkhit {

/// A whole number up to 4096, or kAutomatic.
struct AutomaticForm {
  static constexpr const char* kShape = "N|auto";
  static constexpr const char* kPythonType = "types.CountOrAuto";
  static constexpr std::uint32_t kMax = 4096;
  std::uint32_t min = 0;
  [[nodiscard]] std::string text(std::uint32_t value) const {
    return value == kAutomatic ? "auto" : std::to_string(value);
  }
  void parse(const std::string& name, const std::string& text, std::uint32_t& value) const {
    value = text == "auto" ? kAutomatic : static_cast<std::uint32_t>(parse_count(name, text, min, kMax));
  }
  [[nodiscard]] bool holds(std::uint32_t value) const {
    return value == kAutomatic || (value >= min && value <= kMax);
  }
  [[nodiscard]] std::string expected() const { return range_text(min, kMax) + " or auto"; }
};

/// One word of an enum, or none.
struct OptionalWordForm {
  static constexpr const char* kShape = "WORD";
  template <class Enum>
  [[nodiscard]] std::string text(const std::optional<Enum>& value) const {
    return value ? WordForm().text(*value) : "";
  }
  template <class Enum>
  void parse(const std::string& name, const std::string& text, std::optional<Enum>& value) const {
    WordForm().parse(name, text, value.emplace());
  }
};

/// Text, or none: an empty one is a text.
struct OptionalTextForm {
  static constexpr const char* kShape = "TEXT";
  static constexpr const char* kPythonType = "str";
  [[nodiscard]] std::string text(const std::optional<std::string>& value) const { return value.value_or(""); }
  void parse(const std::string&, const std::string& text, std::optional<std::string>& value) const {
    value = text;
  }
};

template <class Fields>
void show(AugmentSpec& augment, Fields& fields) {
  fields(Field{"flip_horizontal", ""}, augment.flip_horizontal, CodeForm{"float"});
  fields(Field{"crop_height", ""}, augment.crop_height, CountForm{});
  fields(Field{"crop_width", ""}, augment.crop_width, CountForm{});
  fields(Field{"random_crop", ""}, augment.random_crop, SwitchForm{});
  fields(Field{"crop_padding", ""}, augment.crop_padding, CountForm{});
  fields(Field{"resize_short", ""}, augment.resize_short, CountForm{});
  fields(Field{"resized_crop", ""}, augment.resized_crop, CodeForm{"types.ResizedCrop"});
  fields(Field{"resample", ""}, augment.resample, WordForm{});
  fields(Field{"flip_vertical", ""}, augment.flip_vertical, CodeForm{"float"});
  fields(Field{"quarter_turns", ""}, augment.quarter_turns, SwitchForm{});
}

template <class Fields>
void show(ResizedCropSpec& crop, Fields& fields) {
  fields(Field{"height", ""}, crop.height, CountForm{});
  fields(Field{"width", ""}, crop.width, CountForm{});
  fields(Field{"area", ""}, crop.area, CodeForm{"Sequence[float]"});
  fields(Field{"aspect", ""}, crop.aspect, CodeForm{"Sequence[float]"});
}

template <class Fields>
void show(NormalizeSpec& normalize, Fields& fields) {
  fields(Field{"mean", ""}, normalize.mean, CodeForm{"Sequence[float]"});
  fields(Field{"std", ""}, normalize.std, CodeForm{"Sequence[float]"});
}

/// Shows which samples an epoch has.
template <class Options, class Fields>
void show_sampler(Options& options, Fields& fields) {
  constexpr bool kImages = std::is_same_v<std::remove_const_t<Options>, ImageLoaderOptions>;
  fields(
      Field{"sampler", "Which samples an epoch draws", "",
            kImages ? "\"balanced\": each class as often. A dict has a weight by class, of all classes that "
                      "have samples. An array has a weight for each sample of the source. Weights are finite "
                      "and from 0"
                    : "An array has a weight for each row of the source, finite and from 0"},
      options.sampler, CodeForm{kImages ? "types.Sampler" : "types.RowSampler"});
  fields(
      Field{"subset", "Samples that are used", "",
            kImages ? "An array of sample numbers, or a list of class names. A tuple: the least and the "
                      "greatest label, both included. A path: a CSV with a column \"sample\" (numbers) or "
                      "\"file\" (names as `pack-info --list` writes them). In a mixture, weights and subsets "
                      "apply within each path"
                    : "An array of row numbers. A tuple: the least and the greatest label, both included, "
                      "where rows have one label. A path: a CSV with a column \"sample\" (numbers)"},
      options.sampler.subset, CodeForm{kImages ? "types.Subset" : "types.RowSubset"});
  fields(Field{"replacement", "Whether a sample may come as often as its weight asks for", "",
               "False: at most once; with weights this needs epoch_samples"},
         options.sampler.replacement, SwitchForm{});
  fields(Field{"epoch_samples", "Samples of an epoch; None: as many as the subset has"},
         options.sampler.epoch_samples, CountForm{1, UINT64_MAX, ""});
}

/// Shows the order of an epoch's samples, and how they are divided.
template <class Options, class Fields>
void show_order(Options& options, Fields& fields) {
  constexpr bool kImages = std::is_same_v<std::remove_const_t<Options>, ImageLoaderOptions>;
  fields.group("Batches");
  fields(Field{"batch_size", kImages ? "Images per batch" : "Rows per batch"}, options.batch_size,
         CountForm{1, INT32_MAX});
  fields(Field{"shuffle", "Order of samples", "WORD",
               "\"none\": packing order. \"window\" permutes chunks, and samples within windows of chunks. "
               "\"global\" permutes all samples, for data in memory or stored uncompressed"},
         options.shuffle, WordForm{});
  fields(
      Field{"seed", kImages ? "Seed of order and augmentation; any number of threads gives the same batches"
                            : "Seed of the order; any number of threads gives the same batches"},
      options.seed, CountForm{});
  fields(Field{"window_chunks", "Chunks per window of shuffle window"}, options.window_chunks,
         CountForm{1, INT32_MAX});
  fields(Field{"rank", "Number of this reader among those that share an epoch"}, options.rank, CountForm{});
  fields(Field{"world_size", "How many readers share an epoch"}, options.world_size, CountForm{1});
  fields(
      Field{"streams", "Streams of chunks that ranks share: 0 (world_size), a multiple of it, or 1", "",
            "Each has its own chunks, so that ranks read each chunk once. Without echo, batches of all ranks "
            "together are equal for each world_size that divides it, where batch_size times world_size is "
            "equal. 1: every rank visits every chunk"},
      options.streams, CountForm{});
  fields(Field{"rank_remainder", "Samples that cannot be divided evenly among ranks", "",
               "\"pad\" uses some twice, \"drop\" leaves them out"},
         options.rank_remainder, WordForm{});
  fields(Field{"drop_last", "Drop the last batch if it is not full"}, options.drop_last, SwitchForm{});
  show_sampler(options, fields);
  fields(Field{"echo", "Data echoing: uses of each fetched block of echo * batch_size samples"}, options.echo,
         CountForm{1});
}

/// Shows what all readers share: where chunks are kept.
template <class Options, class Fields>
void show_cache(Options& options, Fields& fields) {
  constexpr bool kLoads = requires { options.batch_size; };
  constexpr bool kImages = requires { options.images; };
  fields.group("Memory");
  fields(Field{"cache", "Chunks in memory", "WORD",
               kLoads && kImages
                   ? "\"decoded\", \"compressed\", or \"none\": read from the files in every epoch. "
                     "\"automatic\": the first of these that fits cache_bytes. Of images of their own "
                     "sizes \"compressed\", and decoded for as many images as fit"
               : kLoads ? "\"decoded\", \"compressed\", or \"none\": read from the files in every epoch. "
                          "\"automatic\": the first of these that fits cache_bytes"
                        : "\"decoded\", \"compressed\", or \"none\": read from the files each time. "
                          "\"automatic\": the first of these that fits cache_bytes"},
         options.cache, WordForm{});
  fields(
      Field{"cache_bytes", "Memory for chunks; 0: half of the available memory", "",
            kImages ? "torchrun's processes on a machine share it. Pixels that stay, and decoding, count, too"
                    : "torchrun's processes on a machine share it"},
      options.cache_bytes, BytesForm{});
  fields(Field{"cache_dir", "Folder for chunks of packs on a server", "FOLDER",
               "The processes of a machine share it. None: none"},
         options.cache_dir, PathForm{});
  fields(Field{"cache_disk_bytes", "Maximum bytes in cache_dir, over all packs", "SIZE",
               "0: half of the sum of these bytes and the free disk"},
         options.cache_disk_bytes, BytesForm{});
  fields(Field{"check_hashes", "Whether bytes that are read are compared with their hash", "",
               "\"always\": each time that a chunk or a sample is read from a file. \"never\": not at all"},
         options.check_hashes, WordForm{});
}

/// Shows how batches are made ahead.
template <class Options, class Fields>
void show_loader(Options& options, Fields& fields) {
  show_cache(options, fields);
  fields(Field{"memory_bytes", "Memory for chunks, decoding and batches together", "SIZE",
               "cache_bytes is what the batches leave of it, if it is not given. prefetch=\"auto\" fills at "
               "most a "
               "quarter of it with batches. 0: no limit beside cache_bytes; prefetch=\"auto\" then takes an "
               "eighth "
               "of the memory available to the process"},
         options.memory_bytes, BytesForm{});
  fields.group("Loader");
  fields(Field{"threads", "Worker threads; 0: all available CPUs; auto: chosen while running", "",
               "torchrun's processes on a machine share the CPUs. \"auto\": the fewest that keep up, from 1 "
               "to the larger of 16 and four times the CPUs. "
               "stats().tuning says what was tried"},
         options.threads, AutomaticForm{});
  fields(Field{"prefetch", "Batches made ahead; auto: chosen while running", "",
               "\"auto\": from 4 to 64. The batches are the same with any of these"},
         options.prefetch, AutomaticForm{1});
  fields(
      Field{
          "on_corrupt", "Handling of corrupt chunks and samples", "",
          "\"fail\", or \"skip\": a damaged chunk, or sample that is read alone, is left out and counted. A "
          "missing or truncated part is an error with both"},
      options.on_corrupt, WordForm{});
  fields(Field{"allocator", "Gives the memory of batches", "",
               "A function of a number of bytes that returns a writable, 64-byte aligned buffer"},
         options.allocator, CodeForm{"types.Allocator"});
}

/// Shows the names of datasets in HDF5 files that no pack-* wrote.
template <class Options, class Fields>
void show_datasets(Options& options, Fields& fields) {
  fields.group("External HDF5 files");
  fields(Field{"images", "Dataset of the images", "NAME"}, options.images, TextForm{});
  fields(Field{"labels", "Dataset of the labels", "NAME",
               "None: \"labels\" next to the images (\"train/labels\" for \"train/images\"), which must "
               "exist. \"\": "
               "no labels are read, and all are -1"},
         options.labels, OptionalTextForm{});
}

template <class Options, class Fields>
void show(Options& options,
          Fields& fields) requires std::is_same_v<std::remove_const_t<Options>, ImageLoaderOptions> {
  show_order(options, fields);
  fields(
      Field{
          "shares", "Range within which a mixture keeps its shares", "",
          "\"batch\": in every batch, to within one sample. \"epoch\": in every 4,096 samples, within which "
          "samples of all paths are shuffled"},
      options.mixture.shares, WordForm{});
  fields.group("Images");
  fields(
      Field{
          "augment", "What changes at reading", "",
          "A dict. flip_horizontal=0.5 and flip_vertical=0.5 are probabilities of mirroring an image left to "
          "right and top to bottom. quarter_turns=True then turns it by 0, 90, 180 or 270 degrees, each "
          "equally likely; samples must be square. crop_height= and crop_width= "
          "crop to so many pixels, from the center, or with random_crop=True anywhere, after crop_padding= "
          "pixels of zeros were added on each side. resized_crop=dict(height=224, width=224, area=(0.08, 1), "
          "aspect=(3/4, 4/3)) is torchvision's RandomResizedCrop. resize_short=256 with crop_height and "
          "crop_width is Resize and CenterCrop, for evaluation; a crop beyond the image has zeros there. "
          "resample=\"bilinear\", \"bicubic\", \"lanczos\", \"box\", \"hamming\" or \"nearest\" is the "
          "filter "
          "of the last two. Their pixels equal those of torchvision on PIL images: alpha weighs colors"},
      options.augment, CodeForm{"types.Augment"});
  fields(Field{"mask_padding", "Class id of masks where augment pads or crops beyond the image: 0 to 255", "",
               "255, say, with ignore_index=255 of the loss. Images have zeros there"},
         options.mask_padding, CountForm{0, 255});
  fields(
      Field{
          "dtype", "Pixel type, floats normalized", "",
          "\"uint8\", or \"float32\": (x / 255 - mean) / std. \"float16\" and \"bfloat16\" are these values, "
          "rounded to nearest even. Also types of NumPy or torch, as torch.bfloat16. NumPy has no bfloat16: "
          "its arrays are uint16, the bits"},
      options.dtype, WordForm{});
  fields(
      Field{
          "normalize", "Mean and std of floats", "",
          "dict(mean=[...], std=[...]) per channel in 0..1; mean 0 and std 1 give x / 255. None: the "
          "statistics that the packs of a split share, those of its first pack. A pack without a split uses "
          "its own, which stats() notes"},
      options.normalize, CodeForm{"types.Normalize"});
  fields(Field{"normalize_like", "Pack whose mean and std normalize this one", "PACK",
               "The training pack, say; for floats"},
         options.normalize_like, PathForm{});
  fields(Field{"layout", "Axis order of batches", "", "\"nhwc\" or \"nchw\"; None: as stored"},
         options.layout, OptionalWordForm{});
  show_loader(options, fields);
  show_datasets(options, fields);
}

template <class Options, class Fields>
void show(Options& options,
          Fields& fields) requires std::is_same_v<std::remove_const_t<Options>, SparseLoaderOptions> {
  show_order(options, fields);
  fields.group("Matrices");
  fields(Field{"format", "Batches", "WORD",
               "\"dense_f32\"; \"dense_f16\" (values above 65504 are an error); \"dense_u8\" (numbers as "
               "stored: a "
               "rating is the number times `value_scale`); \"csr\"; \"sequences\": int64 (rows, length) "
               "items by time; \"pairs\": ratings one by one, as users, items, values and negatives"},
         options.format, WordForm{});
  fields(Field{"binarize", "Replace every entry by 1"}, options.binarize, SwitchForm{});
  fields(Field{"scale", "Factor of every entry, after binarize"}, options.scale, CodeForm{"float"});
  fields(Field{"normalize", "Norm by which each row of x is divided, after scale", "",
               "\"none\", \"l1\", \"l2\""},
         options.normalize, WordForm{});
  fields(Field{"held_out", "Also give the held-out matrix, if the pack has one"}, options.held_out,
         SwitchForm{});
  fields(Field{"times", "csr, sequences: also give the time of each rating, if the pack keeps them", "",
               "`pack_sparse(keep_times=True)` keeps them"},
         options.times, SwitchForm{});
  fields(Field{"pair_times", "pairs: also give the time of each rating, if the pack keeps them", "",
               "Decoding and memory of 8 bytes a rating are the price"},
         options.pair_times, SwitchForm{});
  fields(Field{"length", "sequences: items of a row", "",
               "A row with fewer has the padding `column_count` in front, which is no item"},
         options.length, CountForm{1, 1 << 20});
  fields(
      Field{"cut", "sequences: which items of a longer row", "WORD",
            "\"last\". \"sliding\": windows that share one item, from the last one back, another one in each "
            "epoch. \"random\": any that follow each other, by seed, epoch and row"},
      options.cut, WordForm{});
  fields(Field{"negatives", "pairs: items drawn with each rating, not rated by its user in the pack", "",
               "With replacement; neither of x nor held out, by seed, epoch and rating"},
         options.negatives, CountForm{0, 1 << 20});
  fields(
      Field{"negatives_power", "pairs: how popularity weighs negatives", "",
            "An item is drawn with a probability proportional to its ratings to this power, as 0.75; 0: all "
            "items alike"},
      options.negatives_power, CodeForm{"float"});
  show_loader(options, fields);
}

template <class Options, class Fields>
void show(Options& options,
          Fields& fields) requires std::is_same_v<std::remove_const_t<Options>, ImageDatasetOptions> {
  show_cache(options, fields);
  show_datasets(options, fields);
}

template <class Options, class Fields>
void show(Options& options,
          Fields& fields) requires std::is_same_v<std::remove_const_t<Options>, SparseDatasetOptions> {
  fields(Field{"by_time", "Entries of a row in the order of their times", "",
               "Equal times are in the input's order; columns do not ascend. The pack must keep times"},
         options.by_time, SwitchForm{});
  show_cache(options, fields);
}

}  // namespace chunkhit
