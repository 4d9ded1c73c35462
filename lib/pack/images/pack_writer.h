// Writes one pack: the parts that are missing, then rejects, run and manifest.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chunk/chunk_plan.h"
#include "chunkhit/pack.h"
#include "pack/images/image_pipeline.h"
#include "pack/images/image_run.h"
#include "pack/images/memory_plan.h"
#include "pack/images/pack_task.h"
#include "pack/images/rejects.h"
#include "pack/output_pack.h"
#include "pack/run_frame.h"

namespace chunkhit {

/// What all packs of a run share.
struct RunContext {
  const RunFrame& frame;
  const PackImagesOptions& options;
  const ImageSource& source;
  const SampleList& list;  ///< of a planned run: without rows
  DecoderContext context;
  RejectLimit rejects;
  PackProgress progress;
  MemoryPlan memory;
  std::optional<SharedStats> normalize{};  ///< of a split, once its first pack is finished
  /// The plan that the rows are of, or null.
  [[nodiscard]] const PlanSource* plan() const { return std::get_if<PlanSource>(&source); }
};

/// Writes one pack of a run, or what is missing of it.
class PackWriter {
 public:
  PackWriter(RunContext& run, const PackImagesSpec& spec, PackTask task);
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
  [[nodiscard]] std::string part_file(std::uint64_t part_index) const {
    return part_stem(part_index) + std::string(container_.extension);
  }
  [[nodiscard]] PartRows rows_of(std::uint64_t part_index) const;
  /// The parts that hold files which changed since they were packed; notes what was found.
  [[nodiscard]] std::vector<std::uint64_t> changed_parts();
  /// Throws try_again where rejects are no error of their files: a file system went away.
  void check_mounted(const std::vector<Reject>& rejects) const;
  /// Whether a planned row's file could not be read though nothing is known to be wrong with it.
  [[nodiscard]] bool is_unreadable(const std::string& file, const PlanSource& plan) const;
  /// A part to be packed, or that is finished.
  struct PartSlot;
  /// What the threads share that pack parts at once, one after the other each.
  struct Lanes;
  /// Packs those of these parts that are missing, and takes the records of all.
  void pack_parts(std::span<const std::uint64_t> part_indices);
  void pack_lane(Lanes& lanes);
  /// Whether the run is to end early: it was asked to, or a lane has failed.
  [[nodiscard]] bool is_stopped(const Lanes& lanes) const;
  /// Takes a part that another process finished meanwhile.
  [[nodiscard]] bool is_finished_now(PartSlot& slot);
  /// Throws bad_data where a finished pack is another one.
  void check_own(const PackManifest& finished) const;
  void keep_part(PartSlot& slot, PartRecord finished);
  [[nodiscard]] bool hashes_samples() const;
  [[nodiscard]] std::unique_ptr<ChunkWriter> create_part(std::uint64_t part_index,
                                                         std::uint64_t sample_count) const;
  [[nodiscard]] PartOutcome write_part(std::uint64_t part_index, const Lanes& lanes, ChunkWriter& writer);
  [[nodiscard]] std::future<PartRecord> finish_part(std::uint64_t part_index,
                                                    std::unique_ptr<ChunkWriter> writer, PartOutcome outcome);
  void report_phase(PackProgress::Phase phase);
  /// Publishes a table of rows beside the parts.
  [[nodiscard]] FileRecord publish_rows(std::string_view name, const std::vector<Reject>& rows,
                                        std::string_view reason_column) const;
  [[nodiscard]] Manifest manifest_so_far() const;
  /// Names the classes whose images were all rejected; empty where there are none.
  [[nodiscard]] std::string lost_classes_notice() const;
  [[nodiscard]] PackReport report() const;

  RunContext& run_;
  const PackImagesSpec& spec_;
  const Container& container_;
  PackTask task_;
  CodecChoice codec_;
  ChunkPlan plan_;
  OutputPack pack_;
  std::unique_ptr<PartPacker> packer_;
  std::mutex mutex_;  // of what the rows of parts that are packed at once change: these, and run_
  std::vector<Reject> rejects_;
  std::vector<Reject> warnings_;
  std::uint64_t samples_packed_now_ = 0;
  std::atomic<bool> interrupted_ = false;
  bool repaired_ = false;
  std::vector<std::string> notices_;
};

}  // namespace chunkhit
