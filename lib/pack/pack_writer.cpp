#include "pack/pack_writer.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/hash.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "pack/disk_space.h"
#include "pack/input_stamps.h"
#include "pack/parallel_files.h"

namespace chunkhit {
namespace {

/// Number of changed files that a notice names.
constexpr std::size_t kNamedFiles = 3;

/// Lists all classes of the list, also those without samples in this pack, so that ids mean the same in every
/// pack of a split.
std::vector<PackClass> class_records(const SampleList& list, const std::vector<PartRecord>& parts) {
  if (list.label_kind != LabelKind::class_id) return {};
  std::map<std::int64_t, std::uint64_t> counts;
  for (std::size_t id = 0; id < list.classes.size(); ++id) counts[static_cast<std::int64_t>(id)] = 0;
  for (const PartRecord& part : parts)
    for (const auto& [id, samples] : part.class_counts) counts[id] += samples;
  std::vector<PackClass> classes;
  classes.reserve(counts.size());
  for (const auto& [id, samples] : counts)
    classes.push_back({id, list.classes.empty() ? "" : list.classes[static_cast<std::size_t>(id)], samples});
  return classes;
}

/// Names a few of the files that changed.
std::string changed_text(const std::vector<std::string>& files, std::uint64_t part_count) {
  std::string text = count_text(files.size(), "image") + " changed since packed (";
  for (std::size_t index = 0; index < std::min(files.size(), kNamedFiles); ++index)
    text.append(index == 0 ? "" : ", ").append(files[index]);
  text += files.size() > kNamedFiles ? ", …)" : ")";
  return text + ": " + count_text(part_count, "part") + " packed anew (`trust_inputs` does not compare)";
}

}  // namespace

PackIdentity image_pack(const PackImagesSpec& spec, const SampleShape& sample, const SampleList& list,
                        const PackSamples& samples) {
  const ChunkPlan plan = plan_pack(spec, sample, samples.indices.size());
  PackIdentity pack{kImagesFormat, recorded_spec(spec, plan, samples.name, list.classes), 0, {}};
  pack.pack_id = pack_id(pack.spec, list.xxh3);
  pack.difference = [&spec, recorded = pack.spec, input_xxh3 = list.xxh3,
                     rows = samples.indices.size() + samples.rejects.size()](const EarlierPack& before) {
    return pack_difference(before, {spec, recorded, input_xxh3, rows});
  };
  return pack;
}

void check_earlier_pack(const PackImagesSpec& spec, const PackImagesOptions& options, const SampleList& list,
                        const SampleShape& sample, const PackSamples& samples) {
  if (options.force) return;
  check_same_pack(pack_path(options, samples.name), image_pack(spec, sample, list, samples));
}

ChunkPlan plan_pack(const PackImagesSpec& spec, const SampleShape& sample, std::uint64_t sample_count) {
  ChunkPlanSpec plan;
  plan.sample_bytes = sample.byte_count();
  plan.sample_count = sample_count;
  plan.hdf5 = spec.container == "hdf5";
  plan.max_chunk_bytes = container(spec.container).max_chunk_bytes;
  plan.compressed = codec_choice(spec).codec != "none";
  plan.chunk_samples = spec.chunk_samples;
  plan.chunk_bytes = spec.chunk_bytes;
  plan.part_bytes = spec.part_bytes;
  return plan_chunks(plan);
}

std::string pack_path(const PackImagesOptions& options, const std::string& pack_name) {
  return pack_name.empty() ? options.output : options.output + "/" + pack_name;
}

PackTask listed_pack(const PackImagesSpec& spec, const SampleShape& sample, const SampleList& list,
                     PackSamples samples) {
  PackTask task{samples.name,
                image_pack(spec, sample, list, samples),
                samples.indices.size(),
                std::move(samples.rejects),
                {}};
  task.rows = [list = std::shared_ptr<const SampleList>(std::shared_ptr<void>(), &list),
               indices = std::move(samples.indices)](std::uint64_t first, std::uint64_t count) {
    const auto begin = indices.begin() + static_cast<std::ptrdiff_t>(first);
    return PartRows{list, {begin, begin + static_cast<std::ptrdiff_t>(count)}};
  };
  return task;
}

PackWriter::PackWriter(RunContext& run, PackTask task)
    : run_(run),
      task_(std::move(task)),
      codec_(codec_choice(run.spec)),
      plan_(plan_pack(run.spec, run.maker.sample, task_.sample_count)),
      folder_(pack_path(run.options, task_.name), run.options.force, PackKind::images, run.is_planned),
      rejects_(task_.rejects),
      pack_(folder_, own_identity()) {}

/// Resumes, repairs or starts a pack: a finished and unchanged one is only reported; changed or damaged parts
/// are removed and packed again with those that are missing.
PackReport PackWriter::write() {
  const std::optional<Manifest> finished = folder_.finished_pack();
  const std::vector<std::uint64_t> changed = changed_parts();
  if (finished) {
    check_own(*finished);
    const std::optional<SharedStats> normalize = shared_stats(*finished);
    repaired_ = !folder_.is_whole(*finished, tables(*finished)) || finished->normalize != normalize;
    if (!repaired_ && changed.empty()) {
      run_.normalize = normalize;
      return finished_report(*finished);
    }
    folder_.reopen(*finished);
  }
  for (const std::uint64_t part_index : changed)
    folder_.remove_part(part_index, container(run_.spec.container).extension);
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
    throw Error(
        error.code(),
        std::string(error.what()) + "; see " + folder_.file(kRejectsName) + " (rows so far)" +
            (run_.is_planned ? "; once they are repaired, the pack-images command without `plan` packs "
                               "changed images again"
                             : ""));
  }
  if (interrupted_) return report();
  Manifest manifest = manifest_so_far();
  if (manifest.samples + manifest.rejected != manifest.rows)
    throw Error(ErrorCode::cannot_write, folder_.path() + ": " + std::to_string(manifest.rows) +
                                             " rows, but " + std::to_string(manifest.samples) +
                                             " packed and " + std::to_string(manifest.rejected) +
                                             " rejected");
  run_.normalize = manifest.normalize = shared_stats(manifest);
  manifest.warned = warnings_.size();
  manifest.warnings = publish_rows(kWarningsName, warnings_, "warning");
  manifest.rejects = publish_rows(kRejectsName, rejects_, "reason");
  pack_.publish(manifest, tables(manifest), manifest_text(manifest), run_.call);
  return report();
}

/// The first pack of a split gives the mean and std that all packs of the split record.
std::optional<SharedStats> PackWriter::shared_stats(const Manifest& manifest) const {
  if (task_.name.empty() || run_.normalize || manifest.samples == 0) return run_.normalize;
  return SharedStats{task_.name, manifest.mean, manifest.std};
}

PackReport PackWriter::finished_report(const Manifest& manifest) const {
  PackReport report;
  report.path = folder_.path();
  report.rows = manifest.rows;
  report.samples = manifest.samples;
  report.rejected = manifest.rejected;
  report.warned = manifest.warned;
  report.parts = report.parts_kept = manifest.parts.size();
  for (const PartRecord& part : manifest.parts) report.bytes += part.bytes;
  report.raw_bytes = manifest.samples * manifest.sample.byte_count();
  report.already_finished = true;
  report.notices = notices_;
  run_.progress.rows_done += task_.sample_count;
  run_.progress.rows_skipped += task_.sample_count;
  return report;
}

PackIdentity PackWriter::own_identity() {
  PackIdentity pack = std::move(task_.identity);
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
  return part.file == part_stem(part_index) + std::string(container(run_.spec.container).extension) &&
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
    if (!folder_.has(part_stem(part_index) + ".json")) continue;
    const PartRows rows = rows_of(part_index);
    const std::string path = folder_.file(part_stem(part_index) + std::string(kInputsExtension));
    const auto stamps = read_stamps(path, {pack_.identity().pack_id, part_index}, rows.indices.size());
    unknown += stamps ? 0 : 1;
    if (!stamps) continue;
    const auto found = find_changed(run_.maker.root, *rows.list, rows.indices, *stamps);
    if (!found.empty()) parts.push_back(part_index);
    for (const std::uint32_t index : found) files.emplace_back(rows.list->file(index));
  }
  if (unknown > 0)
    notices_.push_back(count_text(unknown, "finished part") + " without " + std::string(kInputsExtension) +
                       " file: whether images changed since is not known; `force` packs all anew");
  if (!files.empty()) notices_.push_back(changed_text(files, parts.size()));
  for (const std::string& file : files)
    if (run_.maker.root.stamp(file) == FileStamp{}) check_mounted({{0, file, {}, ""}});
  return parts;
}

/// Returns whether a file that the list named cannot be opened now.
bool PackWriter::is_unreadable(const std::string& file) const {
  // A CSV may name files that never existed; those of class folders were listed and did exist.
  const bool was_listed = run_.spec.labels.empty();
  const std::string error = run_.maker.root.open(file).error;
  return error.starts_with("may not be read") || (was_listed && error.starts_with("no such file"));
}

/// Distinguishes damaged images from a lost file system: rejects caused by the latter end the run with
/// try_again, so that it does not pack without the images.
void PackWriter::check_mounted(const std::vector<Reject>& rejects) const {
  if (run_.maker.reject_unreadable) return;
  const RootFolder& root = run_.maker.root;
  try {
    for (const Reject& reject : rejects) {
      if (root.stamp(reject.file) == FileStamp{}) root.check_mounted(reject.file);
      if (run_.is_planned && is_unreadable(reject.file))
        throw MachineError(run_.options.root + "/" + reject.file +
                           ": cannot be read, and was there when the pack was planned");
    }
    if (!rejects.empty() && !root.open(run_.maker.first_file).error.empty())
      throw MachineError(run_.options.root + "/" + run_.maker.first_file +
                         ": could be read when the run began, and can no longer");
  } catch (const MachineError& error) {
    throw Error(ErrorCode::try_again,
                std::string(error.what()) +
                    "; the current part is not kept; rerun the same command to resume "
                    "when the images are back; `on_io_error` reject packs without them");
  }
}

void PackWriter::keep_part(PartRecord finished) {
  for (const Reject& reject : finished.rejects) {
    rejects_.push_back(reject);
    run_.rejects.add(reject);
  }
  warnings_.insert(warnings_.end(), finished.warnings.begin(), finished.warnings.end());
  run_.progress.rows_done += finished.rows;
  run_.progress.rows_skipped += finished.rows;
  pack_.keep_part(std::move(finished));
}

void PackWriter::pack_missing(std::span<const std::uint64_t> part_indices) {
  run_.progress.phase = PackProgress::Phase::packing;
  std::vector<std::optional<PartRecord>> finished(part_indices.size());
  for_each_file(finished.size(),
                [&](std::size_t at) { finished[at] = pack_.finished_part(part_indices[at]); });
  for (std::size_t at = 0; at < finished.size() && !interrupted_; ++at) {
    // Another process may have packed it meanwhile.
    if (!finished[at] && run_.is_planned) finished[at] = pack_.finished_part(part_indices[at]);
    if (finished[at])
      keep_part(*std::exchange(finished[at], std::nullopt));
    else
      write_part(part_indices[at]);
  }
  if (pack_.is_finishing()) report_phase(PackProgress::Phase::finishing);
  pack_.await_part();
}

void PackWriter::pack_parts(std::span<const std::uint64_t> part_indices) {
  try {
    pack_missing(part_indices);
  } catch (const Error& error) {
    // Rejects while listing say nothing of the file system: they are in front.
    if (error.code() == ErrorCode::too_many_rejects)
      check_mounted({rejects_.begin() + static_cast<std::ptrdiff_t>(task_.rejects.size()), rejects_.end()});
    throw;
  }
  take_records();
}

PackReport PackWriter::write_parts(std::span<const std::uint64_t> part_indices) {
  if (const std::optional<Manifest> finished = folder_.finished_pack()) check_own(*finished);
  pack_parts(part_indices);
  return report();
}

// Another process may have published a part first, whose record counts then: it may have rejected what this
// one could read.
void PackWriter::take_records() {
  rejects_ = task_.rejects;
  warnings_.clear();
  for (const PartRecord& part : pack_.parts()) {
    rejects_.insert(rejects_.end(), part.rejects.begin(), part.rejects.end());
    warnings_.insert(warnings_.end(), part.warnings.begin(), part.warnings.end());
  }
}

void PackWriter::check_own(const Manifest& finished) const {
  if (finished.pack_id != pack_.identity().pack_id)
    throw Error(ErrorCode::bad_data, folder_.path() + ": holds a finished pack, " +
                                         hash_text(finished.pack_id) + ", that is not the plan's, " +
                                         hash_text(pack_.identity().pack_id));
}

void PackWriter::report_phase(PackProgress::Phase phase) {
  run_.progress.phase = phase;
  if (run_.options.on_progress) run_.options.on_progress(run_.progress);
}

/// Fails before the part is begun, not after hours of packing.
void PackWriter::check_space(std::uint64_t row_count) const {
  const SpaceNeed need = needed_space(plan_, run_.maker.sample, run_.spec.container == "hdf5", row_count);
  const std::string error = space_error(need, folder_.free_bytes());
  if (!error.empty()) throw Error(ErrorCode::cannot_write, folder_.path() + ": " + error);
}

std::unique_ptr<ChunkWriter> PackWriter::create_part(std::uint64_t part_index,
                                                     std::uint64_t sample_count) const {
  const std::uint64_t chunk_count = (sample_count + plan_.chunk_samples - 1) / plan_.chunk_samples;
  PartSpec part;
  part.sample = run_.maker.sample;
  part.codec = codec_.codec;
  part.chunk_samples = plan_.chunk_samples;
  part.classes = run_.list.classes;
  part.label_columns = run_.list.label_columns;
  part.pack_id = pack_.identity().pack_id;
  part.part_index = static_cast<std::uint32_t>(part_index);
  part.cache_advice = advise_cache(plan_, chunk_count);
  const Container& kind = container(run_.spec.container);
  return kind.create(folder_.file(part_stem(part_index) + std::string(kind.extension)), part);
}

void PackWriter::write_part(std::uint64_t part_index) {
  const PartRows rows = rows_of(part_index);
  // The other parts of a planned pack are written by other tasks.
  check_space(run_.is_planned ? rows.indices.size() : task_.sample_count - part_index * plan_.part_samples);
  std::unique_ptr<ChunkWriter> writer = create_part(part_index, rows.indices.size());
  const std::uint64_t rows_before = run_.progress.rows_done;
  const auto on_row = [&](std::uint64_t rows_done, const Reject* reject, const Reject* warning) {
    run_.progress.rows_done = rows_before + rows_done;
    if (warning != nullptr) warnings_.push_back(*warning);
    if (reject != nullptr) {
      rejects_.push_back(*reject);
      run_.rejects.add(*reject);
      run_.progress.rejected = run_.rejects.count();
    }
    if (run_.options.on_progress) run_.options.on_progress(run_.progress);
  };
  const PartJob job{run_.maker,
                    *rows.list,
                    rows.indices,
                    chunk_codec(codec_.codec),
                    codec_.level,
                    plan_.chunk_samples,
                    container(run_.spec.container).pads_last_chunk,
                    run_.buffer_bytes,
                    run_.call.threads,
                    run_.options.stop,
                    on_row};
  // The part before is finished in the background; only one part may be in that state.
  PartOutcome outcome = pack_part(job, *writer);
  pack_.await_part();
  interrupted_ = outcome.interrupted;
  check_mounted(outcome.record.rejects);
  if (!interrupted_) finish_part(part_index, std::move(writer), std::move(outcome));
}

// The part is checked and flushed while the next one is packed.
void PackWriter::finish_part(std::uint64_t part_index, std::unique_ptr<ChunkWriter> writer,
                             PartOutcome outcome) {
  samples_packed_now_ += outcome.record.samples;
  pack_.finish_part(part_index, [this, part_index, writer = std::move(writer),
                                 outcome = std::move(outcome)]() mutable {
    CompletePart part = writer->complete(outcome.samples);
    const std::string stem = part_stem(part_index);
    add_written(part.report, stem + std::string(container(run_.spec.container).extension), outcome.record);
    PendingFile stamps = write_stamps(folder_.file(stem + std::string(kInputsExtension)),
                                      {pack_.identity().pack_id, part_index}, outcome.inputs);
    return CompleteRecord{std::move(outcome.record), std::move(part.file), std::move(stamps)};
  });
}

Manifest PackWriter::manifest_so_far() const {
  Manifest manifest;
  pack_.describe(run_.call, run_.list.xxh3, manifest);
  manifest.sample = run_.maker.sample;
  manifest.container = run_.spec.container;
  manifest.codec = codec_.codec;
  manifest.chunk_samples = plan_.chunk_samples;
  manifest.chunk_bytes = plan_.chunk_bytes;
  manifest.rejected = rejects_.size();
  manifest.label_columns = run_.list.label_columns;
  manifest.class_labels = run_.list.label_kind == LabelKind::class_id;
  manifest.classes = class_records(run_.list, pack_.parts());
  PixelSums pixels;
  for (const PartRecord& part : pack_.parts()) {
    manifest.samples += part.samples;
    pixels.add(part.pixels);
  }
  manifest.rows = task_.sample_count + task_.rejects.size();
  manifest.mean = pixels.mean(manifest.sample.channels);
  manifest.std = pixels.std(manifest.sample.channels);
  return manifest;
}

FileRecord PackWriter::publish_rows(std::string_view name, const std::vector<Reject>& rows,
                                    std::string_view reason_column) const {
  const std::string text = rejects_csv(rows, run_.list, reason_column);
  publish_file(folder_.file(name), text);
  return {std::string(name), text.size(), xxh3(as_bytes(text))};
}

// Names the classes that lost all their images. They keep their ids, which were given before any was opened.
std::string PackWriter::lost_classes_notice() const {
  if (interrupted_ || run_.list.classes.empty()) return "";
  std::set<std::string> rejected;
  for (const Reject& reject : rejects_) rejected.insert(reject.labels.begin(), reject.labels.end());
  std::string names;
  std::size_t count = 0;
  for (const PackClass& record : class_records(run_.list, pack_.parts())) {
    if (record.samples > 0 || !rejected.contains(record.name)) continue;
    names += (count++ == 0 ? "" : ", ") + record.name;
  }
  if (count == 0) return "";
  return "no image of " + count_text(count) + (count == 1 ? " class" : " classes") +
         " could be packed, but " + (count == 1 ? "it keeps its id: " : "they keep their ids: ") + names;
}

PackReport PackWriter::report() const {
  PackReport report;
  report.path = folder_.path();
  report.parts = pack_.parts().size();
  report.parts_kept = pack_.parts_kept();
  report.repaired = repaired_;
  report.notices = notices_;
  const std::string others = folder_.other_writers_notice();
  if (!others.empty()) report.notices.push_back(others);
  const std::string lost = lost_classes_notice();
  if (!lost.empty()) report.notices.push_back(lost);
  report.rejected = rejects_.size();
  std::uint64_t part_rows = 0;
  for (const PartRecord& part : pack_.parts()) {
    report.samples += part.samples;
    report.bytes += part.bytes;
    report.warned += part.warnings.size();
    part_rows += part.rows;
  }
  report.rows = task_.sample_count + rejects_.size() - (part_rows - report.samples);
  report.raw_bytes = report.samples * run_.maker.sample.byte_count();
  for (const Reject& reject : rejects_) {
    RejectCount& like = report.reasons[reason_kind(reject.reason)];
    if (like.count++ == 0) like.first = reject.reason;
    like.are_same = like.are_same && like.first == reject.reason;
  }
  return report;
}

}  // namespace chunkhit
