#include "listing/like_names.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"

namespace chunkhit {
namespace {

/// The letters under the accents of U+00C0 to U+017F; - for what has none.
constexpr std::string_view kLetters =
    "AAAAAA-CEEEEIIII-NOOOOO--UUUUY--aaaaaa-ceeeeiiii-nooooo--uuuuy-y"
    "AaAaAaCcCcCcCcDd--EeEeEeEeEeGgGgGgGgHh--IiIiIiIiI---JjKk-LlLlLl----NnNnNn---OoOoOo--RrRrRrSsSsSsSsTtTt--"
    "UuUuUuUuUuUuWwYyYZzZzZz-";
constexpr unsigned kFirstLetter = 0xc0, kFirstMark = 0x300, kEndOfMarks = 0x370;
static_assert(kLetters.size() == 0x180 - kFirstLetter);

/// The name without accents on Latin letters, and how many it had.
std::pair<std::string, std::size_t> without_accents(std::string_view bare) {
  std::string folded;
  std::size_t accents = 0;
  for (std::size_t at = 0; at < bare.size(); ++at) {
    const auto lead = static_cast<unsigned char>(bare[at]);
    const bool is_pair = lead >= 0xc2 && lead < 0xe0 && at + 1 < bare.size();
    const unsigned code =
        is_pair ? (lead & 0x1fu) << 6 | (static_cast<unsigned char>(bare[at + 1]) & 0x3fu) : 0;
    const bool is_mark = code >= kFirstMark && code < kEndOfMarks;
    const bool is_letter =
        code >= kFirstLetter && code - kFirstLetter < kLetters.size() && kLetters[code - kFirstLetter] != '-';
    if (!is_mark) folded += is_letter ? kLetters[code - kFirstLetter] : bare[at];
    accents += is_mark || is_letter ? 1 : 0;
    at += is_mark || is_letter ? 1 : 0;
  }
  return {std::move(folded), accents};
}

}  // namespace

std::string folded_name(std::string_view name) { return lower(without_accents(without_blanks(name)).first); }

std::string form_key(std::string_view name) {
  const auto [letters, accents] = without_accents(name);
  return accents == 0 ? "" : letters + '/' + std::to_string(accents);
}

void notice_like_names(SampleList& list) {
  const std::vector<std::string>& names = list.names_column.empty() ? list.classes : list.label_columns;
  std::unordered_map<std::string, std::string> known;
  std::string found;
  std::uint64_t count = 0;
  for (const std::string& name : names) {
    const auto [first, is_new] = known.try_emplace(folded_name(name), name);
    if (is_new) continue;
    constexpr std::uint64_t kShown = 3;
    if (++count <= kShown)
      found += (found.empty() ? "\"" : ", \"") + first->second + "\" and \"" + name + '"';
    if (count == kShown + 1) found += ", …";
  }
  if (count > 0)
    list.notices.push_back("classes that differ only in case, blanks, accents or Unicode form: " + found);
}

}  // namespace chunkhit
