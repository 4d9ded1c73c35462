// Contents of packs and parts.
#pragma once

#include <chunkhit/error.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace chunkhit {

/// Memory layout of a sample: pixels after pixels (height, width, channel) or planes after planes (channel,
/// height, width).
enum class Layout { nhwc, nchw };

/// Order of the samples or rows of a pack.
enum class PackOrder { shuffle, input };

/// Resample filter, spelled as in Pillow.
enum class Filter { bilinear, bicubic, lanczos, box, hamming, nearest };

/// What a field of a sample is. mask: a class map; view: a second image of the same upright size, such as
/// another exposure, a depth rendering, or the clean version of a noisy image.
enum class FieldRole { mask, view };

/// What a sample has beside its image.
struct SampleField {
  std::string name;  ///< "mask", "view", or what PackImagesSpec::pair calls it
  FieldRole role = FieldRole::mask;
  bool operator==(const SampleField&) const = default;
};

/// Labels of images: an int64 class id a sample, or `label_columns` float32 numbers.
enum class LabelKind { class_id, numbers };

/// Type of a column of samples that is kept beside the labels. float64: a missing value is NaN.
enum class ColumnType { int64, float64, text };

/// Column that is kept beside the labels of samples, or beside the ids of items or users.
struct PackColumn {
  std::string name;
  ColumnType type = ColumnType::int64;
  bool operator==(const PackColumn&) const = default;
};

/// Type of a stored value of a matrix.
enum class ValueType : std::uint8_t {
  none,  ///< nothing is stored: every rating is 1
  u8,
  u16,
  f32,
};

/// How the values of a matrix are stored: rating = stored number · scale, exactly.
struct StoredValues {
  ValueType type = ValueType::none;
  double scale = 1;
};

/// HDF5 chunk-cache settings and the predicted hit rates of single-sample reads, 0..1.
struct CachePrediction {
  std::uint64_t rdcc_nbytes = 0;
  std::uint64_t rdcc_nslots = 0;
  double rdcc_w0 = 0.75;
  double sequential = 0;
  double windowed = 0;  ///< hit rate with samples permuted within windows of 64 chunks
  double random = 0;
  bool bypass = false;  ///< samples are read directly, without the cache
};

/// Statistics that normalize all packs of a split: those of its first pack.
struct SharedStats {
  std::string from;          ///< name of the first pack in the split, e.g. "train"
  std::vector<double> mean;  ///< per channel, of pixels scaled to 0..1, as NormalizeSpec takes it
  std::vector<double> std;   ///< per channel, of pixels scaled to 0..1
  bool operator==(const SharedStats&) const = default;
};

/// Class of images and its number of samples.
struct PackClass {
  std::int64_t id = 0;
  std::string name;  ///< empty if the input had ids only
  std::uint64_t samples = 0;
};

/// Part: a data file of a pack.
struct PackPart {
  std::string file;  ///< file name in the pack's folder, e.g. "part-00000.h5"
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;  ///< hash of the whole file; 0 for a single part
  std::uint64_t rows = 0;  ///< input rows that this part stands for: samples + rejected
  std::uint64_t samples = 0;
  std::uint64_t chunks = 0;
  std::uint64_t stored_bytes = 0;  ///< stored bytes of all chunks
};

/// Matrix of a pack: "X", or "held_out" with the same rows.
struct PackMatrix {
  std::string name;
  std::uint64_t nnz = 0;          ///< number of ratings
  std::uint64_t longest_row = 0;  ///< ratings in the longest row
};

/// Input file of ratings.
struct InputStats {
  std::string file;         ///< name without folders
  std::uint64_t bytes = 0;  ///< decompressed bytes of a text, stored bytes of a matrix; 0: unknown
  std::uint64_t lines = 0;
  std::uint64_t blank_lines = 0;
  std::uint64_t comment_lines = 0;
  std::uint64_t header_lines = 0;
  std::uint64_t ratings = 0;
};

/// Counts after a step of packing ratings: users and items with at least one rating.
struct PackStep {
  std::string name;
  std::uint64_t users = 0;
  std::uint64_t items = 0;
  std::uint64_t ratings = 0;
};

/// Number of ratings of a value, or of values from this one up to the next entry's.
struct ValueCount {
  float value = 0;
  std::uint64_t ratings = 0;
};

/// Table whose columns are kept beside the items or the users of a run's packs.
struct ColumnTableStats {
  std::string file;               ///< name without folders
  std::uint64_t rows = 0;         ///< below its header
  std::uint64_t unused_rows = 0;  ///< of ids that no pack of the run has
  std::uint64_t without_row = 0;  ///< items or users of the packs that it has no row of
};

/// Counts of the input's ratings after each step, for all packs of a run.
struct RatingStats {
  std::vector<InputStats> inputs;
  std::uint64_t bad_lines = 0;
  std::vector<std::pair<std::string, std::uint64_t>> reasons;  ///< numbers of bad lines by reason
  std::vector<PackStep> steps;
  std::vector<std::pair<std::string, std::uint64_t>> left_out;  ///< by the split, by reason
  std::vector<ValueCount> values;                               ///< packed values, ascending
  bool value_ranges = false;  ///< each value stands for those up to the next: there are too many to list
  std::optional<ColumnTableStats> item_columns{};
  std::optional<ColumnTableStats> user_columns{};
};

/// Smallest, median and largest of many numbers.
struct Spread {
  std::uint32_t min = 0;
  std::uint32_t median = 0;
  std::uint32_t max = 0;
};

/// Sizes of images that have their own, upright.
struct OwnSizesInfo {
  Spread height;            ///< pixels
  Spread width;             ///< pixels
  Spread stored_bytes;      ///< of an image
  std::uint64_t jpeg = 0;   ///< number of images stored as JPEG
  std::uint64_t raw = 0;    ///< as pixels
  std::uint64_t zstd = 0;   ///< as pixels compressed by zstd
  std::uint64_t photo = 0;  ///< as pixels compressed by photo
};

/// Distribution of a number over images, in ranges that are an eighth of a power of two wide.
struct SizeCounts {
  double min = 0;
  double max = 0;
  std::map<double, std::uint64_t> ranges;  ///< images by the smallest number of their range
  bool operator==(const SizeCounts&) const = default;
};

/// Sizes of the input images of one format, upright.
struct InputFormat {
  std::string format;  ///< "jpeg", "png", "pnm" (also pixels from a program), …
  std::uint64_t images = 0;
  SizeCounts width;  ///< pixels
  SizeCounts height;
  SizeCounts aspect_ratio;  ///< width / height
  bool operator==(const InputFormat&) const = default;
};

/// Change of an aspect ratio, as a factor, above which an image counts as squeezed.
inline constexpr double kMaxSqueeze = 1.5;

/// Share of an image's area that the crop removed, above which the image counts as cropped.
inline constexpr double kMaxCropLoss = 0.5;

/// Largest value of 16-bit images up to which their range counts as low: 14 bits, a quarter of the levels.
inline constexpr std::uint32_t kMaxLowValue = 16383;

/// Sizes of the packed images before the transform.
struct InputSizes {
  std::vector<InputFormat> formats;  ///< sorted by name
  std::uint64_t squeezed = 0;        ///< images whose aspect ratio changed by more than kMaxSqueeze
  double max_squeeze = 1;            ///< largest change of an aspect ratio
  std::uint64_t cropped = 0;         ///< images that lost more than kMaxCropLoss of their area to the crop
  double max_crop_loss = 0;          ///< largest share of an area that was lost; 0 where `cropped` is 0
  std::uint64_t padded = 0;          ///< images smaller than the crop, with black borders
  double max_padding = 0;            ///< largest share of a sample that is border; 0 where `padded` is 0
  std::uint64_t alpha_dropped = 0;   ///< images with alpha, which samples show without it
  std::uint64_t frames_dropped = 0;  ///< images of files with more pages or frames
  std::uint64_t deep = 0;       ///< images of 16 bits a value that were not all black, not scaled by a spec
  std::uint32_t max_value = 0;  ///< largest value of them
  bool operator==(const InputSizes&) const = default;
};

/// Contents of a pack (or single part) of images.
struct ImagesInfo {
  bool own_sizes = false;  ///< each image has its own size; height, width and chunk_samples are 0
  /// What each image has beside it, uint8: masks of its height and width, views of its shape.
  std::vector<SampleField> fields;
  std::uint32_t height = 0;  ///< height of a sample, pixels
  std::uint32_t width = 0;
  std::uint32_t channels = 0;  ///< uint8 values per pixel
  Layout layout = Layout::nhwc;
  std::uint64_t rows = 0;  ///< input rows: samples + rejected
  std::uint64_t rejected = 0;
  std::uint64_t warned = 0;  ///< samples packed with warnings
  LabelKind label_kind = LabelKind::class_id;
  /// Samples whose number is 1, by label column, where all numbers are 0 or 1; else empty. Filled by
  /// read_pack_info, loaders and datasets.
  std::vector<std::uint64_t> label_counts;
  std::vector<PackColumn> columns;  ///< kept beside the labels; of several sources those that all have
  std::vector<PackClass> classes;
  std::vector<double> mean;              ///< per channel, of pixels scaled to 0..1, as NormalizeSpec takes it
  std::vector<double> std;               ///< per channel, of pixels scaled to 0..1
  std::optional<SharedStats> normalize;  ///< statistics that normalize a pack of a split, instead of its own
  std::uint64_t chunk_samples = 0;
  std::uint64_t chunk_bytes = 0;  ///< uncompressed bytes per chunk
  CachePrediction default_cache;  ///< for an untuned HDF5 reader of the first part; all 0 without chunks
  CachePrediction advised_cache;
  std::optional<OwnSizesInfo> sizes;  ///< with own_sizes, from read_pack_info alone
  std::optional<InputSizes> inputs;   ///< from the manifest; older builds did not record them
};

/// Contents of a pack (or single part) of user-item matrices, whose samples are rows.
struct MatrixInfo {
  std::uint64_t columns = 0;  ///< items
  std::vector<PackMatrix> matrices;
  StoredValues values;
  std::string split_name;                  ///< "train", "validation", "test"; empty without a split
  std::uint64_t chunk_rows = 0;            ///< rows per block; 0 in HDF5
  RatingStats stats;                       ///< from the manifest
  std::vector<PackColumn> item_columns{};  ///< kept beside the items' ids
  std::vector<PackColumn> user_columns{};  ///< beside the users'; of several sources those that all have
  /// Unit of the times that are kept of ratings: "seconds", "milliseconds", "microseconds" or "nanoseconds"
  /// since 1970, by their size, else "numbers"; empty: times are not kept.
  std::string times{};
  bool has_repeats = false;  ///< a row may have an item several times (`duplicates` keep)
  std::string lost{};  ///< "test lacks 95 % of its ratings, 21 of 22": the split left out more than a tenth
};

/// Dataset names of an external HDF5 file, as paths from its root.
struct Hdf5Names {
  std::string images = "images";
  /// Not set: "labels" next to the images ("train/labels" for "train/images"), which must exist; empty: no
  /// labels are read, and all are -1.
  std::optional<std::string> labels{};
  bool operator==(const Hdf5Names&) const = default;
};

/// A pack that pack-merge joined.
struct MergedPack {
  std::string pack_id;
  std::string tool;
  std::string root;  ///< folder of the images when they were packed; empty where run.json does not say it
  std::vector<std::pair<std::string, std::string>> spec;  ///< choices that made it
  std::string input_xxh3;
  std::uint64_t rows = 0;  ///< input rows: samples + rejected
  std::uint64_t samples = 0;
  std::uint64_t parts = 0;
  std::string codec;
  std::uint64_t chunk_samples = 0;  ///< samples, or rows, per chunk
};

/// Contents of a pack (or single part).
struct PackInfo {
  std::string path;
  bool single_part = false;  ///< part without its manifest; fields known only from a manifest are empty
  bool external = false;     ///< external HDF5 file: it has no hashes, changes go unnoticed
  std::string container;     ///< "hdf5", "shard"
  std::string codec;         ///< "none", "deflate", "zstd", "photo"
  std::uint64_t samples = 0;
  std::vector<std::string> label_columns;
  /// Uncompressed; of matrices as CSR of u64 indptr, 32-bit columns and values. 0 in a loader's info of a
  /// single shard of matrices: only read_pack_info counts its entries.
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;  ///< stored bytes of all chunks
  std::vector<PackPart> parts;
  std::vector<std::string> problems;  ///< missing parts, and parts whose size differs from the manifest
  std::vector<std::pair<std::string, std::string>>
      spec;                         ///< choices that made the pack; of a merged one: all
  std::vector<MergedPack> sources;  ///< of a merged pack
  std::string tool;
  std::string pack_id;     ///< 16 hexadecimal digits; equal for equal input and spec
  std::string input_xxh3;  ///< hash of the input list
  std::variant<ImagesInfo, MatrixInfo> contents;
  /// Return the contents of one kind. Throw usage for the other.
  [[nodiscard]] CHUNKHIT_API const ImagesInfo& images() const;
  [[nodiscard]] CHUNKHIT_API const MatrixInfo& matrix() const;
  [[nodiscard]] bool is_matrix() const { return std::holds_alternative<MatrixInfo>(contents); }
};

/// Reads the contents of a pack (its folder or manifest.json), a single part, or an external HDF5 file with
/// an array under `names`. Throws bad_data if `path` is none of these, unfinished, or its manifest (of a
/// single part: its structure) is damaged; usage if `names` are given for anything but a single HDF5 file.
[[nodiscard]] CHUNKHIT_API PackInfo read_pack_info(const std::string& path, const Hdf5Names& names = {});

/// Returns the packs that a path names: those in the folder of a split, or in a folder of packs and splits,
/// by name, finished or not; else the path itself, whatever it is.
[[nodiscard]] CHUNKHIT_API std::vector<std::string> packs_of(const std::string& path);

/// Reads a file beside the parts of a pack, whose folder may be a URL: its manifest.json, run.json, or a
/// table that the manifest lists. Throws bad_data if there is none; try_again where it cannot be read now.
[[nodiscard]] CHUNKHIT_API std::string read_pack_file(const std::string& folder, const std::string& name);

/// Formats PackInfo as one JSON object. Keys of manifest.json are named and nested as there
/// (schemas/manifest.md); other keys are field names.
[[nodiscard]] CHUNKHIT_API std::string pack_info_json(const PackInfo& info);

/// Pack that no run has finished yet.
struct UnfinishedPack {
  std::string path;
  std::uint64_t parts = 0;  ///< finished parts
  std::uint64_t rows = 0;   ///< input rows of these parts: samples + rejected
  std::uint64_t samples = 0;
  std::uint64_t rejected = 0;
  std::uint64_t warned = 0;  ///< samples packed with warnings
  std::uint64_t bytes = 0;
  std::vector<std::string> begun;  ///< files being written, or left by a killed run
  bool has_rejects = false;        ///< rejects.csv lists the rows that were rejected so far
  std::string last_write;          ///< time of the last write to any file, UTC, ISO 8601
};

/// Reads the progress of an unfinished pack, or of a run that ended before its first part; nothing for a
/// finished pack or if `path` is no pack.
[[nodiscard]] CHUNKHIT_API std::optional<UnfinishedPack> read_unfinished_pack(const std::string& path);

/// Formats UnfinishedPack as one JSON object: the field names, and `finished`: false.
[[nodiscard]] CHUNKHIT_API std::string unfinished_pack_json(const UnfinishedPack& pack);

}  // namespace chunkhit
