#include "listing/sample_list.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

[[noreturn]] void fail_range(const SampleContainer& container, const FileRange& range) {
  throw_bad_data(container.file.path() + ": has " + std::to_string(container.file.byte_count()) +
                 " bytes, but a sample of " + std::to_string(range.bytes) + " bytes lies at offset " +
                 std::to_string(range.offset));
}

SampleFile open_range(const SampleList& list, const FileRange& range) {
  SampleFile sample;
  if (range.container == FileRange::kNone) {
    sample.error = {FileError::Kind::missing};
    return sample;
  }
  if (range.container >= list.containers.size())
    throw_bad_data("a sample lies in container " + std::to_string(range.container) + " of " +
                   std::to_string(list.containers.size()));
  const SampleContainer& container = list.containers[range.container];
  const std::uint64_t all = container.file.byte_count();
  if (range.offset > all || range.bytes > all - range.offset) fail_range(container, range);
  if (range.bytes == 0) sample.error = {FileError::Kind::empty};
  sample.bytes = range.bytes;
  sample.stamp = container.stamp;
  sample.container = &container;
  sample.offset = range.offset;
  return sample;
}

/// Calls `read`, and makes what the machine cannot read a MachineError.
template <class Read>
auto read_container(Read read) -> decltype(read()) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::try_again) throw;
    throw MachineError(error.what());
  }
}

/// The bytes are read first: a change that comes meanwhile is noticed.
void read_range(const SampleFile& sample, ByteBuffer& buffer) {
  const SampleContainer& container = *sample.container;
  if (sample.bytes > buffer.capacity()) ByteBuffer().swap(buffer);  // never holds old and new bytes together
  buffer.resize(sample.bytes);
  const FileStamp now = read_container([&] {
    container.file.read_at(sample.offset, buffer);
    return stamp_of(container.file);
  });
  if (now == container.listed) return;
  throw_bad_data(container.file.path() + ": changed while it was packed: it had " +
                 std::to_string(container.listed.bytes) + " bytes and has " + std::to_string(now.bytes) +
                 (now.bytes == container.listed.bytes ? ", written at another time" : "") +
                 "; rerun the same command once it stays as it is");
}

}  // namespace

std::vector<std::string> SampleList::label_text(std::size_t index) const {
  std::vector<std::string> texts;
  const std::size_t count = label_columns.size();
  if (label_kind == LabelKind::class_id) {
    const std::int64_t id = class_ids[index];
    texts.push_back(classes.empty() ? std::to_string(id) : classes[static_cast<std::size_t>(id)]);
  } else if (!names_column.empty()) {
    texts.push_back(
        joined_where(label_columns, std::span(values).subspan(index * count, count), label_separator));
  } else {
    for (std::size_t column = 0; column < count; ++column)
      texts.push_back(label_number_text(values[index * count + column], count == 1));
  }
  for (const SampleColumn& column : columns) texts.push_back(column.value_text(index));
  return texts;
}

namespace {

bool have_equal_labels(const SampleList& list, std::size_t a, std::size_t b) {
  if (list.label_kind == LabelKind::class_id) return list.class_ids[a] == list.class_ids[b];
  const std::size_t columns = list.label_columns.size();
  const float* const values = list.values.data();
  return std::equal(values + a * columns, values + (a + 1) * columns, values + b * columns,
                    [](float x, float y) { return x == y || (x != x && y != y); });
}

}  // namespace

std::uint64_t file_hash(std::string_view file) {
  const bool is_plain = file.find("./") == file.npos && file.find("//") == file.npos;
  return is_plain ? xxh3(as_bytes(file))
                  : xxh3(as_bytes(std::filesystem::path(file).lexically_normal().string()));
}

void write_rows(SampleList& list) {
  if (!list.rows.empty()) return;
  list.rows.resize(list.size());
  std::iota(list.rows.begin(), list.rows.end(), 0u);
}

void SampleRows::add(std::string_view file) {
  if (list_.row_count == std::numeric_limits<std::uint32_t>::max())
    throw_bad_data("more than 4294967295 rows");
  if (list_.row_count != list_.size()) {
    write_rows(list_);
    list_.rows.push_back(static_cast<std::uint32_t>(list_.row_count));
  }
  list_.files.add(file);
  ++list_.row_count;
}

void SampleRows::reject(std::string_view file, std::vector<std::string> labels, std::string reason) {
  list_.rejects.push_back({list_.row_count, std::string(file), std::move(labels), std::move(reason)});
  ++list_.row_count;
}

void TextHash::add(std::string_view text) {
  append_little<std::uint64_t>(buffer_, text.size());
  const Bytes bytes = as_bytes(text);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= kBufferBytes) flush();
}

std::uint64_t TextHash::value() {
  flush();
  return stream_.value();
}

void TextHash::flush() {
  stream_.update(buffer_);
  buffer_.clear();
}

std::vector<std::uint32_t> first_samples_of_files(const SampleList& list) {
  {
    // As a rule none repeats: their hashes alone take half the memory.
    std::vector<std::uint64_t> hashes(list.size());
    for (std::size_t index = 0; index < hashes.size(); ++index) hashes[index] = file_hash(list.file(index));
    std::sort(hashes.begin(), hashes.end());
    if (std::adjacent_find(hashes.begin(), hashes.end()) == hashes.end()) return {};
  }
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_file(list.size());
  for (std::uint32_t index = 0; index < by_file.size(); ++index)
    by_file[index] = {file_hash(list.file(index)), index};
  std::sort(by_file.begin(), by_file.end());
  const auto is_same = [](const auto& a, const auto& b) { return a.first == b.first; };
  std::vector<std::uint32_t> firsts(list.size());
  for (std::size_t at = 0; at < by_file.size(); ++at) {
    const bool repeats = at > 0 && is_same(by_file[at - 1], by_file[at]);
    firsts[by_file[at].second] = repeats ? firsts[by_file[at - 1].second] : by_file[at].second;
  }
  return firsts;
}

namespace {

/// Leaves out the texts at `indices`, which ascend.
void erase_texts(TextList& list, std::span<const std::size_t> indices) {
  std::size_t kept = 0, next = 0;
  std::uint64_t begin = 0, kept_end = 0;
  for (std::size_t index = 0; index < list.size(); ++index) {
    const std::string_view text = std::string_view(list.text).substr(begin, list.ends[index] - begin);
    begin = list.ends[index];
    if (next < indices.size() && indices[next] == index) {
      ++next;
      continue;
    }
    std::char_traits<char>::move(list.text.data() + kept_end, text.data(), text.size());
    kept_end += text.size();
    list.ends[kept++] = kept_end;
  }
  list.text.resize(kept_end);
  list.ends.resize(kept);
}

/// The same of values, unless the list has none.
template <class Value>
void erase_values(std::vector<Value>& values, std::span<const std::size_t> indices) {
  std::size_t kept = 0, next = 0;
  for (std::size_t index = 0; index < values.size(); ++index) {
    const bool is_erased = next < indices.size() && indices[next] == index;
    if (is_erased)
      ++next;
    else
      values[kept++] = values[index];
  }
  values.resize(kept);
}

}  // namespace

void reject_samples(SampleList& list, std::span<const std::size_t> indices, std::vector<Reject> rejects) {
  if (indices.empty()) return;
  write_rows(list);
  erase_texts(list.files, indices);
  erase_values(list.rows, indices);
  erase_values(list.ranges, indices);
  for (ListedField& field : list.fields) {
    erase_texts(field.files, indices);
    erase_values(field.ranges, indices);
  }
  std::ranges::move(rejects, std::back_inserter(list.rejects));
  std::ranges::sort(list.rejects, {}, &Reject::row);
}

void notice_repeated_files(SampleList& list) {
  const std::vector<std::uint32_t> firsts = first_samples_of_files(list);
  std::size_t repeated = 0;
  std::set<std::uint32_t> with_other_labels;
  for (std::uint32_t index = 0; index < firsts.size(); ++index) {
    if (firsts[index] == index) continue;
    ++repeated;
    if (!have_equal_labels(list, index, firsts[index])) with_other_labels.insert(firsts[index]);
  }
  if (repeated == 0) return;
  std::string notice = std::to_string(repeated) + " of " + std::to_string(list.size()) +
                       " rows name a file that another row names too";
  if (!with_other_labels.empty())
    notice += "; " + count_text(with_other_labels.size(), "file") +
              (with_other_labels.size() == 1 ? " has" : " have") +
              " different labels: " + std::string(list.file(*with_other_labels.begin()));
  if (with_other_labels.size() > 1) notice += ", …";
  list.notices.push_back(std::move(notice));
}

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Throws that a class is not listed, and which file has it.
[[noreturn]] void refuse_class(const SampleList& list, std::size_t own_id, std::size_t known_count) {
  const auto found = std::ranges::find(list.class_ids, static_cast<std::int64_t>(own_id));
  const std::string file(found == list.class_ids.end()
                             ? ""
                             : list.file(static_cast<std::size_t>(found - list.class_ids.begin())));
  throw_bad_data("`classes`: class \"" + list.classes[own_id] + "\" of " + file + " is not among the " +
                 count_text(known_count) + " that are listed");
}

}  // namespace

std::vector<std::string> parse_class_names(std::string_view text, const std::string& path) {
  std::vector<std::string> names;
  std::unordered_map<std::string, std::size_t> lines;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const auto refuse = [&](std::size_t line, const std::string& what) {
    throw_bad_data(path + ": line " + std::to_string(line) + ": " + what);
  };
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view name = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (name.ends_with('\r')) name.remove_suffix(1);
    if (name.empty()) continue;
    if (!is_utf8(name) || name.find('\0') != std::string_view::npos)
      refuse(line, "expected the name of a class, found no UTF-8 text");
    const auto [known, is_new] = lines.try_emplace(std::string(name), line);
    if (!is_new)
      refuse(line, "class \"" + std::string(name) + "\" is listed in line " + std::to_string(known->second) +
                       ", too");
    names.emplace_back(name);
  }
  if (names.empty()) throw_bad_data(path + ": lists no classes, expected one name a line");
  return names;
}

std::string split_names(const SampleList& list) {
  std::string found;
  const auto take = [&](const std::string& name) {
    const bool is_class = std::ranges::binary_search(list.classes, name);
    if (is_class) found += (found.empty() ? "" : ",") + name;
    return is_class;
  };
  const bool has_training = take("train");
  const auto held_out = {take("val"), take("valid"), take("validation"), take("test")};
  return has_training && std::ranges::count(held_out, true) > 0 ? found : "";
}

void notice_text_order(SampleList& list) {
  std::vector<std::int64_t> numbers;
  for (const std::string& name : list.classes) {
    const auto number = parse_integer(name);
    if (!number) return;
    numbers.push_back(*number);
  }
  const auto later = std::ranges::is_sorted_until(numbers);
  if (later == numbers.end()) return;
  const auto id = static_cast<std::size_t>(later - numbers.begin());
  list.notices.push_back(
      "class folders are numbers, but ids follow the order of text: " + list.classes[id - 1] + " is class " +
      std::to_string(id - 1) + " and " + list.classes[id] + " is class " + std::to_string(id) +
      "; `classes` FILE gives another order");
}

void renumber_classes(SampleList& list, std::vector<std::string> known) {
  if (list.label_kind != LabelKind::class_id || list.classes.empty())
    throw_usage("`classes`: is for classes with names; these labels are numbers");
  std::unordered_map<std::string_view, std::int64_t> ids;
  for (std::size_t id = 0; id < known.size(); ++id) ids.emplace(known[id], static_cast<std::int64_t>(id));
  std::vector<std::int64_t> new_ids;
  for (std::size_t own_id = 0; own_id < list.classes.size(); ++own_id) {
    const auto found = ids.find(list.classes[own_id]);
    if (found == ids.end()) refuse_class(list, own_id, known.size());
    new_ids.push_back(found->second);
  }
  for (std::int64_t& id : list.class_ids) id = new_ids[static_cast<std::size_t>(id)];
  list.classes = std::move(known);
}

FileError SampleFile::read(ByteBuffer& buffer) const {
  if (container == nullptr) return file.read(buffer);
  read_range(*this, buffer);
  return {};
}

SampleFile open_sample(const RootFolder& root, const SampleList& list, std::size_t index) {
  if (!list.ranges.empty()) {
    SampleFile sample = open_range(list, list.ranges[index]);
    if (!list.shapes.empty()) sample.pixels = list.shapes[index];
    return sample;
  }
  return open_file(root, list.file(index));
}

SampleFile open_file(const RootFolder& folder, std::string_view file) {
  SampleFile sample;
  sample.file = folder.open(file);
  sample.error = sample.file.error;
  sample.bytes = sample.file.bytes;
  sample.stamp = sample.file.stamp;
  return sample;
}

SampleFile open_field_range(const SampleList& list, const ListedField& field, std::size_t index) {
  SampleFile file = open_range(list, field.ranges[index]);
  if (!field.shapes.empty()) file.pixels = field.shapes[index];
  return file;
}

FileStamp stamp_sample(const RootFolder& root, const SampleList& list, std::size_t index) {
  return list.ranges.empty() ? root.stamp(list.file(index)) : open_range(list, list.ranges[index]).stamp;
}

SampleContainer open_container(const std::string& path) {
  InputFile file(path);
  const FileStamp now = stamp_of(file);
  return make_container(std::move(file), now);
}

SampleContainer make_container(InputFile file, const FileStamp& source) {
  const FileStamp listed = stamp_of(file);
  return {std::move(file), listed, source};
}

}  // namespace chunkhit
