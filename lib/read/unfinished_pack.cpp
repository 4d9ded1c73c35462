#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "base/aside_name.h"
#include "base/file.h"
#include "chunkhit/pack.h"
#include "manifest/manifest.h"

namespace chunkhit {
namespace {

std::string time_text(std::time_t time) {
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

bool is_part_record(const std::string& name) { return name.starts_with("part-") && name.ends_with(".json"); }

/// A part whose record is damaged is not finished: the next run says so, or packs it again.
void add_part(const std::string& path, UnfinishedPack& pack) {
  try {
    const PartRecord part = parse_part_manifest(as_text(read_file(path, kMaxManifestBytes)), path).part;
    ++pack.parts;
    pack.rows += part.rows;
    pack.samples += part.samples;
    pack.rejected += part.rejects.size();
    pack.warned += part.warnings.size();
    pack.bytes += part.bytes;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
  }
}

std::string begun_text(const std::string& name) {
  std::string text(name_written_aside(name));
  const std::string writer = aside_writer_text(name);
  return writer.empty() ? text : text.append(" (").append(writer).append(")");
}

}  // namespace

std::optional<UnfinishedPack> read_unfinished_pack(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error) || fs::exists(fs::path(path) / kManifestName, error))
    return std::nullopt;
  UnfinishedPack pack;
  pack.path = path;
  std::time_t last_write = 0;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    struct stat status {};
    if (::lstat(entry.path().c_str(), &status) == 0 && S_ISREG(status.st_mode))
      last_write = std::max(last_write, status.st_mtime);
    if (is_part_record(name)) add_part(entry.path().string(), pack);
    if (!name_written_aside(name).empty()) pack.begun.push_back(begun_text(name));
  }
  if (pack.parts == 0 && pack.begun.empty()) return std::nullopt;
  std::ranges::sort(pack.begun);
  pack.last_write = time_text(last_write);
  return pack;
}

}  // namespace chunkhit
