// Writes packs of images that a program has in memory. Library chunkhit::pack.
#pragma once

#include <chunkhit/error.h>
#include <chunkhit/image_spec.h>
#include <chunkhit/pack.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace chunkhit {

/// Pixels of an image, row by row, without padding: (height, width, channels).
struct PixelsView {
  std::span<const std::uint8_t> bytes;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 0;  ///< 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA
};

/// A field of a sample beside its image: a mask, class ids of 1 channel, or a view. `pixels.channels` 0: its
/// bytes are an image file, as views may be.
struct FieldPixels {
  SampleField field;
  PixelsView pixels;
};

/// Label of a sample: the id of a class, its name, or a number for each of the spec's label columns. All
/// samples of a writer have one kind.
using SampleLabel = std::variant<std::int64_t, std::string_view, std::span<const float>>;

/// Value of a column that is kept beside the labels; NaN and an empty text are missing ones. Whole numbers
/// and others may take turns in a column, texts have a column of their own.
using ColumnValue = std::variant<std::int64_t, double, std::string_view>;

/// Packs images that are added one by one, as pack_images packs those of files: the same transform, formats,
/// parts, split, shuffle, statistics and rejects.csv. What was added lies in a temporary file without a name
/// beside the output, which takes the size of all images as they were added, until the writer is destroyed or
/// its process ends. One thread at a time may use a writer; a forked child must make its own.
class CHUNKHIT_API ImageWriter {
 public:
  /// Begins packs in `options.output`. Options that say which files are packed are errors: `options.root`,
  /// `options.inputs`, `spec.labels`, `spec.folders`, `spec.pair`, `spec.follow_symlinks`, and of
  /// `spec.columns` all but the label columns and the kept ones. `spec.columns.label_column` names the
  /// numbers of labels, `spec.columns.keep_columns` the columns of `add`. `class_names`: names by id; labels
  /// are ids below their count, or these names. Throws as pack_images.
  ImageWriter(PackImagesSpec spec, PackImagesOptions options, std::vector<std::string> class_names = {});
  ImageWriter(ImageWriter&&) noexcept;
  ImageWriter& operator=(ImageWriter&&) noexcept;
  ~ImageWriter();

  /// Appends an image file, of any type that pack_images reads. It is not decoded yet: `finish` rejects what
  /// cannot be packed. `key`: the sample's name, as in rejects.csv; empty: its number. `columns`: a value for
  /// each of the kept columns. Throws usage, naming the key, for a label of another kind than the ones
  /// before, a key that is no UTF-8, a column's value that is missing or of another kind, or pixels of
  /// another count than the shape has, and bad_data for the name of a class that is not listed: the image is
  /// not added then; cannot_write where the disk is full.
  /// `fields`: of the upright image's size, with each image the same names and roles in the same order.
  void add(std::span<const std::uint8_t> file, const SampleLabel& label, std::string_view key = {},
           std::span<const ColumnValue> columns = {}, std::span<const FieldPixels> fields = {});
  void add(const PixelsView& pixels, const SampleLabel& label, std::string_view key = {},
           std::span<const ColumnValue> columns = {}, std::span<const FieldPixels> fields = {});

  /// Packs what was added and publishes; called once. Equal images, labels and keys in equal order make an
  /// equal pack; one that is there and finished stays, and parts that an interrupted run finished are kept.
  /// Throws as pack_images.
  PackImagesReport finish();

 private:
  struct CHUNKHIT_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chunkhit
