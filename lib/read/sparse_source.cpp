#include "read/sparse_source.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/resources.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "cache/decoded_rows.h"
#include "chunkhit/error.h"
#include "codec/zstd.h"
#include "manifest/part_match.h"
#include "read/pack_info.h"
#include "read/sample_reader.h"

namespace chunkhit {
namespace {

// A slot holds a row or column number + 1 in its lower 40 bits and the upper bits of the id's hash above.
constexpr std::uint64_t kIndexMask = (std::uint64_t{1} << 40) - 1;

bool has_ids(const ChunkReader& part, IdAxis axis) {
  if (axis == IdAxis::column) return !part.spec().rows().item_ids.empty();
  return part.samples().row_ids.size() != 0 || part.samples().rows.empty();
}

/// Returns the first part without ids, or an empty path if all have some.
std::string path_without_ids(const ChunkSet& chunks, IdAxis axis) {
  for (const auto& part : chunks.parts())
    if (!has_ids(*part, axis)) return part->path();
  return {};
}

std::optional<std::vector<std::int64_t>> integers_of(const SourceIds& ids) {
  std::vector<std::int64_t> integers(ids.size());
  for (std::uint64_t i = 0; i < ids.size(); ++i)
    if (!parse_integer_id(ids[i], integers[i])) return std::nullopt;
  return integers;
}

}  // namespace

SourceIds::SourceIds(const ChunkSet& chunks, IdAxis axis)
    : chunks_(chunks),
      axis_(axis),
      size_(axis == IdAxis::row ? chunks.sample_count() : chunks.matrix().column_count),
      path_without_ids_(path_without_ids(chunks, axis)) {}

std::string_view SourceIds::operator[](std::uint64_t index) const {
  if (axis_ == IdAxis::column) {
    const std::vector<std::string>& ids = chunks_.parts().front()->spec().rows().item_ids;
    return ids.empty() ? std::string_view() : ids[index];
  }
  const ChunkSet::SampleLocation location = chunks_.find_sample(index);
  const TextList& ids = chunks_.parts()[location.part]->samples().row_ids;
  return ids.size() == 0 ? std::string_view() : ids[location.sample];
}

void SourceIds::require_ids() const {
  if (path_without_ids_.empty()) return;
  const bool are_rows = axis_ == IdAxis::row;
  throw_usage(path_without_ids_ + ": its " + (are_rows ? "rows" : "columns") +
              " have no ids: use their numbers, 0 to " + std::to_string(size_ - 1));
}

SparseIds SourceIds::all() const {
  require_ids();
  if (std::optional<std::vector<std::int64_t>> integers = integers_of(*this))
    return {.integers = *std::move(integers), .texts = {}};
  SparseIds ids;
  ids.texts.reserve(size_);
  for (std::uint64_t i = 0; i < size_; ++i) ids.texts.push_back((*this)[i]);
  return ids;
}

/// Fills an open-addressing table of at most three quarters load. Of rows with equal ids the first is kept.
std::vector<std::uint64_t> SourceIds::make_slots() const {
  std::vector<std::uint64_t> slots(std::bit_ceil(size_ + size_ / 3 + 1));
  const std::uint64_t mask = slots.size() - 1;
  for (std::uint64_t i = 0; i < size_; ++i) {
    const std::string_view id = (*this)[i];
    const std::uint64_t hash = xxh3(as_bytes(id));
    const auto is_known = [&](std::uint64_t slot) {
      return ((slot ^ hash) & ~kIndexMask) == 0 && (*this)[(slot & kIndexMask) - 1] == id;
    };
    std::uint64_t at = hash & mask;
    while (slots[at] != 0 && !is_known(slots[at])) at = (at + 1) & mask;
    if (slots[at] == 0) slots[at] = (hash & ~kIndexMask) | (i + 1);
  }
  return slots;
}

/// The table is made at the first call, because most loaders never look an id up.
std::optional<std::uint64_t> SourceIds::find(std::string_view id) const {
  require_ids();
  std::call_once(slots_made_, [&] {
    slots_ = with_memory("finding ids needs more memory than can be had", [&] { return make_slots(); });
  });
  const std::uint64_t mask = slots_.size() - 1;
  const std::uint64_t hash = xxh3(as_bytes(id));
  for (std::uint64_t at = hash & mask; slots_[at] != 0; at = (at + 1) & mask) {
    const std::uint64_t index = (slots_[at] & kIndexMask) - 1;
    if (((slots_[at] ^ hash) & ~kIndexMask) == 0 && (*this)[index] == id) return index;
  }
  return std::nullopt;
}

void ListColumns::add(std::string path, const FileRecord& record, std::vector<PackColumn> columns,
                      std::uint64_t count) {
  if (lists_.empty()) common_ = columns;
  std::erase_if(common_,
                [&](const PackColumn& known) { return std::ranges::find(columns, known) == columns.end(); });
  lists_.push_back({std::move(path), record, std::move(columns), count});
  count_ += count;
}

/// Reads the column of all lists, whole files of which only it stays.
const SampleColumn& ListColumns::column(const PackColumn& wanted) const {
  const std::scoped_lock lock(mutex_);
  const auto known = read_.find(wanted.name);
  if (known != read_.end()) return known->second;
  SampleColumn read = with_memory("a column of " + things_ + "s needs more memory than can be had", [&] {
    SampleColumn all = empty_column(wanted);
    for (const List& list : lists_) {
      const ByteBuffer bytes = read_file(list.path, list.record.bytes);
      if (xxh3(bytes) != list.record.xxh3)
        throw_bad_data(list.path + ": checksum " + hash_text(xxh3(bytes)) + ", expected " +
                       hash_text(list.record.xxh3));
      const auto index =
          static_cast<std::size_t>(std::ranges::find(list.columns, wanted) - list.columns.begin());
      const SampleColumn found =
          parse_kept_column(as_text(bytes), list.path, header_, list.columns, index, list.count);
      for (std::size_t at = 0; at < found.size(); ++at) all.append(found, at);
    }
    return all;
  });
  return read_.emplace(wanted.name, std::move(read)).first->second;
}

ColumnValues ListColumns::values(std::string_view name, std::span<const std::uint64_t> indices) const {
  const auto wanted = std::ranges::find(common_, name, &PackColumn::name);
  if (wanted == common_.end())
    throw_usage(things_ + "_column: found \"" + printable_text(name) + "\", expected one of " +
                (common_.empty() ? "none" : joined(column_names(common_))) + " (`" + things_ +
                "_columns` of pack-sparse keeps more)");
  const SampleColumn& column = this->column(*wanted);
  ColumnValues values;
  values.type = wanted->type;
  const std::string what = things_ + "_column: " + (things_ == "item" ? "column" : "row");
  for (const std::uint64_t index : indices) require_below(what, index, count_);
  for (const std::uint64_t index : indices)
    if (wanted->type == ColumnType::int64)
      values.integers.push_back(std::get<std::vector<std::int64_t>>(column.values)[index]);
    else if (wanted->type == ColumnType::float64)
      values.numbers.push_back(std::get<std::vector<double>>(column.values)[index]);
    else
      values.texts.push_back(std::get<TextList>(column.values)[index]);
  return values;
}

namespace {

/// Returns a magnitude that some rating of a pack is known to reach. Many distinct values are listed as
/// ranges between powers of two by their lower end, which for negative ranges is the far end, hence the half.
/// A pack of a split lists the values of all its packs: batches find those that it has.
float magnitude_of(const MatrixManifest& pack) {
  float magnitude = 0;
  if (pack.spec.has("split-name")) return magnitude;
  for (const ValueCount& each : pack.stats.values)
    magnitude = std::max(magnitude, each.value < 0 ? -each.value / 2 : each.value);
  return magnitude;
}

/// Throws bad_data if a source's columns are other items than those of the first source.
void check_same_items(const ChunkReader& part, const std::string& path, const ChunkReader& first,
                      const std::string& first_path) {
  const std::vector<std::string>& found = part.spec().rows().item_ids;
  const std::vector<std::string>& expected = first.spec().rows().item_ids;
  if (found == expected || part.spec().rows().matrix.column_count != first.spec().rows().matrix.column_count)
    return;
  const auto name = [](const std::vector<std::string>& items, std::size_t column) {
    return column < items.size() ? "item \"" + items[column] + '"' : std::string("no item's id");
  };
  std::size_t column = 0;
  while (column < std::min(found.size(), expected.size()) && found[column] == expected[column]) ++column;
  throw_bad_data(path + ": column " + std::to_string(column) + " has " + name(found, column) + ", expected " +
                 name(expected, column) + " as in " + first_path +
                 ": pack it with `reuse_ids`, which gives both the same columns");
}

std::vector<std::unique_ptr<ChunkReader>> open_pack(const std::string& folder, const MatrixManifest& manifest,
                                                    std::uint64_t cache_bytes) {
  try {
    std::vector<std::unique_ptr<ChunkReader>> parts =
        open_matrix_parts(part_paths(folder, manifest.parts), cache_bytes);
    count_samples_before(parts);
    return parts;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    throw_bad_data(error.what() + std::string("; see pack-verify ") + folder);
  }
}

/// Throws bad_data if the times of a source have another unit than those of one before it.
void check_same_times(const PackSource& source, const std::vector<PackSource>& sources) {
  for (const PackSource& other : sources) {
    if (&other == &source) return;
    // That one of them has no times is found when their parts are compared.
    if (!other.matrix || other.matrix->times.empty() || source.matrix->times.empty()) continue;
    if (!are_times_alike(other.matrix->times, source.matrix->times))
      throw_bad_data(source.path + ": has times in " + source.matrix->times + ", " + other.path + " in " +
                     other.matrix->times + ": they cannot be read as one");
  }
}

std::vector<std::unique_ptr<ChunkReader>> open_all(const std::vector<PackSource>& sources,
                                                   std::uint64_t cache_bytes, float& magnitude) {
  std::vector<std::unique_ptr<ChunkReader>> parts;
  const std::string& first_path = sources.front().path;
  for (const PackSource& source : sources) {
    const std::size_t first = parts.size();
    if (source.manifest)
      throw_bad_data(source.path + ": holds images, expected matrices; ImageLoader reads it");
    if (!source.matrix) parts.push_back(open_matrix_part(source.part, cache_bytes));
    if (first < parts.size()) check_same_items(*parts[first], source.path, *parts.front(), first_path);
    if (!source.matrix) continue;
    magnitude = std::max(magnitude, magnitude_of(*source.matrix));
    check_same_times(source, sources);
    std::vector<std::unique_ptr<ChunkReader>> of_pack = open_pack(source.folder, *source.matrix, cache_bytes);
    for (std::size_t i = 0; i < of_pack.size(); ++i) {
      check_listed(*of_pack[i], *source.matrix, i);
      parts.push_back(std::move(of_pack[i]));
    }
    if (first < parts.size()) check_same_items(*parts[first], source.path, *parts.front(), first_path);
  }
  if (parts.empty()) throw_bad_data(first_path + ": holds no rows");
  return parts;
}

/// Reads the ratings per item from items.csv, checked against the manifest's size and hash.
std::vector<std::uint64_t> read_item_counts(const std::string& folder, const MatrixManifest& manifest) {
  const std::string path = folder + "/" + manifest.items.file;
  const ByteBuffer bytes = read_file(path, manifest.items.bytes);
  if (xxh3(bytes) != manifest.items.xxh3)
    throw_bad_data(path + ": checksum " + hash_text(xxh3(bytes)) + ", expected " +
                   hash_text(manifest.items.xxh3));
  return parse_item_counts(as_text(bytes), path, manifest.columns);
}

/// Returns whether two packs count the ratings of the same training matrix, as the packs of a split do.
bool share_counts(const MatrixManifest& a, const MatrixManifest& b) {
  return a.spec.has("split-name") && b.spec.has("split-name") && a.input_xxh3 == b.input_xxh3 &&
         a.items.xxh3 == b.items.xxh3;
}

/// Adds up the ratings of all packs' training matrices, each once; none where a source is a single part.
std::vector<std::uint64_t> sum_item_counts(const std::vector<PackSource>& sources) {
  std::vector<std::uint64_t> sums;
  std::vector<const MatrixManifest*> counted;
  for (const PackSource& source : sources) {
    if (!source.matrix) return {};
    const MatrixManifest& manifest = *source.matrix;
    if (std::ranges::any_of(counted, [&](const auto* each) { return share_counts(*each, manifest); }))
      continue;
    const std::vector<std::uint64_t> counts = read_item_counts(source.folder, manifest);
    sums.resize(counts.size());
    std::ranges::transform(sums, counts, sums.begin(), std::plus());
    counted.push_back(&manifest);
  }
  return sums;
}

/// Read of a chunk for its header; most headers take less.
constexpr std::uint64_t kHeaderRead = 4096;

/// Asks servers for the headers of some chunks at a time.
void ask_for_headers(const ChunkReader& part, std::size_t index) {
  constexpr std::size_t kAsked = 16;
  if (part.file().remote() == nullptr || index % kAsked != 0) return;
  for (std::size_t at = index; at < std::min(index + kAsked, part.chunks().size()); ++at)
    part.file().read_ahead(part.chunks()[at].offset,
                           std::min<std::uint64_t>(kHeaderRead, part.chunks()[at].stored_bytes));
}

/// Reads as much of a chunk as its header takes.
std::uint64_t count_ratings(const ChunkReader& part, std::size_t index) {
  const StoredChunk& chunk = part.chunks()[index];
  const MatrixShape& shape = part.spec().rows().matrix;
  ByteBuffer header(row_block_header_bytes(shape));
  ByteBuffer stored;
  for (std::uint64_t bytes = kHeaderRead;; bytes *= 4) {
    // A raw block is its header's bytes; what frames need for them is not known before.
    const bool is_raw = part.stored_raw(index);
    stored.resize(std::min<std::uint64_t>(is_raw ? header.size() : bytes, chunk.stored_bytes));
    part.file().read_at(chunk.offset, stored);
    if (is_raw) return decode_entry_count(stored, shape, chunk.sample_count);
    const std::size_t found = decode_zstd_head(stored, header);
    if (found < header.size() && stored.size() < chunk.stored_bytes) continue;
    return decode_entry_count(Bytes(header).first(found), shape, chunk.sample_count);
  }
}

/// Returns the ratings of X in each chunk. Their sum is below 2^64: a chunk has few bytes for them.
std::vector<std::uint64_t> count_ratings(const ChunkSet& chunks) {
  std::vector<std::uint64_t> counts;
  for (const auto& part : chunks.parts())
    for (std::size_t chunk = 0; chunk < part->chunks().size(); ++chunk) {
      const StoredChunk& stored = part->chunks()[chunk];
      try {
        ask_for_headers(*part, chunk);
        const std::uint64_t count = count_ratings(*part, chunk);
        if (count > max_block_entries(chunks.matrix(), stored.sample_count, stored.raw_bytes))
          throw_bad_data("row block: " + std::to_string(count) + " entries in " +
                         std::to_string(stored.raw_bytes) + " bytes");
        counts.push_back(count);
      } catch (const Error& error) {
        throw Error(error.code(), part->location(chunk) + ": " + error.what());
      }
    }
  return counts;
}

}  // namespace

SparseSource::SparseSource(const std::vector<std::string>& paths, std::uint64_t cache_bytes, RowArrays arrays,
                           bool serves_ratings)
    : SparseSource{OpeningScope(paths), open_sources(paths), cache_bytes, arrays, serves_ratings} {}

SparseSource::SparseSource(const OpeningScope& opening, const std::vector<PackSource>& sources,
                           std::uint64_t cache_bytes, RowArrays arrays, bool serves_ratings)
    : chunks_(open_all(sources, cache_bytes, known_magnitude_)),
      row_ids_(chunks_, IdAxis::row),
      column_ids_(chunks_, IdAxis::column),
      info_(source_info(sources.front(), chunks_)) {
  chunks_.set_row_arrays(arrays);
  const PackSource& first = sources.front();
  if (size() == 0) throw_bad_data(first.path + ": holds no rows");
  if (arrays.by_time && !matrix().has_times)
    throw_usage(first.path + ": its ratings have no times, which order sequences: pack it with `keep_times`");
  if (matrix().column_count > INT32_MAX)
    throw_bad_data(first.path + ": " + std::to_string(matrix().column_count) +
                   " columns, at most 2147483647 are served");
  if (serves_ratings) chunks_.set_rating_counts(count_ratings(chunks_));
  if (serves_ratings && chunks_.epoch_count() == 0) throw_bad_data(first.path + ": holds no ratings");
  label_columns_ = count_label_columns(chunks_);
  for (const auto& part : chunks_.parts())
    for (const StoredChunk& chunk : part->chunks()) {
      const std::uint64_t entries = max_block_entries(matrix(), chunk.sample_count, chunk.raw_bytes);
      longest_row_ = std::max(longest_row_, entries);
      max_nnz_ += entries;
    }
  item_counts_ = sum_item_counts(sources);
  add_columns(sources);
  opening.finish();
  // A single pack's manifest knows the longest row exactly, which keeps batch buffers small.
  if (sources.size() > 1 || !first.matrix) return;
  longest_row_ = 0;
  for (const PackMatrix& record : first.matrix->matrices)
    longest_row_ = std::max(longest_row_, record.longest_row);
}

/// The items of several sources are the same: the first one's list is theirs.
void SparseSource::add_columns(const std::vector<PackSource>& sources) {
  for (const PackSource& source : sources) {
    if (!source.matrix) {
      user_columns_.add({}, {}, {}, 0);
      continue;
    }
    const MatrixManifest& manifest = *source.matrix;
    const auto path = [&](const FileRecord& list) { return source.folder + "/" + list.file; };
    if (&source == &sources.front())
      item_columns_.add(path(manifest.items), manifest.items, manifest.item_columns, manifest.columns);
    user_columns_.add(path(manifest.users), manifest.users, manifest.user_columns, manifest.rows);
  }
  auto& matrix = std::get<MatrixInfo>(info_.contents);
  matrix.user_columns = user_columns_.columns();
}

/// Bounds the entries of `rows` rows, without overflow, by the longest row and by the whole source.
std::uint64_t SparseSource::max_entries(std::uint64_t rows) const {
  const std::uint64_t of_row =
      matrix().has_repeats ? longest_row_ : std::min(longest_row_, matrix().column_count);
  return of_row == 0 || rows <= max_nnz_ / of_row ? rows * of_row : max_nnz_;
}

std::string_view SparseSource::row_id(std::uint64_t row) const {
  if (row >= size()) throw_usage("row_id: row " + std::to_string(row) + " of " + std::to_string(size()));
  return row_ids_[row];
}

std::string_view SparseSource::column_id(std::uint64_t column) const {
  if (column >= matrix().column_count)
    throw_usage("column_id: column " + std::to_string(column) + " of " +
                std::to_string(matrix().column_count));
  return column_ids_[column];
}

std::span<const float> SparseSource::labels(std::uint64_t row) const {
  const ChunkSet::SampleLocation location = chunks_.find_sample(row);
  return std::span(chunks_.parts()[location.part]->samples().labels.values)
      .subspan(location.sample * label_columns_, label_columns_);
}

}  // namespace chunkhit
