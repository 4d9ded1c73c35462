// Runs of pack_sparse over one input of a plan of ratings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chunkhit/pack.h"
#include "ratings/rating_packs.h"
#include "ratings/rating_reader.h"

namespace chunkhit {

/// What one input of a plan adds to the columns, the type of values and the chunks of all.
struct InputCount {
  std::uint64_t lines = 0;
  std::uint64_t bad_lines = 0;
  std::uint64_t input_xxh3 = 0;
  std::vector<std::uint64_t> users{};  ///< hashes of all users' ids, ascending
  std::string columns_text;  ///< which columns of a table were read, and how they were found; else empty
  ValueFit values;
  std::uint64_t rows = 0;                     ///< for training
  std::uint64_t ratings = 0;                  ///< of these rows
  std::uint64_t longest_row = 0;              ///< in any pack, X and held_out together
  std::vector<std::string> items{};           ///< of the input by first appearance, or the given columns
  std::vector<std::uint64_t> item_ratings{};  ///< of these, for training
  bool interrupted = false;
};

/// Reads the inputs and counts what packs of them would hold; ratings that do not fit into memory go to the
/// folder `options.output`. Throws as pack_sparse.
[[nodiscard]] InputCount count_sparse(const PackSparseSpec& spec, const PackSparseOptions& options);

/// pack_sparse of one input of a plan: packs that get no rows are left out.
PackSparseReport pack_sparse_input(const PackSparseSpec& spec, const PackSparseOptions& options,
                                   const PlannedValues& planned);

/// pack_sparse of what a reader gives, in the place of files.
[[nodiscard]] PackSparseReport pack_sparse_reader(const PackSparseSpec& spec,
                                                  const PackSparseOptions& options, RatingReader& reader);

}  // namespace chunkhit
