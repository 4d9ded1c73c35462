// All that pack-sparse reads: ratings, ids, labels; and the packs that are made of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chunkhit/pack.h"
#include "pack/ratings/read_inputs.h"
#include "pack/ratings/sparse_memory.h"
#include "ratings/id_map.h"
#include "ratings/rating_packs.h"

namespace chunkhit {

/// Own ids that a spec takes from files beside the inputs.
struct GivenIds {
  std::optional<std::vector<std::string>> items;  ///< columns of another pack, which are reused
  std::vector<std::string> validation_users;      ///< held out
  std::vector<std::string> test_users;
  std::uint64_t column_bytes = 0;  ///< held by the tables of columns
};

/// Reads the inputs of a run once, then makes its packs.
class SparseInput {
 public:
  /// `spill_folder`: where ratings go that do not fit into memory.
  SparseInput(const PackSparseSpec& spec, const PackSparseOptions& options, std::uint32_t threads,
              std::string spill_folder, GivenIds given);
  SparseInput(const SparseInput&) = delete;
  SparseInput& operator=(const SparseInput&) = delete;

  /// Reads everything, of a reader in the place of files unless it is null; false: `stop` was seen.
  [[nodiscard]] bool read(RatingReader* reader = nullptr);
  /// Stands for all that was read.
  [[nodiscard]] std::uint64_t xxh3() const;
  /// Applies rules, split and orders; throws with the users' and items' own ids.
  [[nodiscard]] RatingPacks make_packs();
  /// The items' own ids, by column; once, behind make_packs.
  [[nodiscard]] std::vector<std::string> item_ids(const ItemColumns& columns);
  [[nodiscard]] LabelTable labels();
  [[nodiscard]] const std::optional<RatingTable>& table() const { return intake_.table(); }
  /// The unit of the input's times as MatrixManifest::times has it.
  [[nodiscard]] std::string time_unit() const;
  /// What rows in work may take.
  [[nodiscard]] std::uint64_t work_bytes() const { return store_.spec().memory_bytes; }
  [[nodiscard]] const IdMap& users() const { return intake_.users(); }
  [[nodiscard]] const IdMap& items() const { return intake_.items(); }
  [[nodiscard]] const ReadStats& stats() const { return intake_.stats(); }
  [[nodiscard]] const std::vector<std::string>& notices() const { return facts_.notices; }

 private:
  [[nodiscard]] IntakeOptions intake_options(std::uint32_t threads);
  [[nodiscard]] std::vector<std::uint32_t> frozen_numbers() const;
  [[nodiscard]] std::vector<std::uint32_t> user_numbers(const std::vector<std::string>& ids,
                                                        const char* flag) const;
  [[nodiscard]] GivenSplit given_split();
  void draw_users(GivenSplit& parts) const;
  void count_given(std::span<const std::uint32_t> users);
  void add_beside(BesideIds& beside) const;
  void fit_ids(const IdMap& users, const IdMap& items, const IntakeProgress& read);
  void fit_rows();
  void note_table();
  void note_times();
  [[noreturn]] void refuse_to_keep_times() const;
  void note_ends();
  void note_frozen();

  const PackSparseSpec& spec_;
  const PackSparseOptions& options_;
  GivenIds given_;
  GivenSplit parts_;
  std::string spill_folder_;
  SparseMemory memory_;
  std::atomic<std::uint64_t> rating_bytes_;  ///< memory that the ids so far leave for ratings
  RatingStore store_;
  RatingHash hash_;
  RatingIntake intake_;
  InputFacts facts_;
};

}  // namespace chunkhit
