#include <optional>
#include <utility>

#include "base/file.h"
#include "chunkhit/pack.h"
#include "pack/disk_space.h"
#include "pack/images/image_archives.h"
#include "pack/images/image_input.h"
#include "pack/images/image_run.h"
#include "pack/images/list_findings.h"
#include "pack/images/memory_plan.h"
#include "pack/images/pack_spec.h"
#include "pack/images/pack_task.h"
#include "pack/images/pack_writer.h"
#include "pack/images/plan_rows.h"
#include "pack/images/preview_sheet.h"
#include "pack/output_pack.h"
#include "pack/run_frame.h"

namespace chunkhit {
namespace {

void write_packs(RunContext& run, std::vector<PackSamples> packs, PackImagesReport& report) {
  for (PackSamples& samples : packs) {
    const PackImagesSpec& spec = run.context.spec;
    run.progress.pack = pack_path(run.options.output, samples.name);
    PackWriter writer(run, spec, listed_pack(spec, run.context.sample, run.list, std::move(samples)));
    report.packs.push_back(writer.write());
    report.samples_packed_now += writer.samples_packed_now();
    report.interrupted = writer.interrupted();
    if (report.interrupted) break;
  }
}

/// Begins a run.
RunFrame start_run(const PackImagesOptions& options) {
  if (options.on_progress) options.on_progress({});
  return {"pack-images", options.command_line, options.stop};
}

PackImagesReport pack_input(ImageRun given, ImageInput input, RunFrame& frame) {
  count_part_samples(given, input.list);
  const auto& [spec, options, source] = given;
  const RootFolder root(options.root, spec.follow_symlinks);
  const MemoryPlan memory =
      plan_memory(spec, options, input.first.sample, largest_chunks(spec, input), frame.held_bytes());
  if (!std::holds_alternative<WriterSource>(source)) frame.root = absolute_root(options.root);
  RunContext run{frame,
                 options,
                 source,
                 input.list,
                 DecoderContext{spec, root, input.first.sample, input.first.file,
                                MemoryBudget(memory.decode_bytes), memory.kept_bytes},
                 RejectLimit(options, input.list.row_count),
                 PackProgress{.rows_total = input.list.size()},
                 memory};
  PackImagesReport report;
  report.notices = std::move(input.notices);
  report.labels = std::move(input.labels);
  for (const std::string& path : check_outputs(given, input)) OutputPack(kImagePacks, path, false).remove();
  frame.execute(memory.threads, [&] { write_packs(run, std::move(input.packs), report); });
  if (!report.interrupted) remove_plan(options.output);
  report.seconds = frame.seconds();
  return report;
}

/// Plans a pack of `rows` samples.
PackImagesPlan foresee(const PackImagesSpec& spec, const SampleShape& sample, std::string path,
                       std::uint64_t rows) {
  const ChunkPlan plan = plan_pack(spec, sample, rows);
  const Container& kind = container(spec.container);
  const SpaceNeed need = needed_space(plan, sample, kind, rows);
  const std::uint64_t part_chunks = std::min(plan.chunk_count, plan.chunks_of(plan.part_samples));
  PackImagesPlan foreseen{.path = std::move(path),
                          .rows = rows,
                          .parts = plan.part_count,
                          .chunks = plan.chunk_count,
                          .chunk_samples = plan.chunk_samples,
                          .chunk_bytes = plan.chunk_bytes,
                          .chunk_reason = plan.reason,
                          .raw_bytes = rows * sample.byte_count(),
                          .needed_bytes = need.bytes,
                          .is_compressed = need.is_minimum,
                          .default_cache = {},
                          .advised_cache = {}};
  if (kind.is_read_by_library && plan.chunk_samples != 0) {
    foreseen.default_cache = predict_cache(plan, part_chunks, kDefaultCache);
    foreseen.advised_cache = predict_cache(plan, part_chunks, advise_cache(plan, part_chunks));
  }
  return foreseen;
}

}  // namespace

PackImagesReport pack_images(const PackImagesSpec& spec, const PackImagesOptions& options) {
  ImageRun run = checked_run(spec, options);
  check_memory(run.spec, run.options);
  RunFrame frame = start_run(run.options);
  std::optional<ImageInput> input = read_image_input(run);
  if (!input) return {.interrupted = true};
  return pack_input(std::move(run), *std::move(input), frame);
}

PackImagesReport pack_list(const PackImagesSpec& spec, const PackImagesOptions& options, SampleList list) {
  RunFrame frame = start_run(options);
  ImageRun run{spec, options, WriterSource{}};
  ImageInput input = make_image_input(run, std::move(list));
  return pack_input(std::move(run), std::move(input), frame);
}

PackImagesPreview preview_images(const PackImagesSpec& given_spec, const PackImagesOptions& given) {
  ImageRun run = checked_run(given_spec, given, true);
  const auto& [spec, options, source] = run;
  const RunFrame frame("pack-images", options.command_line, options.stop);
  check_memory(spec, options);
  const std::optional<ImageInput> input = read_image_input(run);
  if (!input) return {};
  count_part_samples(run, input->list);
  const FirstImage& first = input->first;
  const MemoryPlan memory =
      plan_memory(spec, options, input->first.sample, largest_chunks(spec, *input), frame.held_bytes());
  static_cast<void>(check_outputs(run, *input));
  PackImagesPreview preview{.rows = input->list.row_count,
                            .rejected = input->list.rejects.size(),
                            .findings = find_in_list(run, *input),
                            .notices = input->notices,
                            .labels = input->labels,
                            .height = first.sample.height,
                            .width = first.sample.width,
                            .channels = first.sample.channels,
                            .first_file = first.file,
                            .codec = codec_choice(spec).codec,
                            .packs = {},
                            .free_bytes = 0};
  for (const PackSamples& samples : input->packs) {
    check_earlier_pack(spec, options, input->list, first.sample, samples);
    const std::uint64_t rows = samples.indices.size();
    PackImagesPlan plan = foresee(spec, first.sample, pack_path(options.output, samples.name), rows);
    if (spec.sizes == Sizes::own) {
      plan.needed_bytes = expected_image_bytes(run, input->list) * rows;
      plan.is_compressed = false;
    }
    preview.packs.push_back(std::move(plan));
  }
  preview.free_bytes = free_bytes(existing_folder(options.output));
  if (!options.sheet.empty()) preview.sheet = write_preview_sheet(run, *input, memory);
  return preview;
}

}  // namespace chunkhit
