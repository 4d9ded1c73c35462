#include "read/pack_files.h"

#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/hash.h"

namespace chunkhit {
namespace {

// A line end inside quotes ends no row.
std::uint64_t count_csv_rows(std::string_view text) {
  std::uint64_t lines = 0;
  bool quoted = false;
  for (const char letter : text) {
    if (letter == '"') quoted = !quoted;
    if (letter == '\n' && !quoted) ++lines;
  }
  return lines == 0 ? 0 : lines - 1;
}

}  // namespace

bool check_size(const std::string& path, std::uint64_t bytes, std::vector<std::string>& problems) {
  try {
    const std::uint64_t found = InputFile(path).byte_count();
    if (found != bytes)
      problems.push_back(path + ": has " + std::to_string(found) + " bytes, expected " +
                         std::to_string(bytes));
    return found == bytes;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;
    problems.emplace_back(error.what());
    return false;
  }
}

bool check_file(const std::string& path, std::uint64_t bytes, std::uint64_t xxh3,
                std::vector<std::string>& problems) {
  if (!check_size(path, bytes, problems)) return false;
  const std::uint64_t found = hash_file(path);
  if (found != xxh3)
    problems.push_back(path + ": checksum of the file " + hash_text(found) + ", expected " + hash_text(xxh3));
  return found == xxh3;
}

void check_unknown_files(const std::string& folder, const std::set<std::string>& known,
                         std::vector<std::string>& problems) {
  std::set<std::string> unknown_files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (!known.contains(entry.path().filename().string()))
      unknown_files.insert(entry.path().filename().string());
  for (const std::string& name : unknown_files)
    problems.push_back(folder + "/" + name + ": is not part of the pack");
}

void add_damaged(const std::string& folder, std::string_view name, VerifyReport& report) {
  const std::string path = folder + "/" + std::string(name);
  std::error_code error;
  if (std::filesystem::exists(path, error)) report.damaged.push_back(path);
}

void check_list(const std::string& folder, const FileRecord& file, std::uint64_t rows, VerifyReport& report) {
  const std::size_t problems = report.problems.size();
  const std::string path = folder + "/" + file.file;
  if (check_file(path, file.bytes, file.xxh3, report.problems)) {
    const ByteBuffer text = read_file(path, file.bytes);
    const std::uint64_t found = count_csv_rows(as_text(text));
    if (found != rows)
      report.problems.push_back(path + ": rows " + std::to_string(found) + ", expected " +
                                std::to_string(rows));
  }
  if (report.problems.size() > problems) add_damaged(folder, file.file, report);
}

}  // namespace chunkhit
