#include "pack/images/part_pipeline.h"

#include <utility>

namespace chunkhit {

PartPipeline::PartPipeline(const PartJob& job, ChunkWriter& writer) : job_(job), writer_(writer) {
  record_.inputs.emplace();
  for (const PackColumn& column : column_types(job.list.columns))
    outcome_.samples.columns.push_back(empty_column(column));
}

PartOutcome PartPipeline::run() {
  run_steps();
  failure_.rethrow();
  finish_chunks();
  record_.samples = outcome_.samples.rows.size();
  outcome_.samples.mean = record_.pixels.mean(job_.context.sample.channels);
  outcome_.samples.std = record_.pixels.std(job_.context.sample.channels);
  outcome_.record = std::move(record_);
  return std::move(outcome_);
}

bool PartPipeline::stop_or_end() {
  const bool is_stopped = job_.is_stopped();
  if (is_stopped) outcome_.interrupted = true;
  return is_stopped || rows_left() == 0;
}

void PartPipeline::begin_rows(std::uint64_t count, ListBlock& block) {
  block.first_row = next_row_;
  block.errors.resize(count);
  block.warnings.resize(count);
  block.inputs.resize(count);
  block.images.resize(count);
  next_row_ += count;
}

/// Records a row of the next block.
void PartPipeline::note(const ListBlock& block, std::size_t at) {
  const std::uint32_t index = job_.indices[block.first_row + at];
  ++record_.rows;
  if (const std::optional<ImageError>& error = block.errors[at]) {
    record_.rejects.push_back(listed(index, error->reason(), error->kind()));
    return job_.on_row(&record_.rejects.back(), nullptr);
  }
  keep(index);
  add_image(block.images[at], *record_.inputs);
  const bool is_odd = !block.warnings[at].empty();
  if (is_odd) record_.warnings.push_back(listed(index, block.warnings[at], RejectKind::other));
  job_.on_row(nullptr, is_odd ? &record_.warnings.back() : nullptr);
}

/// A reason may name bytes of a damaged file; part records and tables hold UTF-8.
Reject PartPipeline::listed(std::uint32_t index, const std::string& reason, RejectKind kind) const {
  return {job_.list.row(index), std::string(job_.list.file(index)), job_.list.label_text(index),
          escape_bytes(reason), kind};
}

/// Records row, file and label of a sample that was packed.
void PartPipeline::keep(std::uint32_t index) {
  PartSamples& samples = outcome_.samples;
  samples.rows.push_back(job_.list.row(index));
  samples.files.add(job_.list.file(index));
  for (std::size_t column = 0; column < samples.columns.size(); ++column)
    samples.columns[column].append(job_.list.columns[column], index);
  if (job_.list.label_kind == LabelKind::class_id) {
    samples.labels.ids.push_back(job_.list.class_ids[index]);
    ++record_.class_counts[job_.list.class_ids[index]];
    return;
  }
  const std::size_t columns = job_.list.label_columns.size();
  const auto first = job_.list.values.begin() + static_cast<std::ptrdiff_t>(index * columns);
  samples.labels.values.insert(samples.labels.values.end(), first,
                               first + static_cast<std::ptrdiff_t>(columns));
}

}  // namespace chunkhit
