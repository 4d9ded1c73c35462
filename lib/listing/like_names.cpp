#include "listing/like_names.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/words.h"

namespace chunkhit {
namespace {

/// The letters under the accents of U+00C0 to U+017F; - for what has none.
constexpr std::string_view kLetters =
    "AAAAAA-CEEEEIIII-NOOOOO--UUUUY--aaaaaa-ceeeeiiii-nooooo--uuuuy-y"
    "AaAaAaCcCcCcCcDd--EeEeEeEeEeGgGgGgGgHh--IiIiIiIiI---JjKk-LlLlLl----NnNnNn---OoOoOo--RrRrRrSsSsSsSsTtTt--"
    "UuUuUuUuUuUuWwYyYZzZzZz-";
constexpr unsigned kFirstLetter = 0xc0, kFirstMark = 0x300, kEndOfMarks = 0x370;
static_assert(kLetters.size() == 0x180 - kFirstLetter);

}  // namespace

std::string folded_name(std::string_view name) {
  const std::string_view bare = without_blanks(name);
  std::string folded;
  for (std::size_t at = 0; at < bare.size(); ++at) {
    const auto lead = static_cast<unsigned char>(bare[at]);
    const bool is_pair = lead >= 0xc2 && lead < 0xe0 && at + 1 < bare.size();
    const unsigned code =
        is_pair ? (lead & 0x1fu) << 6 | (static_cast<unsigned char>(bare[at + 1]) & 0x3fu) : 0;
    if (code >= kFirstMark && code < kEndOfMarks)
      ++at;
    else if (code >= kFirstLetter && code - kFirstLetter < kLetters.size() &&
             kLetters[code - kFirstLetter] != '-')
      folded += kLetters[code - kFirstLetter], ++at;
    else
      folded += bare[at];
  }
  return lower(folded);
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
