// The folders that a run of pack-sparse writes, and what is in them already.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chunkhit/pack.h"
#include "manifest/manifest.h"
#include "pack/output_pack.h"
#include "pack/ratings/pack_sparse_spec.h"

namespace chunkhit {

/// A pack that is to be there in the end.
struct SparseOutput {
  SparseOutput(const PackSparseSpec& spec, const PackSparseOptions& options, const RecordedIds& ids,
               std::string split_name);
  std::string name;       ///< of the split; empty without one
  PackIdentity identity;  ///< its pack_id is 0 until the input is known; the pack has it then
  OutputPack pack;
  std::optional<AnyManifest> finished;  ///< by an earlier run
};

/// Takes all folders of a run.
class SparseOutputs {
 public:
  /// Throws what OutputPack throws, and cannot_write where a pack of another spec is, or of a split that is
  /// not this run's: such a pack goes only with `force`.
  SparseOutputs(const PackSparseSpec& spec, const PackSparseOptions& options, const RecordedIds& ids);
  SparseOutputs(const SparseOutputs&) = delete;
  SparseOutputs& operator=(const SparseOutputs&) = delete;
  ~SparseOutputs();
  /// Throws what the constructor would, and where the input is known what `compare` would; changes nothing.
  static void check(const PackSparseSpec& spec, const PackSparseOptions& options, const RecordedIds& ids,
                    std::optional<std::uint64_t> input_xxh3);
  /// Compares what is there with what is to be there, now that the input was read; throws cannot_write where
  /// a pack of another input is. Packs that are not whole are made again.
  void compare(std::uint64_t input_xxh3);
  [[nodiscard]] bool all_finished() const;
  [[nodiscard]] SparseOutput& find(const std::string& name);
  [[nodiscard]] const std::vector<std::unique_ptr<SparseOutput>>& outputs() const { return outputs_; }

 private:
  std::vector<std::unique_ptr<SparseOutput>> outputs_;
};

}  // namespace chunkhit
