#include "listing/class_list.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "base/words.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Throws that a class is not listed, and which file has it.
[[noreturn]] void refuse_class(const SampleList& list, std::size_t own_id, std::size_t known_count) {
  const auto found = std::ranges::find(list.class_ids, static_cast<std::int64_t>(own_id));
  const std::string file(found == list.class_ids.end()
                             ? ""
                             : list.file(static_cast<std::size_t>(found - list.class_ids.begin())));
  throw Error(ErrorCode::bad_data, "--classes: class \"" + list.classes[own_id] + "\" of " + file +
                                       " is not among the " + count_text(known_count) +
                                       " that are listed; --classes-extra append adds it behind them");
}

}  // namespace

std::vector<std::string> parse_class_names(std::string_view text, const std::string& path) {
  std::vector<std::string> names;
  std::unordered_map<std::string, std::size_t> lines;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const auto refuse = [&](std::size_t line, const std::string& what) {
    throw Error(ErrorCode::bad_data, path + ": line " + std::to_string(line) + ": " + what);
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
  if (names.empty()) throw Error(ErrorCode::bad_data, path + ": lists no classes, expected one name a line");
  return names;
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
      "; --classes FILE gives another order");
}

void renumber_classes(SampleList& list, std::vector<std::string> known, bool append) {
  if (list.label_kind != LabelKind::class_id || list.classes.empty())
    throw Error(ErrorCode::usage, "--classes: is for classes with names; these labels are numbers");
  std::unordered_map<std::string_view, std::int64_t> ids;
  const std::size_t known_count = known.size();
  for (std::size_t id = 0; id < known_count; ++id) ids.emplace(known[id], static_cast<std::int64_t>(id));
  std::vector<std::int64_t> new_ids;
  std::vector<std::string> added;
  for (std::size_t own_id = 0; own_id < list.classes.size(); ++own_id) {
    const auto found = ids.find(list.classes[own_id]);
    if (found == ids.end() && !append) refuse_class(list, own_id, known_count);
    new_ids.push_back(found != ids.end() ? found->second
                                         : static_cast<std::int64_t>(known_count + added.size()));
    if (found == ids.end()) added.push_back(list.classes[own_id]);
  }
  for (std::int64_t& id : list.class_ids) id = new_ids[static_cast<std::size_t>(id)];
  known.insert(known.end(), added.begin(), added.end());
  list.classes = std::move(known);
}

}  // namespace chunkhit
