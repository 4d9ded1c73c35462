#include "arrow_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"

namespace chunkhit {
namespace {

constexpr std::string_view kIntegers = "cCsSiIlL";
/// No table is as large; sums of two such numbers fit.
constexpr std::int64_t kMaxRows = std::int64_t{1} << 60;

bool is_one_of(std::string_view format, std::string_view letters) {
  return format.size() == 1 && letters.find(format[0]) != letters.npos;
}
bool is_text(std::string_view format) { return format == "u" || format == "U" || format == "vu"; }
bool is_id(std::string_view format) { return is_text(format) || is_one_of(format, kIntegers); }
bool is_value(std::string_view format) {
  return format == "b" || is_one_of(format, "fg") || is_one_of(format, kIntegers);
}

/// How many of a time's units a second has, 1 for days. 0: the type is no time.
std::int64_t units_of(std::string_view format) {
  if (is_one_of(format, kIntegers) || is_one_of(format, "fg")) return 1;
  if (format == "tdD" || format.starts_with("tss:")) return 1;
  if (format == "tdm" || format.starts_with("tsm:")) return 1'000;
  if (format.starts_with("tsu:")) return 1'000'000;
  if (format.starts_with("tsn:")) return 1'000'000'000;
  return 0;
}

/// A type for messages: a word for those that are not read, and the interface's letters.
std::string type_text(std::string_view format) {
  struct Word {
    std::string_view begin, word;
  };
  constexpr Word kWords[] = {
      {"u", "text"},    {"U", "text"},         {"vu", "text"},     {"b", "bool"},      {"e", "float16"},
      {"f", "float32"}, {"g", "float64"},      {"n", "null"},      {"d:", "decimal"},  {"ts", "timestamp"},
      {"td", "date"},   {"tt", "time of day"}, {"z", "binary"},    {"Z", "binary"},    {"vz", "binary"},
      {"w:", "binary"}, {"+", "nested"},       {"tD", "duration"}, {"ti", "interval"}, {"l", "int64"}};
  for (const auto& [begin, word] : kWords)
    if (format.starts_with(begin)) return std::string(word) + " (" + printable_text(format) + ")";
  return "type " + printable_text(format);
}

/// Calls `use` with numbers of a fixed width.
template <class Use>
void with_numbers(std::string_view format, const void* data, std::size_t first, std::size_t count,
                  const Use& use) {
  const auto call = [&]<class Number>(Number) {
    use(std::span(static_cast<const Number*>(data) + first, count));
  };
  switch (format[0]) {
    case 'c':
      return call(std::int8_t{});
    case 'C':
      return call(std::uint8_t{});
    case 's':
      return call(std::int16_t{});
    case 'S':
      return call(std::uint16_t{});
    case 'i':
      return call(std::int32_t{});
    case 'I':
      return call(std::uint32_t{});
    case 'L':
      return call(std::uint64_t{});
    case 'f':
      return call(float{});
    case 'g':
      return call(double{});
    default:
      return call(std::int64_t{});
  }
}

/// Calls `add` with each text; false where one lies outside its buffer.
template <class Offset, class Add>
bool each_text(const ArrowArray& array, std::size_t first, std::size_t count, const Add& add) {
  const auto* const ends = static_cast<const Offset*>(array.buffers[1]) + first;
  const auto* const bytes = static_cast<const char*>(array.buffers[2]);
  for (std::size_t at = 0; at < count; ++at) {
    const Offset begin = ends[at], end = ends[at + 1];
    if (begin < 0 || end < begin || (bytes == nullptr && end > begin)) return false;
    add(end == begin ? std::string_view("")
                     : std::string_view(bytes + begin, static_cast<std::size_t>(end - begin)));
  }
  return true;
}

/// The same of string views: 4 bytes of length, then up to 12 bytes of text, or its first 4 bytes, a buffer's
/// index and the position in that.
template <class Add>
bool each_view(const ArrowArray& array, std::size_t first, std::size_t count, const Add& add) {
  constexpr std::size_t kView = 16, kInline = 12;
  const auto* const views = static_cast<const char*>(array.buffers[1]);
  const std::int64_t buffer_count = array.n_buffers - 3;
  const auto* const sizes = static_cast<const std::int64_t*>(array.buffers[array.n_buffers - 1]);
  for (std::size_t at = first; at < first + count; ++at) {
    std::int32_t head[4];  // length, begin, buffer, position
    std::memcpy(head, views + at * kView, kView);
    if (head[0] < 0) return false;
    const auto length = static_cast<std::size_t>(head[0]);
    if (length <= kInline) {
      add(std::string_view(views + at * kView + sizeof(std::int32_t), length));
      continue;
    }
    if (head[2] < 0 || head[2] >= buffer_count || head[3] < 0 || sizes == nullptr ||
        std::int64_t{head[3]} + head[0] > sizes[head[2]] || array.buffers[2 + head[2]] == nullptr)
      return false;
    add(std::string_view(static_cast<const char*>(array.buffers[2 + head[2]]) + head[3], length));
  }
  return true;
}

template <class Add>
bool each_text_of(std::string_view format, const ArrowArray& array, std::size_t first, std::size_t count,
                  const Add& add) {
  if (format == "u") return each_text<std::int32_t>(array, first, count, add);
  if (format == "U") return each_text<std::int64_t>(array, first, count, add);
  return each_view(array, first, count, add);
}

/// The first of `count` bits from `first` on that is 0, or `count`.
std::size_t find_zero(const std::uint8_t* bits, std::size_t first, std::size_t count) {
  for (std::size_t at = 0; at < count;) {
    const std::size_t bit = first + at;
    if (bit % 8 == 0 && count - at >= 8 && bits[bit / 8] == 0xff) {
      at += 8;
      continue;
    }
    if ((bits[bit / 8] >> (bit % 8) & 1) == 0) return at;
    ++at;
  }
  return count;
}

bool is_within(std::int64_t number) { return number >= 0 && number <= kMaxRows; }

/// Whether an array of a type has its buffers, for `end` rows from its beginning.
bool has_buffers(const ArrowArray* array, std::string_view format, std::int64_t end) {
  if (array == nullptr || !is_within(array->length) || !is_within(array->offset) || end > array->length)
    return false;
  const bool is_view = format == "vu";
  const std::int64_t buffer_count = is_view || is_text(format) ? 3 : 2;
  if (is_view ? array->n_buffers < buffer_count : array->n_buffers != buffer_count) return false;
  return array->buffers != nullptr && (end == 0 || array->buffers[1] != nullptr);
}

}  // namespace

ArrowTable::ArrowTable(ArrowOwned<ArrowArrayStream> stream) : stream_(std::move(stream)) {
  ArrowOwned<ArrowSchema> schema;
  if (const int error = stream_->get_schema(&*stream_, &*schema)) refuse_stream(error);
  take_schema(*schema);
}

ArrowTable::ArrowTable(ArrowOwned<ArrowSchema> schema, ArrowOwned<ArrowArray> batch)
    : batch_(std::move(batch)), is_single_(true) {
  take_schema(*schema);
}

void ArrowTable::refuse_stream(int error) {
  const char* const said = stream_->get_last_error(&*stream_);
  throw_bad_data("table: its producer fails: " +
                 (said != nullptr ? printable_text(said) : std::string(std::strerror(error))));
}

void ArrowTable::take_schema(const ArrowSchema& schema) {
  if (schema.release == nullptr || schema.format == nullptr || std::string_view(schema.format) != "+s")
    throw_usage("table: expected columns, found " +
                (schema.format == nullptr ? "nothing" : type_text(schema.format)));
  for (std::int64_t at = 0; schema.children != nullptr && at < schema.n_children; ++at) {
    const ArrowSchema* const child = schema.children[at];
    if (child == nullptr || child->format == nullptr)
      throw_usage("table: column " + std::to_string(at + 1) + " has no type");
    const ArrowSchema* const words = child->dictionary;
    if (words != nullptr && words->format == nullptr)
      throw_usage("table: the dictionary of column " + std::to_string(at + 1) + " has no type");
    types_.push_back({child->name == nullptr ? "" : child->name,
                      words == nullptr ? child->format : words->format,
                      words == nullptr ? "" : child->format});
  }
}

std::vector<std::string> ArrowTable::names() const {
  std::vector<std::string> names;
  for (const Type& type : types_) names.push_back(type.name);
  return names;
}

bool ArrowTable::has_times(std::size_t column) const {
  const Type& type = types_.at(column);
  return type.index_format.empty() && units_of(type.format) != 0;
}

void ArrowTable::choose(const ArrowColumns& columns) {
  columns_ = columns;
  const auto check = [this](std::size_t column, bool is_read, const char* expected, const char* cast) {
    const Type& type = types_.at(column);
    if (!is_read)
      throw_usage("column \"" + printable_text(type.name) + "\": expected " + expected + ", found " +
                  (type.index_format.empty() ? "" : "a dictionary of ") + type_text(type.format) +
                  "; cast it to " + cast);
  };
  for (const std::size_t column : {columns.user, columns.item}) {
    const Type& type = types_.at(column);
    const bool has_index = type.index_format.empty() || is_one_of(type.index_format, kIntegers);
    check(column, is_id(type.format) && has_index, "whole numbers or texts", "int64 or a text");
  }
  if (columns.value) {
    const Type& type = types_.at(*columns.value);
    check(*columns.value, is_value(type.format) && type.index_format.empty(), "numbers", "float64");
  }
  if (columns.time)
    check(*columns.time, has_times(*columns.time), "numbers, dates or timestamps", "a timestamp");
}

bool ArrowTable::next() {
  row_count_ = 0;
  if (!is_single_) {
    if (stream_.is_released()) return false;
    batch_.reset();
    if (const int error = stream_->get_next(&*stream_, &*batch_)) refuse_stream(error);
  }
  is_single_ = false;
  if (batch_.is_released()) {
    stream_.reset();
    return false;
  }
  check_batch();
  row_count_ = static_cast<std::size_t>(batch_->length);
  read_words(columns_.user, users_);
  read_words(columns_.item, items_);
  return true;
}

void ArrowTable::check_batch() {
  const ArrowArray& batch = *batch_;
  const auto refuse = [](const std::string& what) {
    throw_bad_data("table: its producer gave a batch with " + what);
  };
  if (!is_within(batch.length) || !is_within(batch.offset)) refuse("a length or an offset below 0");
  if (batch.n_children != static_cast<std::int64_t>(types_.size()) || batch.children == nullptr)
    refuse(count_text(static_cast<std::uint64_t>(std::max<std::int64_t>(batch.n_children, 0)), "column") +
           ", expected " + count_text(types_.size()));
  if (batch.n_buffers > 0 && batch.buffers != nullptr && batch.buffers[0] != nullptr &&
      batch.null_count != 0 &&
      find_zero(static_cast<const std::uint8_t*>(batch.buffers[0]), static_cast<std::size_t>(batch.offset),
                static_cast<std::size_t>(batch.length)) != static_cast<std::size_t>(batch.length))
    refuse("rows that are null");
  for (const auto& column :
       {std::optional(columns_.user), std::optional(columns_.item), columns_.value, columns_.time}) {
    if (!column) continue;
    const Type& type = types_[*column];
    const ArrowArray* const array = batch.children[*column];
    const bool has_words = !type.index_format.empty();
    const bool is_whole =
        has_buffers(array, has_words ? type.index_format : type.format, batch.offset + batch.length) &&
        (!has_words || (array->dictionary != nullptr &&
                        has_buffers(array->dictionary, type.format, array->dictionary->length)));
    if (!is_whole)
      refuse("a column \"" + printable_text(type.name) + "\" that is no " + type_text(type.format));
  }
}

ArrowTable::Rows ArrowTable::rows_of(std::size_t column, std::size_t first, std::size_t count,
                                     std::uint64_t first_row) {
  const ArrowArray* const array = batch_->children[column];
  return {&types_[column], array, static_cast<std::size_t>(batch_->offset + array->offset) + first, count,
          first_row};
}

void ArrowTable::refuse_row(const Rows& rows, std::size_t at, const std::string& what) {
  throw_bad_data("row " + std::to_string(rows.first_row + at) + ", counted from 0: column \"" +
                 printable_text(rows.type->name) + "\": " + what);
}

void ArrowTable::check_nulls(const Rows& rows) {
  if (rows.array->null_count == 0 || rows.array->buffers[0] == nullptr) return;
  const auto* const bits = static_cast<const std::uint8_t*>(rows.array->buffers[0]);
  const std::size_t at = find_zero(bits, rows.first, rows.count);
  if (at < rows.count)
    refuse_row(rows, at,
               "expected a value, found null; leave such rows out (IS NOT NULL, drop_nulls, dropna)");
}

/// Appends ids of a column that is no dictionary.
void ArrowTable::read_plain_ids(const Rows& rows, std::vector<std::int64_t>& numbers,
                                std::vector<std::string_view>& texts, std::string& digits) {
  if (is_text(rows.type->format)) {
    const auto add = [&](std::string_view text) { texts.push_back(text); };
    if (!each_text_of(rows.type->format, *rows.array, rows.first, rows.count, add))
      refuse_row(rows, texts.size(), "expected a text in its buffer, found one outside");
    return;
  }
  with_numbers(rows.type->format, rows.array->buffers[1], rows.first, rows.count, [&](auto span) {
    using Number = typename decltype(span)::value_type;
    if constexpr (std::is_same_v<Number, std::uint64_t>) {
      // An id of 64 bits that int64 does not hold is a text in files, too.
      constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      if (std::ranges::any_of(span, [](std::uint64_t id) { return id > kMax; })) {
        constexpr std::size_t kMaxDigits = 20;
        digits.resize(span.size() * kMaxDigits);
        for (char* to = digits.data(); const std::uint64_t id : span) {
          const char* const end = std::to_chars(to, to + kMaxDigits, id).ptr;
          texts.emplace_back(to, static_cast<std::size_t>(end - to));
          to += kMaxDigits;
        }
        return;
      }
    }
    for (const Number id : span) numbers.push_back(static_cast<std::int64_t>(id));
  });
}

/// Reads the values of a dictionary, which batches may change.
void ArrowTable::read_words(std::size_t column, Ids& ids) {
  const Type& type = types_[column];
  ids.word_numbers.clear();
  ids.words.clear();
  if (type.index_format.empty()) return;
  const ArrowArray* const words = batch_->children[column]->dictionary;
  const Rows rows{&type, words, static_cast<std::size_t>(words->offset),
                  static_cast<std::size_t>(words->length), 0};
  if (rows.count == 0) return;
  const auto* const bits = static_cast<const std::uint8_t*>(words->buffers[0]);
  if (words->null_count != 0 && bits != nullptr && find_zero(bits, rows.first, rows.count) < rows.count)
    throw_bad_data("column \"" + printable_text(type.name) +
                   "\": expected values in its dictionary, found null");
  read_plain_ids(rows, ids.word_numbers, ids.words, ids.word_digits);
}

RatingIds ArrowTable::read_ids(const Rows& rows, Ids& ids) {
  check_nulls(rows);
  if (rows.type->index_format.empty() && rows.type->format == "l")
    return std::span(static_cast<const std::int64_t*>(rows.array->buffers[1]) + rows.first, rows.count);
  ids.numbers.clear();
  ids.texts.clear();
  if (rows.type->index_format.empty()) {
    read_plain_ids(rows, ids.numbers, ids.texts, ids.digits);
  } else {
    const auto word_count = static_cast<std::int64_t>(std::max(ids.words.size(), ids.word_numbers.size()));
    with_numbers(rows.type->index_format, rows.array->buffers[1], rows.first, rows.count, [&](auto span) {
      for (std::size_t at = 0; at < span.size(); ++at) {
        const auto index = static_cast<std::int64_t>(+span[at]);  // + makes a number of int8
        if (index < 0 || index >= word_count)
          refuse_row(rows, at,
                     "expected an index below " + std::to_string(word_count) +
                         ", as its dictionary has, found " + number_text(span[at]));
        if (ids.words.empty())
          ids.numbers.push_back(ids.word_numbers[static_cast<std::size_t>(index)]);
        else
          ids.texts.push_back(ids.words[static_cast<std::size_t>(index)]);
      }
    });
  }
  if (ids.texts.empty()) return std::span<const std::int64_t>(ids.numbers);
  return std::span<const std::string_view>(ids.texts);
}

RatingValues ArrowTable::read_values(const Rows& rows) {
  check_nulls(rows);
  const void* const data = rows.array->buffers[1];
  if (rows.type->format == "f") return std::span(static_cast<const float*>(data) + rows.first, rows.count);
  if (rows.type->format == "g") return std::span(static_cast<const double*>(data) + rows.first, rows.count);
  values_.clear();
  if (rows.type->format == "b") {
    const auto* const bits = static_cast<const std::uint8_t*>(data);
    for (std::size_t bit = rows.first; bit < rows.first + rows.count; ++bit)
      values_.push_back(bits[bit / 8] >> (bit % 8) & 1);
  } else {
    with_numbers(rows.type->format, data, rows.first, rows.count, [this](auto span) {
      for (const auto value : span) values_.push_back(static_cast<double>(value));
    });
  }
  return std::span<const double>(values_);
}

std::span<const std::int64_t> ArrowTable::read_times(const Rows& rows) {
  check_nulls(rows);
  const std::string_view format = rows.type->format;
  const void* const data = rows.array->buffers[1];
  const std::int64_t units = units_of(format);
  times_.clear();
  if (format == "tdD") {
    constexpr std::int64_t kDaySeconds = 86400;
    for (const std::int32_t day : std::span(static_cast<const std::int32_t*>(data) + rows.first, rows.count))
      times_.push_back(day * kDaySeconds);
    return times_;
  }
  with_numbers(format, data, rows.first, rows.count, [&](auto span) {
    for (std::size_t at = 0; at < span.size(); ++at) {
      const auto time = span[at];
      if constexpr (std::is_floating_point_v<std::remove_const_t<decltype(time)>>) {
        constexpr double kEnd = 0x1p63;
        if (!(std::floor(time) == time && time >= -kEnd && time < kEnd))
          refuse_row(rows, at,
                     "expected a whole number of 64 bits, found " + number_text(time) +
                         "; whole milliseconds keep fractions");
      } else {
        if (!std::in_range<std::int64_t>(time))
          refuse_row(rows, at, "expected a time that int64 holds, found " + number_text(time));
        if (static_cast<std::int64_t>(time) % units != 0)
          refuse_row(rows, at,
                     "expected whole seconds, found " + number_text(time) + " of which " +
                         std::to_string(units) +
                         " are one; a cast to timestamp[s] drops fractions, "
                         "one to int64 keeps them");
      }
      times_.push_back(static_cast<std::int64_t>(time) / units);
    }
  });
  return times_;
}

RatingEntries ArrowTable::entries(std::size_t first, std::size_t count, std::uint64_t first_row) {
  const auto rows = [&](std::size_t column) { return rows_of(column, first, count, first_row); };
  RatingEntries entries{read_ids(rows(columns_.user), users_), read_ids(rows(columns_.item), items_)};
  if (columns_.value) entries.values = read_values(rows(*columns_.value));
  if (columns_.time) entries.times = read_times(rows(*columns_.time));
  entries.first_entry = first_row;
  return entries;
}

}  // namespace chunkhit
