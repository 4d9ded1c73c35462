#include "pack/images/plan_rows.h"

#include <oneapi/tbb/parallel_for.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <variant>

#include "base/aside_name.h"
#include "base/bytes.h"
#include "base/csv_reader.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "chunkhit/version.h"
#include "codec/zstd.h"
#include "listing/root_folder.h"
#include "listing/sample_list.h"
#include "pack/pack_folder.h"

namespace chunkhit {
namespace {

constexpr int kZstdLevel = 1;
/// Rows that are formatted and compressed at once.
constexpr std::uint64_t kRowsAtOnce = 1 << 20;
// Skippable frames of zstd: `zstd -d` reads the file as one CSV text.
constexpr std::uint32_t kHeaderMagic = 0x184D2A50;
constexpr std::uint32_t kIndexMagic = 0x184D2A51;
constexpr std::string_view kMark = "chunkhit plan\r\n";
static_assert(sizeof(PlanFrame) == 24);

void append_labels(std::string& text, const SampleList& list, std::size_t index) {
  if (list.label_kind == LabelKind::class_id) {
    (text += ',') += number_text(list.class_ids[index]);
    return;
  }
  const std::size_t columns = list.label_columns.size();
  for (std::size_t column = 0; column < columns; ++column)
    (text += ',') += number_text(list.values[index * columns + column]);
}

constexpr std::size_t kRangeFields = 3;

void append_range(std::string& text, const FileRange& range) {
  for (const std::uint64_t number : {range.offset, range.bytes, std::uint64_t{range.container}})
    (text += ',') += number_text(number);
}

/// Prefetches the data of a sample ahead: shuffled samples are spread over the whole list. Always inlined:
/// GCC considers a function that only prefetches to be without effect and drops calls of it.
[[gnu::always_inline]] inline void prefetch(const SampleList& list, std::uint32_t index) {
  const std::uint64_t begin = index == 0 ? 0 : list.files.ends[index - 1];
  __builtin_prefetch(list.files.text.data() + begin);
  if (!list.class_ids.empty()) __builtin_prefetch(&list.class_ids[index]);
  if (!list.rows.empty()) __builtin_prefetch(&list.rows[index]);
}

/// Writes the rows of one part as CSV: row, file, labels, and where the list has these the files of
/// fields, and ranges.
std::string rows_text(const SampleList& list, std::span<const std::uint32_t> indices) {
  constexpr std::size_t kAhead = 16;
  std::string text;
  for (std::size_t at = 0; at < indices.size(); ++at) {
    if (at + 2 * kAhead < indices.size()) __builtin_prefetch(&list.files.ends[indices[at + 2 * kAhead]]);
    if (at + kAhead < indices.size()) prefetch(list, indices[at + kAhead]);
    text += number_text(list.row(indices[at]));
    text += ',';
    append_csv_field(text, list.file(indices[at]));
    append_labels(text, list, indices[at]);
    for (const SampleColumn& column : list.columns)
      append_csv_field(text += ',', column.value_text(indices[at]));
    for (const ListedField& field : list.fields) append_csv_field(text += ',', field.files[indices[at]]);
    if (!list.ranges.empty()) append_range(text, list.ranges[indices[at]]);
    for (const ListedField& field : list.fields)
      if (!field.ranges.empty()) append_range(text, field.ranges[indices[at]]);
    text += '\n';
  }
  return text;
}

template <class Number>
Number parse_number(std::string_view field, const CsvReader& rows) {
  Number number{};
  if (!parse_all(field, number))
    throw_bad_data(rows.name() + ": line " + std::to_string(rows.line()) + ": expected a number, found '" +
                   std::string(field) + "'");
  return number;
}

/// Appends a value that SampleColumn::value_text wrote.
void take_value(std::string_view field, const CsvReader& rows, SampleColumn& column) {
  if (auto* const integers = std::get_if<std::vector<std::int64_t>>(&column.values))
    integers->push_back(parse_number<std::int64_t>(field, rows));
  else if (auto* const numbers = std::get_if<std::vector<double>>(&column.values))
    numbers->push_back(field.empty() ? std::numeric_limits<double>::quiet_NaN()
                                     : parse_number<double>(field, rows));
  else
    std::get<TextList>(column.values).add(field);
}

/// Calls `take(fields, rows)` for each row of a frame's text; throws bad_data for fewer than `min_fields`.
void read_rows(const std::string& text, const std::string& name, std::size_t min_fields,
               const std::function<void(const std::vector<std::string_view>&, const CsvReader&)>& take) {
  CsvReader rows(name, source_of(text), ',');
  std::vector<std::string_view> fields;
  while (rows.next_row(fields)) {
    if (fields.size() < min_fields)
      throw_bad_data(name + ": line " + std::to_string(rows.line()) + ": expected " +
                     std::to_string(min_fields) + " fields, found " + std::to_string(fields.size()));
    take(fields, rows);
  }
}

}  // namespace

std::optional<PackPlan> read_plan(const std::string& folder) {
  const std::string path = folder + "/" + std::string(kPlanName);
  const std::optional<ByteBuffer> bytes = with_retries([&] { return find_file(path, kMaxManifestBytes); });
  if (!bytes) return std::nullopt;
  try {
    return parse_plan(as_text(*bytes), path);
  } catch (const Error& error) {
    throw Error(error.code(), std::string(error.what()) + "; remove it and plan again: finished parts stay");
  }
}

/// The file of rows goes first: a plan that is interrupted here can be removed again.
void remove_plan(const std::string& folder) {
  const std::string path = folder + "/" + std::string(kPlanName);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;
  for (const std::string_view name : {kPlanRowsName, kPlanName})
    if (::unlink((folder + "/" + std::string(name)).c_str()) != 0 && errno != ENOENT)
      throw_write_error(folder + "/" + std::string(name), "cannot remove", errno);
}

std::string version_difference(const PackPlan& plan) {
  const std::string tool = "pack-images " + version();
  return plan.tool == tool ? "" : tool + " here, " + plan.tool + " in the plan";
}

std::string library_differences(const PackPlan& plan) {
  std::map<std::string, std::string> here, there;
  for (const auto& [name, number] : library_versions()) here[name] = number, there[name];
  for (const auto& [name, number] : plan.libraries) there[name] = number, here[name];
  const auto text = [](const std::string& number) { return number.empty() ? "none" : number; };
  std::string differences;
  for (const auto& [name, number] : here)
    if (there[name] != number)
      differences += (differences.empty() ? "" : "; ") + name + " " + text(number) + " here, " +
                     text(there[name]) + " in the plan";
  return differences;
}

void remove_plan_left_overs(const std::string& folder) {
  for (const std::string& name : folder_entries(folder)) {
    const std::string_view written = name_written_aside(name);
    const bool is_plans = written == kPlanName || written == kPlanRowsName;
    if (is_plans && find_aside_writer(folder, name) == AsideWriter::is_gone)
      ::unlink((folder + "/" + name).c_str());
  }
}

PlanRowsWriter::PlanRowsWriter(const std::string& folder) : file_(folder + "/" + std::string(kPlanRowsName)) {
  append_skippable(kHeaderMagic, as_bytes(kMark));
}

void PlanRowsWriter::append_skippable(std::uint32_t magic, Bytes content) {
  ByteBuffer header;
  append_little<std::uint32_t>(header, magic);
  append_little<std::uint32_t>(header, static_cast<std::uint32_t>(content.size()));
  file_.append(header);
  file_.append(content);
}

void PlanRowsWriter::add_frame(Bytes stored) {
  index_.push_back({file_.byte_count(), stored.size(), xxh3(stored)});
  file_.append(stored);
}

/// One frame a part, compressed in parallel and written in order, so that a task reads only its own parts.
void PlanRowsWriter::add_parts(const SampleList& list, std::span<const std::uint32_t> indices,
                               std::uint64_t part_samples) {
  const std::size_t part_count = (indices.size() + part_samples - 1) / part_samples;
  std::vector<ByteBuffer> frames(std::max<std::uint64_t>(2, kRowsAtOnce / part_samples));
  for (std::size_t first = 0; first < part_count; first += frames.size()) {
    frames.resize(std::min(frames.size(), part_count - first));
    tbb::parallel_for(std::size_t{0}, frames.size(), [&](std::size_t at) {
      const std::uint64_t begin = (first + at) * part_samples;
      const std::string text = rows_text(
          list, indices.subspan(begin, std::min<std::uint64_t>(part_samples, indices.size() - begin)));
      encode_zstd(as_bytes(text), kZstdLevel, frames[at]);
    });
    for (const ByteBuffer& frame : frames) add_frame(frame);
  }
}

void PlanRowsWriter::add_rejects(const std::vector<Reject>& rejects) {
  std::string text;
  for (const Reject& reject : rejects) {
    text += number_text(reject.row);
    append_csv_field(text += ',', escape_bytes(reject.file));
    for (const std::string& label : reject.labels) append_csv_field(text += ',', escape_bytes(label));
    append_csv_field(text += ',', escape_bytes(reject.reason));
    text += '\n';
  }
  ByteBuffer stored;
  encode_zstd(as_bytes(text), kZstdLevel, stored);
  add_frame(stored);
}

FileRecord PlanRowsWriter::publish() {
  append_skippable(kIndexMagic, bytes_of(index_));
  FileRecord record{std::string(kPlanRowsName), file_.byte_count(), xxh3(bytes_of(index_))};
  file_.publish();
  return record;
}

namespace {

/// Opens a container that is as large as when it was planned.
SampleContainer open_planned(const std::string& path, std::uint64_t bytes) {
  std::string found;
  try {
    SampleContainer container = with_retries([&] { return open_container(path); });
    if (container.file.byte_count() == bytes) return container;
    found = path + ": has " + count_text(container.file.byte_count(), "byte") + ", " + count_text(bytes) +
            " when it was planned";
  } catch (const Error& error) {
    found = error.what();
  }
  throw Error(ErrorCode::try_again, found +
                                        "; is its file system mounted on this machine? `root` names the "
                                        "folder of the images where it is another one here");
}

}  // namespace

PlanRows::PlanRows(const std::string& folder, const PackPlan& plan, const std::string& root)
    : path_(folder + "/" + std::string(kPlanRowsName)),
      row_count_(plan.rows),
      part_count_(plan.parts()),
      container_count_(plan.containers.size()) {
  const std::uint64_t frames = part_count_ + plan.packs.size();
  const std::uint64_t index_bytes = frames * sizeof(PlanFrame);
  const auto fail = [&](const std::string& what) { throw_bad_data(path_ + ": " + what + "; plan again"); };
  with_retries([&] {
    const InputFile file(path_);
    if (file.byte_count() != plan.rows_file.bytes)
      fail("has " + std::to_string(file.byte_count()) + " bytes, expected " +
           std::to_string(plan.rows_file.bytes));
    // Checked before memory is allocated: the index must fit into the file.
    if (frames > file.byte_count() / sizeof(PlanFrame))
      fail("has no index of " + std::to_string(frames) + " frames");
    index_.resize(frames);
    file.read_at(file.byte_count() - index_bytes,
                 {reinterpret_cast<std::uint8_t*>(index_.data()), static_cast<std::size_t>(index_bytes)});
  });
  if (xxh3(bytes_of(index_)) != plan.rows_file.xxh3) fail("its index is not the plan's");
  header_.label_kind = plan.class_labels ? LabelKind::class_id : LabelKind::numbers;
  header_.file_column = plan.file_column;
  header_.label_columns = plan.label_columns;
  const RecordedSpec spec = plan.packs.empty() ? RecordedSpec() : plan.packs.front().spec;
  header_.label_separator = spec.get("label-separator");
  if (!header_.label_separator.empty()) header_.names_column = spec.get("label-column");
  for (const PackColumn& column : plan.columns) header_.columns.push_back(empty_column(column));
  for (SampleField& field : plan.listed_fields()) header_.fields.push_back({std::move(field), {}, {}, {}});
  header_.classes = plan.classes;
  header_.row_count = plan.rows;
  header_.xxh3 = plan.input_xxh3;
  if (root.empty()) return;
  for (const PlannedContainer& container : plan.containers)
    header_.containers.push_back(open_planned(root + "/" + container.file, container.bytes));
}

FileRange PlanRows::range_of(std::span<const std::string_view> fields, const CsvReader& rows) const {
  const FileRange range{parse_number<std::uint64_t>(fields[0], rows),
                        parse_number<std::uint64_t>(fields[1], rows),
                        parse_number<std::uint32_t>(fields[2], rows)};
  if (range.container >= container_count_ && range.container != FileRange::kNone)
    throw_bad_data(rows.name() + ": container " + std::to_string(range.container) + " of " +
                   std::to_string(container_count_));
  return range;
}

std::string PlanRows::frame_name(std::uint64_t frame) const {
  return path_ + ": frame " + std::to_string(frame);
}

std::string PlanRows::read_frame(std::uint64_t frame) const {
  const PlanFrame& at = index_.at(frame);
  ByteBuffer stored;
  // Opened for each frame: a plan that was written again is another file, with the same bytes.
  with_retries([&] {
    const InputFile file(path_);
    if (at.offset > file.byte_count() || at.bytes > file.byte_count() - at.offset)
      throw_bad_data(frame_name(frame) + ": lies outside of the file");
    stored.resize(at.bytes);
    file.read_at(at.offset, stored);
  });
  if (xxh3(stored) != at.xxh3)
    throw_bad_data(frame_name(frame) + ": checksum " + hash_text(xxh3(stored)) + ", expected " +
                   hash_text(at.xxh3) + "; plan again");
  std::string text(zstd_content_bytes(stored), '\0');
  decode_zstd(stored, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  return text;
}

SampleList PlanRows::part(std::uint64_t part) const {
  const std::string text = read_frame(part);
  SampleList list = header_;
  const std::size_t columns = list.label_columns.size();
  const std::size_t fields_at = 2 + columns + list.columns.size();
  const std::size_t range_at = fields_at + list.fields.size();
  const bool has_ranges = container_count_ > 0;
  const std::size_t min_fields = range_at + (has_ranges ? kRangeFields * (1 + list.fields.size()) : 0);
  read_rows(text, frame_name(part), min_fields, [&](const auto& fields, const CsvReader& rows) {
    const auto row = parse_number<std::uint32_t>(fields[0], rows);
    if (row >= row_count_)
      throw_bad_data(rows.name() + ": row " + std::to_string(row) + " of " + std::to_string(row_count_));
    list.rows.push_back(row);
    list.files.add(fields[1]);
    if (list.label_kind == LabelKind::class_id) {
      list.class_ids.push_back(parse_number<std::int64_t>(fields[2], rows));
      if (!list.classes.empty() && static_cast<std::uint64_t>(list.class_ids.back()) >= list.classes.size())
        throw_bad_data(rows.name() + ": no class " + std::string(fields[2]));
    } else {
      for (std::size_t column = 0; column < columns; ++column)
        list.values.push_back(parse_number<float>(fields[2 + column], rows));
    }
    for (std::size_t column = 0; column < list.columns.size(); ++column)
      take_value(fields[2 + columns + column], rows, list.columns[column]);
    const auto range = [&](std::size_t at) {
      return range_of(std::span(fields).subspan(range_at + kRangeFields * at), rows);
    };
    if (has_ranges) list.ranges.push_back(range(0));
    for (std::size_t at = 0; at < list.fields.size(); ++at) {
      list.fields[at].files.add(fields[fields_at + at]);
      if (has_ranges) list.fields[at].ranges.push_back(range(1 + at));
    }
  });
  return list;
}

std::vector<Reject> PlanRows::rejects(std::uint64_t pack) const {
  std::vector<Reject> rejects;
  const std::uint64_t frame = part_count_ + pack;
  const std::string text = read_frame(frame);
  read_rows(text, frame_name(frame), 3, [&](const auto& fields, const CsvReader& rows) {
    Reject reject{
        parse_number<std::uint32_t>(fields[0], rows), std::string(fields[1]), {}, std::string(fields.back())};
    for (std::size_t at = 2; at + 1 < fields.size(); ++at) reject.labels.emplace_back(fields[at]);
    rejects.push_back(std::move(reject));
  });
  return rejects;
}

}  // namespace chunkhit
