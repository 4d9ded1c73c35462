// Writes one pack: the parts that are missing, then rejects, run and manifest.
#pragma once

#include <cstdint>
#include <functional>
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

/// The rows of a part: samples of a list, by index, in packing order.
struct PartRows {
  std::shared_ptr<const SampleList> list;
  std::vector<std::uint32_t> indices;
};

/// A pack to write, and where the rows of its parts come from: the input list, or a plan.
struct PackTask {
  std::string name;  ///< of a split's pack, else empty
  PackIdentity identity;
  std::uint64_t sample_count = 0;
  std::vector<Reject> rejects;  ///< rows that were rejected while listing
  std::function<PartRows(std::uint64_t first, std::uint64_t count)>
      rows;  ///< `count` samples from `first` on
};

/// What all packs of a run share.
struct RunContext {
  const PackImagesSpec& spec;
  const PackImagesOptions& options;
  const SampleList& list;  ///< of a planned run: without rows
  AssemblerContext& maker;
  RejectLimit& rejects;
  PackProgress& progress;
  std::uint64_t buffer_bytes = 0;  ///< of chunks in work
  RunCall call;
  std::optional<SharedStats> normalize;  ///< of a split, once its first pack is finished
  /// Other processes write parts of the same packs; every listed file was there when they were planned.
  bool is_planned = false;
};

/// Writes one pack of a run, or what is missing of it.
class PackWriter {
 public:
  PackWriter(RunContext& run, PackTask task);
  /// Packs what is missing and publishes the manifest, unless the run is stopped before.
  [[nodiscard]] PackReport write();
  /// Packs those of these parts that are missing, and publishes nothing else.
  [[nodiscard]] PackReport write_parts(std::span<const std::uint64_t> part_indices);
  [[nodiscard]] bool interrupted() const { return interrupted_; }
  [[nodiscard]] std::uint64_t samples_packed_now() const { return samples_packed_now_; }

 private:
  /// What this pack is normalised with: in a split the first pack's statistics.
  [[nodiscard]] std::optional<SharedStats> shared_stats(const Manifest& manifest) const;
  [[nodiscard]] PackReport finished_report(const Manifest& manifest) const;
  /// This pack, which accepts the records of its parts alone.
  [[nodiscard]] PackIdentity own_identity();
  /// Whether a record of this pack is consistent with this part; a part with another one is packed again.
  [[nodiscard]] bool is_own(const PartRecord& part, std::uint64_t part_index) const;
  /// Counts the rows of a part.
  [[nodiscard]] std::uint64_t row_count(std::uint64_t part_index) const;
  [[nodiscard]] PartRows rows_of(std::uint64_t part_index) const;
  /// The parts that hold files which changed since they were packed; notes what was found.
  [[nodiscard]] std::vector<std::uint64_t> changed_parts();
  /// Throws try_again where rejects are no error of their files: a file system went away.
  void check_mounted(const std::vector<Reject>& rejects) const;
  /// Whether a row's file could not be read though nothing is known to be wrong with it.
  [[nodiscard]] bool is_unreadable(const std::string& file) const;
  void pack_parts(std::span<const std::uint64_t> part_indices);
  void pack_missing(std::span<const std::uint64_t> part_indices);
  /// Takes rejects and warnings from the records of the parts.
  void take_records();
  /// Throws bad_data where a finished pack is another one.
  void check_own(const Manifest& finished) const;
  void keep_part(PartRecord finished);
  [[nodiscard]] std::unique_ptr<ChunkWriter> create_part(std::uint64_t part_index,
                                                         std::uint64_t sample_count) const;
  void write_part(std::uint64_t part_index);
  void finish_part(std::uint64_t part_index, std::unique_ptr<ChunkWriter> writer, PartOutcome outcome);
  /// Throws where the disk cannot hold `row_count` rows.
  void check_space(std::uint64_t row_count) const;
  void report_phase(PackProgress::Phase phase);
  /// Publishes a table of rows beside the parts.
  [[nodiscard]] FileRecord publish_rows(std::string_view name, const std::vector<Reject>& rows,
                                        std::string_view reason_column) const;
  [[nodiscard]] Manifest manifest_so_far() const;
  /// Names the classes whose images were all rejected; empty where there are none.
  [[nodiscard]] std::string lost_classes_notice() const;
  [[nodiscard]] PackReport report() const;

  RunContext& run_;
  PackTask task_;
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
[[nodiscard]] std::string pack_path(const PackImagesOptions& options, const std::string& pack_name);

/// Which pack samples of a list make.
[[nodiscard]] PackIdentity image_pack(const PackImagesSpec& spec, const SampleShape& sample,
                                      const SampleList& list, const PackSamples& samples);

/// The pack of samples of a list, which outlives it.
[[nodiscard]] PackTask listed_pack(const PackImagesSpec& spec, const SampleShape& sample,
                                   const SampleList& list, PackSamples samples);

}  // namespace chunkhit
