// Random access to the samples and rows of packs.
#pragma once

#include <chunkhit/error.h>
#include <chunkhit/image_loader.h>
#include <chunkhit/loader.h>
#include <chunkhit/pack_info.h>
#include <chunkhit/sparse_loader.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chunkhit {

struct ImageDatasetOptions {
  Cache cache = Cache::automatic;
  std::uint64_t cache_bytes = 0;       ///< memory for chunks; 0: half of the memory available to the process
  std::string cache_dir{};             ///< as in ImageLoaderOptions
  std::uint64_t cache_disk_bytes = 0;  ///< as in ImageLoaderOptions
  CheckHashes check_hashes = CheckHashes::always;
  std::string images = "images";        ///< image dataset of an external HDF5 file
  std::optional<std::string> labels{};  ///< its label dataset, as in ImageLoaderOptions
};

/// JPEG that a sample is stored as.
struct StoredJpeg {
  std::vector<std::uint8_t> bytes{};  ///< empty for a sample that is stored as pixels
  int orientation = 1;                ///< how the image is to be turned, as EXIF numbers it
};

/// Random access to the samples of a source; thread-safe. Several sources are concatenated and their classes
/// joined by name, as by ImageLoader.
class CHUNKHIT_API ImageDataset {
 public:
  explicit ImageDataset(const std::string& path, const ImageDatasetOptions& options = {});
  explicit ImageDataset(const std::vector<std::string>& paths, const ImageDatasetOptions& options = {});
  ImageDataset(ImageDataset&&) noexcept;
  ImageDataset& operator=(ImageDataset&&) noexcept;
  ~ImageDataset();

  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] const PackInfo& info() const;  ///< the first source, with the classes of all
  /// Shape of a batch of one sample, as stored; without sides where images have their own sizes.
  [[nodiscard]] BatchShape sample_shape() const;
  /// Shape of this sample, upright. Throws usage for an index ≥ size().
  [[nodiscard]] BatchShape sample_shape(std::uint64_t sample) const;
  /// Copies samples one after the other into `out`, whose size is their bytes: as stored, or decoded and
  /// upright where images have their own sizes. Throws usage for an index ≥ size(), bad_data for a corrupt
  /// chunk.
  void read(std::span<const std::uint64_t> samples, std::span<std::uint8_t> out) const;
  /// Copies a field of samples likewise. A mask has (height, width) class ids, a view the shape of its image.
  /// Throws as `read`, and usage where no field has this name.
  void read_field(std::string_view name, std::span<const std::uint64_t> samples,
                  std::span<std::uint8_t> out) const;
  /// Returns a sample's class id, or -1.
  [[nodiscard]] std::int64_t label(std::uint64_t sample) const;
  /// Returns a sample's float labels; empty if labels are class ids.
  [[nodiscard]] std::span<const float> label_values(std::uint64_t sample) const;
  /// As in ImageLoader.
  [[nodiscard]] std::string_view key(std::uint64_t sample) const;
  [[nodiscard]] ColumnValues column(std::string_view name, std::span<const std::uint64_t> samples) const;
  /// Returns the JPEG that a sample is stored as, which is not decoded; empty bytes where it is stored as
  /// pixels. Throws usage for an index ≥ size(), bad_data for a corrupt chunk.
  [[nodiscard]] StoredJpeg stored_jpeg(std::uint64_t sample) const;

 private:
  struct CHUNKHIT_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

/// Rows copied from a source, in CSR format.
struct SparseRows {
  std::vector<std::int64_t> indptr;   ///< rows + 1 offsets, the first is 0
  std::vector<std::int32_t> indices;  ///< columns, ascending within a row; equal ones by time
  std::vector<float> values;
  std::vector<std::int64_t> times;  ///< of the entries, as in the input; empty if they are not kept
};

struct SparseDatasetOptions {
  Cache cache = Cache::automatic;
  /// Memory for rows. Ids and indices of each pack's shards may take as much again, at least 64 MiB. 0: half
  /// of the memory available to the process.
  std::uint64_t cache_bytes = 0;
  std::string cache_dir{};             ///< as in SparseLoaderOptions
  std::uint64_t cache_disk_bytes = 0;  ///< as in SparseLoaderOptions
  /// HDF5 parts of a pack are always checked as a whole when they are opened: damage is an error, never
  /// skipped.
  CheckHashes check_hashes = CheckHashes::always;
  /// Entries of each row in the order of their times, equal ones as in the input: columns do not ascend.
  bool by_time = false;
};

/// Matrix of a pack.
enum class MatrixName { x, held_out };

/// Random access to the rows of a source; thread-safe.
class CHUNKHIT_API SparseDataset {
 public:
  explicit SparseDataset(const std::string& path, const SparseDatasetOptions& options = {});
  explicit SparseDataset(const std::vector<std::string>& paths, const SparseDatasetOptions& options = {});
  SparseDataset(SparseDataset&&) noexcept;
  SparseDataset& operator=(SparseDataset&&) noexcept;
  ~SparseDataset();

  [[nodiscard]] std::uint64_t size() const;          ///< rows of the source
  [[nodiscard]] std::uint64_t column_count() const;  ///< items
  [[nodiscard]] bool has_held_out() const;
  [[nodiscard]] const PackInfo& info() const;  ///< the first source
  /// Copies rows in the requested order. Throws usage for a row ≥ size() or a missing held_out matrix,
  /// bad_data for a corrupt chunk.
  [[nodiscard]] SparseRows read(std::span<const std::uint64_t> rows, MatrixName matrix = MatrixName::x) const;
  /// Returns a row's labels; empty without labels.
  [[nodiscard]] std::span<const float> labels(std::uint64_t row) const;
  /// Return the original id of a user or an item, as a view of the dataset's memory; empty without ids. UTF-8
  /// in packs, unchecked bytes in external files.
  [[nodiscard]] std::string_view row_id(std::uint64_t row) const;
  [[nodiscard]] std::string_view column_id(std::uint64_t column) const;
  /// Return the ids of all rows or columns. Throw usage if the source has none, e.g. an external matrix
  /// without names.
  [[nodiscard]] SparseIds row_ids() const;
  [[nodiscard]] SparseIds column_ids() const;
  /// Return the row of a user's id or the column of an item's id; the first one if packs repeat an id,
  /// nothing for an unknown id. The first call builds an index of 11 to 22 bytes per id. Thread-safe. Throw
  /// as `row_ids`, or try_again if there is no memory for the index.
  [[nodiscard]] std::optional<std::uint64_t> row_of(std::string_view id) const;
  [[nodiscard]] std::optional<std::uint64_t> column_of(std::string_view id) const;
  /// As in SparseLoader. Thread-safe.
  [[nodiscard]] ColumnValues item_column(std::string_view name, std::span<const std::uint64_t> columns) const;
  [[nodiscard]] ColumnValues user_column(std::string_view name, std::span<const std::uint64_t> rows) const;

 private:
  struct CHUNKHIT_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chunkhit
