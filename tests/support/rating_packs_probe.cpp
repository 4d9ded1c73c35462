// Makes the rows of packs out of lines "USER ITEM VALUE TIME" (numbers; dense, users and items by first
// appearance) on stdin and prints all as JSON.
// usage: rating_packs_probe NAME=VALUE...
//   names: zeros, duplicates, above, binarize, min-user, min-item, split, validation,
//   test (a count, or a share below 1), fold-in, before, split-order, item-order, shuffle-rows, seed, memory
//   (bytes, then spilled to /tmp)
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ratings/rating_packs.h"
#include "types/enum_names.h"

namespace {

using namespace chunkhit;

template <class Choice>
Choice choose(const std::string& name) {
  const std::optional<Choice> found = enum_of<Choice>(name);
  if (!found) throw Error(ErrorCode::usage, "unknown: " + name);
  return *found;
}

SplitAmount amount(const std::string& text) {
  const double number = std::stod(text);
  return number < 1 ? SplitAmount{0, number} : SplitAmount{static_cast<std::uint64_t>(number), 0};
}

void set(const std::string& name, const std::string& value, RatingPacksSpec& spec, RatingStoreSpec& kept) {
  const std::map<std::string, std::function<void()>> setters{
      {"zeros", [&] { spec.rules.zeros = choose<Zeros>(value); }},
      {"duplicates", [&] { spec.rules.duplicates = choose<Duplicates>(value); }},
      {"above", [&] { spec.rules.above = std::stof(value); }},
      {"binarize", [&] { spec.rules.binarize = value == "1"; }},
      {"min-user", [&] { spec.rules.min_user = std::stoull(value); }},
      {"min-item", [&] { spec.rules.min_item = std::stoull(value); }},
      {"split", [&] { spec.split.split_by = choose<SplitKind>(value); }},
      {"validation", [&] { spec.split.validation = amount(value); }},
      {"test", [&] { spec.split.test = amount(value); }},
      {"fold-in", [&] { spec.split.fold_in = std::stod(value); }},
      {"before", [&] { spec.split.before = std::stoll(value); }},
      {"split-order", [&] { spec.split.split_order = choose<SplitOrder>(value); }},
      {"item-order", [&] { spec.id_order = choose<ItemOrder>(value); }},
      {"shuffle-rows", [&] { spec.order = value == "1" ? PackOrder::shuffle : PackOrder::input; }},
      {"seed", [&] { spec.seed = std::stoull(value); }},
      {"memory", [&] { kept.memory_bytes = std::stoull(value); }},
  };
  setters.at(name)();
}

void read_ratings(RatingStore& store) {
  std::vector<std::uint32_t> users;
  std::vector<std::uint32_t> items;
  std::vector<float> values;
  std::vector<std::int64_t> times;
  std::uint32_t user = 0;
  std::uint32_t item = 0;
  float value = 0;
  std::int64_t time = 0;
  while (std::cin >> user >> item >> value >> time) {
    users.push_back(user);
    items.push_back(item);
    values.push_back(value);
    times.push_back(time);
  }
  store.append(users, items, values, times);
}

template <class Value>
void print(std::string_view name, std::span<const Value> values, bool last = false) {
  std::cout << '"' << name << "\": [";
  for (std::size_t at = 0; at < values.size(); ++at) std::cout << (at > 0 ? ", " : "") << values[at];
  std::cout << (last ? "]" : "], ");
}

void print(std::string_view name, const CsrRows& rows) {
  std::cout << '"' << name << "\": {";
  print("indptr", std::span<const std::uint64_t>(rows.indptr));
  print("indices", std::span<const std::uint32_t>(rows.indices));
  print("values", std::span<const float>(rows.values), true);
  std::cout << '}';
}

void print(const PackRows& pack) {
  CsrRows x;
  CsrRows held_out;
  pack.fill(0, pack.row_count(), x, held_out);
  std::cout << "{\"name\": \"" << pack.name() << "\", \"unseen\": " << pack.stats().unseen_ratings
            << ", \"left_out\": " << pack.stats().users_left_out
            << ", \"longest\": " << pack.stats().x.longest_row << ", ";
  print("users", pack.users());
  print("x", x);
  std::cout << ", ";
  print("held_out", held_out);
  std::cout << '}';
}

void print(const RatingPacks& made) {
  std::cout << "{\"steps\": [";
  for (std::size_t at = 0; at < made.steps.size(); ++at) {
    const PackStep& step = made.steps[at];
    std::cout << (at > 0 ? ", " : "") << "[\"" << step.name << "\", " << step.users << ", " << step.items
              << ", " << step.ratings << ']';
  }
  std::cout << "], \"type\": \"" << name_of(made.stored.type) << "\", \"scale\": " << made.stored.scale
            << ", ";
  print("items", std::span<const std::uint32_t>(made.columns().items));
  print("counts", std::span<const std::uint64_t>(made.columns().counts));
  std::cout << "\"packs\": [";
  for (std::size_t at = 0; at < made.packs.size(); ++at) {
    std::cout << (at > 0 ? ", " : "");
    print(made.packs[at]);
  }
  std::cout << "]}\n";
}

}  // namespace

int main(int count, char** arguments) {
  try {
    RatingPacksSpec spec;
    RatingStoreSpec kept{.folder = "/tmp"};
    for (const std::string argument : std::span(arguments + 1, arguments + count)) {
      const std::size_t equals = argument.find('=');
      set(argument.substr(0, equals), argument.substr(equals + 1), spec, kept);
    }
    kept.keeps_times = needs_times(spec);
    RatingStore store(kept);
    read_ratings(store);
    std::cout.precision(9);
    print(make_rating_packs(store, spec, {}));
  } catch (const std::exception& error) {
    std::cout << "{\"error\": \"" << error.what() << "\"}\n";
  }
}
