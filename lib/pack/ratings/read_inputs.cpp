#include "pack/ratings/read_inputs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "pack/pack_folder.h"
#include "pack/ratings/hdf5_ratings.h"
#include "pack/ratings/pack_ratings.h"
#include "ratings/matrix_market.h"
#include "ratings/npz.h"
#include "ratings/svmlight.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

}  // namespace

/// Copies a stream to an unnamed file, because HDF5 and NPZ are read at random offsets.
InputCopy::InputCopy(TextStream& stream, const std::string& folder, const std::atomic<bool>* stop,
                     const std::function<void(std::uint64_t)>& on_bytes)
    : file_(folder), name_(stream.name()), path_(file_.open_path()) {
  ByteBuffer piece(kPieceBytes);
  while (stop == nullptr || !*stop) {
    const std::size_t count = stream.read(piece);
    if (count == 0) break;
    file_.append(Bytes(piece).first(count));
    byte_count_ += count;
    on_bytes(byte_count_);
  }
}

/// Replaces the path of the copy by the input's name; a longer number after it belongs to another descriptor.
std::string InputCopy::own_words(std::string message) const {
  for (std::size_t at = message.find(path_); at != std::string::npos; at = message.find(path_, at + 1)) {
    const std::size_t end = at + path_.size();
    const bool is_longer = end < message.size() && message[end] >= '0' && message[end] <= '9';
    if (!is_longer) message.replace(at, path_.size(), name_);
  }
  return message;
}

namespace {

/// A layer is `raw`, a name in layers/ or a path in the file.
std::string path_of_layer(const std::string& layer) {
  if (layer.empty() || layer == "X" || layer.find('/') != std::string::npos) return layer;
  return layer == "raw" ? "raw/X" : "layers/" + layer;
}

std::unique_ptr<RatingReader> open_one(RatingFormat format, const std::string& path,
                                       const MatrixFileSpec& spec, std::unique_ptr<TextStream> opened) {
  if (format == RatingFormat::matrix_market)
    return std::make_unique<MatrixMarketReader>(
        path, MatrixMarketSpec{.transpose = spec.transpose, .rounds_values = spec.rounds_values},
        std::move(opened));
  if (format == RatingFormat::pack) return std::make_unique<PackRatingReader>(path, spec.memory_bytes);
  if (format == RatingFormat::npz) return std::make_unique<NpzReader>(path, spec.transpose);
  return std::make_unique<Hdf5RatingReader>(path, Hdf5RatingsSpec{.transpose = spec.transpose,
                                                                  .hdf5_path = path_of_layer(spec.layer),
                                                                  .feature_type = spec.feature_type,
                                                                  .memory_bytes = spec.memory_bytes});
}

/// Options without meaning for a format are errors, not ignored.
void check_options(RatingFormat format, const MatrixFileSpec& spec) {
  const std::string name = name_of(format);
  if (!is_matrix_format(format)) throw_usage("`format` " + name + ": is no matrix");
  if (!spec.layer.empty() && format != RatingFormat::hdf5)
    throw_usage("`layer`: has no meaning for " + name + ", only for hdf5");
  if (!spec.feature_type.empty() && format != RatingFormat::hdf5)
    throw_usage("`feature_type`: has no meaning for " + name + ", only for hdf5");
  if (spec.transpose && format == RatingFormat::svmlight)
    throw_usage("`transpose`: rows of svmlight have labels and stay rows");
  if (spec.transpose && format == RatingFormat::pack) throw_usage("`transpose`: rows of packs are users");
}

}  // namespace

bool is_matrix_format(RatingFormat format) { return format >= RatingFormat::matrix_market; }

std::vector<std::unique_ptr<RatingReader>> open_matrix_files(RatingFormat format,
                                                             const std::vector<std::string>& paths,
                                                             const MatrixFileSpec& spec,
                                                             std::unique_ptr<TextStream> opened) {
  check_options(format, spec);
  std::vector<std::unique_ptr<RatingReader>> readers;
  if (format == RatingFormat::svmlight) {
    readers.push_back(std::make_unique<SvmlightReader>(paths, spec.rounds_values, std::move(opened)));
    return readers;
  }
  for (const std::string& path : paths)
    readers.push_back(open_one(format, path, spec, path == "-" ? std::move(opened) : nullptr));
  return readers;
}

namespace {

struct DetectedFormat {
  RatingFormat format = RatingFormat::text;
  bool by_name = false;  ///< decided by the name, because the content is ambiguous
};

/// Returns the first option given that only tables have. Defaults do not count: recipes list them.
const char* given_table_flag(const RatingTableSpec& table) {
  const RatingTableSpec none;
  const std::pair<const char*, bool> flags[] = {
      {"`delimiter`", !table.delimiter.empty()}, {"`header`", table.header != none.header},
      {"`user`", !table.user.empty()},           {"`item`", !table.item.empty()},
      {"`value`", !table.value.empty()},         {"`time`", !table.time.empty()},
      {"`quote`", table.quote != none.quote},    {"`comment`", !table.comment.empty()}};
  for (const auto& [flag, is_given] : flags)
    if (is_given) return flag;
  return nullptr;
}

/// Detects the format by the first bytes; options of tables decide for a table of integers.
RatingFormat content_format(const RatingInputSpec& spec, TextStream& stream, bool name_decides) {
  const Bytes bytes = stream.head();
  const TextHead head{as_text(bytes), bytes.size() < TextStream::kHeadBytes, spec.table.comment};
  const RatingFormat detected = detect_rating_format(head, stream.name());
  if (detected != RatingFormat::text && detected != RatingFormat::user_items) return detected;
  if (given_table_flag(spec.table) != nullptr) return RatingFormat::text;
  if (detected == RatingFormat::text && !name_decides && may_be_user_items(head))
    throw_bad_data(stream.name() +
                   ": each line may be a user, an item and a value, or a user and its items: give `format` "
                   "text or user-items");
  return detected;
}

DetectedFormat format_of(const RatingInputSpec& spec, TextStream& stream) {
  if (const std::optional<RatingFormat> given = enum_of<RatingFormat>(spec.format)) return {*given, false};
  const std::optional<RatingFormat> named = rating_format_of_name(stream.name());
  const RatingFormat detected = content_format(spec, stream, named.has_value());
  const bool by_name = detected == RatingFormat::text && named;
  return {by_name ? *named : detected, by_name};
}

std::string by_name_text(RatingFormat format) {
  return " (read as " + name_of(format) +
         " by its name, because the content is ambiguous; `format` overrides)";
}

void check_text_flags(const RatingInputSpec& spec, RatingFormat format) {
  const std::string are = " has no meaning for " + name_of(format) + ", only for ";
  if (!spec.layer.empty()) throw_usage("`layer`:" + are + "hdf5");
  if (!spec.feature_type.empty()) throw_usage("`feature_type`:" + are + "hdf5");
  if (spec.transpose) throw_usage("`transpose`:" + are + "matrices; `user` and `item` name columns");
  if (spec.shared_rows != SharedRows::error) throw_usage("`shared_rows`:" + are + "matrices");
  RatingTableSpec table = spec.table;
  if (format == RatingFormat::json_lines) table.user = table.item = table.value = table.time = "";
  const char* const flag = format == RatingFormat::text ? nullptr : given_table_flag(table);
  if (flag != nullptr && std::string_view(flag) != "`comment`")
    throw_usage(std::string(flag) + ":" + are + "text");
}

void check_matrix_flags(const RatingInputSpec& spec, bool have_tables, RatingFormat format) {
  const std::string only = ": has no meaning for " + name_of(format) + ", only for text";
  if (const char* const flag = given_table_flag(spec.table)) throw_usage(flag + only);
  if (spec.encoding != TextEncoding::utf8 && !have_tables)
    throw_usage("`encoding`" + only + " and tables of items and users");
}

/// Returns whether the format is read at random offsets of a file and not as a stream.
bool is_binary(RatingFormat format) { return format == RatingFormat::npz || format == RatingFormat::hdf5; }

/// The inputs of a run as its readers see them.
struct OpenedInputs {
  std::vector<std::string> paths;  ///< paths to open: the inputs or their copies
  std::vector<MatrixFile> files;   ///< names and sizes for progress and statistics
  std::deque<InputCopy> copies;
  std::unique_ptr<TextStream> from_stdin;  ///< text of a matrix, which cannot be opened again

  void add_pack(const std::string& folder) {
    paths.push_back(folder);
    files.push_back({folder, 0});
  }
  [[nodiscard]] std::string own_words(std::string message) const {
    for (const InputCopy& copy : copies) message = copy.own_words(std::move(message));
    return message;
  }
};

/// Notes how many rows and columns of a single matrix have no rating and are left out.
void note_empty(const std::string& name, const MatrixFacts& facts, const RatingIntake& intake,
                std::vector<std::string>& notices) {
  const std::uint64_t users =
      facts.user_count - std::min<std::uint64_t>(facts.user_count, intake.users().size());
  const std::uint64_t items =
      facts.item_count - std::min<std::uint64_t>(facts.item_count, intake.items().size());
  if (users == 0 && items == 0) return;
  const bool turned = facts.is_transposed;
  notices.push_back(name + ": shape " + count_text(turned ? facts.item_count : facts.user_count) + " x " +
                    count_text(turned ? facts.user_count : facts.item_count) + ": " +
                    count_text(turned ? items : users, "row") + " and " +
                    count_text(turned ? users : items, "column") + " without entries are left out");
}

/// Throws bad_data if values changed by more than the rounding of a fraction.
void check_lost(const std::string& name, const RoundedValues& rounded) {
  if (rounded.lost_count == 0) return;
  throw_bad_data(name + ": " + count_text(rounded.lost_count, "value") +
                 " that 32-bit floats do not hold, the first is " + number_text(rounded.first_lost) +
                 "; `values` f32 takes the nearest ones");
}

void add_facts(const std::string& name, const MatrixFacts& facts, std::vector<std::string>& notices) {
  for (const std::string& notice : facts.notices) notices.push_back(notice);
  if (facts.rounded.count > 0)
    notices.push_back(name + ": " + count_text(facts.rounded.count, "value") +
                      " that no 32-bit float is equal to: the nearest one was taken");
}

MatrixFile matrix_file(const std::string& input) {
  if (input == "-") return {"stdin", 0};
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(input, error);
  return {input, error ? 0 : bytes};
}

/// Prepares the file of a matrix after its format was detected; binary formats of streams are copied first.
void open_matrix(std::unique_ptr<TextStream> stream, RatingFormat format, const InputPaths& inputs,
                 const std::atomic<bool>* stop, const RatingIntake& intake, OpenedInputs& opened) {
  const std::string& input = inputs.paths[opened.paths.size()];
  opened.files.push_back(matrix_file(input));
  if (is_binary(format) && !stream->byte_count()) {
    const InputCopy& copy =
        opened.copies.emplace_back(*stream, inputs.spill_folder, stop,
                                   [&](std::uint64_t bytes) { intake.report_copied(stream->name(), bytes); });
    opened.paths.push_back(copy.path());
    if (input == "-") opened.files.back().bytes = copy.byte_count();
    return;
  }
  opened.paths.push_back(input);
  if (input == "-") opened.from_stdin = std::move(stream);
}

/// The ends of the paths that distinguish files: their names, with the folders above where these are equal.
std::vector<std::string> distinct_names(const std::vector<MatrixFile>& files) {
  std::vector<std::filesystem::path> left, names(files.size());
  for (const MatrixFile& file : files) left.emplace_back(file.name);
  for (;;) {
    std::map<std::string, std::size_t> counts;
    for (std::size_t index = 0; index < files.size(); ++index) {
      names[index] = names[index].empty() ? left[index].filename() : left[index].filename() / names[index];
      left[index] = left[index].parent_path();
      ++counts[names[index].string()];
    }
    if (counts.size() == files.size()) return {names.begin(), names.end()};
    const auto is_equal = [&](const std::filesystem::path& name) { return counts[name.string()] > 1; };
    bool has_more = false;
    for (std::size_t index = 0; index < files.size(); ++index)
      has_more = has_more || (is_equal(names[index]) && left[index].has_filename());
    if (!has_more)
      throw_usage("`shared_rows` file-name: two inputs have the name " +
                  std::ranges::find_if(names, is_equal)->string());
  }
}

/// Rows of several files that have one name are most often others: cells of two samples have equal barcodes.
void check_shared_rows(const std::string& name, const RatingIntake& intake) {
  const std::vector<std::uint8_t>& shared = intake.shared_users();
  const auto first = static_cast<std::uint32_t>(std::ranges::find(shared, 1) - shared.begin());
  if (first == shared.size()) return;
  const auto count = static_cast<std::uint64_t>(std::ranges::count(shared, 1));
  throw_bad_data(name + ": " + count_text(count, "row") + (count == 1 ? " has" : " have") +
                 " the name or number of a row in an earlier input, the first is " +
                 intake.users().text(first) +
                 "; `shared_rows` file-name keeps them apart, join makes one user of both");
}

/// Entries of 1 among ratings would be no ratings.
void check_values_alike(const MatrixFacts& first, const MatrixFacts& facts, const std::string& name) {
  if (first.is_pattern == facts.is_pattern) return;
  throw_bad_data(
      name + (facts.is_pattern ? ": is a pattern, without values" : ": has values") + ", expected " +
      (facts.is_pattern ? "values" : "a pattern") +
      " as in the input before; to take a pattern's entries as 1 pack it alone, then both packs as "
      "one");
}

void read_matrices(const RatingInputSpec& spec, const MatrixFileSpec& files, bool are_parts,
                   OpenedInputs& opened, RatingIntake& intake, InputFacts& facts) {
  const RatingFormat format = facts.format;
  const bool is_named = spec.shared_rows == SharedRows::file_name && opened.files.size() > 1;
  if (is_named && (format == RatingFormat::pack || format == RatingFormat::svmlight || are_parts))
    throw_usage("`shared_rows` file-name: not for packs, svmlight and given splits");
  const std::vector<std::string> names =
      is_named ? distinct_names(opened.files) : std::vector<std::string>(opened.files.size());

  const std::vector<std::unique_ptr<RatingReader>> readers =
      open_matrix_files(format, opened.paths, files, std::move(opened.from_stdin));
  // All svmlight files share one reader, because their rows are numbered through.
  const std::size_t of_each = opened.files.size() / readers.size();
  for (std::size_t index = 0; index < readers.size() && !intake.interrupted(); ++index) {
    if (const std::optional<PackFacts>& pack = readers[index]->facts().pack) {
      opened.files[index].bytes = pack->bytes;
      facts.pack_ids.push_back(pack->pack_id);
    }
    const auto own = std::span<const MatrixFile>(opened.files).subspan(index * of_each, of_each);
    check_values_alike(readers[0]->facts(), readers[index]->facts(), own[0].name);
    intake.read_blocks(own, *readers[index], is_named ? names[index] + "/" : "");
    if (spec.shared_rows == SharedRows::error && format != RatingFormat::pack && !are_parts)
      check_shared_rows(own[0].name, intake);
    if (!files.rounds_values) check_lost(own[0].name, readers[index]->facts().rounded);
    add_facts(own[0].name, readers[index]->facts(), facts.notices);
    if (readers[index]->facts().first_item) facts.first_item = readers[index]->facts().first_item;
    const std::string name = of_each == 1 ? own[0].name : count_text(of_each, "input");
    if (readers.size() == 1) note_empty(name, readers[index]->facts(), intake, facts.notices);
    if (auto* svmlight = dynamic_cast<SvmlightReader*>(readers[index].get()))
      facts.labels = svmlight->take_row_labels();
  }
  for (std::string& notice : facts.notices) notice = opened.own_words(std::move(notice));
}

}  // namespace

void RatingHash::add(std::span<const std::uint32_t> users, std::span<const std::uint32_t> items,
                     std::span<const float> values, std::span<const std::int64_t> times) {
  if (!has_begun_) return;
  users_.update(bytes_of(users));
  items_.update(bytes_of(items));
  // Blocks leave out values that are all 1; hashing the counts distinguishes them from blocks with values.
  const std::array<std::uint64_t, 2> counts{users.size(), values.size()};
  values_.update(bytes_of(counts));
  values_.update(bytes_of(values));
  if (times.empty()) return;
  if (!times_) times_.emplace();
  times_->update(bytes_of(times));
}

/// Hashes the content of matrices, so that the same matrix in another file format is the same input.
std::uint64_t RatingHash::value(const IdMap& users, const IdMap& items) const {
  Xxh3Stream all;
  std::string text = hash_text(users_.value()) + hash_text(items_.value()) + hash_text(values_.value());
  if (times_) text += hash_text(times_->value());
  all.update(as_bytes(text));
  for (const IdMap* ids : {&users, &items})
    for (std::uint32_t number = 0; number < ids->size(); ++number) {
      text = ids->text(number) + "\n";
      all.update(as_bytes(text));
    }
  return all.value();
}

namespace {

/// Whether an input is text of ratings, whose encoding matters; stdin, which is read once, is taken for it.
bool is_text(const RatingInputSpec& spec, const std::string& path, const std::atomic<bool>* stop) {
  if (path == "-") return true;
  TextStream stream(path, stop);
  return !is_matrix_format(format_of(spec, stream).format);
}

/// Detects the format of one input and opens its stream, which folders have none of.
DetectedFormat open_input(const RatingInputSpec& spec, const std::string& path, const std::atomic<bool>* stop,
                          std::unique_ptr<TextStream>& stream) {
  const std::string pack = name_of(RatingFormat::pack);
  if (!is_pack_path(path)) {
    stream = std::make_unique<TextStream>(path, stop,
                                          spec.encoding == TextEncoding::latin1 && is_text(spec, path, stop));
    if (spec.format == pack) throw_bad_data(stream->name() + ": is a file, expected the folder of a pack");
    return format_of(spec, *stream);
  }
  if (!spec.format.empty() && spec.format != pack)
    throw_usage("`format` " + spec.format + ": " + path + " is a folder, expected a file");
  return {RatingFormat::pack, false};
}

void check_one_format(RatingFormat format, const std::string& name, RatingFormat first) {
  if (format == first) return;
  const bool has_pack = format == RatingFormat::pack || first == RatingFormat::pack;
  throw_bad_data(name + ": is " + name_of(format) + ", the inputs before are " + name_of(first) +
                 (has_pack ? "; pack files by themselves first, then give packs alone"
                           : "; `format` takes all as one kind"));
}

}  // namespace

const char* given_input_flag(const RatingInputSpec& spec) {
  if (!spec.format.empty()) return "`format`";
  if (spec.transpose) return "`transpose`";
  if (!spec.layer.empty()) return "`layer`";
  if (!spec.feature_type.empty()) return "`feature_type`";
  return given_table_flag(spec.table);
}

IdColumnNames id_column_names(const RatingTable& table) {
  const auto name = [&](std::size_t column) {
    return column < table.column_names.size() ? table.column_names[column] : std::to_string(column + 1);
  };
  return {name(table.text.columns.user), name(table.text.columns.item)};
}

IdColumnNames id_column_names(const RatingInputSpec& spec, const std::vector<std::string>& paths) {
  IdColumnNames given{spec.table.user, spec.table.item};
  std::error_code error;
  // What is no regular file can be read only once.
  if (paths.empty() || !std::filesystem::is_regular_file(paths[0], error)) return given;
  std::unique_ptr<TextStream> stream;
  const RatingFormat format = open_input(spec, paths[0], nullptr, stream).format;
  if (!has_columns(format)) return given;
  const Bytes head = stream->head();
  const TextHead lines{as_text(head), head.size() < TextStream::kHeadBytes, spec.table.comment};
  const RatingTable table = detect_columns(format, lines, spec.table, stream->name());
  return table.column_names.empty() ? given : id_column_names(table);
}

InputFacts read_inputs(const RatingInputSpec& spec, const InputPaths& inputs, RatingIntake& intake,
                       RatingHash& hash, const std::atomic<bool>* stop) {
  InputFacts facts;
  bool is_detected_by_name = false;
  OpenedInputs opened;
  for (std::size_t index = 0; index < inputs.paths.size() && !intake.interrupted(); ++index) {
    std::unique_ptr<TextStream> stream;
    const auto [format, by_name] = open_input(spec, inputs.paths[index], stop, stream);
    if (index == 0) facts.format = format;
    check_one_format(format, stream ? stream->name() : inputs.paths[index], facts.format);
    is_detected_by_name = is_detected_by_name || by_name;
    if (is_matrix_format(format)) {
      check_matrix_flags(spec, inputs.have_tables, format);
      if (stream)
        open_matrix(std::move(stream), format, inputs, stop, intake, opened);
      else
        opened.add_pack(pack_folder_of(inputs.paths[index]));
      continue;
    }
    check_text_flags(spec, format);
    intake.read_text(*stream, format);
  }
  if (inputs.are_parts && facts.format == RatingFormat::svmlight)
    throw_usage("`train_file`: has no meaning for svmlight, whose rows are numbered through all files");
  if (!is_matrix_format(facts.format) || intake.interrupted()) return facts;
  if (facts.format != RatingFormat::pack) hash.begin();
  try {
    const MatrixFileSpec files{spec.transpose, spec.layer, spec.feature_type, intake.rules().rounds_values(),
                               inputs.memory_bytes};
    read_matrices(spec, files, inputs.are_parts, opened, intake, facts);
  } catch (const Error& error) {
    const std::string words = opened.own_words(error.what());
    const bool is_misled = is_detected_by_name && error.code() == ErrorCode::bad_data;
    throw Error(error.code(), is_misled ? words + by_name_text(facts.format) : words);
  }
  return facts;
}

InputFacts read_reader(RatingReader& reader, const std::string& name, RatingIntake& intake,
                       RatingHash& hash) {
  hash.begin();
  const MatrixFile file{name, 0};
  intake.read_blocks({&file, 1}, reader);
  InputFacts facts;
  facts.format = RatingFormat::npz;  // equal entries of such a file make an equal pack
  add_facts(name, reader.facts(), facts.notices);
  return facts;
}

/// A text is hashed by its bytes, a pack by its id, another matrix by its content with labels.
std::uint64_t hash_inputs(const InputFacts& facts, const RatingIntake& intake, const RatingHash& ratings) {
  if (facts.format == RatingFormat::pack) {
    std::string text;
    for (const std::uint64_t id : facts.pack_ids) text += hash_text(id) + "\n";
    return xxh3(as_bytes(text));
  }
  if (is_matrix_format(facts.format)) {
    Xxh3Stream all;
    const std::string hash = hash_text(ratings.value(intake.users(), intake.items()));
    all.update(as_bytes(hash));
    if (facts.labels) {
      all.update(bytes_of(facts.labels->values));
      all.update(bytes_of(facts.labels->ends));
      all.update(bytes_of(facts.labels->groups));
    }
    return all.value();
  }
  const std::vector<RatingInput>& inputs = intake.stats().inputs();
  if (inputs.size() == 1) return inputs[0].xxh3;
  std::string text;
  for (const RatingInput& input : inputs) text += hash_text(input.xxh3) + "\n";
  return xxh3(as_bytes(text));
}

}  // namespace chunkhit
