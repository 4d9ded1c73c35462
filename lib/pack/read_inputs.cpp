#include "pack/read_inputs.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "decode/svmlight.h"
#include "input/text_stream.h"
#include "pack/matrix_files.h"

namespace chunkhit {
namespace {

template <class Number>
Bytes bytes_of(std::span<const Number> numbers) {
  return {reinterpret_cast<const std::uint8_t*>(numbers.data()), numbers.size_bytes()};
}

std::string name_of(RatingFormat format) {
  return std::string(kRatingFormatNames[static_cast<std::size_t>(format)]);
}

struct ToldFormat {
  RatingFormat format = RatingFormat::text;
  bool by_name = false;  ///< the content does not tell
};

ToldFormat format_of(const RatingInputSpec& spec, TextStream& stream) {
  const auto* const given = std::find(kRatingFormatNames.begin(), kRatingFormatNames.end(), spec.format);
  if (given != kRatingFormatNames.end())
    return {static_cast<RatingFormat>(given - kRatingFormatNames.begin()), false};
  const Bytes head = stream.head();
  const RatingFormat told = tell_rating_format(
      {as_text(head), head.size() < TextStream::kHeadBytes, spec.table.comment}, stream.name());
  const std::optional<RatingFormat> named = rating_format_of_name(stream.name());
  const bool by_name = told == RatingFormat::text && named;
  return {by_name ? *named : told, by_name};
}

std::string by_name_text(RatingFormat format) {
  return " (read as " + name_of(format) + " because of its name: the content does not tell; --format does)";
}

void check_text_flags(const RatingInputSpec& spec, RatingFormat format) {
  const std::string are = " has no meaning for " + name_of(format) + ", only for ";
  if (spec.index_base) throw Error(ErrorCode::usage, "--index-base:" + are + "svmlight");
  if (!spec.layer.empty()) throw Error(ErrorCode::usage, "--layer:" + are + "hdf5");
  if (spec.transpose == Transpose::yes)
    throw Error(ErrorCode::usage, "--transpose:" + are + "matrices; --user and --item name columns");
}

/// What only tables have; a recipe holds the defaults.
void check_matrix_flags(const RatingTableSpec& table, RatingFormat format) {
  const RatingTableSpec none;
  const std::pair<const char*, bool> flags[] = {{"--delimiter", !table.delimiter.empty()},
                                                {"--header", table.header != none.header},
                                                {"--user", !table.user.empty()},
                                                {"--item", !table.item.empty()},
                                                {"--value", !table.value.empty()},
                                                {"--time", !table.time.empty()},
                                                {"--quote", table.quoting != none.quoting},
                                                {"--comment", !table.comment.empty()},
                                                {"--decimal", table.decimal_point != none.decimal_point}};
  for (const auto& [flag, is_given] : flags)
    if (is_given)
      throw Error(ErrorCode::usage,
                  std::string(flag) + ": has no meaning for " + name_of(format) + ", only for text");
}

/// What such a reader opens by itself, and not front to back.
void check_binary(const TextStream& stream, bool is_stdin, RatingFormat format) {
  if (format != RatingFormat::npz && format != RatingFormat::hdf5) return;
  if (is_stdin)
    throw Error(ErrorCode::usage,
                "stdin: is " + name_of(format) + ", which must be a file: it is not read from front to back");
  if (!stream.byte_count())
    throw Error(ErrorCode::usage,
                stream.name() + ": is compressed " + name_of(format) +
                    "; only text is read compressed: undo the gzip or zstd around it first");
}

/// Rows and columns of a lone matrix that no rating is in.
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

void add_facts(const std::string& name, const MatrixFacts& facts, std::vector<std::string>& notices) {
  for (const std::string& notice : facts.notices) notices.push_back(notice);
  if (facts.rounded_count > 0)
    notices.push_back(name + ": " + count_text(facts.rounded_count, "value") +
                      " that no 32-bit float is equal to: the nearest one was taken");
}

MatrixFile matrix_file(const std::string& input) {
  if (input == "-") return {"stdin", 0};
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(input, error);
  return {input, error ? 0 : bytes};
}

void read_matrices(RatingFormat format, const RatingInputSpec& spec, const std::vector<std::string>& inputs,
                   std::unique_ptr<TextStream> opened, RatingIntake& intake, InputFacts& facts) {
  const MatrixFileSpec files{spec.transpose, spec.layer, spec.index_base};
  const std::vector<std::unique_ptr<RatingReader>> readers =
      open_matrix_files(format, inputs, files, std::move(opened));
  std::vector<MatrixFile> all;
  all.reserve(inputs.size());
  for (const std::string& input : inputs) all.push_back(matrix_file(input));
  // One reader of svmlight reads all files.
  const std::size_t of_each = inputs.size() / readers.size();
  for (std::size_t index = 0; index < readers.size() && !intake.interrupted(); ++index) {
    const auto own = std::span(all).subspan(index * of_each, of_each);
    intake.read_blocks(own, *readers[index]);
    add_facts(own[0].name, readers[index]->facts(), facts.notices);
    if (readers[index]->facts().first_item) facts.first_item = readers[index]->facts().first_item;
    const std::string name = of_each == 1 ? own[0].name : count_text(of_each, "input");
    if (readers.size() == 1) note_empty(name, readers[index]->facts(), intake, facts.notices);
    if (const auto* svmlight = dynamic_cast<const SvmlightReader*>(readers[index].get()))
      facts.labels = svmlight->row_labels();
  }
}

}  // namespace

void RatingHash::add(std::span<const std::uint32_t> users, std::span<const std::uint32_t> items,
                     std::span<const float> values) {
  if (!has_begun_) return;
  users_.update(bytes_of(users));
  items_.update(bytes_of(items));
  // Blocks may leave out values that are all 1: how many there are tells which ones these are.
  const std::array<std::uint64_t, 2> counts{users.size(), values.size()};
  values_.update(bytes_of(std::span<const std::uint64_t>(counts)));
  values_.update(bytes_of(values));
}

std::uint64_t RatingHash::value(const IdMap& users, const IdMap& items) const {
  Xxh3Stream all;
  std::string text = hash_text(users_.value()) + hash_text(items_.value()) + hash_text(values_.value());
  all.update(as_bytes(text));
  for (const IdMap* ids : {&users, &items})
    for (std::uint32_t number = 0; number < ids->size(); ++number) {
      text = ids->text(number) + "\n";
      all.update(as_bytes(text));
    }
  return all.value();
}

InputFacts read_inputs(const RatingInputSpec& spec, const std::vector<std::string>& inputs,
                       RatingIntake& intake, RatingHash& hash, const std::atomic<bool>* stop) {
  InputFacts facts;
  bool is_told_by_name = false;
  std::unique_ptr<TextStream> opened;  // of a matrix from stdin, which cannot be opened again
  for (std::size_t index = 0; index < inputs.size() && !intake.interrupted(); ++index) {
    auto stream = std::make_unique<TextStream>(inputs[index], stop);
    const auto [format, by_name] = format_of(spec, *stream);
    if (index == 0) facts.format = format;
    if (format != facts.format)
      throw Error(ErrorCode::bad_data, stream->name() + ": is " + name_of(format) +
                                           ", the inputs before are " + name_of(facts.format));
    is_told_by_name = is_told_by_name || by_name;
    if (is_matrix_format(format)) {
      check_matrix_flags(spec.table, format);
      check_binary(*stream, inputs[index] == "-", format);
      if (inputs[index] == "-") opened = std::move(stream);
      continue;
    }
    check_text_flags(spec, format);
    intake.read_text(*stream, format);
  }
  if (!is_matrix_format(facts.format) || intake.interrupted()) return facts;
  hash.begin();
  try {
    read_matrices(facts.format, spec, inputs, std::move(opened), intake, facts);
  } catch (const Error& error) {
    if (is_told_by_name && error.code() == ErrorCode::bad_data)
      throw Error(error.code(), std::string(error.what()) + by_name_text(facts.format));
    throw;
  }
  return facts;
}

std::uint64_t hash_inputs(const InputFacts& facts, const RatingIntake& intake, const RatingHash& ratings) {
  if (is_matrix_format(facts.format)) {
    Xxh3Stream all;
    const std::string hash = hash_text(ratings.value(intake.users(), intake.items()));
    all.update(as_bytes(hash));
    if (facts.labels) {
      all.update(bytes_of(std::span<const float>(facts.labels->values)));
      all.update(bytes_of(std::span<const std::uint64_t>(facts.labels->ends)));
      all.update(bytes_of(std::span<const std::int64_t>(facts.labels->groups)));
    }
    return all.value();
  }
  const std::vector<RatingInput>& inputs = intake.account().inputs();
  if (inputs.size() == 1) return inputs[0].xxh3;
  std::string text;
  for (const RatingInput& input : inputs) text += hash_text(input.xxh3) + "\n";
  return xxh3(as_bytes(text));
}

}  // namespace chunkhit
