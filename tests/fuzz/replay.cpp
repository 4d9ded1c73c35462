// Runs a fuzz target on every file of corpus folders, with any compiler: replay FOLDER...
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::uint8_t> file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  file.exceptions(std::ios::badbit | std::ios::failbit);
  std::vector<std::uint8_t> bytes(std::filesystem::file_size(path));
  if (!bytes.empty())
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

/// The file's name is flushed first, so that it stands last when the target ends the process.
void replay(const std::string& path) {
  std::printf("%s\n", path.c_str());
  std::fflush(stdout);
  const std::vector<std::uint8_t> bytes = file_bytes(path);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int count, char** folders) {
  if (count < 2) return 2;
  try {
    for (int folder = 1; folder < count; ++folder) {
      const std::vector<std::string> files = files_below(folders[folder]);
      if (files.empty()) {
        std::fprintf(stderr, "%s: no files, expected a corpus\n", folders[folder]);
        return 1;
      }
      for (const std::string& path : files) replay(path);
      std::printf("%zu inputs\n", files.size());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
