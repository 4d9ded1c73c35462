#include "read/sparse_source.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>
#include <utility>

#include "base/file.h"
#include "base/hash.h"
#include "chunk/row_block.h"
#include "chunkhit/error.h"
#include "read/pack_source.h"

namespace chunkhit {
namespace {

/// Throws bad_data when a part is not the one that the manifest lists at its place.
void check_listed(const ChunkReader& part, const MatrixManifest& manifest, std::size_t index) {
  const PartSpec& spec = part.spec();
  const auto check = [&](const char* what, std::uint64_t found, std::uint64_t expected) {
    if (found != expected)
      throw Error(ErrorCode::bad_data, part.path() + ": " + what + " " + std::to_string(found) +
                                           ", expected " + std::to_string(expected) +
                                           " as its pack's manifest says");
  };
  const PartRecord& listed = manifest.parts[index];
  if (spec.pack_id != manifest.pack_id)
    throw Error(ErrorCode::bad_data, part.path() + ": belongs to pack " + hash_text(spec.pack_id) +
                                         ", expected " + hash_text(manifest.pack_id));
  check("is part", spec.part_index, index);
  check("rows", part.samples().rows.size(), listed.samples);
  check("columns", spec.matrix->column_count, manifest.columns);
  check("matrices", spec.matrix->matrix_count, manifest.matrices.size());
  if (manifest.container == "shard") check("bytes", part.byte_count(), listed.bytes);
}

std::vector<std::unique_ptr<ChunkReader>> open_parts(const std::vector<std::string>& paths) {
  if (paths.empty()) throw Error(ErrorCode::usage, "no path was given to read from");
  std::vector<std::unique_ptr<ChunkReader>> parts;
  for (const std::string& path : paths) {
    const PackSource source = open_source(path);
    if (source.manifest)
      throw Error(ErrorCode::bad_data, path + ": holds images, expected matrices; ImageLoader reads it");
    if (!source.matrix) parts.push_back(open_matrix_part(source.part));
    if (!source.matrix) continue;
    for (std::size_t i = 0; i < source.matrix->parts.size(); ++i) {
      parts.push_back(open_matrix_part(source.folder + "/" + source.matrix->parts[i].file));
      check_listed(*parts.back(), *source.matrix, i);
    }
  }
  if (parts.empty()) throw Error(ErrorCode::bad_data, paths.front() + ": holds no rows");
  return parts;
}

/// The next number of a line of items.csv; throws bad_data.
std::uint64_t take_number(std::string_view& text, const std::string& path) {
  std::uint64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto length = static_cast<std::size_t>(end - text.data());
  if (fault != std::errc() || length >= text.size() || text[length] != ',')
    throw Error(ErrorCode::bad_data, path + ": expected column,ratings,item");
  text.remove_prefix(length + 1);
  return number;
}

/// Skips an id, quoted or not, and the end of its line.
void skip_id(std::string_view& text, const std::string& path) {
  const char stop = text.starts_with('"') ? '"' : '\n';
  std::size_t at = stop == '"' ? 1 : 0;
  while (at < text.size() && (text[at] != stop || text.substr(at).starts_with("\"\"")))
    at += text[at] == '"' ? 2 : 1;
  if (stop == '"') ++at;
  if (at >= text.size() || text[at] != '\n')
    throw Error(ErrorCode::bad_data, path + ": expected column,ratings,item");
  text.remove_prefix(at + 1);
}

/// The second column of items.csv: `column,ratings,item`, RFC 4180.
std::vector<std::uint64_t> read_item_counts(const std::string& folder, const MatrixManifest& manifest) {
  const std::string path = folder + "/" + manifest.items.file;
  const ByteBuffer bytes = read_file(path, manifest.items.bytes);
  if (xxh3(bytes) != manifest.items.xxh3)
    throw Error(ErrorCode::bad_data, path + ": checksum " + hash_text(xxh3(bytes)) + ", expected " +
                                         hash_text(manifest.items.xxh3));
  std::string_view text = as_text(bytes);
  text.remove_prefix(std::min(text.size(), text.find('\n') + 1));
  std::vector<std::uint64_t> counts;
  while (!text.empty()) {
    if (take_number(text, path) != counts.size())
      throw Error(ErrorCode::bad_data, path + ": columns are not counted up");
    counts.push_back(take_number(text, path));
    skip_id(text, path);
  }
  if (counts.size() != manifest.columns)
    throw Error(ErrorCode::bad_data, path + ": " + std::to_string(counts.size()) + " items, expected " +
                                         std::to_string(manifest.columns));
  return counts;
}

std::size_t columns_of(const ChunkReader& part) {
  const std::size_t samples = part.samples().rows.size();
  return samples == 0 ? 0 : part.samples().labels.values.size() / samples;
}

/// What a chunk's bytes leave room for.
std::uint64_t most_entries_of(const StoredChunk& chunk, const MatrixShape& shape) {
  const std::uint64_t least = least_row_block_bytes(chunk.sample_count, shape);
  return chunk.raw_bytes < least ? 0 : (chunk.raw_bytes - least) / (1 + value_bytes(shape.value_type));
}

}  // namespace

SparseSource::SparseSource(const std::vector<std::string>& paths)
    : chunks_(open_parts(paths)), info_(read_pack_info(paths.front())) {
  if (size() == 0) throw Error(ErrorCode::bad_data, paths.front() + ": holds no rows");
  if (matrix().column_count > INT32_MAX)
    throw Error(ErrorCode::bad_data, paths.front() + ": " + std::to_string(matrix().column_count) +
                                         " columns, at most 2147483647 are served");
  label_columns_ = columns_of(*chunks_.parts().front());
  for (const auto& part : chunks_.parts()) {
    if (columns_of(*part) != label_columns_ && !part->chunks().empty())
      throw Error(ErrorCode::bad_data, part->path() + ": labels of " + std::to_string(columns_of(*part)) +
                                           " numbers, expected " + std::to_string(label_columns_) +
                                           " as in " + chunks_.parts().front()->path());
    for (const StoredChunk& chunk : part->chunks()) {
      longest_row_ = std::max(longest_row_, most_entries_of(chunk, matrix()));
      most_nnz_ += most_entries_of(chunk, matrix());
    }
  }
  const PackSource first = open_source(paths.front());
  if (first.matrix) item_counts_ = read_item_counts(first.folder, *first.matrix);
  if (paths.size() > 1 || !first.matrix) return;
  longest_row_ = 0;
  for (const MatrixRecord& record : first.matrix->matrices)
    longest_row_ = std::max(longest_row_, record.longest_row);
}

std::uint64_t SparseSource::most_entries(std::uint64_t rows) const {
  const std::uint64_t of_row = std::min(longest_row_, matrix().column_count);
  return of_row == 0 || rows <= most_nnz_ / of_row ? rows * of_row : most_nnz_;
}

std::string_view SparseSource::row_id(std::uint64_t row) const {
  if (row >= size())
    throw Error(ErrorCode::usage, "row_id: row " + std::to_string(row) + " of " + std::to_string(size()));
  const ChunkSet::SamplePlace place = chunks_.find_sample(row);
  const Names& ids = chunks_.parts()[place.part]->samples().files;
  return ids.count() == 0 ? std::string_view() : ids[place.sample];
}

std::string_view SparseSource::column_id(std::uint64_t column) const {
  const std::vector<std::string>& ids = chunks_.parts().front()->spec().classes;
  if (column >= matrix().column_count)
    throw Error(ErrorCode::usage, "column_id: column " + std::to_string(column) + " of " +
                                      std::to_string(matrix().column_count));
  return ids.empty() ? std::string_view() : ids[column];
}

std::span<const float> SparseSource::labels(std::uint64_t row) const {
  const ChunkSet::SamplePlace place = chunks_.find_sample(row);
  return std::span(chunks_.parts()[place.part]->samples().labels.values)
      .subspan(place.sample * label_columns_, label_columns_);
}

}  // namespace chunkhit
