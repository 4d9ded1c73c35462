// Spec of a pack of images: what pack_images makes of its input. Recorded in the manifest.
#pragma once

#include <chunkhit/error.h>
#include <chunkhit/pack_info.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chunkhit {

/// What the labels of one column are. automatic: whole numbers are class ids, other numbers are numbers,
/// other texts are names of classes; classes: ids (7.0 is 7) or names; numbers: 32-bit floats;
/// none: samples have no labels, all class ids are -1.
enum class LabelType { automatic, classes, numbers, none };

/// What becomes of samples without a name, where cells hold several: labels that are all 0, or rejects.
enum class EmptyLabels { zeros, reject };

/// What becomes of blanks in label columns of numbers: their rows are rejects, or they are packed as 0 or
/// NaN.
enum class MissingLabels { reject, zero, nan };

/// Columns of a CSV that names the samples; of tars, keys of the .json files beside the images.
struct LabelCsvSpec {
  std::string file_column = "file";  ///< paths, relative to the root
  /// Paths of masks and views, "[NAME=]COLUMN[:mask|:view]", relative to their folder of
  /// PackImagesSpec::pair; of tars the extensions of their members: "seg.png", "depth=depth.png:view".
  std::vector<std::string> mask_column{};
  /// Several columns are float labels: each by its name, "a,b", or "first-last" by their positions.
  std::vector<std::string> label_column{"label"};
  /// Further columns that are kept, by name: whole numbers, numbers or texts of up to 1,024 bytes.
  std::vector<std::string> keep_columns{};
  LabelType label_type = LabelType::automatic;
  /// Between the names in a cell: labels are a column of 0 and 1 for each name then; empty: one label.
  std::string label_separator;
  EmptyLabels empty_labels = EmptyLabels::zeros;
  /// Of several columns, or one with LabelType::numbers. Blank, NA and nan are missing, null in JSON.
  MissingLabels missing = MissingLabels::reject;
};

/// Files of class folders that are listed.
struct ClassFoldersSpec {
  std::vector<std::string> split_folders;  ///< subfolders of the root, each a pack; empty: one pack
  /// Globs, of names where they have no slash, else of paths below the root; empty: all but what is evidently
  /// no image by its name (.txt, .json, Thumbs.db, …).
  std::vector<std::string> include;
};

enum class Resize {
  none,
  exact,       ///< to width × height
  short_side,  ///< the short side to width, as torchvision's Resize
  long_side,   ///< the long side to width; of OwnSizesSpec::max_side alone
  fit,         ///< into width × height, padded, as Pillow's ImageOps.pad
};

/// Channels of the samples; keep: those of the first image.
enum class Channels { rgb, gray, rgba, keep };

/// How JPEG is decoded. exact: Pillow's pixels; fast: scaled while it is decoded, where it becomes much
/// smaller.
enum class JpegDecode { exact, fast };

/// Deterministic transform of every image: resize, center crop, channels, layout.
struct TransformSpec {
  Resize resize = Resize::none;
  std::uint32_t resize_width = 0;   ///< pixels; the side's length for short_side and long_side
  std::uint32_t resize_height = 0;  ///< pixels; unused for short_side and long_side
  Filter resample = Filter::bilinear;
  std::uint32_t crop_width = 0;  ///< pixels; 0: no crop
  std::uint32_t crop_height = 0;
  std::array<std::uint8_t, 3> pad_color{0, 0, 0};  ///< RGB, padding of Resize::fit
  Channels channels = Channels::rgb;
  /// RGB, what shows through transparent pixels where samples have no alpha; none: alpha is dropped, as by
  /// Pillow's convert.
  std::optional<std::array<std::uint8_t, 3>> background;
  JpegDecode decode = JpegDecode::exact;
  Layout layout = Layout::nhwc;
};

/// Whether images are turned as their EXIF orientation says.
enum class ExifUse { apply, ignore };

/// How much of an image file is checked; region: JPEG is decoded no further than the last row that is used.
enum class DecodeCheck { whole, region };

/// Whether all samples have one shape, or each image has a size of its own.
enum class Sizes { fixed, own };

/// How images of their own sizes are stored. jpeg: a JPEG that is not made smaller keeps its coefficients,
/// what is made smaller is encoded as JPEG (RGBA without loss), all else is stored without loss, as by photo
/// (RGB) or zstd, in HDF5 as by raw; photo, zstd (not in HDF5): pixels, compressed without loss; raw: pixels.
enum class SizedStore { jpeg, photo, zstd, raw };

/// How images of their own sizes are made and stored; used with Sizes::own alone.
struct OwnSizesSpec {
  std::uint32_t max_side = 0;    ///< pixels; longer sides are resized to it; 0: no limit
  std::uint32_t short_side = 0;  ///< pixels; longer short sides are resized to it; 0: no limit
  SizedStore store = SizedStore::jpeg;
  std::uint32_t quality = 90;      ///< of images that are encoded: 1 to 100, as Pillow and libjpeg count it
  std::uint32_t jpeg_tile = 4;     ///< MCUs between restart markers; 0: a JPEG's bytes stay as they are
  std::uint64_t part_samples = 0;  ///< images in a part; 0: about as many as part_bytes holds
};

/// Pack of a split and its share of each class, or its values of PackImagesSpec::split_column.
struct SplitShare {
  std::string name;      ///< subfolder of the output
  double share = 0;      ///< above 0; all shares add up to 1
  std::string values{};  ///< values and ranges of whole numbers: "1-3,5"
};

/// What is packed. Two packs with the same spec and the same input are equal, byte for byte.
struct PackImagesSpec {
  std::string
      labels;  ///< CSV file of files and labels, "-" for stdin; IDX labels; empty: subfolders are classes
  LabelCsvSpec columns;
  ClassFoldersSpec folders;  ///< without a CSV
  std::string
      classes;  ///< file of names, one per line, or pack whose class ids are used; empty: sorted names
  bool follow_symlinks = false;  ///< follow links to folders and out of the root
  /// Folders of the fields beside the images, "[NAME=]FOLDER[:mask|:view]": "masks", "depth=scans:view". NAME
  /// is "mask" or "view" where it is not given, else lower-case letters, digits and _. Without `labels`
  /// folders are no classes then: all class ids are -1. Empty: images alone.
  ///
  /// A folder of masks has for each image a file of its name below the root, with the extension .png, .npy,
  /// .bmp, .gif, .tif, .tiff or .pgm, and of the upright image's size. A pixel is one value from 0 to 255, as
  /// the file stores it: a gray level, an index of a palette (BMP, GIF: its gray), or equal colors; alpha is
  /// opaque. They are resized by nearest pixels. With `columns.mask_column` the folder of a field holds the
  /// files of its column; not given, it is the root. A folder of views has images of any type, made as the
  /// images are. Views and further masks are for `sizes` fixed.
  std::vector<std::string> pair;
  /// Class id of masks around the image, by Resize::fit and by crops beyond the image.
  std::uint8_t mask_pad = 0;
  TransformSpec transform;
  Sizes sizes = Sizes::fixed;
  OwnSizesSpec own_sizes;
  ExifUse exif = ExifUse::apply;
  /// Values of 16-bit images that become 0 and 255; those between are scaled, others clipped.
  std::array<std::uint16_t, 2> scale_from{0, 65535};
  DecodeCheck check = DecodeCheck::whole;
  bool accept_warnings = false;                 ///< pack damaged images as far as they can be decoded
  std::uint32_t max_seconds_per_image = 10;     ///< CPU time of decoding; 0: no limit
  std::uint64_t max_decode_bytes = 1ull << 30;  ///< memory for one image: its file, decoding and resizing
  std::string container = "hdf5";               ///< "hdf5", "shard"; for Sizes::own "shard"
  std::string codec;  ///< "none", "deflate", "zstd", "photo", with ":LEVEL"; empty: the container's default
  std::uint64_t chunk_samples = 0;        ///< 0: computed
  std::uint64_t chunk_bytes = 0;          ///< maximum raw bytes per chunk (own sizes: stored); 0: computed
  std::uint64_t part_bytes = 1ull << 30;  ///< maximum raw bytes per part (own sizes: expected stored bytes)
  PackOrder order = PackOrder::shuffle;
  std::uint64_t seed = 0;         ///< seed of the shuffle and the split
  std::vector<SplitShare> split;  ///< empty: one pack, or one for each of folders.split_folders
  /// Column, or key of .json files, whose values are groups: all images of one are in one pack of the split,
  /// also where shares are met less exactly for it. It is kept as `columns.keep_columns`. Empty: none.
  std::string split_group;
  /// Column, or key of .json files, whose values say which pack of the split an image belongs to, by
  /// SplitShare::values. It is kept as `columns.keep_columns`. Empty: none.
  std::string split_column;
};

}  // namespace chunkhit
