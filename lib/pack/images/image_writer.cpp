#include "chunkhit/image_writer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/spill_file.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "listing/kept_columns.h"
#include "listing/label_column.h"
#include "listing/sample_list.h"
#include "pack/images/image_archives.h"
#include "pack/images/image_input.h"
#include "pack/images/image_run.h"
#include "pack/images/pack_spec.h"
#include "types/image.h"
#include "types/sample_column.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMaxKeyBytes = 4096;  // as the system's paths

/// The kinds of SampleLabel, in its order.
constexpr std::array kLabelWords{"the id of a class", "the name of a class", "numbers"};

void check_no_files(const PackImagesSpec& spec, const PackImagesOptions& options) {
  const LabelCsvSpec plain;
  const std::pair<const char*, bool> given[] = {
      {"`root`", !options.root.empty()},
      {"`inputs`", !options.inputs.empty()},
      {"`labels`", !spec.labels.empty()},
      {"`file_column`", spec.columns.file_column != plain.file_column},
      {"`mask_column`", !spec.columns.mask_column.empty()},
      {"`label_type`", spec.columns.label_type != plain.label_type},
      {"`label_separator`", !spec.columns.label_separator.empty()},
      {"`missing`", spec.columns.missing != plain.missing},
      {"`include`", !spec.folders.include.empty()},
      {"`split_folders`", !spec.folders.split_folders.empty()},
      {"`pair`", !spec.pair.empty()},
      {"`follow_symlinks`", spec.follow_symlinks}};
  for (const auto& [field, is_given] : given)
    if (is_given)
      throw_usage(std::string(field) + ": has no meaning for an ImageWriter, which is given its images");
}

SampleShape checked_shape(const PixelsView& pixels) {
  const std::string shape = "(" + std::to_string(pixels.height) + ", " + std::to_string(pixels.width) + ", " +
                            std::to_string(pixels.channels) + ")";
  if (pixels.height == 0 || pixels.width == 0 || pixels.channels == 0 || pixels.channels > 4)
    throw_usage("pixels: expected (height, width, 1 to 4 channels), found " + shape);
  const std::uint64_t row_bytes = std::uint64_t{pixels.width} * pixels.channels;
  if (pixels.bytes.size() % row_bytes != 0 || pixels.bytes.size() / row_bytes != pixels.height)
    throw_usage("pixels: found " + count_text(pixels.bytes.size(), "byte") + ", expected those of " + shape);
  return {pixels.height, pixels.width, pixels.channels};
}

/// Of a file, or of pixels as one.
std::string content_hash(Bytes bytes, const SampleShape& shape) {
  Xxh3Stream content;
  content.update(as_bytes(pnm_header(shape)));
  content.update(bytes);
  return hash_text(content.value());
}

std::string fields_words(const std::vector<SampleField>& fields) {
  const auto word = [](const SampleField& field) {
    return has_usual_name(field) ? field.name : field.name + " (a " + traits_of(field.role).name + ")";
  };
  return fields.empty() ? "none" : joined(fields, ", ", word);
}

/// The names of classes as a message has them.
std::string names_text(const std::vector<std::string>& names) {
  constexpr std::size_t kNamesToShow = 10;
  const std::string text =
      printable_text(joined(std::span(names).first(std::min(names.size(), kNamesToShow))));
  return names.size() > kNamesToShow ? text + ", …" : text;
}

/// Turns the values of kept columns into what KeptColumns takes, and sees that each column has one kind.
class WriterColumns {
 public:
  explicit WriterColumns(std::vector<std::string> names) : names_(std::move(names)), kinds_(names_.size()) {}

  /// Gives what is wrong with the values of a sample, or nothing: these are then `values`.
  [[nodiscard]] std::string take(std::span<const ColumnValue> given) {
    if (given.size() != names_.size())
      return "columns: found " + count_text(given.size(), "value") + ", expected " +
             count_text(names_.size()) + ", one for each of `keep_columns`";
    std::vector<Kinds> kinds = kinds_;
    values.clear();
    for (std::size_t column = 0; column < given.size(); ++column) {
      values.push_back(kept_value(given[column]));
      kinds[column].add(given[column]);
      const std::string problem = kinds[column].problem(given[column]);
      if (!problem.empty()) return "column \"" + names_[column] + "\": " + problem;
    }
    kinds_ = std::move(kinds);
    return "";
  }
  std::vector<KeptValue> values;

 private:
  static constexpr std::int64_t kFirstGap = std::int64_t{1} << 53;  // behind it a double skips whole numbers
  struct Kinds {
    bool text = false, number = false, fraction = false, large = false;
    void add(const ColumnValue& value) {
      text = text || value.index() == 2;
      const auto* const float64 = std::get_if<double>(&value);  // NaN is a missing value of any kind
      number = number || value.index() == 0 || (float64 != nullptr && !std::isnan(*float64));
      fraction = fraction || value.index() == 1;
      if (const auto* const whole = std::get_if<std::int64_t>(&value))
        large = large || *whole >= kFirstGap || *whole <= -kFirstGap;
    }
    [[nodiscard]] std::string problem(const ColumnValue& value) const {
      if (const auto* const float64 = std::get_if<double>(&value); float64 != nullptr && std::isinf(*float64))
        return "found inf, expected a finite number";
      if (text && number)
        return value.index() == 2 ? "found a text, expected a number as before"
                                  : "found a number, expected a text as before";
      if (fraction && large)
        return "has whole numbers from 2^53 on, which 64-bit floats round, beside other numbers";
      return "";
    }
  };

  static KeptValue kept_value(const ColumnValue& value) {
    if (const auto* const text = std::get_if<std::string_view>(&value)) return {std::string(*text), true};
    SampleColumn one;
    if (const auto* const whole = std::get_if<std::int64_t>(&value)) one.values = std::vector{*whole};
    if (const auto* const number = std::get_if<double>(&value)) one.values = std::vector{*number};
    return {one.value_text(0), false, true};
  }

  std::vector<std::string> names_;
  std::vector<Kinds> kinds_;
};

}  // namespace

std::string pnm_header(const SampleShape& pixels) {
  if (pixels.channels == 0) return "";
  const std::string width = std::to_string(pixels.width);
  const std::string height = std::to_string(pixels.height);
  if (pixels.channels == 1 || pixels.channels == 3)
    return (pixels.channels == 1 ? "P5 " : "P6 ") + width + " " + height + " 255\n";
  return "P7\nWIDTH " + width + "\nHEIGHT " + height + "\nDEPTH " + std::to_string(pixels.channels) +
         "\nMAXVAL 255\nENDHDR\n";
}

/// Gathers the list of samples, whose bytes it writes to a file.
struct ImageWriter::Impl {
  Impl(PackImagesSpec given_spec, PackImagesOptions given_options, std::vector<std::string> names_by_id)
      : spec(std::move(given_spec)),
        options(std::move(given_options)),
        class_names(std::move(names_by_id)),
        columns(spec.columns.keep_columns),
        kept(spec.columns.keep_columns) {
    check_columns(LabelColumns{spec.columns, !spec.classes.empty()});
    check_no_files(spec, options);
    if (!class_names.empty() && !spec.classes.empty())
      throw_usage("`classes`: found " + spec.classes + " beside names of classes; give one of both");
    if (!class_names.empty()) spec.classes = "the given names";  // in messages
    list.labels_from = LabelSource::writer;
    options = checked_writer_options(spec, std::move(options));
    if (class_names.empty() && !spec.classes.empty()) class_names = read_classes(spec.classes);
    for (const std::string& name : class_names) add_class_name(name);
    list.label_columns = spec.columns.label_column;
    spool = std::make_unique<SpillFile>(existing_folder(options.output));
  }

  void add_class_name(const std::string& name) {
    if (name.empty() || !is_utf8(name) || name.find('\0') != std::string::npos)
      throw_usage("class names: expected UTF-8 texts, found \"" + printable_text(name) + "\"");
    const std::uint32_t known = names.count();
    if (names.add(name) != known) throw_usage("class names: \"" + name + "\" is repeated");
  }

  /// Adds an image file, or pixels where the shape has channels.
  void add(Bytes bytes, const SampleShape& shape, const SampleLabel& label, std::string_view key,
           std::span<const ColumnValue> values, std::span<const FieldPixels> fields) {
    require_own_process(process, "writer");
    if (is_finished) throw_usage("the writer is finished: nothing can be added");
    const std::string own_key = key.empty() ? std::to_string(list.size()) : std::string(key);
    if (own_key.size() > kMaxKeyBytes || !is_utf8(own_key) || own_key.find('\0') != std::string::npos)
      throw_usage("key: expected UTF-8 of at most " + std::to_string(kMaxKeyBytes) + " bytes, found \"" +
                  printable_text(own_key.substr(0, 80)) + "\"");
    try {
      check_fields(fields);
      check_label(label);
      check_columns_of(values);
    } catch (const Error& error) {
      throw Error(error.code(),
                  (key.empty() ? "sample " : "") + printable_text(own_key) + ": " + error.what());
    }
    const std::uint64_t offset = spool->append(bytes);
    std::vector<FileRange> field_ranges;
    for (const auto& [field, pixels] : fields)
      field_ranges.push_back({spool->append(pixels.bytes), pixels.bytes.size(), 0});
    if (list.files.empty())
      for (const FieldPixels& at : fields) list.fields.push_back({at.field, {}, {}, {}});
    SampleRows(list).add(own_key);
    list.ranges.push_back({offset, bytes.size(), 0});
    list.shapes.push_back(shape);
    hash.add(own_key);
    hash.add(content_hash(bytes, shape));
    for (std::size_t at = 0; at < fields.size(); ++at)
      add_field(fields[at].pixels, field_ranges[at], list.fields[at]);
    add_label(label);
    kept.add(columns.values);
    report_added();
  }

  void check_fields(std::span<const FieldPixels> fields) const {
    std::vector<SampleField> given;
    for (const FieldPixels& at : fields) given.push_back(at.field);
    if (const std::string problem = fields_problem(given); !problem.empty())
      throw_usage("fields: " + problem);
    chunkhit::check_fields(spec, given);
    std::vector<SampleField> before;
    for (const ListedField& listed : list.fields) before.push_back(listed.field);
    if (!list.files.empty() && given != before)
      throw_usage("fields: found " + fields_words(given) + ", expected " + fields_words(before) +
                  " as before");
    for (const auto& [field, pixels] : fields) {
      const bool is_view = field.role == FieldRole::view;
      if (is_view && pixels.channels == 0) continue;  // a file
      if (const SampleShape shape = checked_shape(pixels); !is_view && shape.channels != 1)
        throw_usage(field.name + ": found " + count_text(shape.channels, "channel") +
                    ", expected 1, of class ids");
    }
  }

  void add_field(const PixelsView& pixels, const FileRange& range, ListedField& listed) {
    const SampleShape shape{pixels.height, pixels.width, pixels.channels};
    hash.add(content_hash(pixels.bytes, shape));
    listed.ranges.push_back(range);
    listed.shapes.push_back(shape);
  }

  void check_columns_of(std::span<const ColumnValue> values) {
    std::string problem = columns.take(values);
    if (problem.empty()) problem = kept.problem(columns.values);
    if (!problem.empty()) throw_usage(problem);
  }

  void check_label(const SampleLabel& label) {
    if (!list.files.empty() && label.index() != kind)
      throw_usage(std::string("label: found ") + kLabelWords[label.index()] + ", expected " +
                  kLabelWords[kind] + " as before");
    if (const auto* const id = std::get_if<std::int64_t>(&label); id != nullptr && !class_names.empty())
      if (*id < 0 || static_cast<std::uint64_t>(*id) >= class_names.size())
        throw_usage("label: found " + std::to_string(*id) + ", expected an id from 0 and below " +
                    count_text(class_names.size()) + ", the number of class names");
    if (const auto* const name = std::get_if<std::string_view>(&label))
      if (name->empty() || !is_utf8(*name) || name->find('\0') != std::string_view::npos)
        throw_usage("label: expected the name of a class as UTF-8, found \"" + printable_text(*name) + "\"");
    if (const auto* const name = std::get_if<std::string_view>(&label)) check_listed(*name);
    if (const auto* const numbers = std::get_if<std::span<const float>>(&label)) check_numbers(*numbers);
    kind = label.index();
  }

  void check_listed(std::string_view name) const {
    if (class_names.empty() || names.contains(name)) return;
    throw Error(ErrorCode::bad_data, "label: found class \"" + printable_text(name) +
                                         "\", expected one of the class names " + names_text(class_names) +
                                         did_you_mean(name, class_names));
  }

  void check_numbers(std::span<const float> numbers) const {
    if (!class_names.empty()) throw_usage("label: found numbers, expected a class, as there are class names");
    if (numbers.size() != list.label_columns.size())
      throw_usage("label: found " + count_text(numbers.size(), "number") + ", expected " +
                  count_text(list.label_columns.size()) + ", one for each of `label_column`");
    for (const float number : numbers)
      if (!std::isfinite(number)) throw_usage("label: expected finite numbers, found " + number_text(number));
  }

  void add_label(const SampleLabel& label) {
    if (const auto* const id = std::get_if<std::int64_t>(&label)) list.class_ids.push_back(*id);
    if (const auto* const name = std::get_if<std::string_view>(&label))
      list.class_ids.push_back(names.add(*name));
    if (const auto* const numbers = std::get_if<std::span<const float>>(&label))
      list.values.insert(list.values.end(), numbers->begin(), numbers->end());
  }

  void report_added() {
    if (!options.on_progress) return;
    progress.rows_done = list.size();
    options.on_progress(progress);
  }

  /// Without names by id, ids are those of the sorted names.
  void number_classes() {
    if (kind == 2) list.label_kind = LabelKind::numbers;
    if (kind == 2 || names.count() == 0) return;
    std::vector<std::uint32_t> order(names.count());
    std::iota(order.begin(), order.end(), 0u);
    const auto sorted = order.begin() + static_cast<std::ptrdiff_t>(class_names.size());
    std::sort(sorted, order.end(), [this](std::uint32_t a, std::uint32_t b) { return names[a] < names[b]; });
    std::vector<std::int64_t> ids(order.size());
    for (std::size_t id = 0; id < order.size(); ++id) {
      list.classes.emplace_back(names[order[id]]);
      ids[order[id]] = static_cast<std::int64_t>(id);
    }
    for (std::int64_t& id : list.class_ids) id = ids[static_cast<std::size_t>(id)];
  }

  PackImagesReport finish() {
    require_own_process(process, "writer");
    if (is_finished) throw_usage("the writer is finished");
    is_finished = true;
    if (list.files.empty()) throw Error(ErrorCode::bad_data, "no image was added");
    number_classes();
    kept.finish(list, {});
    for (std::size_t index = 0; index < list.size(); ++index)
      for (const std::string& text : list.label_text(index)) hash.add(text);
    for (const std::string& text : list.label_columns) hash.add(text);
    for (const std::string& text : spec.columns.keep_columns) hash.add(text);
    for (const std::string& text : list.classes) hash.add(text);
    list.xxh3 = hash.value();
    // Stamps say nothing of a temporary file: the list's hash has its contents.
    list.containers.push_back(make_container(InputFile(spool->open_path()), {1, 0}));
    return pack_list(spec, options, std::move(list));
  }

  PackImagesSpec spec;
  PackImagesOptions options;
  std::vector<std::string> class_names;
  std::unique_ptr<SpillFile> spool;
  SampleList list;
  TextPool names;  ///< of classes: the given ones first
  WriterColumns columns;
  KeptColumns kept;
  TextHash hash;
  std::size_t kind = 0;  ///< index of the labels in SampleLabel
  PackProgress progress;
  bool is_finished = false;
  pid_t process = ::getpid();
};

ImageWriter::ImageWriter(PackImagesSpec spec, PackImagesOptions options, std::vector<std::string> class_names)
    : impl_(std::make_unique<Impl>(std::move(spec), std::move(options), std::move(class_names))) {}
ImageWriter::ImageWriter(ImageWriter&&) noexcept = default;
ImageWriter& ImageWriter::operator=(ImageWriter&&) noexcept = default;
ImageWriter::~ImageWriter() = default;

void ImageWriter::add(std::span<const std::uint8_t> file, const SampleLabel& label, std::string_view key,
                      std::span<const ColumnValue> columns, std::span<const FieldPixels> fields) {
  impl_->add(Bytes(file), {}, label, key, columns, fields);
}

void ImageWriter::add(const PixelsView& pixels, const SampleLabel& label, std::string_view key,
                      std::span<const ColumnValue> columns, std::span<const FieldPixels> fields) {
  impl_->add(Bytes(pixels.bytes), checked_shape(pixels), label, key, columns, fields);
}

PackImagesReport ImageWriter::finish() { return impl_->finish(); }

}  // namespace chunkhit
