// The inputs of pack-sparse → all ratings by number, with what was learnt of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "input/rating_format.h"
#include "pack/pack_sparse.h"
#include "pack/rating_intake.h"
#include "types/row_labels.h"

namespace chunkhit {

/// Hashes ratings on their way, for inputs whose bytes are not hashed themselves.
class RatingHash {
 public:
  /// Before this, nothing is hashed.
  void begin() { has_begun_ = true; }
  void add(std::span<const std::uint32_t> users, std::span<const std::uint32_t> items,
           std::span<const float> values);
  /// With the ids that the numbers stand for.
  [[nodiscard]] std::uint64_t value(const IdMap& users, const IdMap& items) const;

 private:
  bool has_begun_ = false;
  Xxh3Stream users_;
  Xxh3Stream items_;
  Xxh3Stream values_;
};

/// What was read beside the ratings.
struct InputFacts {
  RatingFormat format = RatingFormat::text;
  std::optional<RowLabels> labels;         ///< of svmlight's rows
  std::optional<std::int64_t> first_item;  ///< of the last matrix whose items have no names but numbers
  std::vector<std::string> notices;
};

/// Where ratings come from.
struct InputPlaces {
  const std::vector<std::string>& paths;
  const std::string& spill_folder;          ///< for what must be undone on disk
  bool are_parts = false;                   ///< some are for training, others are held out
  std::uint64_t memory_bytes = UINT64_MAX;  ///< what a reader of HDF5 may hold
};

/// Reads inputs, which are of one kind, through `intake`, whose sink also feeds `hash`; throws what that
/// throws, usage where a flag does not suit the kind. Where `stop` is set meanwhile, the ratings are not all.
[[nodiscard]] InputFacts read_inputs(const RatingInputSpec& spec, const InputPlaces& inputs,
                                     RatingIntake& intake, RatingHash& hash, const std::atomic<bool>* stop);

/// Stands for all that was read: of texts of ratings their bytes, undone; of matrices `ratings` and ids.
[[nodiscard]] std::uint64_t hash_inputs(const InputFacts& facts, const RatingIntake& intake,
                                        const RatingHash& ratings);

}  // namespace chunkhit
