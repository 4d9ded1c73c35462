// What a pack or a part of one holds, and whether it is whole.
#pragma once

#include <chunkhit/error.h>
#include <chunkhit/export.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace chunkhit {

/// HDF5 chunk-cache settings and the share of single-sample reads that will find their chunk in it, 0..1.
struct CachePrediction {
  std::uint64_t rdcc_nbytes = 0;
  std::uint64_t rdcc_nslots = 0;
  double rdcc_w0 = 0.75;
  double sequential = 0;
  double windowed = 0;  ///< samples permuted inside windows of 64 chunks
  double random = 0;
  bool bypass = false;  ///< single samples are read exactly, past the cache: nothing to hit, nothing wasted
};

/// The statistics that all packs of a split are normalised with: those of the first one.
struct SharedStats {
  std::string from;          ///< the first pack's name in the split, "train"
  std::vector<double> mean;  ///< per channel, 0..255
  std::vector<double> std;
  bool operator==(const SharedStats&) const = default;
};

/// A class and its samples.
struct PackClass {
  std::int64_t id = 0;
  std::string name;  ///< empty when the input had only ids
  std::uint64_t samples = 0;
};

/// A file of a pack.
struct PackPart {
  std::string file;  ///< name in the pack's folder
  std::uint64_t samples = 0;
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
};

/// A matrix of a pack: "X", or "held_out" with the same rows.
struct PackMatrix {
  std::string name;
  std::uint64_t nnz = 0;          ///< entries: ratings
  std::uint64_t longest_row = 0;  ///< entries
};

/// What was left after a step of packing ratings: users and items with at least one.
struct PackStep {
  std::string name;
  std::uint64_t users = 0;
  std::uint64_t items = 0;
  std::uint64_t ratings = 0;
};

/// What a pack (or a single part) of user-item matrices holds beside what PackInfo says of all; samples are
/// rows.
struct MatrixInfo {
  std::uint64_t columns = 0;  ///< items
  std::vector<PackMatrix> matrices;
  std::string value_type;  ///< "none", "u8", "u16", "f32"
  double scale = 1;        ///< a rating is the stored number times this
  std::string split_name;  ///< "train", "validation", "test"; empty without a split
  std::vector<std::pair<std::string, std::uint64_t>> inputs;  ///< files, and their ratings
  std::uint64_t bad_lines = 0;
  std::vector<std::pair<std::string, std::uint64_t>> reasons;   ///< of bad lines
  std::vector<PackStep> steps;                                  ///< of all packs of the run
  std::vector<std::pair<std::string, std::uint64_t>> left_out;  ///< by the split
  std::vector<std::pair<float, std::uint64_t>> values;  ///< how often each value occurs, or from there on
};

/// Names of datasets in an HDF5 file that no pack-images wrote, as paths from its root.
struct Hdf5Names {
  std::string images = "images";
  /// Not set: "labels" next to the images ("train/labels" for "train/images"), which must exist; empty: none
  /// are read, and all are -1.
  std::optional<std::string> labels{};
  bool operator==(const Hdf5Names&) const = default;
};

/// What a pack (or a single part) holds.
struct PackInfo {
  std::string path;
  bool single_part = false;  ///< a part without its manifest: what only that tells is empty
  bool external = false;     ///< an external HDF5 file: no hash tells whether its bytes have changed
  std::string container;     ///< "hdf5", "shard"
  std::string codec;         ///< "none", "deflate", "zstd", "photo"
  std::string layout;        ///< "nhwc", "nchw"
  std::uint32_t height = 0;  ///< of a sample, pixels
  std::uint32_t width = 0;
  std::uint32_t channels = 0;  ///< uint8 values a pixel
  std::uint64_t samples = 0;
  std::uint64_t rows = 0;  ///< of the input: samples + rejected
  std::uint64_t rejected = 0;
  std::uint64_t warned = 0;  ///< samples that were packed with warnings
  bool class_labels = true;  ///< int64 class ids, else float32 columns
  std::vector<std::string> label_columns;
  std::vector<PackClass> classes;
  std::vector<double> mean;  ///< per channel, 0..255
  std::vector<double> std;
  std::optional<SharedStats> normalize;  ///< of a pack of a split: what normalises it, instead of its own
  std::uint64_t chunk_samples = 0;
  std::uint64_t chunk_bytes = 0;   ///< raw
  std::uint64_t raw_bytes = 0;     ///< of all samples; of matrices as CSR of 32-bit columns and values
  std::uint64_t stored_bytes = 0;  ///< of all chunks
  std::vector<PackPart> parts;
  std::vector<std::string> problems;  ///< parts of a pack that are missing or have another size than recorded
  std::vector<std::pair<std::string, std::string>> spec;  ///< the flags that made it
  std::string tool;
  std::string pack_id;            ///< 16 hexadecimal digits, the same for the same input and spec
  std::string input_xxh3;         ///< of the input list
  CachePrediction default_cache;  ///< what an untuned HDF5 reader gets from the first part; all 0 for shards
  CachePrediction advised_cache;
  std::optional<MatrixInfo> matrix;  ///< of matrices: shape, pixels, classes and cache are empty then
};

/// Reads what `path` holds: a pack's folder, its manifest.json, a single part, or another HDF5 file with an
/// array under `names`. Throws bad_data when it is none of these, is unfinished, or its manifest (of a lone
/// part: its structure) is damaged, usage when `names` are given for what is no single HDF5 file.
[[nodiscard]] CHUNKHIT_API PackInfo read_pack_info(const std::string& path, const Hdf5Names& names = {});

/// Writes PackInfo as one JSON object. What manifest.json has, too, is named and nested as there
/// (schemas/manifest.md); the other keys are the fields' names.
[[nodiscard]] CHUNKHIT_API std::string pack_info_json(const PackInfo& info);

/// A pack that no run has finished yet.
struct UnfinishedPack {
  std::string path;
  std::uint64_t parts = 0;  ///< that are finished; a pack of matrices has none before it is whole
  std::uint64_t rows = 0;   ///< of the input, in these parts: samples + rejected
  std::uint64_t samples = 0;
  std::uint64_t rejected = 0;
  std::uint64_t warned = 0;  ///< samples that were packed with warnings
  std::uint64_t bytes = 0;
  std::vector<std::string> begun;  ///< files that are being written, or were when their run was killed
  std::string last_write;          ///< to any file, UTC, ISO 8601
};

/// Returns how far an unfinished pack is; nothing for a finished one, and for what is no pack.
[[nodiscard]] CHUNKHIT_API std::optional<UnfinishedPack> read_unfinished_pack(const std::string& path);

/// Writes UnfinishedPack as one JSON object, whose keys are the fields' names, and `finished`: false.
[[nodiscard]] CHUNKHIT_API std::string unfinished_pack_json(const UnfinishedPack& pack);

/// How to verify.
struct VerifyOptions {
  bool quick = false;         ///< manifest, sizes and structure only; no sample is read
  std::uint32_t threads = 0;  ///< 0: all allowed CPUs
  Hdf5Names names{};          ///< of an external file
  std::function<void(const std::string& part)> on_part;  ///< called before each part
};

/// What was checked and what is wrong.
struct VerifyReport {
  std::uint64_t parts = 0;
  std::uint64_t chunks = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  /// An external HDF5 file: it has no hashes and no manifest to compare with, so that changed
  /// samples go unnoticed unless they cannot be decoded.
  bool external = false;
  std::vector<std::string>
      problems;  ///< "part-00003.h5: chunk 17 (samples 1700-1799): checksum …, expected …"
  /// Files of a pack that, once removed, the command that made it writes again: what is damaged, and the
  /// manifest.
  std::vector<std::string> damaged;
};

/// Writes VerifyReport as one JSON object, whose keys are the fields' names.
[[nodiscard]] CHUNKHIT_API std::string verify_report_json(const VerifyReport& report);

/// Checks a pack or a single part: manifest, sizes, hashes of files and chunks, every chunk decoded,
/// statistics, external or missing parts. External HDF5 files are read in a child process, so that a damaged
/// one cannot end the caller, which must have no other threads while it calls for one. Throws bad_data only
/// when there is nothing to check, and try_again where memory, descriptors or storage fail (EIO, too): a
/// error is what was seen to be wrong, never what could not be read.
[[nodiscard]] CHUNKHIT_API VerifyReport verify_pack(const std::string& path,
                                                    const VerifyOptions& options = {});

}  // namespace chunkhit
