// A folder for one test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace chunkhit {

/// Makes an empty folder (below TMPDIR or /tmp) that is removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "chunkhit-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error(path_ + ": cannot be made");
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Gives the full path of something in the folder.
  [[nodiscard]] std::string path(std::string_view relative) const {
    return path_ + "/" + std::string(relative);
  }
  /// Makes a folder and its parents; gives its full path.
  std::string make_folder(std::string_view relative) const {
    std::filesystem::create_directories(path(relative));
    return path(relative);
  }
  /// Writes a file and the folders above it; gives its full path.
  std::string write(std::string_view relative, std::string_view content) const {
    const std::string file = path(relative);
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream stream(file, std::ios::binary);
    stream << content;
    if (!stream.flush()) throw std::runtime_error(file + ": cannot be written");
    return file;
  }

 private:
  std::string path_;
};

}  // namespace chunkhit
