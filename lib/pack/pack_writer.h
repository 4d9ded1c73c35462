// Writes one pack: the parts that are missing, then rejects, run and manifest.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chunk/chunk_plan.h"
#include "chunkhit/pack.h"
#include "pack/image_pipeline.h"
#include "pack/output_folder.h"
#include "pack/pack_folder.h"
#include "pack/pack_run.h"
#include "pack/pack_spec.h"
#include "pack/rejects.h"
#include "pack/sample_order.h"

namespace chunkhit {

/// What all packs of a run share.
struct RunContext {
  const PackImagesSpec& spec;
  const PackImagesOptions& options;
  const SampleList& list;
  AssemblerContext& maker;
  RejectLimit& rejects;
  PackProgress& progress;
  std::uint64_t buffer_bytes = 0;  ///< of chunks in work
  RunCall call;
  std::optional<SharedStats> normalize;  ///< of a split, once its first pack is finished
};

/// Writes one pack of a run, or what is missing of it.
class PackWriter {
 public:
  PackWriter(RunContext& run, const PackSamples& samples);
  /// Packs what is missing and publishes the manifest, unless the run is stopped before.
  [[nodiscard]] PackReport write();
  [[nodiscard]] bool interrupted() const { return interrupted_; }
  [[nodiscard]] std::uint64_t samples_packed_now() const { return samples_packed_now_; }

 private:
  /// What this pack is normalised with: in a split the first pack's statistics.
  [[nodiscard]] std::optional<SharedStats> shared_stats(const Manifest& manifest) const;
  [[nodiscard]] PackReport finished_report(const Manifest& manifest) const;
  /// This pack, which accepts the records of its parts alone.
  [[nodiscard]] PackIdentity own_identity() const;
  /// Whether a record of this pack is consistent with this part; a part with another one is packed again.
  [[nodiscard]] bool is_own(const PartRecord& part, std::uint64_t part_index) const;
  /// The rows of a part, as indices of the list.
  [[nodiscard]] std::span<const std::uint32_t> rows_of(std::uint64_t part_index) const;
  /// The parts that hold files which changed since they were packed; notes what was found.
  [[nodiscard]] std::vector<std::uint64_t> changed_parts();
  /// Throws try_again where rejects are no error of their files: a file system went away.
  void check_mounted(const std::vector<Reject>& rejects) const;
  void write_parts();
  [[nodiscard]] std::unique_ptr<ChunkWriter> create_part(std::uint64_t part_index,
                                                         std::uint64_t sample_count) const;
  void write_part(std::uint64_t part_index);
  void finish_part(std::uint64_t part_index, std::unique_ptr<ChunkWriter> writer, PartOutcome outcome);
  void check_space(std::uint64_t first_missing_row) const;
  void report_phase(PackProgress::Phase phase);
  /// Publishes a table of rows beside the parts.
  [[nodiscard]] FileRecord publish_rows(std::string_view name, const std::vector<Reject>& rows,
                                        std::string_view reason_column) const;
  [[nodiscard]] Manifest manifest_so_far() const;
  /// Names the classes whose images were all rejected; empty where there are none.
  [[nodiscard]] std::string lost_classes_notice() const;
  [[nodiscard]] PackReport report() const;

  RunContext& run_;
  const PackSamples& samples_;
  CodecChoice codec_;
  ChunkPlan plan_;
  OutputFolder folder_;
  std::vector<Reject> rejects_;
  std::vector<Reject> warnings_;
  std::uint64_t samples_packed_now_ = 0;
  bool interrupted_ = false;
  bool repaired_ = false;
  std::vector<std::string> notices_;
  // Last: a part that is being finished ends before anything that it uses does.
  PackRun pack_;
};

/// Throws cannot_write where the folder of a pack holds another one, finished or begun, that `options.force`
/// would not remove; changes nothing.
void check_earlier_pack(const PackImagesSpec& spec, const PackImagesOptions& options, const SampleList& list,
                        const SampleShape& sample, const PackSamples& samples);

/// The chunks of a pack of `sample_count` samples.
[[nodiscard]] ChunkPlan plan_pack(const PackImagesSpec& spec, const SampleShape& sample,
                                  std::uint64_t sample_count);

/// The folder of a pack: the output, or one below it for a split.
[[nodiscard]] std::string pack_path(const PackImagesOptions& options, const PackSamples& samples);

}  // namespace chunkhit
