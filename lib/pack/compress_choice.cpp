#include "pack/compress_choice.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "chunkhit/error.h"
#include "compress/chunk_filter.h"

namespace chunkhit {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::usage, message); }

}  // namespace

CompressChoice parse_compress(const std::string& text, const std::string& container,
                              std::span<const std::string_view> filters) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  if (std::find(filters.begin(), filters.end(), name) == filters.end()) {
    std::string valid;
    for (const std::string_view one : filters) valid += (valid.empty() ? "" : ", ") + std::string(one);
    refuse("--compress: '" + name + "' is not for " + container + ", expected one of " + valid);
  }
  const ChunkFilter& filter = chunk_filter(name);
  CompressChoice choice{std::string(filter.name), filter.default_level};
  if (colon == std::string::npos) return choice;
  const std::string level = text.substr(colon + 1);
  const auto end = std::from_chars(level.data(), level.data() + level.size(), choice.level);
  if (end.ec != std::errc() || end.ptr != level.data() + level.size() || choice.level < filter.least_level ||
      choice.level > filter.most_level)
    refuse("--compress: " + text + ": expected a level from " + std::to_string(filter.least_level) + " to " +
           std::to_string(filter.most_level));
  return choice;
}

std::string compress_text(const CompressChoice& choice) {
  return choice.filter == "none" ? "none" : choice.filter + ":" + std::to_string(choice.level);
}

}  // namespace chunkhit
