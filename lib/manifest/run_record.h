// run.json: how a pack was made. Layout: schemas/manifest.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "manifest/part_record.h"

namespace chunkhit {

inline constexpr std::string_view kRunName = "run.json";

/// How a run went: what may differ between two equal packs (run.json).
struct RunRecord {
  std::string tool;
  std::string command_line;
  std::string host;
  std::string started;  ///< UTC, ISO 8601
  double seconds = 0;
  std::uint32_t threads = 0;
  RecordedSpec libraries;                      ///< name, version
  std::map<std::uint64_t, std::string> roots;  ///< folders of the images, by content_ids
};

/// Writes run.json's text.
[[nodiscard]] std::string run_text(const RunRecord& run);

/// The folders of images that a run.json names, by content_ids; none where it names none or is damaged.
[[nodiscard]] std::map<std::uint64_t, std::string> image_roots(std::string_view run_text);

/// Whether a run.json says that pack-merge made its pack, which no other command makes again.
[[nodiscard]] bool is_merge_run(std::string_view run_text);

}  // namespace chunkhit
