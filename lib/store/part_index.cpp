#include "store/part_index.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "chunkhit/error.h"
#include "store/index_fields.h"

namespace chunkhit {
namespace {

constexpr std::size_t kFilterNameBytes = 16;

template <class Number>
Bytes bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const std::uint8_t*>(numbers.data()), numbers.size() * sizeof(Number)};
}

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

/// What images and matrices have in common.
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

PartSpecBytes encode_part_spec(const PartSpec& spec) {
  PartSpecBytes bytes{};
  store_little(bytes.data(), spec.pack_id);
  store_little(bytes.data() + 8, spec.part_index);
  if (spec.matrix) {
    bytes[12] = static_cast<std::uint8_t>(spec.matrix->value_type);
    bytes[13] = static_cast<std::uint8_t>(spec.matrix->matrix_count);
    store_little(bytes.data() + 16, spec.matrix->column_count);
    store_little(bytes.data() + 24, spec.matrix->scale);
  } else {
    store_little(bytes.data() + 12, static_cast<std::uint32_t>(spec.sample.layout));
    store_little(bytes.data() + 16, spec.sample.height);
    store_little(bytes.data() + 20, spec.sample.width);
    store_little(bytes.data() + 24, spec.sample.channels);
  }
  std::memcpy(bytes.data() + 32, spec.codec.data(), std::min(spec.codec.size(), kFilterNameBytes));
  store_little(bytes.data() + 48, spec.chunk_samples);
  return bytes;
}

PartSpec decode_part_spec(const PartSpecBytes& bytes) {
  PartSpec spec = decode_common_spec(bytes);
  const auto layout = load_little<std::uint32_t>(bytes.data() + 12);
  if (layout >= kLayoutNames.size())
    throw Error(ErrorCode::bad_data, "layout " + std::to_string(layout) + ", expected 0 or 1");
  spec.sample = {load_little<std::uint32_t>(bytes.data() + 16), load_little<std::uint32_t>(bytes.data() + 20),
                 load_little<std::uint32_t>(bytes.data() + 24), static_cast<Layout>(layout)};
  return spec;
}

PartSpec decode_matrix_part_spec(const PartSpecBytes& bytes) {
  PartSpec spec = decode_common_spec(bytes);
  if (bytes[12] >= kValueTypeNames.size() || bytes[14] != 0 || bytes[15] != 0)
    throw Error(ErrorCode::bad_data, "unknown value type");
  spec.matrix = {.column_count = load_little<std::uint64_t>(bytes.data() + 16),
                 .matrix_count = bytes[13],
                 .value_type = static_cast<ValueType>(bytes[12]),
                 .scale = load_little<double>(bytes.data() + 24)};
  return spec;
}

ByteBuffer encode_part_index(const PartSpec& spec, const std::vector<StoredChunk>& chunks,
                             const PartSamples& samples, Bytes before) {
  const Names classes = names_of(spec.classes);
  const Names columns = names_of(spec.label_columns);
  const Labels& labels = samples.labels;
  const bool numbers = !labels.values.empty() || columns.count() > 1;
  ByteBuffer bytes(before.begin(), before.end());
  const auto append = [&](Bytes more) { bytes.insert(bytes.end(), more.begin(), more.end()); };
  bytes.reserve(before.size() + 72 + chunks.size() * 56 + samples.rows.size() * 24 +
                labels.values.size() * 4 + samples.files.text.size());
  for (const std::uint64_t number :
       {std::uint64_t{chunks.size()}, std::uint64_t{samples.rows.size()}, numbers ? kNumbers : kClassIds,
        std::uint64_t{columns.count()}, std::uint64_t{classes.count()}, std::uint64_t{samples.mean.size()},
        std::uint64_t{samples.files.text.size()}, std::uint64_t{classes.text.size()},
        std::uint64_t{columns.text.size()}})
    append_little(bytes, number);
  append_chunks(bytes, chunks);
  append(bytes_of(labels.ids));
  append(bytes_of(labels.values));
  if (labels.values.size() % 2 != 0) append_little(bytes, std::uint32_t{0});
  for (const auto* list : {&samples.rows, &samples.files.ends, &classes.ends, &columns.ends})
    append(bytes_of(*list));
  append(bytes_of(samples.mean));
  append(bytes_of(samples.std));
  for (const Names* names : {&samples.files, &classes, &columns}) append(as_bytes(names->text));
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
  auto file_ends = cursor.numbers<std::uint64_t>(sample_count);
  auto class_ends = cursor.numbers<std::uint64_t>(class_count);
  auto column_ends = cursor.numbers<std::uint64_t>(column_count);
  samples.mean = cursor.numbers<double>(channel_count);
  samples.std = cursor.numbers<double>(channel_count);
  samples.files = cursor.names(std::move(file_ends), file_text_bytes);
  contents.spec.classes = list_of(cursor.names(std::move(class_ends), class_text_bytes));
  contents.spec.label_columns = list_of(cursor.names(std::move(column_ends), column_text_bytes));
  if (cursor.left() != 0) throw_bad_index(std::to_string(cursor.left()) + " bytes too many");
}

}  // namespace chunkhit
