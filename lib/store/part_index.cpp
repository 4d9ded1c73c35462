#include "store/part_index.h"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/text.h"

namespace chunkhit {
namespace {

Bytes values_of(const SampleColumn& column) {
  return std::visit(
      [](const auto& list) {
        if constexpr (std::is_same_v<std::decay_t<decltype(list)>, TextList>)
          return bytes_of(list.ends);
        else
          return bytes_of(list);
      },
      column.values);
}

SampleColumn decode_column(IndexCursor& cursor, std::uint64_t sample_count) {
  const std::uint64_t type = cursor.number();
  const std::uint64_t name_bytes = cursor.number(), text_bytes = cursor.number();
  if (type > static_cast<std::uint64_t>(ColumnType::text))
    throw_bad_index("a column of type " + std::to_string(type) + ", expected 0 to 2");
  SampleColumn column = empty_column({"", static_cast<ColumnType>(type)});
  if (column.type() != ColumnType::text && text_bytes != 0) throw_bad_index("a column of numbers with text");
  std::vector<std::uint64_t> ends;
  if (column.type() == ColumnType::int64) column.values = cursor.numbers<std::int64_t>(sample_count);
  if (column.type() == ColumnType::float64) column.values = cursor.numbers<double>(sample_count);
  if (column.type() == ColumnType::text) ends = cursor.numbers<std::uint64_t>(sample_count);
  column.name = as_text(cursor.take(name_bytes, 1));
  if (column.type() == ColumnType::text) column.values = cursor.names(std::move(ends), text_bytes);
  return column;
}

constexpr std::size_t kPieceBytes = 256 << 10;

}  // namespace

/// A remote one is read at once: each read is a request.
IndexCursor::IndexCursor(const InputFile& file, std::uint64_t offset, std::uint64_t byte_count)
    : left_(byte_count),
      file_(&file),
      offset_(offset),
      end_(offset + byte_count),
      piece_bytes_(file.remote() != nullptr ? byte_count : std::min<std::uint64_t>(byte_count, kPieceBytes)) {
}

void IndexCursor::read(MutableBytes out) {
  file_->read_at(offset_, out);
  offset_ += out.size();
  hash_.update(out);
}

void IndexCursor::fill(MutableBytes out) {
  left_ -= out.size();
  const auto take_ready = [&] {
    const std::size_t count = std::min(out.size(), ready_.size());
    std::copy_n(ready_.begin(), count, out.begin());
    ready_ = ready_.subspan(count);
    out = out.subspan(count);
  };
  take_ready();
  if (out.empty()) return;
  if (out.size() >= piece_bytes_) return read(out);
  piece_.resize(std::min<std::uint64_t>(piece_bytes_, left_ + out.size()));
  read(piece_);
  ready_ = piece_;
  take_ready();
}

Bytes IndexCursor::take(std::uint64_t count, std::uint64_t item_bytes) {
  check_left(count, item_bytes);
  const std::size_t bytes = count * item_bytes;
  if (bytes > ready_.size()) {
    taken_ = ByteBuffer(bytes);
    fill(taken_);
    return taken_;
  }
  const Bytes taken = ready_.first(bytes);
  ready_ = ready_.subspan(bytes);
  left_ -= bytes;
  return taken;
}

void IndexCursor::check_hash(std::uint64_t expected) {
  while (offset_ < end_) {
    piece_.resize(std::min<std::uint64_t>(kPieceBytes, end_ - offset_));
    read(piece_);
  }
  ready_ = {};
  left_ = 0;
  if (const std::uint64_t found = hash_.value(); found != expected)
    throw_bad_index("checksum " + hash_text(found) + ", expected " + hash_text(expected));
}

/// Appends seven u64 for each chunk, 56 bytes (schemas/shard.md).
void append_chunks(ByteBuffer& bytes, const std::vector<StoredChunk>& chunks) {
  for (const StoredChunk& chunk : chunks)
    for (const std::uint64_t number : {chunk.offset, chunk.stored_bytes, chunk.raw_bytes, chunk.first_sample,
                                       chunk.sample_count, chunk.xxh3, std::uint64_t{chunk.filtered}})
      append_little(bytes, number);
}

std::vector<StoredChunk> decode_chunks(IndexCursor& cursor, std::uint64_t count) {
  IndexCursor table(cursor.take(count, 56));
  std::vector<StoredChunk> chunks(count);
  for (StoredChunk& chunk : chunks) {
    for (std::uint64_t* number : {&chunk.offset, &chunk.stored_bytes, &chunk.raw_bytes, &chunk.first_sample,
                                  &chunk.sample_count, &chunk.xxh3})
      *number = table.number();
    const std::uint64_t flags = table.number();
    if (flags > 1) throw_bad_index("chunk flags " + std::to_string(flags) + ", expected 0 or 1");
    chunk.filtered = flags == 1;
  }
  return chunks;
}

TextList names_of(const std::vector<std::string>& list) {
  TextList names;
  for (const std::string& name : list) names.add(name);
  return names;
}

std::vector<std::string> list_of(const TextList& names) {
  std::vector<std::string> list;
  list.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) list.emplace_back(names[i]);
  return list;
}

namespace {

constexpr std::size_t kCodecNameBytes = 16;

}  // namespace

/// The offsets are those of schemas/shard.md; bytes that are not set stay zero.
PartSpecBytes encode_part_spec(const PartSpec& spec) {
  PartSpecBytes bytes{};
  store_little(bytes.data(), spec.pack_id);
  store_little(bytes.data() + 8, spec.part_index);
  spec.payload().encode(bytes);
  std::memcpy(bytes.data() + 32, spec.codec.data(), std::min(spec.codec.size(), kCodecNameBytes));
  store_little(bytes.data() + 48, spec.chunk_samples);
  return bytes;
}

PartSpec decode_part_spec(SampleKind kind, const PartSpecBytes& bytes) {
  PartSpec spec;
  spec.pack_id = load_little<std::uint64_t>(bytes.data());
  spec.part_index = load_little<std::uint32_t>(bytes.data() + 8);
  const std::string_view name = as_text(Bytes(bytes).subspan(32, kCodecNameBytes));
  spec.codec = name.substr(0, name.find('\0'));
  spec.chunk_samples = load_little<std::uint64_t>(bytes.data() + 48);
  if (kind == SampleKind::sized_images) spec.samples.emplace<SizedSamples>();
  if (kind == SampleKind::matrices) spec.samples.emplace<RowBlocks>();
  std::visit([&](Payload& payload) { payload.decode(bytes); }, spec.samples);
  return spec;
}

void append_columns(const std::vector<SampleColumn>& columns, ByteBuffer& bytes) {
  if (columns.empty()) return;
  const auto append = [&](Bytes more) { bytes.insert(bytes.end(), more.begin(), more.end()); };
  append_little(bytes, std::uint64_t{columns.size()});
  for (const SampleColumn& column : columns) {
    const auto* const texts = std::get_if<TextList>(&column.values);
    append_little(bytes, static_cast<std::uint64_t>(column.type()));
    append_little(bytes, std::uint64_t{column.name.size()});
    append_little(bytes, std::uint64_t{texts == nullptr ? 0 : texts->text.size()});
    append(values_of(column));
    append(as_bytes(column.name));
    if (texts != nullptr) append(as_bytes(texts->text));
  }
}

std::vector<SampleColumn> decode_columns(IndexCursor& cursor, std::uint64_t sample_count) {
  const std::uint64_t count = cursor.number();
  if (count == 0 || count > kMaxKeptColumns)
    throw_bad_index(std::to_string(count) + " columns, expected 1 to " + std::to_string(kMaxKeptColumns));
  std::vector<SampleColumn> columns;
  for (std::uint64_t column = 0; column < count; ++column)
    columns.push_back(decode_column(cursor, sample_count));
  return columns;
}

}  // namespace chunkhit
