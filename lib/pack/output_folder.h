// The folder of a pack while it is written: one writer, nothing external, finished parts kept; no pack in
// another pack.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "manifest/manifest.h"
#include "pack/pack_folder.h"

namespace chunkhit {

/// "part-00000"
[[nodiscard]] std::string part_stem(std::uint64_t part_index);

/// Throws usage when a folder is inside of a finished pack, where it would be an unknown file.
void check_outside_packs(const std::string& output);

/// The record of a part that a manifest lists; nothing where the part or its record is missing or another.
[[nodiscard]] std::optional<PartManifest> whole_part(const std::string& folder, const PackManifest& manifest,
                                                     const PartRecord& listed);

/// Owns a pack's folder for the time of a run.
class OutputFolder {
 public:
  /// Creates the folder if need be and takes it: throws try_again when another process writes there,
  /// cannot_write when it holds what no pack of this kind holds or no pack command wrote. `force` removes an
  /// earlier pack, of whatever kind; left-overs of killed runs are always removed. What a living process of
  /// this machine writes aside always stays, and so does what another machine wrote within a day, but under
  /// `force`: the lock is a courtesy that other machines may not see.
  /// `is_shared`: other processes write other parts of the same planned pack; the folder is made where it is
  /// missing, and nothing in it is looked at or removed.
  OutputFolder(const std::string& path, bool force, PackKind kind = PackKind::images, bool is_shared = false);
  /// Throws what the constructor would, cannot_write also where the folder could not be made, and changes
  /// nothing.
  static void check(const std::string& path, bool force, PackKind kind = PackKind::images);
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  /// Removes the folders that the constructor made where nothing was put into them.
  ~OutputFolder();
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  /// The manifest of a pack of images in a folder, merged or not; throws cannot_write where it holds
  /// matrices.
  [[nodiscard]] static std::optional<Manifest> held_images(const std::string& folder);
  /// The manifest of a finished pack of images, or of matrices, in a folder; throws cannot_write where it
  /// holds one of the other kind, or a merged one.
  [[nodiscard]] static std::optional<Manifest> finished_pack(const std::string& folder);
  [[nodiscard]] static std::optional<MatrixManifest> finished_matrix_pack(const std::string& folder);
  [[nodiscard]] std::optional<Manifest> finished_pack() const { return finished_pack(path_); }
  [[nodiscard]] std::optional<MatrixManifest> finished_matrix_pack() const {
    return finished_matrix_pack(path_);
  }
  /// Whether all that a manifest lists is there: each part in its size and with its record, and the tables.
  [[nodiscard]] bool is_whole(const PackManifest& manifest, const std::vector<FileRecord>& tables) const;
  /// Makes a finished pack unfinished: removes its manifest, then what of its parts is not whole.
  void reopen(const PackManifest& manifest) const;
  /// Makes a part unfinished, so that it is packed again.
  void remove_part(std::uint64_t part_index, std::string_view extension) const;
  /// Removes files of packs that are not among `names`: an earlier run that was killed published them.
  void remove_others(const std::set<std::string>& names) const;
  /// Removes what killed runs left.
  void remove_left_overs() const { remove_entries(false); }
  /// Removes all of a pack, the manifest first.
  void clear() const;
  /// The same, and the folder.
  void remove() const;
  /// The record of a part that an earlier run finished; throws bad_data when it is damaged.
  [[nodiscard]] static std::optional<PartManifest> part_manifest(const std::string& folder,
                                                                 std::uint64_t part_index);
  [[nodiscard]] std::optional<PartManifest> part_manifest(std::uint64_t part_index) const {
    return part_manifest(path_, part_index);
  }
  /// Whether there is such a file.
  [[nodiscard]] bool has(const std::string& name) const;
  /// Whether a file of this size is there.
  [[nodiscard]] bool holds(const std::string& name, std::uint64_t bytes) const;
  /// Names what another machine writes aside here, or left within a day; empty where there is nothing.
  [[nodiscard]] std::string other_writers_notice() const;
  /// Free bytes for this user on the file system.
  [[nodiscard]] std::uint64_t free_bytes() const;

 private:
  void remove_entries(bool all) const;

  std::string path_;
  std::vector<std::string> made_;  ///< folders that were not there before, the deepest first
  FileDescriptor lock_;
};

}  // namespace chunkhit
