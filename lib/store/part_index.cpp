#include "store/part_index.h"

#include <string_view>
#include <type_traits>
#include <variant>

#include "base/text.h"
#include "base/words.h"
#include "types/enum_names.h"

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

}  // namespace

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

constexpr std::size_t kFilterNameBytes = 16;
// What a sample consists of; 0 stands for an image of the part's shape.
constexpr std::uint32_t kImageAlone = 1;
constexpr std::uint32_t kImageAndMask = 2;

Labels decode_labels(IndexCursor& cursor, std::uint64_t kind, std::uint64_t sample_count,
                     std::uint64_t columns) {
  Labels labels;
  if (kind > kNumbers) throw_bad_index("labels of kind " + std::to_string(kind) + ", expected 0 or 1");
  if (kind == kClassIds) {
    labels.ids = cursor.numbers<std::int64_t>(sample_count);
    return labels;
  }
  if (columns != 0 && sample_count > cursor.left() / 4 / columns) throw_bad_index("ends in the labels");
  labels.values = cursor.numbers<float>(sample_count * columns);
  if (sample_count * columns % 2 != 0 && cursor.numbers<std::uint32_t>(1)[0] != 0)
    throw_bad_index("bytes that should be zero are not");
  return labels;
}

/// Decodes the fields that images and matrices have in common.
PartSpec decode_common_spec(const PartSpecBytes& bytes) {
  PartSpec spec;
  spec.pack_id = load_little<std::uint64_t>(bytes.data());
  spec.part_index = load_little<std::uint32_t>(bytes.data() + 8);
  const std::string_view name = as_text(Bytes(bytes).subspan(32, kFilterNameBytes));
  spec.codec = name.substr(0, name.find('\0'));
  spec.chunk_samples = load_little<std::uint64_t>(bytes.data() + 48);
  return spec;
}

}  // namespace

/// The offsets are those of schemas/shard.md; bytes that are not set stay zero.
PartSpecBytes encode_part_spec(const PartSpec& spec) {
  PartSpecBytes bytes{};
  store_little(bytes.data(), spec.pack_id);
  store_little(bytes.data() + 8, spec.part_index);
  if (spec.matrix) {
    bytes[12] = static_cast<std::uint8_t>(spec.matrix->value_type);
    bytes[13] = static_cast<std::uint8_t>(spec.matrix->matrix_count);
    bytes[14] = spec.matrix->has_times ? 1 : 0;
    store_little(bytes.data() + 16, spec.matrix->column_count);
    store_little(bytes.data() + 24, spec.matrix->scale);
  } else {
    store_little(bytes.data() + 12, static_cast<std::uint32_t>(spec.sample.layout));
    store_little(bytes.data() + 16, spec.sample.height);
    store_little(bytes.data() + 20, spec.sample.width);
    store_little(bytes.data() + 24, spec.sample.channels);
    store_little(bytes.data() + 28, spec.sample.has_mask ? kImageAndMask : spec.own_sizes ? kImageAlone : 0);
  }
  std::memcpy(bytes.data() + 32, spec.codec.data(), std::min(spec.codec.size(), kFilterNameBytes));
  store_little(bytes.data() + 48, spec.chunk_samples);
  return bytes;
}

PartSpec decode_part_spec(const PartSpecBytes& bytes) {
  PartSpec spec = decode_common_spec(bytes);
  const auto layout = load_little<std::uint32_t>(bytes.data() + 12);
  if (layout >= kEnumWords<Layout>.size())
    throw_bad_data("layout " + std::to_string(layout) + ", expected 0 or 1");
  spec.sample = {load_little<std::uint32_t>(bytes.data() + 16), load_little<std::uint32_t>(bytes.data() + 20),
                 load_little<std::uint32_t>(bytes.data() + 24), static_cast<Layout>(layout)};
  const auto fields = load_little<std::uint32_t>(bytes.data() + 28);
  if (fields > kImageAndMask)
    throw_bad_data(std::to_string(fields) + " fields a sample, this reader knows up to " +
                   std::to_string(kImageAndMask));
  spec.sample.has_mask = fields == kImageAndMask;
  return spec;
}

PartSpec decode_matrix_part_spec(const PartSpecBytes& bytes) {
  PartSpec spec = decode_common_spec(bytes);
  if (bytes[12] >= kEnumWords<ValueType>.size() || bytes[14] > 1 || bytes[15] != 0)
    throw_bad_data("unknown value type");
  spec.matrix = {.column_count = load_little<std::uint64_t>(bytes.data() + 16),
                 .matrix_count = bytes[13],
                 .value_type = static_cast<ValueType>(bytes[12]),
                 .scale = load_little<double>(bytes.data() + 24),
                 .has_times = bytes[14] != 0};
  return spec;
}

PartSpec decode_sized_part_spec(const PartSpecBytes& bytes) {
  PartSpec spec = decode_part_spec(bytes);
  if (load_little<std::uint32_t>(bytes.data() + 28) == 0)
    throw_bad_data("0 fields a sample, expected at least " + std::to_string(kImageAlone));
  spec.own_sizes = true;
  return spec;
}

namespace {

constexpr std::uint64_t kPlaneBytes = 3 * sizeof(std::uint32_t) + 2;  // of a sample, without its hash

void append_sizes(const ImageSizes& sizes, ByteBuffer& bytes) {
  const auto append = [&](Bytes more) { bytes.insert(bytes.end(), more.begin(), more.end()); };
  for (const auto* plane : {&sizes.payload_bytes, &sizes.heights, &sizes.widths}) append(bytes_of(*plane));
  for (const auto* plane : {&sizes.kinds, &sizes.orientations}) append(*plane);
  const std::uint64_t filled = sizes.kinds.size() * kPlaneBytes;
  bytes.insert(bytes.end(), round_up(filled, 8) - filled, std::uint8_t{0});
  append(bytes_of(sizes.payload_xxh3));
  append(bytes_of(sizes.mask_bytes));
  if (sizes.mask_bytes.size() % 2 != 0) append_little(bytes, std::uint32_t{0});
}

ImageSizes decode_sizes(IndexCursor& cursor, std::uint64_t sample_count, bool has_masks) {
  ImageSizes sizes;
  for (auto* plane : {&sizes.payload_bytes, &sizes.heights, &sizes.widths})
    *plane = cursor.numbers<std::uint32_t>(sample_count);
  for (auto* plane : {&sizes.kinds, &sizes.orientations}) *plane = cursor.numbers<std::uint8_t>(sample_count);
  const std::uint64_t bytes = sample_count * kPlaneBytes;
  for (const std::uint8_t zero : cursor.take(round_up(bytes, 8) - bytes, 1))
    if (zero != 0) throw_bad_index("bytes that should be zero are not");
  sizes.payload_xxh3 = cursor.numbers<std::uint64_t>(sample_count);
  if (!has_masks) return sizes;
  sizes.mask_bytes = cursor.numbers<std::uint32_t>(sample_count);
  if (sample_count % 2 != 0 && cursor.numbers<std::uint32_t>(1)[0] != 0)
    throw_bad_index("bytes that should be zero are not");
  return sizes;
}

}  // namespace

ByteBuffer encode_part_index(const PartSpec& spec, const std::vector<StoredChunk>& chunks,
                             const PartSamples& samples, Bytes before) {
  const TextList classes = names_of(spec.classes);
  const TextList columns = names_of(spec.label_columns);
  const Labels& labels = samples.labels;
  const bool numbers = !labels.values.empty() || columns.size() > 1;
  ByteBuffer bytes(before.begin(), before.end());
  const auto append = [&](Bytes more) { bytes.insert(bytes.end(), more.begin(), more.end()); };
  bytes.reserve(before.size() + 72 + chunks.size() * 56 + samples.rows.size() * 24 +
                labels.values.size() * 4 + samples.files.text.size());
  for (const std::uint64_t number :
       {std::uint64_t{chunks.size()}, std::uint64_t{samples.rows.size()}, numbers ? kNumbers : kClassIds,
        std::uint64_t{columns.size()}, std::uint64_t{classes.size()}, std::uint64_t{samples.mean.size()},
        std::uint64_t{samples.files.text.size()}, std::uint64_t{classes.text.size()},
        std::uint64_t{columns.text.size()}})
    append_little(bytes, number);
  append_chunks(bytes, chunks);
  append(bytes_of(labels.ids));
  append(bytes_of(labels.values));
  if (labels.values.size() % 2 != 0) append_little(bytes, std::uint32_t{0});
  append(bytes_of(samples.rows));
  if (spec.own_sizes) append_sizes(samples.sizes, bytes);
  for (const auto* list : {&samples.files.ends, &classes.ends, &columns.ends}) append(bytes_of(*list));
  append(bytes_of(samples.mean));
  append(bytes_of(samples.std));
  for (const TextList* names : {&samples.files, &classes, &columns}) append(as_bytes(names->text));
  append_columns(samples.columns, bytes);
  return bytes;
}

void decode_part_index(Bytes index, PartContents& contents) {
  IndexCursor cursor(index);
  std::array<std::uint64_t, 9> counts{};
  for (std::uint64_t& count : counts) count = cursor.number();
  const auto [chunk_count, sample_count, label_kind, column_count, class_count, channel_count,
              file_text_bytes, class_text_bytes, column_text_bytes] = counts;
  PartSamples& samples = contents.samples;
  contents.chunks = decode_chunks(cursor, chunk_count);
  samples.labels = decode_labels(cursor, label_kind, sample_count, column_count);
  samples.rows = cursor.numbers<std::uint64_t>(sample_count);
  if (contents.spec.own_sizes)
    samples.sizes = decode_sizes(cursor, sample_count, contents.spec.sample.has_mask);
  auto file_ends = cursor.numbers<std::uint64_t>(sample_count);
  auto class_ends = cursor.numbers<std::uint64_t>(class_count);
  auto column_ends = cursor.numbers<std::uint64_t>(column_count);
  samples.mean = cursor.numbers<double>(channel_count);
  samples.std = cursor.numbers<double>(channel_count);
  samples.files = cursor.names(std::move(file_ends), file_text_bytes);
  contents.spec.classes = list_of(cursor.names(std::move(class_ends), class_text_bytes));
  contents.spec.label_columns = list_of(cursor.names(std::move(column_ends), column_text_bytes));
  if (cursor.left() != 0) samples.columns = decode_columns(cursor, sample_count);
  if (cursor.left() != 0) throw_bad_index(std::to_string(cursor.left()) + " bytes too many");
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
