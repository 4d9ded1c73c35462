// Rows of matrices: their spec, their index (ids as numbers where they are, in planes of bytes, compressed)
// and their rules. Layout: schemas/shard.md.
#include <bit>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "codec/chunk_codec.h"
#include "codec/zstd.h"
#include "store/part_index.h"
#include "store/part_rules.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

using Integers = std::vector<std::uint64_t>;

/// Of the byte that says whether ratings have times: some, and a row may have an item several times.
constexpr std::uint8_t kRepeatingTimes = 2;

// Forms of lists of ids.
constexpr std::uint64_t kTexts = 0;
constexpr std::uint64_t kIntegers = 1;

constexpr int kIndexLevel = 3;

/// Memory of a row beside its name (label, number, end of the name, decoded integer, and 12 bytes of the name
/// that twice the index does not cover), and of an item with its name.
constexpr std::uint64_t kRowMemory = 8 + 8 + 8 + 8 + 12;
constexpr std::uint64_t kItemMemory = sizeof(std::string) + 8 + 16;

/// Zigzag coding: small numbers of either sign have leading zero bytes, which compress well as planes.
constexpr std::uint64_t fold_sign(std::uint64_t number) { return number << 1 ^ (0 - (number >> 63)); }
constexpr std::uint64_t unfold_sign(std::uint64_t folded) { return folded >> 1 ^ (0 - (folded & 1)); }

/// Collects an index in pieces of equal kind of bytes, each of which the compressor sees separately.
class IndexWriter {
 public:
  void number(std::uint64_t number) { append_little(piece_, number); }

  void bytes(Bytes bytes) {
    end_piece();
    piece_.assign(bytes.begin(), bytes.end());
    end_piece();
  }

  /// Writes byte planes: first the lowest bytes of all integers, then the next ones. Compresses better than
  /// whole integers.
  void planes(const Integers& integers) {
    std::uint64_t all_bits = 1;  // at least a plane
    for (const std::uint64_t integer : integers) all_bits |= integer;
    const unsigned width = (static_cast<unsigned>(std::bit_width(all_bits)) + 7) / 8;
    number(width);
    for (unsigned plane = 0; plane < width; ++plane) {
      end_piece();
      for (const std::uint64_t integer : integers)
        piece_.push_back(static_cast<std::uint8_t>(integer >> (8 * plane)));
    }
    end_piece();
  }

  void chunks(const std::vector<StoredChunk>& chunks) {
    append_chunks(piece_, chunks);
    end_piece();
  }

  std::vector<ByteBuffer> finish() {
    end_piece();
    return std::move(pieces_);
  }

 private:
  void end_piece() {
    if (!piece_.empty()) pieces_.push_back(std::exchange(piece_, {}));
  }

  std::vector<ByteBuffer> pieces_;
  ByteBuffer piece_;
};

/// Returns the ids as folded integers, minus `near` of each if given; nullopt if one is text.
std::optional<Integers> integers_of(const TextList& ids, const Integers* near) {
  Integers integers;
  integers.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::int64_t integer = 0;
    if (!parse_integer_id(ids[i], integer)) return std::nullopt;
    integers.push_back(fold_sign(static_cast<std::uint64_t>(integer) - (near == nullptr ? 0 : (*near)[i])));
  }
  return integers;
}

/// Ids that are integers are stored as numbers, relative to the row number if that is known: they are often
/// equal.
void encode_ids(const TextList& ids, const Integers* near, IndexWriter& index) {
  if (const std::optional<Integers> integers = integers_of(ids, near)) {
    index.number(kIntegers);
    return index.planes(*integers);
  }
  Integers lengths;
  for (std::size_t i = 0; i < ids.size(); ++i) lengths.push_back(ids[i].size());
  index.number(kTexts);
  index.planes(lengths);
  index.bytes(as_bytes(ids.text));
}

Integers decode_planes(IndexCursor& cursor, std::uint64_t count) {
  const std::uint64_t width = cursor.number();
  if (width < 1 || width > sizeof(std::uint64_t))
    throw_bad_index("numbers of " + std::to_string(width) + " bytes, expected 1 to 8");
  const Bytes bytes = cursor.take(count, width);
  Integers integers(count);
  for (std::uint64_t plane = 0; plane < width; ++plane)
    for (std::uint64_t i = 0; i < count; ++i)
      integers[i] |= std::uint64_t{bytes[plane * count + i]} << (8 * plane);
  return integers;
}

TextList decode_texts(IndexCursor& cursor, std::uint64_t count) {
  Integers ends = decode_planes(cursor, count);  // lengths at first
  std::uint64_t text_bytes = 0;
  for (std::uint64_t& end : ends) {
    if (end > cursor.left() - text_bytes) throw_bad_index("ends in the names");
    text_bytes += end;
    end = text_bytes;
  }
  return cursor.names(std::move(ends), text_bytes);
}

/// Formats integers as text into exactly reserved memory.
TextList decimal_names(const Integers& integers) {
  TextList names;
  names.ends.reserve(integers.size());
  const auto text_of = [](std::uint64_t integer) { return number_text(static_cast<std::int64_t>(integer)); };
  std::size_t text_bytes = 0;
  for (const std::uint64_t integer : integers) text_bytes += text_of(integer).size();
  names.text.reserve(text_bytes);
  for (const std::uint64_t integer : integers) names.add(text_of(integer));
  return names;
}

TextList decode_ids(IndexCursor& cursor, std::uint64_t count, const Integers* near) {
  const std::uint64_t form = cursor.number();
  if (form > kIntegers) throw_bad_index("ids of form " + std::to_string(form) + ", expected 0 or 1");
  if (form == kTexts) return decode_texts(cursor, count);
  Integers integers = decode_planes(cursor, count);
  for (std::uint64_t i = 0; i < count; ++i)
    integers[i] = unfold_sign(integers[i]) + (near == nullptr ? 0 : (*near)[i]);
  return decimal_names(integers);
}

Labels decode_matrix_labels(IndexCursor& cursor, std::uint64_t kind, std::uint64_t sample_count,
                            std::uint64_t columns) {
  Labels labels;
  if (kind > kNumbers) throw_bad_index("labels of kind " + std::to_string(kind) + ", expected 0 or 1");
  if (kind == kClassIds) {
    labels.ids.reserve(sample_count);
    for (const std::uint64_t above : decode_planes(cursor, sample_count))
      labels.ids.push_back(static_cast<std::int64_t>(above - 1));
    return labels;
  }
  if (columns != 0 && sample_count > cursor.left() / 4 / columns) throw_bad_index("ends in the labels");
  labels.values = cursor.numbers<float>(sample_count * columns);
  return labels;
}

/// Returns the memory of names as std::string; those of more than 15 bytes are on the heap.
std::uint64_t list_bytes(const TextList& names) {
  constexpr std::size_t kMaxInside = 15;
  std::uint64_t bytes = names.size() * sizeof(std::string);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i].size() > kMaxInside) bytes += round_up(names[i].size() + 1 + sizeof(std::size_t), 16);
  return bytes;
}

/// Returns the memory of what is decoded before the items become strings.
std::uint64_t decoded_bytes(const PartContents& contents, const TextList& items) {
  const PartSamples& samples = contents.samples;
  return contents.chunks.size() * sizeof(StoredChunk) + samples.rows.size() * 3 * sizeof(std::uint64_t) +
         samples.labels.values.size() * sizeof(float) + samples.row_ids.text.size() + items.text.size() +
         items.size() * sizeof(std::uint64_t);
}

/// Throws usage, naming the bytes, when an index needs more than `memory_bytes`.
void check_index_memory(std::uint64_t needed, std::uint64_t memory_bytes) {
  if (needed <= memory_bytes) return;
  throw_usage("its ids and its index need " + bytes_text(static_cast<double>(needed)) +
              " of memory_bytes, which are " + bytes_text(static_cast<double>(memory_bytes)));
}

/// Decompresses an index. One that claims to be larger than kMaxShrinking times the file is damaged and
/// rejected before memory is allocated.
ByteBuffer expand_index(Bytes compressed, const IndexLimits& limits) {
  constexpr std::uint64_t kMaxShrinking = 1024;
  const std::uint64_t bytes = zstd_content_bytes(compressed);
  if (bytes / kMaxShrinking > limits.file_bytes)
    throw_bad_data("index: claims " + std::to_string(bytes) + " bytes in a file of " +
                   std::to_string(limits.file_bytes));
  check_index_memory(bytes, limits.memory_bytes);
  ByteBuffer index(bytes);
  decode_zstd(compressed, index);
  return index;
}

std::string shape_text(const MatrixShape& matrix) {
  return std::to_string(matrix.matrix_count) + " of " + std::to_string(matrix.column_count) + " columns, " +
         name_of(matrix.value_type) + " times " + number_text(matrix.scale);
}

}  // namespace

const SampleShape& RowBlocks::shape() const {
  static constexpr SampleShape kNone;
  return kNone;
}

void RowBlocks::encode(PartSpecBytes& bytes) const {
  bytes[12] = static_cast<std::uint8_t>(matrix.value_type);
  bytes[13] = static_cast<std::uint8_t>(matrix.matrix_count);
  bytes[14] = matrix.has_repeats ? kRepeatingTimes : matrix.has_times ? 1 : 0;
  store_little(bytes.data() + 16, matrix.column_count);
  store_little(bytes.data() + 24, matrix.scale);
}

void RowBlocks::decode(const PartSpecBytes& bytes) {
  if (bytes[12] >= kEnumWords<ValueType>.size() || bytes[14] > kRepeatingTimes || bytes[15] != 0)
    throw_bad_data("unknown value type");
  matrix = {.column_count = load_little<std::uint64_t>(bytes.data() + 16),
            .matrix_count = bytes[13],
            .value_type = static_cast<ValueType>(bytes[12]),
            .scale = load_little<double>(bytes.data() + 24),
            .has_times = bytes[14] != 0,
            .has_repeats = bytes[14] == kRepeatingTimes};
}

/// It is compressed, because it is large compared to the rows.
ByteBuffer RowBlocks::encode_index(const PartSpec& spec, const std::vector<StoredChunk>& chunks,
                                   PartSamples samples) const {
  const Labels& labels = samples.labels;
  const bool numbers = !labels.values.empty() || spec.label_columns.size() > 1;
  IndexWriter index;
  for (const std::uint64_t number :
       {std::uint64_t{chunks.size()}, std::uint64_t{samples.rows.size()}, numbers ? kNumbers : kClassIds,
        std::uint64_t{spec.label_columns.size()}, std::uint64_t{item_ids.size()}})
    index.number(number);
  index.chunks(chunks);
  if (numbers) {
    index.bytes({reinterpret_cast<const std::uint8_t*>(labels.values.data()), labels.values.size() * 4});
  } else {
    Integers above;
    for (const std::int64_t id : labels.ids) above.push_back(static_cast<std::uint64_t>(id) + 1);
    index.planes(above);
  }
  index.planes(samples.rows);
  encode_ids(samples.row_ids, &samples.rows, index);
  encode_ids(names_of(item_ids), nullptr, index);
  encode_ids(names_of(spec.label_columns), nullptr, index);
  const std::vector<ByteBuffer> pieces = index.finish();
  ByteBuffer stored;
  if (spec.codec != "none") {
    encode_zstd(std::vector<Bytes>(pieces.begin(), pieces.end()), kIndexLevel, stored);
    return stored;
  }
  // Bytes that no version of zstd has a part in.
  ByteBuffer raw;
  for (const ByteBuffer& piece : pieces) raw.insert(raw.end(), piece.begin(), piece.end());
  append_raw_frame(raw, stored);
  return stored;
}

void RowBlocks::decode_index(IndexCursor& compressed, const IndexLimits& limits,
                             PartContents& contents) const {
  const ByteBuffer bytes = expand_index(compressed.take(compressed.left(), 1), limits);
  IndexCursor cursor(bytes);
  const std::uint64_t chunk_count = cursor.number();
  const std::uint64_t sample_count = cursor.number();
  const std::uint64_t label_kind = cursor.number();
  const std::uint64_t label_columns = cursor.number();
  const std::uint64_t item_count = cursor.number();
  // Every row and item takes at least a byte of the index: checked before memory is allocated.
  for (const std::uint64_t count : {sample_count, item_count})
    if (count > cursor.left()) throw_bad_index("ends early: " + std::to_string(count) + " rows or items");
  // The table of chunks takes as much memory as in the index.
  check_index_memory(2 * bytes.size() + sample_count * kRowMemory + item_count * kItemMemory,
                     limits.memory_bytes);
  PartSamples& samples = contents.samples;
  contents.chunks = decode_chunks(cursor, chunk_count);
  samples.labels = decode_matrix_labels(cursor, label_kind, sample_count, label_columns);
  samples.rows = decode_planes(cursor, sample_count);
  samples.row_ids = decode_ids(cursor, sample_count, &samples.rows);
  const TextList items = decode_ids(cursor, item_count, nullptr);
  check_index_memory(bytes.size() + decoded_bytes(contents, items) + list_bytes(items), limits.memory_bytes);
  contents.spec.rows().item_ids = list_of(items);
  contents.spec.label_columns = list_of(decode_ids(cursor, label_columns, nullptr));
  if (cursor.left() != 0) throw_bad_index(std::to_string(cursor.left()) + " bytes too many");
}

/// A row has at least a byte of each matrix.
void RowBlocks::check_spec(const PartSpec& spec, const Container& container) const {
  if (!container.holds_row_blocks) throw_bad_data("row blocks lie in shards only");
  check_matrix_shape(matrix);
  if (spec.chunk_samples == 0 || spec.chunk_samples > container.max_chunk_bytes)
    throw_bad_data("chunks of " + std::to_string(spec.chunk_samples) + " rows, expected 1 to " +
                   std::to_string(container.max_chunk_bytes));
  if (spec.codec != "zstd" && spec.codec != "none")
    throw_bad_data("matrices with a codec other than zstd and none");
}

/// Items may have no names, but not some of them.
void RowBlocks::check_samples(const PartSpec&, const PartSamples& samples) const {
  check_count("ids of rows", samples.row_ids.size(), samples.rows.size());
  if (!item_ids.empty()) check_count("names of items", item_ids.size(), matrix.column_count);
  check_count("entries of mean", samples.mean.size() + samples.std.size(), 0);
}

void RowBlocks::check_raw_bytes(const StoredChunk& chunk, const PartSpec& spec,
                                const Container& container) const {
  const std::uint64_t rows = container.pads_last_chunk ? spec.chunk_samples : chunk.sample_count;
  const std::uint64_t min_bytes = min_row_block_bytes(rows, matrix);
  if (chunk.raw_bytes < min_bytes || chunk.raw_bytes > container.max_chunk_bytes)
    throw_bad_data("raw bytes: " + std::to_string(chunk.raw_bytes) + ", expected " +
                   std::to_string(min_bytes) + " to " + std::to_string(container.max_chunk_bytes));
}

void RowBlocks::check_alike(const std::string& path, const Payload& first,
                            const std::string& first_path) const {
  const auto* const rows = dynamic_cast<const RowBlocks*>(&first);
  if (rows == nullptr)
    throw_bad_data(path + ": " + text() + ", " + first_path + ": " + first.text() +
                   "; they cannot be read as one");
  const MatrixShape& expected = rows->matrix;
  const auto throw_differs = [&](const char* with, const char* without, bool has_it) {
    throw_bad_data(path + (has_it ? with : without) + ", and " + first_path + (has_it ? without : with) +
                   ": they cannot be read as one");
  };
  if (matrix.matrix_count != expected.matrix_count)
    throw_differs(" has held_out ratings", " has no held_out ratings", matrix.matrix_count == 2);
  if (matrix.has_times != expected.has_times)
    throw_differs(" has times of ratings", " has no times of ratings", matrix.has_times);
  if (matrix.has_repeats != expected.has_repeats)
    throw_differs(" has items that repeat in a row", " has no items that repeat in a row",
                  matrix.has_repeats);
  if (matrix != expected)
    throw_bad_data(path + ": matrices: " + shape_text(matrix) + ", expected " + shape_text(expected) +
                   " as in " + first_path);
}

}  // namespace chunkhit
