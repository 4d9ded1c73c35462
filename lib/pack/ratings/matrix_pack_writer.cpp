#include "pack/ratings/matrix_pack_writer.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>

#include "base/file.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunk/column_steps.h"
#include "manifest/split_packs.h"
#include "pack/disk_space.h"
#include "pack/ratings/id_lists.h"
#include "pack/ratings/pack_sparse_spec.h"

namespace chunkhit {
namespace {

/// Adds what the split leaves out of a pack to the statistics, by pack.
void add_left_out(const PackRows& pack, RatingStats& stats) {
  const std::string name = pack.name().empty() ? "" : pack.name() + ": ";
  const auto add = [&](const char* reason, std::uint64_t count) {
    if (count > 0) stats.left_out.emplace_back(name + reason, count);
  };
  add("users without both given and held-out ratings", pack.stats().users_left_out);
  add(kLostOfUsers, pack.stats().ratings_left_out);
  add(kLostOfItems, pack.stats().unseen_ratings);
}

}  // namespace

RatingStats make_rating_stats(const ReadStats& read, const RatingPacks& packs) {
  RatingStats stats;
  for (const RatingInput& input : read.inputs()) {
    stats.inputs.push_back(input);
    stats.inputs.back().file = std::filesystem::path(input.file).filename().string();
  }
  stats.bad_lines = read.total().bad_lines;
  for (const auto& [kind, count] : read.bad_kinds()) stats.reasons.emplace_back(kind, count);
  stats.steps = packs.steps;
  for (const PackRows& pack : packs.packs) add_left_out(pack, stats);
  for (const ValueHistogram::Bin& bin : packs.values.bins) stats.values.push_back({bin.low, bin.count});
  stats.value_ranges = packs.values.has_ranges;
  return stats;
}

namespace {

constexpr std::uint64_t kMinChunkRows = 256;
constexpr std::uint64_t kMaxChunkRows = 1024;
constexpr std::uint64_t kWantedChunkBytes = 256 << 10;
/// Rows per piece for HDF5, whose chunks are ranges of entries and do not depend on it.
constexpr std::uint64_t kHdf5PieceRows = 1024;
constexpr std::uint64_t kTimedPieceEntries = 1 << 19;

/// Estimates the compressed bytes of a rating by the type of its value (measured on MovieLens-like ratings).
double rating_bytes(const MatrixShape& shape) {
  constexpr double kBytes[] = {0.8, 1.2, 2.2, 4};
  constexpr double kTimeBytes = 3;
  return kBytes[static_cast<std::size_t>(shape.value_type)] + (shape.has_times ? kTimeBytes : 0);
}

PackMatrix record(const char* name, const MatrixStats& stats) { return {name, stats.nnz, stats.longest_row}; }

/// Limits the rows of a piece so that even the longest rows fit into one part, and with their times into
/// little memory.
std::uint64_t hdf5_piece_rows(const PackStats& stats, bool has_times) {
  const std::uint64_t longest = std::max(stats.x.longest_row, stats.held_out.longest_row);
  const std::uint64_t most = has_times ? kTimedPieceEntries : kMaxCsrEntries;
  return std::clamp<std::uint64_t>(most / std::max<std::uint64_t>(1, longest), 1, kHdf5PieceRows);
}

}  // namespace

/// Chooses chunks of about kWantedChunkBytes compressed, and small enough that a chunk of the longest rows
/// stays below the limit of shards.
std::uint64_t plan_chunk_rows(const PackStats& stats, std::uint64_t row_count, const MatrixShape& shape) {
  const auto nnz = static_cast<double>(stats.x.nnz + stats.held_out.nnz);
  const double row_bytes =
      1 + nnz / static_cast<double>(std::max<std::uint64_t>(1, row_count)) * rating_bytes(shape);
  std::uint64_t rows = kMaxChunkRows;
  while (rows > kMinChunkRows && static_cast<double>(rows) * row_bytes > kWantedChunkBytes) rows /= 2;
  const std::uint64_t time_bytes = shape.has_times ? sizeof(std::int64_t) : 0;
  const std::uint64_t entry_bytes = kMaxLeb128Bytes + value_bytes(shape.value_type) + time_bytes +
                                    (shape.has_repeats ? sizeof(std::uint32_t) : 0);
  const std::uint64_t longest =
      (stats.x.longest_row + stats.held_out.longest_row) * entry_bytes + 2 * (kMaxLeb128Bytes + time_bytes);
  const std::uint64_t header_bytes = min_row_block_bytes(0, shape);
  const std::uint64_t most = container("shard").max_chunk_bytes;
  while (rows > 1 && header_bytes + rows * longest > most) rows /= 2;
  return rows;
}

MatrixShape matrix_shape(const RatingPacks& packs, const PackRows& rows) {
  return {.column_count = packs.columns().items.size(),
          .matrix_count = rows.has_held_out() ? 2u : 1u,
          .value_type = packs.stored.type,
          .scale = packs.stored.scale,
          .has_times = packs.source->has_times,
          .has_repeats = packs.source->has_repeats};
}

std::vector<PackMatrix> matrix_records(const PackRows& rows) {
  std::vector<PackMatrix> records{record("X", rows.stats().x)};
  if (rows.has_held_out()) records.push_back(record("held_out", rows.stats().held_out));
  return records;
}

MatrixPackWriter::MatrixPackWriter(const MatrixRun& run, const PackRows& rows, OutputPack& pack)
    : run_(run),
      rows_(rows),
      pack_(pack),
      container_(container(run.spec.container)),
      codec_(codec_choice(run.spec)),
      shape_(matrix_shape(run.packs, rows)) {
  if (!container_.holds_row_blocks) return;
  chunk_rows_ =
      run.spec.chunk_rows > 0 ? run.spec.chunk_rows : plan_chunk_rows(rows.stats(), rows.row_count(), shape_);
}

// Estimates the missing rows only: a rating takes at least a byte for its column beside its value.
SpaceNeed MatrixPackWriter::needed_space() const {
  const std::uint64_t ratings = rows_.stats().x.nnz + rows_.stats().held_out.nnz;
  const std::uint64_t raw_bytes =
      ratings * (1 + value_bytes(shape_.value_type) + (shape_.has_times ? sizeof(std::int64_t) : 0));
  const double missing = 1 - static_cast<double>(kept_rows_) /
                                 static_cast<double>(std::max<std::uint64_t>(1, rows_.row_count()));
  const auto missing_bytes = static_cast<std::uint64_t>(static_cast<double>(raw_bytes) * missing);
  return chunkhit::needed_space(missing_bytes, codec_.codec != "none");
}

/// Keeps the finished parts at the front, packs the remaining rows, and publishes users.csv, items.csv and
/// the manifest last.
MatrixPackReport MatrixPackWriter::write() {
  const bool makes_row_blocks = container_.holds_row_blocks;
  const std::uint64_t piece_rows =
      makes_row_blocks ? chunk_rows_ : hdf5_piece_rows(rows_.stats(), shape_.has_times);
  keep_parts(piece_rows);
  pack_.check_space(needed_space());
  CompleteList items = write_items(pack_.path(), run_.item_ids, run_.packs.columns().counts,
                                   run_.columns.items ? &*run_.columns.items : nullptr);
  items_ = items.record;
  items_file_.emplace(std::move(items.file));
  const RowJob job{.rows = rows_,
                   .piece_rows = piece_rows,
                   .shape = shape_,
                   .makes_row_blocks = makes_row_blocks,
                   .compresses = codec_.codec == "zstd",
                   .level = codec_.level,
                   .part_bytes = run_.spec.part_bytes,
                   .max_part_entries = makes_row_blocks ? UINT64_MAX : kMaxCsrEntries,
                   .kept_parts = pack_.parts_kept(),
                   .kept_rows = kept_rows_,
                   .threads = run_.frame.record.threads,
                   .work_bytes = run_.work_bytes,
                   .stop = run_.options.stop,
                   .append = [this](const RowPiece& piece) { append(piece); }};
  try {
    interrupted_ = !run_row_job(job);
    if (!interrupted_ && part_) finish_part();
    await_part();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cannot_write) throw;
    try {
      await_part();  // it is kept
    } catch (const Error&) {
      // The first error is the one to report.
    }
    FinishedParts finished;
    for (const PartRecord& part : pack_.parts()) finished.add(part);
    throw_resumable(error, finished, rows_.row_count() - finished.rows);
  }
  MatrixPackReport report{.path = pack_.path(),
                          .rows = rows_.row_count(),
                          .columns = shape_.column_count,
                          .matrices = matrix_records(rows_),
                          .parts = pack_.parts().size(),
                          .chunk_rows = chunk_rows_,
                          .parts_kept = pack_.parts_kept()};
  for (const PartRecord& part : pack_.parts()) report.bytes += part.bytes;
  if (!interrupted_) publish();
  return report;
}

// Keeps finished parts only as an unbroken sequence from the first: where a part begins depends on all parts
// before it.
void MatrixPackWriter::keep_parts(std::uint64_t piece_rows) {
  while (std::optional<PartRecord> part = pack_.finished_part(pack_.parts_kept())) {
    const std::uint64_t end_row = kept_rows_ + part->rows;
    if (part->rows == 0 || end_row > rows_.row_count()) return;
    if (end_row % piece_rows != 0 && end_row != rows_.row_count()) return;
    kept_rows_ = part_first_row_ = end_row;
    pack_.add_part(std::move(*part), true);
  }
}

// Published before the first part, because items.csv marks the folder as a pack of ratings, and not earlier,
// so that a run that ends before its first part leaves nothing behind.
void MatrixPackWriter::publish_items() {
  if (items_file_) items_file_->publish();
  items_file_.reset();
}

void MatrixPackWriter::publish() {
  check_counts();
  publish_items();
  CompleteList users = write_users(pack_.path(), rows_.users(), row_ratings_, run_.users,
                                   run_.columns.users ? &*run_.columns.users : nullptr);
  users_ = users.record;
  users.file.publish();
  const MatrixManifest manifest = this->manifest();
  pack_.remove_others(manifest, tables(manifest));
  pack_.publish(manifest, tables(manifest), matrix_manifest_text(manifest), run_.frame);
}

/// Also counts the ratings of kept rows: users.csv lists all rows.
void MatrixPackWriter::append(const RowPiece& piece) {
  if (!piece.is_kept) {
    if (part_ && piece.part_index != part_index_) finish_part();
    part_index_ = piece.part_index;
    if (!part_) begin_part();
    if (auto* const chunks = std::get_if<std::unique_ptr<ChunkWriter>>(&*part_))
      (*chunks)->append({piece.stored(), piece.raw.size(), piece.row_count, piece.xxh3, piece.filtered});
    else
      std::get<std::unique_ptr<MatrixHdf5Writer>>(*part_)->append(piece.x.view(), piece.held_out.view());
  }
  for (std::size_t row = 0; row < piece.x.row_count(); ++row)
    row_ratings_.push_back(static_cast<std::uint32_t>(piece.x.indptr[row + 1] - piece.x.indptr[row]));
  run_.on_rows(piece.row_count);
}

/// A last check of the written rows against what was counted before packing.
void MatrixPackWriter::check_counts() const {
  const std::uint64_t ratings = std::accumulate(row_ratings_.begin(), row_ratings_.end(), std::uint64_t{0});
  if (row_ratings_.size() != rows_.row_count() || ratings != rows_.stats().x.nnz)
    throw_cannot_write(pack_.path() + ": packed " + count_text(row_ratings_.size(), "row") + " of " +
                       count_text(ratings, "rating") + ", expected " + count_text(rows_.row_count()) +
                       " of " + count_text(rows_.stats().x.nnz));
}

PartSpec MatrixPackWriter::part_spec() const {
  PartSpec spec;
  RowBlocks& rows = spec.samples.emplace<RowBlocks>();
  rows.matrix = shape_;
  rows.item_ids = run_.item_ids;
  spec.codec = codec_.codec;
  spec.chunk_samples = chunk_rows_ > 0 ? chunk_rows_ : kHdf5PieceRows;
  spec.label_columns = run_.labels.columns;
  spec.pack_id = pack_.identity().pack_id;
  spec.part_index = static_cast<std::uint32_t>(part_index_);
  return spec;
}

namespace {

/// The columns of a table at ids, in their order.
std::vector<SampleColumn> columns_of(const ColumnTable& table, std::span<const std::string> ids) {
  std::vector<SampleColumn> columns;
  for (const PackColumn& type : table.types()) columns.push_back(empty_column(type));
  for (const std::string& id : ids) table.append_to(columns, table.find(id));
  return columns;
}

}  // namespace

void MatrixPackWriter::begin_part() {
  const PartSpec spec = part_spec();
  const std::string path = pack_.file(part_stem(spec.part_index) + std::string(container_.extension));
  if (container_.holds_row_blocks) {
    part_ = container_.create(path, spec);
    return;
  }
  MatrixHdf5Options options;
  options.deflate_level = codec_.codec == "deflate" ? codec_.level : 0;
  options.item_counts = run_.packs.columns().counts;
  if (run_.columns.items) options.item_columns = columns_of(*run_.columns.items, run_.item_ids);
  part_ = std::make_unique<MatrixHdf5Writer>(path, spec, std::move(options));
}

PartSamples MatrixPackWriter::samples(std::uint64_t first_row, std::uint64_t end_row) const {
  PartSamples samples;
  samples.rows.reserve(end_row - first_row);
  samples.row_ids.ends.reserve(end_row - first_row);
  samples.labels.ids.reserve(end_row - first_row);
  const std::size_t columns = run_.labels.columns.size();
  for (std::uint64_t row = first_row; row < end_row; ++row) {
    const std::uint32_t user = rows_.users()[row];
    samples.rows.push_back(user);
    samples.row_ids.add(run_.users.text(user));
    const auto labels = run_.labels.values.begin() + static_cast<std::ptrdiff_t>(user * columns);
    samples.labels.values.insert(samples.labels.values.end(), labels,
                                 labels + static_cast<std::ptrdiff_t>(columns));
    if (columns == 0) samples.labels.ids.push_back(-1);
  }
  // Shards have them in users.csv alone.
  if (run_.columns.users && !container_.holds_row_blocks) {
    std::vector<std::string> ids;
    for (std::uint64_t row = first_row; row < end_row; ++row)
      ids.push_back(run_.users.text(rows_.users()[row]));
    samples.columns = columns_of(*run_.columns.users, ids);
  }
  return samples;
}

void MatrixPackWriter::await_part() {
  if (finishing_.valid()) pack_.add_part(finishing_.get(), false);
}

// The part is checked and flushed while the next one is packed.
void MatrixPackWriter::finish_part() {
  const std::uint64_t end_row = row_ratings_.size();
  await_part();
  finishing_ =
      pack_.finish_part(part_index_, [this, part = *std::exchange(part_, std::nullopt), end_row,
                                      part_index = part_index_, first_row = part_first_row_]() mutable {
        PartSamples written = samples(first_row, end_row);
        CompletePart complete =
            std::visit([&](auto& writer) { return writer->complete(std::move(written)); }, part);
        publish_items();
        PartRecord record;
        add_written(complete.report, part_stem(part_index) + std::string(container_.extension), record);
        record.rows = record.samples = end_row - first_row;
        return CompleteRecord{std::move(record), std::move(complete.file)};
      });
  part_first_row_ = end_row;
}

MatrixManifest MatrixPackWriter::manifest() const {
  MatrixManifest manifest;
  pack_.describe(run_.frame, run_.input_xxh3, manifest);
  manifest.rows = rows_.row_count();
  manifest.columns = shape_.column_count;
  manifest.matrices = matrix_records(rows_);
  manifest.value_type = shape_.value_type;
  manifest.scale = shape_.scale;
  if (shape_.has_times) manifest.times = run_.times;
  manifest.has_repeats = shape_.has_repeats;
  manifest.container = run_.spec.container;
  manifest.codec = codec_.codec;
  manifest.chunk_rows = chunk_rows_;
  manifest.label_columns = run_.labels.columns;
  manifest.users = users_;
  manifest.items = items_;
  manifest.stats = run_.stats;
  if (run_.columns.items) manifest.item_columns = run_.columns.items->types();
  if (run_.columns.users) manifest.user_columns = run_.columns.users->types();
  return manifest;
}

}  // namespace chunkhit
