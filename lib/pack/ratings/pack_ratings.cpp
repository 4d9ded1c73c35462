#include "pack/ratings/pack_ratings.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunk/row_block.h"
#include "chunkhit/error.h"
#include "manifest/part_match.h"
#include "pack/pack_folder.h"
#include "store/part_index.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;

/// Memory of an entry while a part of HDF5 is read: as CSR, then as a row block.
constexpr std::uint64_t kHdf5EntryBytes = 16;
constexpr std::uint64_t kHdf5TimeBytes = 2 * sizeof(std::int64_t);

/// Explains why a folder is no finished pack of ratings.
[[noreturn]] void refuse_folder(const std::string& folder) {
  std::string packs;
  bool has_parts = false;
  std::error_code error;
  std::vector<std::string> names = folder_entries(folder);
  std::ranges::sort(names);
  for (const std::string& name : names) {
    has_parts = has_parts || name.starts_with("part-");
    if (fs::exists(fs::path(folder) / name / kManifestName, error)) packs += " " + folder + "/" + name;
  }
  std::string message = ": is a folder without a pack; expected files of ratings, or folders of packs";
  if (has_parts) message = ": no finished pack: run the command that began it to its end first";
  if (!packs.empty()) message = ": holds several packs; name those to read:" + packs;
  throw_bad_data(folder + message);
}

MatrixManifest read_ratings(const std::string& folder) {
  std::optional<AnyManifest> found = find_manifest(folder);
  if (!found) refuse_folder(folder);
  std::optional<MatrixManifest> manifest = std::move(found->ratings);
  if (!manifest) throw_bad_data(folder + ": is a pack of images, expected one of ratings");
  if (!manifest->label_columns.empty())
    throw_bad_data(folder + ": its rows have labels (" + manifest->label_columns[0] +
                   "), which are not read from packs; pack the files that it is of");
  return *std::move(manifest);
}

}  // namespace

bool is_pack_path(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) || fs::path(path).filename() == kManifestName;
}

PackRatingReader::PackRatingReader(std::string folder, std::uint64_t memory_bytes)
    : folder_(std::move(folder)), memory_bytes_(memory_bytes), manifest_(read_ratings(folder_)) {
  facts_.user_count = manifest_.rows;
  facts_.item_count = manifest_.columns;
  facts_.pack = {manifest_.pack_id, 0};
  for (const PartRecord& part : manifest_.parts) facts_.pack->bytes += part.bytes;
  if (manifest_.matrices.size() > 1)
    facts_.notices.push_back(folder_ + ": the ratings of X and of held_out are taken together");
  note_columns("item_columns", manifest_.item_columns, manifest_.items);
  note_columns("user_columns", manifest_.user_columns, manifest_.users);
}

void PackRatingReader::note_columns(const char* option, const std::vector<PackColumn>& columns,
                                    const FileRecord& list) {
  if (!columns.empty())
    facts_.notices.push_back(folder_ + ": its columns beside ids are not taken over: `" + option + "` " +
                             folder_ + "/" + list.file + " keeps them");
}

/// A block is of one part, whose ids it has. Chunks without entries make no block.
bool PackRatingReader::next(RatingBlock& block) {
  for (;;) {
    if (!part_ && next_part_ == manifest_.parts.size()) {
      check_counts();
      return false;
    }
    if (!part_) open_part();
    collector_->begin(block);
    while (next_chunk_ < part_->chunks().size() && !collector_->is_full()) add_chunk();
    const bool has_ratings = collector_->finish();
    if (next_chunk_ == part_->chunks().size()) part_.reset();
    if (has_ratings) return true;
  }
}

void PackRatingReader::open_part() {
  const PartRecord& listed = manifest_.parts[next_part_];
  const std::string path = folder_ + "/" + listed.file;
  check_memory(listed);
  try {
    part_ = std::move(open_matrix_parts({path}, memory_bytes_).front());
    check_listed(*part_, manifest_, next_part_);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    throw_bad_data(error.what() + std::string("; see pack-verify ") + folder_);
  }
  collector_.emplace(path, AxisIds{part_->samples().row_ids, 0},
                     AxisIds{names_of(part_->spec().rows().item_ids), 0}, false);
  ++next_part_;
  next_chunk_ = 0;
}

void PackRatingReader::check_memory(const PartRecord& listed) const {
  if (container(manifest_.container).holds_row_blocks || manifest_.rows == 0) return;
  std::uint64_t entries = 0;
  for (const PackMatrix& matrix : manifest_.matrices) entries += matrix.nnz / manifest_.rows * listed.rows;
  const std::uint64_t entry_bytes = kHdf5EntryBytes + (manifest_.times.empty() ? 0 : kHdf5TimeBytes);
  const auto needed = static_cast<double>(entries * entry_bytes);
  if (needed * 2 <= static_cast<double>(memory_bytes_)) return;
  throw_usage("`memory_bytes`: " + folder_ + "/" + listed.file + " is read at once, into " +
              bytes_text(needed) + "; at most half of " + bytes_text(static_cast<double>(memory_bytes_)) +
              " may be used for it");
}

void PackRatingReader::add_chunk() {
  const std::size_t index = next_chunk_++;
  const StoredChunk& chunk = part_->chunks()[index];
  part_->fetch(index, stored_);
  raw_.resize(chunk.raw_bytes);
  decode_chunk(*part_, index, stored_, raw_);
  const MatrixShape& shape = part_->spec().rows().matrix;
  try {
    const RowBlockHeader header = decode_row_block_header(raw_, shape);
    if (header.row_count != chunk.sample_count || header.first_row != chunk.first_sample)
      throw_bad_data("is of other rows than its location in the part says");
    for (std::size_t matrix = 0; matrix < shape.matrix_count; ++matrix) {
      const std::uint64_t nnz = header.matrices[matrix].nnz;
      row_ends_.resize(header.row_count);
      columns_.resize(nnz);
      ratings_.resize(nnz);
      numbers_.resize(nnz * value_bytes(shape.value_type));
      times_.resize(shape.has_times ? nnz : 0);
      ties_.resize(header.matrices[matrix].ties.empty() ? 0 : nnz);
      decode_rows(header, matrix, shape,
                  RowBlockTarget<std::uint32_t>{row_ends_, 0, columns_, numbers_, times_, ties_});
      decode_ratings(numbers_, shape, ratings_);
      add_rows(matrix, chunk.first_sample);
    }
  } catch (const Error& error) {
    throw Error(error.code(), part_->location(index) + ": " + error.what());
  }
}

void PackRatingReader::add_rows(std::size_t matrix, std::uint64_t first_row) {
  std::size_t at = 0;
  for (std::size_t row = 0; row < row_ends_.size(); ++row) {
    order_.resize(row_ends_[row] - at);
    std::iota(order_.begin(), order_.end(), at);
    at = row_ends_[row];
    if (!ties_.empty())
      std::ranges::stable_sort(order_, {}, [&](std::size_t i) { return std::pair(times_[i], ties_[i]); });
    for (const std::size_t i : order_) {
      collector_->add(first_row + row, columns_[i], ratings_[i]);
      if (!times_.empty()) collector_->add_time(times_[i]);
    }
  }
  nnz_[matrix] += columns_.size();
}

/// A last check: what was read is what the manifest counts.
void PackRatingReader::check_counts() const {
  for (std::size_t matrix = 0; matrix < manifest_.matrices.size(); ++matrix)
    if (nnz_[matrix] != manifest_.matrices[matrix].nnz)
      throw_bad_data(folder_ + ": " + manifest_.matrices[matrix].name + " has " +
                     count_text(nnz_[matrix], "rating") + ", expected " +
                     count_text(manifest_.matrices[matrix].nnz) + " as its manifest says");
}

}  // namespace chunkhit
