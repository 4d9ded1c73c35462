// All that pack-sparse reads: ratings, ids, labels; and the packs that are made of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chunkhit/pack.h"
#include "pack/ratings/column_table.h"
#include "pack/ratings/id_lists.h"
#include "pack/ratings/read_inputs.h"
#include "pack/ratings/sparse_memory.h"
#include "ratings/id_map.h"
#include "ratings/rating_packs.h"

namespace chunkhit {

/// Own ids that a spec takes from files beside the inputs.
struct GivenIds {
  std::optional<ItemIds> items;               ///< of another pack or counted, which are reused
  bool counts_items = false;                  ///< whether the run lists items and writes no pack
  std::vector<std::string> validation_users;  ///< held out
  std::vector<std::string> test_users;
  std::uint64_t column_bytes = 0;  ///< held by the tables of columns
};

/// What reading found.
struct InputRead {
  std::uint64_t xxh3 = 0;  ///< stands for all that was read
  const ReadStats& stats;
  std::vector<std::string> notices{};
};

/// What is made of the ratings; the maps of ids belong to the input.
struct MadePacks {
  RatingPacks packs;
  const IdMap& users;
  std::vector<std::string> item_ids{};  ///< the items' own, by column
  std::vector<std::string> unseen{};    ///< those that training lacks; only where items are counted
  LabelTable labels{};                  ///< by user
  std::string times{};                  ///< their unit as MatrixManifest::times has it
  std::uint64_t work_bytes = 0;         ///< what rows in work may take
  std::vector<std::string> notices{};
};

/// Reads the inputs of a run once, then makes its packs.
class SparseInput {
 public:
  /// `spill_folder`: where ratings go that do not fit into memory.
  SparseInput(const PackSparseSpec& spec, const PackSparseOptions& options, std::uint32_t threads,
              std::string spill_folder, GivenIds given);
  SparseInput(const SparseInput&) = delete;
  SparseInput& operator=(const SparseInput&) = delete;

  /// Reads everything, of a reader in the place of files unless it is null; empty: `stop` was seen.
  [[nodiscard]] std::optional<InputRead> read(RatingReader* reader = nullptr);
  /// Applies rules, split and orders once; throws with the users' and items' own ids, or where `columns` are
  /// not of these ids.
  [[nodiscard]] MadePacks make_packs(ColumnTables& columns);

 private:
  [[nodiscard]] std::uint64_t xxh3() const;
  [[nodiscard]] RatingPacks make_rows();
  [[nodiscard]] std::vector<std::string> item_ids(const ItemColumns& columns);
  [[nodiscard]] std::string time_unit() const;
  [[nodiscard]] IntakeOptions intake_options(std::uint32_t threads);
  [[nodiscard]] std::vector<std::uint32_t> item_numbers(const std::vector<std::string>& ids) const;
  [[nodiscard]] std::vector<std::uint32_t> user_numbers(const std::vector<std::string>& ids,
                                                        const char* flag) const;
  [[nodiscard]] GivenSplit given_split();
  void draw_users(GivenSplit& parts) const;
  void count_given(std::span<const std::uint32_t> users);
  void add_beside(BesideIds& beside) const;
  void fit_ids(const IdMap& users, const IdMap& items, const IntakeProgress& read);
  void fit_rows();
  [[nodiscard]] std::string columns_text(const RatingTable& table) const;
  void note_tables();
  void note_times();
  [[noreturn]] void refuse_to_keep_times() const;
  void note_ends();
  void note_blanks(const char* thing, const IdMap& ids);
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
