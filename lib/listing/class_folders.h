// Which files of class folders are listed, by their names alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace chunkhit {

/// Chooses files by globs, or leaves out what is evidently no image, and counts what it left out.
class FileNames {
 public:
  /// `include`: globs, of names where they have no slash, else of whole paths; empty: all but files that are
  /// evidently no images.
  explicit FileNames(std::vector<std::string> include) : include_(std::move(include)) {}
  /// Whether a file is listed.
  [[nodiscard]] bool take(const std::string& path);
  /// How many files were left out.
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }
  /// What a user should know of the files that were left out; none where there are none.
  [[nodiscard]] std::vector<std::string> notices() const;

 private:
  std::vector<std::string> include_;
  std::uint64_t left_out_ = 0;
  std::string first_;
  std::map<std::string, std::uint64_t> kinds_;  ///< left out by their names: ".txt", "Thumbs.db"
};

/// Gives the kind of a name that is evidently no image's: its extension (".txt") or itself ("Thumbs.db"), in
/// lower case; empty for all else.
[[nodiscard]] std::string evident_kind(std::string_view name);

}  // namespace chunkhit
