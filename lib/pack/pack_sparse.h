// Packs user-item matrices: read, rules, split, order of rows and columns, packs.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "manifest/manifest.h"
#include "ratings/rating_packs.h"
#include "ratings/rating_reader.h"
#include "ratings/rating_table.h"
#include "store/hdf5/matrix.h"
#include "types/csr_rows.h"

namespace chunkhit {

inline constexpr std::array<std::string_view, 2> kRowOrderNames{"shuffle", "input"};
inline constexpr std::array<std::string_view, 2> kMatrixLayoutNames{"csr", "dense"};
inline constexpr std::array<std::string_view, 3> kTransposeNames{"auto", "no", "yes"};

/// How the inputs are read; they are of one kind.
struct RatingInputSpec {
  std::string format;                          ///< of kRatingFormatNames; empty: detected by the first bytes
  RatingTableSpec table;                       ///< of text
  Transpose transpose = Transpose::automatic;  ///< of files that hold a matrix
  std::string layer;                           ///< of HDF5: a layer, or "raw"; empty: X
  std::optional<int> index_base;               ///< of svmlight: 0 or 1
};

/// What is wanted; recorded in the manifest and part of what makes two packs equal.
struct PackSparseSpec {
  RatingInputSpec input;
  RatingPacksSpec packs;
  std::string reuse_ids;  ///< a pack whose items.csv, or that file, gives the columns; empty: none
  std::string container = "shard";
  std::string codec;  ///< a codec's name, ":LEVEL" may follow; empty: the container's default
  MatrixLayout layout = MatrixLayout::csr;
  std::uint64_t chunk_rows = 0;  ///< of shards; 0: computed
  std::uint64_t part_bytes = 1ull << 30;
};

/// How far a run is.
struct PackSparseProgress {
  enum class Phase { reading, sorting, packing };
  Phase phase = Phase::reading;
  std::string pack;               ///< the pack's folder, while packing
  std::uint64_t bytes_done = 0;   ///< of the inputs
  std::uint64_t bytes_total = 0;  ///< 0: not known
  std::uint64_t rows_done = 0;    ///< of all packs
  std::uint64_t rows_total = 0;
  std::uint64_t bad_lines = 0;
};

/// How to run; not recorded.
struct PackSparseOptions {
  std::vector<std::string> inputs;  ///< files, or "-"
  std::string output;               ///< folder of the pack, or of the packs of a split
  std::uint32_t threads = 0;        ///< 0: all allowed CPUs
  std::uint64_t memory_bytes = 2ull << 30;
  bool fail_on_error = true;          ///< stop at the first bad line
  double max_error_share = 0.01;      ///< stop when more of all lines are bad (one is allowed) …
  std::uint64_t max_error_count = 0;  ///< … or, when not 0, more than this many
  bool force = false;                 ///< remove what an earlier run left
  std::string tool;                   ///< "pack-sparse 0.1.0"
  std::string command_line;           ///< for run.json
  std::function<void(const PackSparseProgress&)> on_progress;  ///< called by one thread at a time
  const std::atomic<bool>* stop = nullptr;                     ///< set to end soon; nothing is kept
};

/// What happened to one pack, or would.
struct MatrixPackReport {
  std::string path;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::vector<MatrixRecord> matrices;
  std::uint64_t parts = 0;
  std::uint64_t chunk_rows = 0;
  std::uint64_t bytes = 0;  ///< of all parts
  bool already_finished = false;
  std::uint64_t parts_kept = 0;  ///< of them, finished by an earlier run
};

/// What happened to all, or would.
struct PackSparseReport {
  std::vector<MatrixPackReport> packs;
  RatingStats stats;
  std::vector<std::string> bad_lines;  ///< the first ones: "ratings.csv:7:3: value: expected a number, …"
  StoredValues values;
  std::vector<std::string> notices;
  std::string codec;
  std::uint64_t input_bytes = 0;  ///< of texts undone, of matrices as the files lie
  double seconds = 0;
  double read_seconds = 0;
  bool interrupted = false;  ///< `stop` was set: a rerun starts over
};

/// Packs. Throws Error with the code that the command exits with.
PackSparseReport pack_sparse(const PackSparseSpec& spec, const PackSparseOptions& options);

/// Reads, and tells what would be packed; writes nothing. Without
/// options.output no earlier pack is looked at.
[[nodiscard]] PackSparseReport preview_sparse(const PackSparseSpec& spec, const PackSparseOptions& options);

}  // namespace chunkhit
