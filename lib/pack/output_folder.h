// The folder of a pack while it is written: one writer, nothing foreign, finished parts kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "manifest/manifest.h"

namespace chunkhit {

/// "part-00000"
[[nodiscard]] std::string part_stem(std::uint64_t part_index);

/// Owns a pack's folder for the time of a run.
class OutputFolder {
 public:
  /// Creates the folder if need be and takes it: throws try_again when another process writes there,
  /// cannot_write when it holds what no pack holds. `force` removes an earlier pack; left-overs of killed
  /// runs are always removed.
  OutputFolder(const std::string& path, bool force);
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  /// The manifest of a finished pack.
  [[nodiscard]] std::optional<Manifest> finished_pack() const;
  /// A part that an earlier run of the same pack finished: its record is whole and its file has the recorded
  /// size. Throws cannot_write when the part was made with another spec, naming the first difference.
  [[nodiscard]] std::optional<PartRecord> finished_part(std::uint64_t part_index, std::uint64_t pack_id,
                                                        const std::vector<SpecEntry>& spec) const;
  /// Free bytes for this user on the file system.
  [[nodiscard]] std::uint64_t free_bytes() const;

 private:
  void take_lock();
  void check_entries(bool force) const;

  std::string path_;
  FileDescriptor lock_;
};

/// Throws cannot_write that names the first difference between an earlier pack's spec and this one.
[[noreturn]] void throw_other_pack(const std::string& path, const std::vector<SpecEntry>& before,
                                   const std::vector<SpecEntry>& now);

}  // namespace chunkhit
