#include "pack/images/pack_writer.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "base/hash.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "pack/buffer_pool.h"
#include "pack/disk_space.h"
#include "pack/images/input_stamps.h"
#include "pack/images/pack_spec.h"
#include "pack/parallel_files.h"

namespace chunkhit {
PackWriter::PackWriter(RunContext& run, const PackImagesSpec& spec, PackTask task)
    : run_(run),
      spec_(spec),
      container_(container(spec.container)),
      task_(std::move(task)),
      codec_(codec_choice(spec)),
      plan_(plan_pack(spec, run.context.sample, task_.sample_count)),
      pack_(kImagePacks, pack_path(run.options.output, task_.name), run.options.force, run.plan() != nullptr),
      packer_(part_packer(run.context)),
      rejects_(task_.rejects) {
  pack_.identify(own_identity());
}

struct PackWriter::PartSlot {
  std::uint64_t part_index = 0;
  std::optional<PartRecord> record;  ///< once it is finished
  bool is_kept = false;
};

struct PackWriter::Lanes {
  std::vector<PartSlot*> missing;
  std::uint32_t count = 1;
  std::atomic<std::uint32_t> packing = 0;  ///< lanes that have not packed their last part yet
  std::atomic<std::size_t> next = 0;       ///< the part that is begun next
  FirstFailure failure;
};

/// Resumes, repairs or starts a pack: a finished, unchanged one is only reported.
PackReport PackWriter::write() {
  const std::optional<AnyManifest> held = pack_.finished();
  const std::vector<std::uint64_t> changed = changed_parts();
  if (held) {
    const Manifest& finished = *held->images;
    check_own(finished);
    const std::optional<SharedStats> normalize = shared_stats(finished);
    repaired_ = !pack_.is_whole(finished, tables(finished)) || finished.normalize != normalize;
    if (!repaired_ && changed.empty()) {
      run_.normalize = normalize;
      return finished_report(finished);
    }
    pack_.reopen(finished);
  }
  for (const std::uint64_t part_index : changed) pack_.remove_part(part_index, container_.extension);
  try {
    for (const Reject& reject : rejects_) run_.rejects.add(reject);
    std::vector<std::uint64_t> all(plan_.part_count);
    std::iota(all.begin(), all.end(), std::uint64_t{0});
    pack_parts(all);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::too_many_rejects) throw;
    // The rejects so far are published as after a complete run, so that the user can look at them.
    static_cast<void>(publish_rows(kRejectsName, rejects_, "reason"));
    static_cast<void>(publish_rows(kWarningsName, warnings_, "warning"));
    throw Error(error.code(),
                std::string(error.what()) + "; see " + pack_.file(kRejectsName) + " (rows so far)" +
                    (run_.plan() != nullptr
                         ? "; once they are repaired, the pack-images command without `plan` packs "
                           "changed images again"
                         : ""));
  }
  if (interrupted_) return report();
  Manifest manifest = manifest_so_far();
  if (manifest.samples + manifest.rejected != manifest.rows)
    throw_cannot_write(pack_.path() + ": " + std::to_string(manifest.rows) + " rows, but " +
                       std::to_string(manifest.samples) + " packed and " + std::to_string(manifest.rejected) +
                       " rejected");
  run_.normalize = manifest.normalize = shared_stats(manifest);
  manifest.warned = warnings_.size();
  manifest.warnings = publish_rows(kWarningsName, warnings_, "warning");
  manifest.rejects = publish_rows(kRejectsName, rejects_, "reason");
  pack_.publish(manifest, tables(manifest), manifest_text(manifest), run_.frame);
  return report();
}

/// The first pack of a split gives the mean and std that all packs of the split record.
std::optional<SharedStats> PackWriter::shared_stats(const Manifest& manifest) const {
  if (task_.name.empty() || run_.normalize || manifest.samples == 0) return run_.normalize;
  return SharedStats{task_.name, manifest.mean, manifest.std};
}

PackIdentity PackWriter::own_identity() {
  PackIdentity pack = std::move(task_.identity);
  pack.codec_library = codec_libraries(spec_, run_.context.sample);
  pack.accepts = [this](const PartRecord& part, std::uint64_t part_index) {
    return is_own(part, part_index);
  };
  return pack;
}

/// Checks a part against the plan of this run, beyond the equal pack_id.
bool PackWriter::is_own(const PartRecord& part, std::uint64_t part_index) const {
  const std::vector<std::string>& classes = run_.list.classes;
  const auto has_name = [&](const auto& count) {
    return classes.empty() || (count.first >= 0 && static_cast<std::uint64_t>(count.first) < classes.size());
  };
  return part.file == part_file(part_index) && part.has_sample_hashes == hashes_samples() &&
         part.rows == row_count(part_index) && std::ranges::all_of(part.class_counts, has_name);
}

std::uint64_t PackWriter::row_count(std::uint64_t part_index) const {
  return std::min<std::uint64_t>(plan_.part_samples, task_.sample_count - part_index * plan_.part_samples);
}

PartRows PackWriter::rows_of(std::uint64_t part_index) const {
  return task_.rows(part_index * plan_.part_samples, row_count(part_index));
}

/// Compares size and modification time of each packed file with those recorded when its part was written.
std::vector<std::uint64_t> PackWriter::changed_parts() {
  std::vector<std::uint64_t> parts;
  if (run_.options.trust_inputs) return parts;
  std::vector<std::string> files;
  std::uint64_t unknown = 0;
  for (std::uint64_t part_index = 0; part_index < plan_.part_count; ++part_index) {
    if (!pack_.has(part_stem(part_index) + ".json")) continue;
    const PartRows rows = rows_of(part_index);
    const std::string path = pack_.file(part_stem(part_index) + std::string(kInputsExtension));
    const auto stamps = read_stamps(path, {pack_.identity().pack_id, part_index}, rows.indices.size());
    unknown += stamps ? 0 : 1;
    if (!stamps) continue;
    const auto found = find_changed(run_.context.folders(), *rows.list, rows.indices, *stamps);
    if (!found.empty()) parts.push_back(part_index);
    for (const std::uint32_t index : found) files.emplace_back(rows.list->file(index));
  }
  if (unknown > 0)
    notices_.push_back(count_text(unknown, "finished part") + " without " + std::string(kInputsExtension) +
                       " file: whether images changed since is not known; `force` packs all again");
  const bool is_all = files.size() == task_.sample_count && !run_.context.pairs.empty();
  if (!files.empty()) notices_.push_back(changed_text(files, parts.size(), is_all));
  for (const std::string& file : files)
    if (run_.list.containers.empty() && run_.context.root.stamp(file) == FileStamp{})
      check_mounted({{0, file, {}, "", RejectKind::missing}});
  return parts;
}

/// Whether a listed file cannot be opened here. One that its folder lacks was deleted.
bool PackWriter::is_unreadable(const std::string& file, const PlanSource& plan) const {
  const RootFolder& root = run_.context.root;
  const FileError error = root.open(file).error;
  if (error.kind == FileError::Kind::denied) return true;
  // A CSV may name files that never existed; those of class folders were listed and did exist.
  return plan.of_folders && error.is_missing() && !root.lacks(file);
}

/// Distinguishes damaged images from a lost file system: rejects caused by the latter end the run with
/// try_again, so that it does not pack without the images.
void PackWriter::check_mounted(const std::vector<Reject>& rejects) const {
  // A container that cannot be read is an error of its own.
  if (!run_.list.containers.empty()) return;
  const RootFolder& root = run_.context.root;
  const PlanSource* const plan = run_.plan();
  try {
    for (const Reject& reject : rejects) {
      if (reject.kind != RejectKind::missing && reject.kind != RejectKind::unreadable &&
          reject.kind != RejectKind::changed && reject.kind != RejectKind::other)
        continue;
      if (root.stamp(reject.file) == FileStamp{}) root.check_mounted(reject.file);
      if (plan != nullptr && is_unreadable(reject.file, *plan))
        throw MachineError(run_.options.root + "/" + reject.file +
                           ": cannot be read, and was there when the pack was planned");
    }
    if (!rejects.empty() && !(plan != nullptr && plan->lacks_first_file) &&
        root.open(run_.context.first_file).error)
      throw MachineError(run_.options.root + "/" + run_.context.first_file +
                         ": could be read when the run began, and can no longer");
  } catch (const MachineError& error) {
    throw Error(ErrorCode::try_again, std::string(error.what()) +
                                          "; the current part is not kept; rerun the same command to resume "
                                          "when the images are back");
  }
}

void PackWriter::keep_part(PartSlot& slot, PartRecord finished) {
  const std::lock_guard lock(mutex_);
  for (const Reject& reject : finished.rejects) {
    rejects_.push_back(reject);
    run_.rejects.add(reject);
  }
  warnings_.insert(warnings_.end(), finished.warnings.begin(), finished.warnings.end());
  run_.progress.rows_done += finished.rows;
  run_.progress.rows_skipped += finished.rows;
  slot.record = std::move(finished);
  slot.is_kept = true;
}

/// Packs several parts at once, because a file takes the writes of one thread at a time.
void PackWriter::pack_parts(std::span<const std::uint64_t> part_indices) {
  run_.progress.phase = PackProgress::Phase::packing;
  std::vector<PartSlot> slots(part_indices.size());
  for_each_file(slots.size(), [&](std::size_t at) {
    slots[at].part_index = part_indices[at];
    slots[at].record = pack_.finished_part(part_indices[at]);
  });
  Lanes lanes;
  try {
    for (PartSlot& slot : slots) {
      if (slot.record)
        keep_part(slot, *std::exchange(slot.record, std::nullopt));
      else
        lanes.missing.push_back(&slot);
    }
    lanes.count = static_cast<std::uint32_t>(std::min<std::size_t>(run_.memory.parts, lanes.missing.size()));
    lanes.packing = lanes.count;
    // Isolated: a thread that waits for the others of its part must not begin another part meanwhile.
    tbb::parallel_for(
        std::uint32_t{0}, lanes.count,
        [&](std::uint32_t) {
          tbb::this_task_arena::isolate([&] { lanes.failure.unless_failed([&] { pack_lane(lanes); }); });
        },
        tbb::simple_partitioner());
    lanes.failure.rethrow();
  } catch (const Error& error) {
    // Rejects while listing say nothing of the file system: they are in front.
    if (error.code() == ErrorCode::too_many_rejects)
      check_mounted({rejects_.begin() + static_cast<std::ptrdiff_t>(task_.rejects.size()), rejects_.end()});
    if (error.code() != ErrorCode::cannot_write) throw;
    FinishedParts finished;
    std::uint64_t rows_left = 0;
    for (const PartSlot& slot : slots) {
      if (slot.record) finished.add(*slot.record);
      if (!slot.record) rows_left += row_count(slot.part_index);
    }
    throw_resumable(error, finished, rows_left);
  }
  // Another process may have published a part first, whose record counts then: it may have rejected what this
  // one could read.
  rejects_ = task_.rejects;
  warnings_.clear();
  for (PartSlot& slot : slots) {
    if (!slot.record) continue;
    rejects_.insert(rejects_.end(), slot.record->rejects.begin(), slot.record->rejects.end());
    warnings_.insert(warnings_.end(), slot.record->warnings.begin(), slot.record->warnings.end());
    pack_.add_part(std::move(*slot.record), slot.is_kept);
  }
}

/// Packs parts until all are begun. Each is checked and flushed while the lane packs the next one.
void PackWriter::pack_lane(Lanes& lanes) {
  std::future<PartRecord> finishing;
  PartSlot* finishing_slot = nullptr;
  const auto await_part = [&] {
    if (finishing.valid()) finishing_slot->record = finishing.get();
  };
  try {
    for (std::size_t at = lanes.next++; at < lanes.missing.size(); at = lanes.next++) {
      PartSlot& slot = *lanes.missing[at];
      if (is_stopped(lanes)) interrupted_ = true;
      if (interrupted_) break;
      if (run_.plan() != nullptr && is_finished_now(slot)) continue;
      // The other parts of a planned pack are written by other tasks.
      const std::uint64_t full_parts = run_.plan() != nullptr ? 0 : lanes.missing.size() - 1 - at;
      const std::uint64_t last_part = (run_.plan() != nullptr ? &slot : lanes.missing.back())->part_index;
      const std::uint64_t rows_left = full_parts * plan_.part_samples + row_count(last_part);
      pack_.check_space(needed_space(plan_, run_.context.sample, container_, rows_left));
      std::unique_ptr<ChunkWriter> writer = create_part(slot.part_index, row_count(slot.part_index));
      PartOutcome outcome = write_part(slot.part_index, lanes, *writer);
      await_part();
      check_mounted(outcome.record.rejects);
      if (outcome.interrupted) interrupted_ = true;
      if (outcome.interrupted) break;
      finishing = finish_part(slot.part_index, std::move(writer), std::move(outcome));
      finishing_slot = &slot;
    }
  } catch (const Error&) {
    try {
      await_part();  // it is kept
    } catch (const Error&) {
      // The first error is the one to report.
    }
    throw;
  }
  if (--lanes.packing == 0 && !interrupted_) report_phase(PackProgress::Phase::finishing);
  await_part();
}

bool PackWriter::is_stopped(const Lanes& lanes) const { return lanes.failure || run_.frame.is_stopped(); }

bool PackWriter::is_finished_now(PartSlot& slot) {
  std::optional<PartRecord> finished = pack_.finished_part(slot.part_index);
  if (!finished) return false;
  keep_part(slot, std::move(*finished));
  return true;
}

PackReport PackWriter::write_parts(std::span<const std::uint64_t> part_indices) {
  if (const std::optional<AnyManifest> finished = pack_.finished()) check_own(finished->manifest());
  pack_parts(part_indices);
  return report();
}

void PackWriter::check_own(const PackManifest& finished) const {
  if (finished.pack_id != pack_.identity().pack_id)
    throw_bad_data(pack_.path() + ": holds a finished pack, " + hash_text(finished.pack_id) +
                   ", that is not the plan's, " + hash_text(pack_.identity().pack_id));
}

void PackWriter::report_phase(PackProgress::Phase phase) {
  const std::lock_guard lock(mutex_);
  run_.progress.phase = phase;
  if (run_.options.on_progress) run_.options.on_progress(run_.progress);
}

bool PackWriter::hashes_samples() const {
  return spec_.sizes != Sizes::own && container_.hashes_samples(codec_.codec);
}

std::unique_ptr<ChunkWriter> PackWriter::create_part(std::uint64_t part_index,
                                                     std::uint64_t sample_count) const {
  PartSpec part;
  packer_->set_samples(part);
  part.images().sample = run_.context.sample;
  part.images().classes = run_.list.classes;
  part.codec = codec_.codec;
  part.chunk_samples = plan_.chunk_samples;
  part.hashes_samples = hashes_samples();
  part.label_columns = run_.list.label_columns;
  part.pack_id = pack_.identity().pack_id;
  part.part_index = static_cast<std::uint32_t>(part_index);
  part.cache_advice = advise_cache(plan_, plan_.chunks_of(sample_count));
  return container_.create(pack_.file(part_file(part_index)), part);
}

PartOutcome PackWriter::write_part(std::uint64_t part_index, const Lanes& lanes, ChunkWriter& writer) {
  const PartRows rows = rows_of(part_index);
  const auto on_row = [&](const Reject* reject, const Reject* warning) {
    const std::lock_guard lock(mutex_);
    ++run_.progress.rows_done;
    if (warning != nullptr) warnings_.push_back(*warning);
    if (reject != nullptr) {
      rejects_.push_back(*reject);
      run_.rejects.add(*reject);
      run_.progress.rejected = run_.rejects.count();
    }
    if (run_.options.on_progress) run_.options.on_progress(run_.progress);
  };
  const PartJob job{run_.context,
                    *rows.list,
                    rows.indices,
                    chunk_codec(codec_.codec),
                    codec_.level,
                    plan_.chunk_samples,
                    plan_.chunk_bytes,
                    container_,
                    run_.memory.buffer_bytes / lanes.count,
                    (run_.memory.threads + lanes.count - 1) / lanes.count,
                    [&] { return is_stopped(lanes); },
                    on_row};
  return packer_->pack(job, writer);
}

std::future<PartRecord> PackWriter::finish_part(std::uint64_t part_index, std::unique_ptr<ChunkWriter> writer,
                                                PartOutcome outcome) {
  {
    const std::lock_guard lock(mutex_);
    samples_packed_now_ += outcome.record.samples;
  }
  return pack_.finish_part(
      part_index, [this, part_index, writer = std::move(writer), outcome = std::move(outcome)]() mutable {
        // Before the part is completed, which takes most memory.
        PendingFile stamps = write_stamps(pack_.file(part_stem(part_index) + std::string(kInputsExtension)),
                                          {pack_.identity().pack_id, part_index}, outcome.inputs);
        outcome.inputs = std::vector<FileStamp>();
        CompletePart part = writer->complete(std::move(outcome.samples));
        add_written(part.report, part_file(part_index), outcome.record);
        outcome.record.has_sample_hashes = hashes_samples();
        return CompleteRecord{std::move(outcome.record), std::move(part.file), std::move(stamps)};
      });
}

FileRecord PackWriter::publish_rows(std::string_view name, const std::vector<Reject>& rows,
                                    std::string_view reason_column) const {
  const std::string text = rejects_csv(rows, run_.list, reason_column);
  publish_file(pack_.file(name), text);
  return {std::string(name), text.size(), xxh3(as_bytes(text))};
}

}  // namespace chunkhit
