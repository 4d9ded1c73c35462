#include "pack/ratings/sparse_input.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "manifest/manifest.h"
#include "ratings/rating_fields.h"
#include "ratings/stored_values.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

constexpr std::size_t kShownColumns = 20;
constexpr std::uint64_t kDraws = 1ull << 53;  // as many as a double can tell apart

/// Translates user and item numbers of the error into the ids of the input.
Error duplicate_error(const DuplicateError& error, const IdMap& users, const IdMap& items) {
  const std::string repeats = error.count == 1 ? " repeats" : " repeat";
  return {ErrorCode::bad_data, "user " + users.text(error.user) + " has several ratings of item " +
                                   items.text(error.item) + "; " + count_text(error.count, "rating") +
                                   repeats +
                                   " a user and item; choose `duplicates` sum, last, first, max or keep"};
}

Error misfit_error(const MisfitError& error, const StoredValues& values, const IdMap& users,
                   const IdMap& items) {
  return {ErrorCode::bad_data, "user " + users.text(error.user) + ", item " + items.text(error.item) +
                                   ": rating: expected " + expected_rating_text(values) + " (`values` " +
                                   stored_values_text(values) + "), found " + number_text(error.rating)};
}

/// `inputs`: those that were read; of a program's ratings none is named.
[[noreturn]] void refuse_no_ratings(const std::vector<RatingInput>& inputs, bool are_files) {
  if (!are_files || inputs.size() != 1) throw_bad_data("there are no ratings in the input");
  const RatingInput& input = inputs.front();
  const std::string why = input.lines > 0   ? ": none of its " + count_text(input.lines, "line") + " is one"
                          : input.bytes > 0 ? ""
                                            : ": it is empty";
  throw_bad_data(input.file + ": expected ratings, found none" + why);
}

}  // namespace

SparseInput::SparseInput(const PackSparseSpec& spec, const PackSparseOptions& options, std::uint32_t threads,
                         std::string spill_folder, GivenIds given)
    : spec_(spec),
      options_(options),
      given_(std::move(given)),
      spill_folder_(std::move(spill_folder)),
      memory_(options.memory_bytes, threads),
      rating_bytes_(memory_.rating_bytes(0)),
      store_({rating_bytes_, spill_folder_, needs_times(spec.packs)}),
      intake_(spec.input.table, intake_options(threads),
              [this](auto users, auto items, auto values, auto times) {
                hash_.add(users, items, values, times);
                store_.limit_memory(rating_bytes_);
                store_.append(users, items, values, times);
                count_given(users);
              }) {
  add_beside(memory_.beside());
}

IntakeOptions SparseInput::intake_options(std::uint32_t threads) {
  IntakeOptions intake;
  intake.threads = threads;
  intake.block_bytes = memory_.block_bytes();
  intake.small_ids = memory_.small_ids();
  intake.limit = {options_.on_error, options_.max_errors};
  intake.rules = spec_.packs.rules;
  intake.stop = options_.stop;
  intake.on_ids = [this](const IdMap& users, const IdMap& items, const IntakeProgress& read) {
    fit_ids(users, items, read);
  };
  if (!options_.on_progress) return intake;
  intake.on_progress = [this](const IntakeProgress& read) {
    PackSparseProgress progress;
    progress.bytes_done = read.bytes_done;
    progress.bytes_total = read.bytes_total.value_or(0);
    progress.bad_lines = read.bad_lines;
    options_.on_progress(progress);
  };
  return intake;
}

std::optional<InputRead> SparseInput::read(RatingReader* reader) {
  if (options_.on_progress) options_.on_progress({});
  const auto is_stopped = [this] { return options_.stop != nullptr && *options_.stop; };
  try {
    const InputPaths inputs{options_.inputs, spill_folder_, spec_.packs.split.split_by == SplitKind::given,
                            options_.memory_bytes,
                            !spec_.item_columns.empty() || !spec_.user_columns.empty()};
    facts_ = reader != nullptr ? read_reader(*reader, "RatingWriter", intake_, hash_)
                               : read_inputs(spec_.input, inputs, intake_, hash_, options_.stop);
  } catch (const Error&) {
    if (is_stopped()) return {};  // which cuts stdin off
    throw;
  }
  if (intake_.interrupted() || is_stopped()) return {};
  intake_.finish();
  if (store_.rating_count() == 0) refuse_no_ratings(intake_.stats().inputs(), reader == nullptr);
  if (store_.rating_count() != intake_.stats().total().ratings)
    throw_cannot_write("kept " + count_text(store_.rating_count(), "rating") + " of " +
                       count_text(intake_.stats().total().ratings));
  note_tables();
  note_times();
  note_ends();
  note_blanks("user", intake_.users());
  note_blanks("item", intake_.items());
  note_frozen();
  fit_rows();
  return InputRead{xxh3(), intake_.stats(), facts_.notices};
}

/// What lists and a given split hold; the counts of a user are doubled while they grow.
void SparseInput::add_beside(BesideIds& beside) const {
  const std::vector<std::string> none;
  for (const auto* ids :
       {given_.items ? &given_.items->columns : &none, given_.items ? &given_.items->unseen : &none,
        &given_.validation_users, &given_.test_users}) {
    beside.listed_ids += ids->size();
    for (const std::string& id : *ids) beside.listed_text_bytes += id.size();
  }
  beside.column_bytes = given_.column_bytes;
  const GivenFiles& files = spec_.packs.split.files;
  beside.user_bytes =
      2 * sizeof(std::uint32_t) * ((files.train > 0 ? 1 : 0) + (files.validation > 0 ? 1 : 0));
  if (spec_.packs.split.split_by == SplitKind::users_by_id) beside.user_bytes += sizeof(std::uint64_t);
}

void SparseInput::fit_ids(const IdMap& users, const IdMap& items, const IntakeProgress& read) {
  ReadShare share{read.input, {}};
  if (options_.inputs.size() == 1 && read.bytes_total.value_or(0) > 0)
    share.share =
        std::min(1.0, static_cast<double>(read.bytes_done) / static_cast<double>(*read.bytes_total));
  memory_.beside().label_bytes = read.kept_bytes;
  memory_.check_ids(users, items, share);
  rating_bytes_ = memory_.rating_bytes(memory_.id_bytes(users, items));
}

/// Ratings whose rows do not fit beside them go to disk, and one user's must fit.
void SparseInput::fit_rows() {
  const std::uint64_t ids = memory_.id_bytes(intake_.users(), intake_.items());
  store_.limit_memory(memory_.rating_bytes(ids));
  for (std::size_t bucket = 0; bucket < store_.bucket_count(); ++bucket) {
    if (store_.ratings_in(bucket) * store_.work_bytes_of_rating() <= store_.spec().memory_bytes) continue;
    if (!store_.is_spilled()) store_.spill();
    const std::vector<std::uint64_t> indptr = store_.count_ratings(bucket);
    for (std::size_t row = 0; row + 1 < indptr.size(); ++row)
      memory_.check_row(ids, indptr[row + 1] - indptr[row], store_.has_times(),
                        intake_.users().text(static_cast<std::uint32_t>(bucket * kBucketUsers + row)));
  }
}

/// Which columns a table is read by, and why.
std::string SparseInput::columns_text(const RatingTable& table) const {
  const RatingColumns& columns = table.text.columns;
  const auto name = [&](std::size_t column) {
    const bool is_named = column < table.column_names.size();
    if (is_named && table.column_names[column].empty())
      return "column " + std::to_string(column + 1) + " (no name)";
    return is_named ? table.column_names[column] : std::to_string(column + 1);
  };
  const RatingTableSpec& wished = spec_.input.table;
  const auto found = [&](const char* field, std::size_t column, const std::string& wish) {
    const char* const how = table.column_names.empty() ? " (by order)" : " (by name)";
    return std::string(field) + name(column) + (wish.empty() ? how : "");
  };
  std::string text =
      "columns: " + found("user ", columns.user, wished.user) + found(", item ", columns.item, wished.item);
  text += columns.value ? found(", value ", *columns.value, wished.value) : ", no value: every rating is 1";
  if (columns.time) text += found(", time ", *columns.time, wished.time);
  std::string unused;
  std::size_t unused_count = 0;
  for (std::size_t column = 0; column < table.text.column_count; ++column)
    if (column != columns.user && column != columns.item && columns.value != column &&
        columns.time != column && ++unused_count <= kShownColumns)
      unused += (unused.empty() ? "" : ", ") + name(column);
  if (unused_count > 0) text += "; not used: " + unused;
  if (unused_count > kShownColumns) text += " and " + count_text(unused_count - kShownColumns) + " more";
  if (table.text.quoting == TextQuoting::double_quote && wished.quote == TextQuoting::automatic)
    text += "; fields stand in quotes (detected)";
  return text;
}

/// Notes the columns of the first table, and of each later one that is read in another way: of a file without
/// a header among others, say.
void SparseInput::note_tables() {
  std::vector<std::string> notes, seen;
  for (const auto& [input, table] : intake_.tables()) {
    std::string text = columns_text(table);
    if (std::ranges::find(seen, text) != seen.end()) continue;
    notes.push_back(seen.empty() ? text : input + ": " + text);
    seen.push_back(std::move(text));
    for (const std::string& notice : table.notices)
      if (std::ranges::find(notes, notice) == notes.end()) notes.push_back(notice);
  }
  facts_.notices.insert(facts_.notices.begin(), notes.begin(), notes.end());
}

std::string SparseInput::time_unit() const {
  const std::optional<TimeUnit> unit = intake_.times().unit();
  return unit ? name_of(*unit) : std::string(kUnknownTimes);
}

/// Times of several units cannot be compared.
void SparseInput::note_times() {
  const TimeUnits& times = intake_.times();
  if (times.cut_count() > 0 && intake_.time_scale() > 1 && spec_.packs.keep_times)
    facts_.notices.push_back(
        count_text(times.cut_count(), "time") + (times.cut_count() == 1 ? " has" : " have") +
        " a fraction of a second: it orders ratings, and is left out of the times that are kept");
  if (times.cut_count() > 0 && intake_.time_scale() == 1 && needs_times(spec_.packs))
    facts_.notices.push_back(count_text(times.cut_count(), "time") +
                             " with a fraction of a second were rounded down: ratings of one second are in "
                             "the order of the input; whole milliseconds keep theirs");
  if (!times.unit()) return;
  if (!times.difference().empty() && needs_times(spec_.packs))
    throw_bad_data(times.difference() + "; expected one unit in all inputs");
  if (*times.unit() != TimeUnit::seconds)
    facts_.notices.push_back("times are " + name_of(*times.unit()) + " since 1970, by their size");
}

/// A text that was cut may end in a number that lacks digits.
void SparseInput::note_ends() {
  const std::vector<std::string>& names = intake_.texts_without_end();
  if (names.empty()) return;
  const std::string more =
      names.size() > 1 ? " (nor that of " + count_text(names.size() - 1, "more input") + ")" : "";
  facts_.notices.push_back("the last line of " + names[0] + " has no line break" + more +
                           ": is the file whole?");
}

/// Blanks around an id are part of it, though a reader does not see them.
void SparseInput::note_blanks(const char* thing, const IdMap& ids) {
  std::uint64_t count = 0;
  std::string first;
  for (std::uint32_t number = 0; ids.are_text() && number < ids.size(); ++number) {
    const std::string id = ids.text(number);
    if (without_blanks(id).size() == id.size()) continue;
    if (++count == 1) first = id;
  }
  if (count == 0) return;
  facts_.notices.push_back(count_text(count, (std::string(thing) + " id").c_str()) +
                           (count == 1 ? " begins or ends" : " begin or end") + " with blanks, as \"" +
                           first + "\": with and without them, ids are different");
}

/// Numbers of items mean nothing to a pack whose numbers count from elsewhere.
void SparseInput::note_frozen() {
  if (!given_.items) return;
  const std::vector<std::uint32_t> numbers = item_numbers(given_.items->columns);
  const auto known =
      numbers.size() - static_cast<std::size_t>(std::count(numbers.begin(), numbers.end(), kNoItem));
  std::string text = "`reuse_ids`: " + count_text(known) + " of its " + count_text(numbers.size(), "item") +
                     " are in the input, which has " + count_text(intake_.items().size());
  if (spec_.packs.id_order != RatingPacksSpec().id_order)
    text += "; columns keep its order, so that `id_order` has no effect";
  if (spec_.packs.rules.min_item > 1) text += "; columns that `min_item` empties stay";
  if (facts_.first_item)
    text += "; these have no names but numbers that count from " + std::to_string(*facts_.first_item) +
            ": the pack must have counted so, too";
  facts_.notices.push_back(text);
}

std::uint64_t SparseInput::xxh3() const {
  const std::uint64_t ratings = hash_inputs(facts_, intake_, hash_);
  if (spec_.packs.split.split_by != SplitKind::given) return ratings;
  std::string text = hash_text(ratings) + "\n";
  for (const RatingInput& input : intake_.stats().inputs()) text += std::to_string(input.ratings) + "\n";
  return chunkhit::xxh3(as_bytes(text));
}

/// Counts the ratings of each user in the files of training and of validation.
void SparseInput::count_given(std::span<const std::uint32_t> users) {
  if (spec_.packs.split.split_by != SplitKind::given) return;
  const GivenFiles& files = spec_.packs.split.files;
  const std::uint64_t file = intake_.stats().inputs().size();  // from 1
  if (file > files.train + files.validation) return;
  std::vector<std::uint32_t>& counts = file > files.train ? parts_.validation_counts : parts_.train_counts;
  for (const std::uint32_t user : users) {
    if (user >= counts.size()) counts.resize(std::size_t{user} + 1);
    ++counts[user];
  }
}

/// Ids that are not in the input are an error: the list is most likely of another data set.
std::vector<std::uint32_t> SparseInput::user_numbers(const std::vector<std::string>& ids,
                                                     const char* flag) const {
  std::vector<std::uint32_t> numbers;
  std::vector<std::string> unknown;
  for (const std::string& id : ids) {
    const std::size_t number = intake_.users().find(id);
    if (number < intake_.users().size())
      numbers.push_back(static_cast<std::uint32_t>(number));
    else
      unknown.push_back(id);
  }
  if (!unknown.empty())
    throw_bad_data(std::string(flag) + ": " + count_text(unknown.size()) + " of " +
                   count_text(ids.size(), "user") + " are not in the input, the first is " + unknown[0]);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// Draws held-out users by seed and id alone; their items are divided by the same hash of the id.
void SparseInput::draw_users(GivenSplit& parts) const {
  const RatingSplitSpec& split = spec_.packs.split;
  parts.id_hashes.reserve(intake_.users().size());
  for (std::uint32_t user = 0; user < intake_.users().size(); ++user) {
    const std::uint64_t id = chunkhit::xxh3(as_bytes(intake_.users().text(user)));
    parts.id_hashes.push_back(id);
    const double drawn =
        static_cast<double>(random_below(kDraws, spec_.packs.seed, Purpose::split, id)) / kDraws;
    if (drawn < split.test.share)
      parts.test_users.push_back(user);
    else if (drawn < split.test.share + split.validation.share)
      parts.validation_users.push_back(user);
  }
}

/// Collects what the split needs beside the ratings: listed users and the counts of each file's ratings.
GivenSplit SparseInput::given_split() {
  GivenSplit parts = std::move(parts_);
  parts.validation_users = user_numbers(given_.validation_users, "`validation_users`");
  parts.test_users = user_numbers(given_.test_users, "`test_users`");
  std::vector<std::uint32_t> both;
  std::set_intersection(parts.validation_users.begin(), parts.validation_users.end(),
                        parts.test_users.begin(), parts.test_users.end(), std::back_inserter(both));
  if (!both.empty())
    throw_bad_data("`validation_users`, `test_users`: " + count_text(both.size(), "user") +
                   " in both, the first is " + intake_.users().text(both[0]));
  if (spec_.packs.split.split_by == SplitKind::users_by_id) draw_users(parts);
  return parts;
}

/// Items of the other pack that do not occur here keep their column and have no number.
std::vector<std::uint32_t> SparseInput::item_numbers(const std::vector<std::string>& ids) const {
  std::vector<std::uint32_t> numbers;
  for (const std::string& id : ids) {
    const std::size_t number = intake_.items().find(id);
    numbers.push_back(number < intake_.items().size() ? static_cast<std::uint32_t>(number) : kNoItem);
  }
  return numbers;
}

void SparseInput::refuse_to_keep_times() const {
  std::string text = "`keep_times`: the ratings have no times";
  if (intake_.table() && spec_.input.table.time == "none")
    text += ": `time` none leaves them out";
  else if (intake_.table())
    text += intake_.table()->unread_time.empty() ? ": `time` names their column"
                                                 : ": " + intake_.table()->unread_time;
  else if (!options_.inputs.empty())
    text += ": tables have some, and the folders of packs that keep them";
  throw_usage(text);
}

RatingPacks SparseInput::make_rows() {
  std::vector<std::uint32_t> sorted;
  std::vector<std::uint32_t> frozen, unseen;
  ItemChoice choice;
  choice.lists_unseen = given_.counts_items;
  if (given_.items) {
    frozen = item_numbers(given_.items->columns);
    unseen = item_numbers(given_.items->unseen);
    choice.frozen = frozen;
    choice.unseen = unseen;
  } else if (spec_.packs.id_order == ItemOrder::sorted) {
    sorted = intake_.items().sorted();
    choice.sorted = sorted;
  }
  GivenSplit given = given_split();
  // All ids have been looked up: the hash tables are freed before rows are sorted.
  intake_.drop_id_index();
  RatingPacksSpec packs = spec_.packs;
  if (packs.split.is_by_time() && !store_.has_times() && intake_.table() &&
      !intake_.table()->unread_time.empty())
    throw_usage("`split_by` " + name_of(packs.split.split_by) + ": " + intake_.table()->unread_time);
  if (packs.keep_times && !store_.has_times()) refuse_to_keep_times();
  // `before` may be in another unit, which its size tells; it is converted to that of the input.
  if (packs.split.before && intake_.times().unit())
    packs.split.before = in_unit(*packs.split.before, *intake_.times().unit());
  const std::int64_t scale = intake_.time_scale();
  if (packs.split.before) packs.split.before = with_scale(*packs.split.before, scale);
  try {
    return make_rating_packs(store_, packs, choice, std::move(given), scale);
  } catch (const DuplicateError& error) {
    throw duplicate_error(error, intake_.users(), intake_.items());
  } catch (const ValueError& error) {
    throw_bad_data("user " + intake_.users().text(error.user) + ", item " + intake_.items().text(error.item) +
                   ": " + error.reason);
  } catch (const MisfitError& error) {
    throw misfit_error(error, *packs.rules.values, intake_.users(), intake_.items());
  }
}

std::vector<std::string> SparseInput::item_ids(const ItemColumns& columns) {
  if (given_.items) return std::move(given_.items->columns);
  std::vector<std::string> ids;
  ids.reserve(columns.items.size());
  for (const std::uint32_t item : columns.items) ids.push_back(intake_.items().text(item));
  return ids;
}

MadePacks SparseInput::make_packs(ColumnTables& columns) {
  columns.check_headers(intake_.users(), intake_.items());
  MadePacks made{make_rows(), intake_.users()};
  made.item_ids = item_ids(made.packs.columns());
  for (const std::uint32_t item : made.packs.unseen_items) made.unseen.push_back(intake_.items().text(item));
  if (facts_.labels) made.labels = make_label_table(*facts_.labels, intake_.users(), made.notices);
  if (intake_.table()) columns.check_id_columns(id_column_names(*intake_.table()));
  made.times = time_unit();
  made.work_bytes = store_.spec().memory_bytes;
  return made;
}

}  // namespace chunkhit
