// Commands on a pack, on all packs of a split, or on a plan.
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chunkhit/error.h"
#include "chunkhit/pack.h"
#include "command.h"
#include "manifest/pack_info_json.h"

namespace chunkhit {

/// Returns the names that --images and --labels give to datasets.
inline Hdf5Names dataset_names(Command& command) {
  Hdf5Names names;
  if (const Flag& images = command["--images"]; images.is_given()) names.images = images.text();
  if (const Flag& labels = command["--labels"]; labels.is_given()) names.labels = labels.text();
  return names;
}

/// Prints JSON as it is.
inline void print_json(const std::string& json) { std::fputs(json.c_str(), stdout); }

/// Prints JSON on one line: line breaks are only between its tokens, never in texts.
inline void print_json_line(const std::string& json) {
  std::string line;
  for (std::size_t at = 0; at < json.size(); ++at) {
    if (json[at] != '\n')
      line += json[at];
    else
      while (at + 1 < json.size() && json[at + 1] == ' ') ++at;
  }
  print_json(line + "\n");
}

/// Calls `scan(pack, text)` for each of `packs`, which a path names, which gives an exit code, and JSON as
/// `text` where that is asked for; gives the largest code. Of a split the JSON is an object of them by the
/// packs' folders.
template <class Scan>
int scan_packs(const std::string& path, const std::vector<std::string>& packs, const Scan& scan,
               void (*print)(const std::string&) = print_json) {
  std::vector<std::pair<std::string, std::string>> texts;
  int code = 0;
  for (const std::string& pack : packs) {
    std::string text;
    code = std::max(code, scan(pack, text));
    if (!text.empty())
      texts.emplace_back(std::filesystem::path(pack).lexically_relative(path).string(), std::move(text));
  }
  if (texts.size() == 1 && packs.front() == path)
    print(texts.front().second);
  else if (!texts.empty())
    print(pack_list_json(texts));
  return code;
}

/// The status of a plan; none where there is none, or where another process finishes it meanwhile.
inline std::optional<PlanStatus> plan_status(const std::string& folder) {
  if (!has_plan(folder)) return std::nullopt;
  try {
    return read_plan_status(folder);
  } catch (const Error&) {
    if (has_plan(folder)) throw;
    return std::nullopt;
  }
}

/// Calls `work`; an Error is also printed as a JSON object, {"error": …}, for programs that read the output.
template <class Work>
int with_json_error(const Work& work, void (*print)(const std::string&) = print_json) {
  try {
    return work();
  } catch (const Error& error) {
    print(error_json(flag_text(error.what())));
    throw;
  }
}

}  // namespace chunkhit
