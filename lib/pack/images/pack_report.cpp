// What a pack's manifest and report say of its parts.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/words.h"
#include "pack/images/pack_writer.h"
#include "types/input_sizes.h"

namespace chunkhit {
namespace {

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

}  // namespace

PackReport PackWriter::finished_report(const Manifest& manifest) const {
  PackReport report;
  report.path = pack_.path();
  report.rows = manifest.rows;
  report.samples = manifest.samples;
  report.rejected = manifest.rejected;
  report.warned = manifest.warned;
  report.parts = report.parts_kept = manifest.parts.size();
  for (const PartRecord& part : manifest.parts) report.bytes += part.bytes;
  report.raw_bytes = manifest.raw_bytes;
  report.already_finished = true;
  report.notices = notices_;
  run_.progress.rows_done += task_.sample_count;
  run_.progress.rows_skipped += task_.sample_count;
  return report;
}

Manifest PackWriter::manifest_so_far() const {
  Manifest manifest;
  pack_.describe(run_.frame, run_.list.xxh3, manifest);
  manifest.sample = run_.context.sample;
  manifest.container = spec_.container;
  manifest.codec = codec_.codec;
  manifest.chunk_samples = plan_.chunk_samples;
  manifest.chunk_bytes = plan_.chunk_bytes;
  manifest.rejected = rejects_.size();
  manifest.label_columns = run_.list.label_columns;
  manifest.columns = column_types(run_.list.columns);
  manifest.class_labels = run_.list.label_kind == LabelKind::class_id;
  manifest.classes = class_records(run_.list, pack_.parts());
  PixelSums pixels;
  manifest.inputs.emplace();
  for (const PartRecord& part : pack_.parts()) {
    manifest.samples += part.samples;
    pixels.add(part.pixels);
    add_sizes(part.inputs, manifest.inputs);
  }
  manifest.raw_bytes = pixels.pixel_count * manifest.sample.values();
  manifest.rows = task_.sample_count + task_.rejects.size();
  manifest.mean = pixels.mean(manifest.sample.channels);
  manifest.std = pixels.std(manifest.sample.channels);
  return manifest;
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
  report.path = pack_.path();
  report.parts = pack_.parts().size();
  report.parts_kept = pack_.parts_kept();
  report.repaired = repaired_;
  report.notices = notices_;
  for (std::string& notice : pack_.notices()) report.notices.push_back(std::move(notice));
  if (std::string notice = lost_classes_notice(); !notice.empty())
    report.notices.push_back(std::move(notice));
  if (const std::optional<InputSizes> inputs = manifest_so_far().inputs)
    for (std::string& notice : input_notices(*inputs)) report.notices.push_back(std::move(notice));
  report.rejected = rejects_.size();
  std::uint64_t part_rows = 0;
  std::uint64_t pixel_count = 0;
  for (const PartRecord& part : pack_.parts()) {
    report.samples += part.samples;
    report.bytes += part.bytes;
    report.warned += part.warnings.size();
    pixel_count += part.pixels.pixel_count;
    part_rows += part.rows;
  }
  report.rows = task_.sample_count + rejects_.size() - (part_rows - report.samples);
  report.raw_bytes = pixel_count * run_.context.sample.values();
  for (const Reject& reject : rejects_) {
    RejectCount& like = report.reasons[name_of(reject.kind)];
    if (like.count++ == 0) like.first = reject.reason;
    like.are_same = like.are_same && like.first == reject.reason;
  }
  return report;
}

}  // namespace chunkhit
