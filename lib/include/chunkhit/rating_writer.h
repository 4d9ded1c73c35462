// Writes packs of user-item ratings that a program has in memory. Library chunkhit::pack.
#pragma once

#include <chunkhit/error.h>
#include <chunkhit/pack.h>
#include <chunkhit/sparse_spec.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <variant>

namespace chunkhit {

/// Ids of users or items: whole numbers, or UTF-8 texts. A number and its decimal digits are the same id.
using RatingIds = std::variant<std::span<const std::int64_t>, std::span<const std::string_view>>;

/// Values of ratings. A double that no float is equal to becomes the nearest one, as in files.
using RatingValues = std::variant<std::span<const float>, std::span<const double>>;

/// Ratings as coordinates (COO). All arrays that are not empty have the same length.
struct RatingEntries {
  RatingIds users;
  RatingIds items;
  RatingValues values{};                  ///< empty: every value is 1
  std::span<const std::int64_t> times{};  ///< empty: there are none; since 1970, in one unit
  std::uint64_t first_entry = 0;          ///< number of the first entry in errors
};

/// Ratings as compressed rows (CSR).
struct CsrEntries {
  RatingIds users;                        ///< user of each row
  std::span<const std::uint64_t> indptr;  ///< row r has the entries [indptr[r], indptr[r + 1])
  RatingIds items;                        ///< item of each entry
  RatingValues values{};                  ///< as in RatingEntries
  std::span<const std::int64_t> times{};
};

/// Packs ratings that are added block by block, as pack_sparse packs those of files: the same rules, splits,
/// statistics, formats and memory limit. The pack does not depend on how entries are divided into blocks: it
/// is the pack of a COO matrix with these entries in this order. One thread at a time may use a writer; a
/// forked child must make its own.
/// Beside `memory_bytes` it holds two blocks of 2^20 ratings, about 50 MB.
///
/// The writer packs in a thread of its own. It takes the output folder while it lives; a writer that is
/// destroyed without `finish` leaves no pack, like a run that was killed.
class CHUNKHIT_API RatingWriter {
 public:
  /// Begins packs in `options.output`. Options that say how files are read are errors: `options.inputs`,
  /// `spec.input`, SplitKind::given. Throws usage; what depends on the output folder is thrown by a later
  /// call.
  RatingWriter(PackSparseSpec spec, PackSparseOptions options);
  RatingWriter(RatingWriter&&) noexcept;
  RatingWriter& operator=(RatingWriter&&) noexcept;
  ~RatingWriter();

  /// Appends ratings; may wait until earlier ones are taken in. Throws usage where the arrays do not fit
  /// together, bad_data naming the entry for a missing id or a value that is not finite: nothing of these
  /// entries is added then. Throws what pack_sparse throws, also for earlier entries, and again from then on.
  void add(const RatingEntries& entries);
  void add(const CsrEntries& entries);

  /// Packs what was added and publishes; called once. Throws as pack_sparse.
  PackSparseReport finish();

 private:
  struct CHUNKHIT_HIDDEN Impl;
  /// Forgets the writer in a forked child, which has none of its threads.
  void release();
  std::unique_ptr<Impl> impl_;
};

}  // namespace chunkhit
