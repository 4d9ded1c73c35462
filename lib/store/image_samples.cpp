// What images of one shape and of their own sizes share: their spec, and all of their index but sizes.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/throw_error.h"
#include "store/part_index.h"
#include "store/part_rules.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

// Of several fields, or of one of another name: their number in the upper half of the code. Bit i of the
// lower half says whether field i is a view. Their names stand in the index.
constexpr std::uint32_t kFieldsShift = 16;

std::uint32_t fields_code(const SampleShape& sample) {
  if (sample.pairs.empty()) return 0;
  if (sample.has_usual_fields()) return traits_of(sample.pairs.front().role).code;
  auto code = static_cast<std::uint32_t>(sample.pairs.size()) << kFieldsShift;
  for (std::size_t i = 0; i < sample.pairs.size(); ++i)
    if (sample.pairs[i].role == FieldRole::view) code |= 1u << i;
  return code;
}

std::vector<SampleField> fields_of_code(std::uint32_t code) {
  for (const RoleTraits& field : kRoles)
    if (field.code == code) return {{field.name, field.role}};
  const std::uint32_t count = code >> kFieldsShift;
  if (count == 0 && code < kRoles.front().code) return {};
  if (count == 0 || count > kMaxFields || (code & ((1u << kFieldsShift) - 1)) >> count != 0)
    throw_bad_data("fields " + std::to_string(code) + ", which this reader does not know");
  std::vector<SampleField> fields(count);
  for (std::uint32_t i = 0; i < count; ++i)
    fields[i].role = (code >> i & 1) != 0 ? FieldRole::view : FieldRole::mask;
  return fields;
}

void append_field_names(const std::vector<SampleField>& fields, ByteBuffer& bytes) {
  TextList names;
  for (const SampleField& field : fields) names.add(field.name);
  append_little(bytes, std::uint64_t{names.text.size()});
  for (const Bytes more : {bytes_of(names.ends), as_bytes(names.text)})
    bytes.insert(bytes.end(), more.begin(), more.end());
}

void decode_field_names(IndexCursor& cursor, std::vector<SampleField>& fields) {
  const std::uint64_t text_bytes = cursor.number();
  auto ends = cursor.numbers<std::uint64_t>(fields.size());
  const TextList names = cursor.names(std::move(ends), text_bytes);
  for (std::size_t i = 0; i < fields.size(); ++i) fields[i].name = names[i];
  if (const std::string problem = fields_problem(fields); !problem.empty())
    throw_bad_index("fields: " + problem);
  if (fields.size() == 1 && has_usual_name(fields.front())) throw_bad_index("fields: expected no name");
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

}  // namespace

void ImageSamples::encode(PartSpecBytes& bytes) const {
  store_little(bytes.data() + 12, static_cast<std::uint32_t>(sample.layout));
  store_little(bytes.data() + 16, sample.height);
  store_little(bytes.data() + 20, sample.width);
  store_little(bytes.data() + 24, sample.channels);
  store_little(bytes.data() + kFieldsAt, fields_code(sample));
}

void ImageSamples::decode(const PartSpecBytes& bytes) {
  const auto layout = load_little<std::uint32_t>(bytes.data() + 12);
  if (layout >= kEnumWords<Layout>.size())
    throw_bad_data("layout " + std::to_string(layout) + ", expected 0 or 1");
  sample = {load_little<std::uint32_t>(bytes.data() + 16), load_little<std::uint32_t>(bytes.data() + 20),
            load_little<std::uint32_t>(bytes.data() + 24), static_cast<Layout>(layout)};
  sample.pairs = fields_of_code(load_little<std::uint32_t>(bytes.data() + kFieldsAt));
}

namespace {

/// Appends all values, and frees them.
template <class Values>
void move_to(ByteBuffer& bytes, Values& values) {
  const Bytes more = bytes_of(values);
  bytes.insert(bytes.end(), more.begin(), more.end());
  values = Values();
}

std::uint64_t column_bytes(const std::vector<SampleColumn>& columns, std::uint64_t sample_count) {
  std::uint64_t bytes = 8;
  for (const SampleColumn& column : columns) {
    const auto* const texts = std::get_if<TextList>(&column.values);
    bytes += 24 + column.name.size() + sample_count * 8 + (texts == nullptr ? 0 : texts->text.size());
  }
  return bytes;
}

}  // namespace

ByteBuffer ImageSamples::encode_index(const PartSpec& spec, const std::vector<StoredChunk>& chunks,
                                      PartSamples samples) const {
  TextList class_names = names_of(classes);
  TextList columns = names_of(spec.label_columns);
  Labels& labels = samples.labels;
  const bool numbers = !labels.values.empty() || columns.size() > 1;
  ByteBuffer bytes;
  const auto append = [&](Bytes more) { bytes.insert(bytes.end(), more.begin(), more.end()); };
  constexpr std::uint64_t kSizeBytes = 26;  // of an image of its own size, with a mask
  bytes.reserve(sizeof(PartSpecBytes) + 72 + chunks.size() * 56 + samples.rows.size() * 24 +
                samples.sizes.kinds.size() * kSizeBytes + labels.values.size() * 4 +
                (spec.hashes_samples ? samples.rows.size() * 8 : 0) + samples.files.text.size() +
                column_bytes(samples.columns, samples.rows.size()));
  for (const std::uint64_t number :
       {std::uint64_t{chunks.size()}, std::uint64_t{samples.rows.size()}, numbers ? kNumbers : kClassIds,
        std::uint64_t{columns.size()}, std::uint64_t{class_names.size()}, std::uint64_t{samples.mean.size()},
        std::uint64_t{samples.files.text.size()}, std::uint64_t{class_names.text.size()},
        std::uint64_t{columns.text.size()}})
    append_little(bytes, number);
  append_chunks(bytes, chunks);
  const bool pads = labels.values.size() % 2 != 0;
  move_to(bytes, labels.ids);
  move_to(bytes, labels.values);
  if (pads) append_little(bytes, std::uint32_t{0});
  move_to(bytes, samples.rows);
  append_more(spec, chunks, samples, bytes);
  for (auto* list : {&samples.files.ends, &class_names.ends, &columns.ends}) move_to(bytes, *list);
  append(bytes_of(samples.mean));
  append(bytes_of(samples.std));
  for (TextList* names : {&samples.files, &class_names, &columns}) {
    append(as_bytes(names->text));
    std::string().swap(names->text);
  }
  if (!sample.has_usual_fields()) append_field_names(sample.pairs, bytes);
  append_columns(samples.columns, bytes);
  return bytes;
}

void ImageSamples::decode_index(IndexCursor& cursor, const IndexLimits&, PartContents& contents) const {
  std::array<std::uint64_t, 9> counts{};
  for (std::uint64_t& count : counts) count = cursor.number();
  const auto [chunk_count, sample_count, label_kind, column_count, class_count, channel_count,
              file_text_bytes, class_text_bytes, column_text_bytes] = counts;
  PartSamples& samples = contents.samples;
  contents.chunks = decode_chunks(cursor, chunk_count);
  samples.labels = decode_labels(cursor, label_kind, sample_count, column_count);
  samples.rows = cursor.numbers<std::uint64_t>(sample_count);
  decode_more(cursor, contents);
  auto file_ends = cursor.numbers<std::uint64_t>(sample_count);
  auto class_ends = cursor.numbers<std::uint64_t>(class_count);
  auto column_ends = cursor.numbers<std::uint64_t>(column_count);
  samples.mean = cursor.numbers<double>(channel_count);
  samples.std = cursor.numbers<double>(channel_count);
  samples.files = cursor.names(std::move(file_ends), file_text_bytes);
  contents.spec.images().classes = list_of(cursor.names(std::move(class_ends), class_text_bytes));
  contents.spec.label_columns = list_of(cursor.names(std::move(column_ends), column_text_bytes));
  if (!sample.has_usual_fields()) decode_field_names(cursor, contents.spec.images().sample.pairs);
  if (cursor.left() != 0) samples.columns = decode_columns(cursor, sample_count);
  if (cursor.left() != 0) throw_bad_index(std::to_string(cursor.left()) + " bytes too many");
}

void ImageSamples::check_samples(const PartSpec&, const PartSamples& samples) const {
  check_count("file names", samples.files.size(), samples.rows.size());
  check_pixel_stats(samples.mean, samples.std, sample.channels);
  const auto unknown = [&](std::int64_t id) {
    return id < -1 || id >= static_cast<std::int64_t>(classes.size());
  };
  if (!classes.empty() && std::ranges::any_of(samples.labels.ids, unknown))
    throw_bad_data("a class id is none of the " + std::to_string(classes.size()) + " classes");
}

void ImageSamples::check_alike(const std::string& path, const Payload& first,
                               const std::string& first_path) const {
  if (kind() != first.kind())
    throw_bad_data(path + ": " + text() + ", " + first_path + ": " + first.text() +
                   "; they cannot be read as one");
  if (sample != first.shape())
    throw_bad_data(path + ": samples of " + shape_text(sample) + ", expected " + shape_text(first.shape()) +
                   " as in " + first_path);
}

}  // namespace chunkhit
