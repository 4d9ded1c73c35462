// The index of a part of matrices: ids as numbers where they are, in planes of bytes. Layout:
// schemas/shard.md.
#include <bit>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/words.h"
#include "store/part_index.h"

namespace chunkhit {
namespace {

using Integers = std::vector<std::uint64_t>;

// Forms of lists of ids.
constexpr std::uint64_t kTexts = 0;
constexpr std::uint64_t kIntegers = 1;

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
  std::array<char, 24> digits{};
  const auto text_of = [&](std::uint64_t integer) {
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<std::int64_t>(integer)).ptr;
    return std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data()));
  };
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
         samples.labels.values.size() * sizeof(float) + samples.files.text.size() + items.text.size() +
         items.size() * sizeof(std::uint64_t);
}

}  // namespace

std::vector<ByteBuffer> encode_matrix_index(const PartSpec& spec, const std::vector<StoredChunk>& chunks,
                                            const PartSamples& samples) {
  const Labels& labels = samples.labels;
  const bool numbers = !labels.values.empty() || spec.label_columns.size() > 1;
  IndexWriter index;
  for (const std::uint64_t number :
       {std::uint64_t{chunks.size()}, std::uint64_t{samples.rows.size()}, numbers ? kNumbers : kClassIds,
        std::uint64_t{spec.label_columns.size()}, std::uint64_t{spec.classes.size()}})
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
  encode_ids(samples.files, &samples.rows, index);
  encode_ids(names_of(spec.classes), nullptr, index);
  encode_ids(names_of(spec.label_columns), nullptr, index);
  return index.finish();
}

void check_index_memory(std::uint64_t needed, std::uint64_t memory_bytes) {
  if (needed <= memory_bytes) return;
  throw_usage("its ids and its index need " + bytes_text(static_cast<double>(needed)) +
              " of memory_bytes, which are " + bytes_text(static_cast<double>(memory_bytes)));
}

void decode_matrix_index(Bytes bytes, PartContents& contents, std::uint64_t memory_bytes) {
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
  check_index_memory(2 * bytes.size() + sample_count * kRowMemory + item_count * kItemMemory, memory_bytes);
  PartSamples& samples = contents.samples;
  contents.chunks = decode_chunks(cursor, chunk_count);
  samples.labels = decode_matrix_labels(cursor, label_kind, sample_count, label_columns);
  samples.rows = decode_planes(cursor, sample_count);
  samples.files = decode_ids(cursor, sample_count, &samples.rows);
  const TextList items = decode_ids(cursor, item_count, nullptr);
  check_index_memory(bytes.size() + decoded_bytes(contents, items) + list_bytes(items), memory_bytes);
  contents.spec.classes = list_of(items);
  contents.spec.label_columns = list_of(decode_ids(cursor, label_columns, nullptr));
  if (cursor.left() != 0) throw_bad_index(std::to_string(cursor.left()) + " bytes too many");
}

}  // namespace chunkhit
