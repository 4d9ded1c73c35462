// A pack that a run writes: its folder, which one writer owns and where nothing external is; what an earlier
// run finished of it; and how its parts and its manifest are published.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "manifest/manifest.h"
#include "pack/disk_space.h"
#include "pack/pack_folder.h"
#include "pack/run_frame.h"
#include "store/part.h"

namespace chunkhit {

/// A pack that a folder holds, finished or begun.
struct EarlierPack {
  std::uint64_t pack_id = 0;
  const RecordedSpec& spec;
  std::optional<std::uint64_t> rows;  ///< where they are known
};

/// Which pack it is.
struct PackIdentity {
  RecordedSpec spec;
  std::uint64_t pack_id = 0;
  std::string codec_library{};  ///< PartRecord::codec_library of its parts
  std::function<std::string(const EarlierPack& before)> difference{};  ///< what differs, for messages
  /// Whether a finished part's record is one that this pack can have; a part with another is packed again.
  /// Empty: every record is.
  std::function<bool(const PartRecord& part, std::uint64_t part_index)> accepts{};
  /// Of a planned pack: throws where its plan is no longer there. A part of another pack is what an earlier
  /// plan's task left, and is packed again; so is a part whose record is damaged.
  std::function<void()> check_plan{};
};

/// A part whose file is complete, but not yet published.
struct CompleteRecord {
  PartRecord record;
  PendingFile file;
  std::optional<PendingFile> stamps{};  ///< of its inputs, published before it
};

/// Whether a file of this size is there.
[[nodiscard]] bool has_size(const std::string& path, std::uint64_t bytes);

/// "part-00000"
[[nodiscard]] std::string part_stem(std::uint64_t part_index);

/// The same for the same input and spec, whatever the machine.
[[nodiscard]] std::uint64_t pack_id(const RecordedSpec& spec, std::uint64_t input_xxh3);

/// The folder of a run's pack: the output, or one below it for a split.
[[nodiscard]] std::string pack_path(const std::string& output, const std::string& pack_name);

/// Throws usage when a folder is inside of a finished pack, where it would be an unknown file, or on a
/// server.
void check_outside_packs(const std::string& output);

/// How far a pack is that could not be written.
struct FinishedParts {
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t rows = 0;
  void add(const PartRecord& part) { *this = {count + 1, bytes + part.bytes, rows + part.rows}; }
};

/// Throws an error of writing parts again; it says what becomes of those that are finished, and which room
/// the rows take that are left.
[[noreturn]] void throw_resumable(const Error& error, const FinishedParts& finished, std::uint64_t rows_left);

/// Throws usage where an input is a URL, and says how it becomes a file. `option` names it.
void check_local_input(const char* option, const std::string& input);

/// Throws cannot_write where a folder holds another pack, finished or begun; changes nothing.
void check_same_pack(const std::string& folder, const PackKind& kind, const PackIdentity& wanted);

/// The pack in a folder, merged or not; throws cannot_write where it is of another kind.
[[nodiscard]] std::optional<AnyManifest> held_pack(const std::string& folder, const PackKind& kind);

/// The same of a pack that a packing command finished: throws cannot_write for a merged one, too.
[[nodiscard]] std::optional<AnyManifest> finished_pack(const std::string& folder, const PackKind& kind);

/// The record of a part that an earlier run finished; throws bad_data when it is damaged.
[[nodiscard]] std::optional<PartManifest> part_manifest(const std::string& folder, std::uint64_t part_index);

/// The same of a part of a planned pack, whole and in its size: other and damaged records count as missing.
[[nodiscard]] std::optional<PartManifest> planned_part(const std::string& folder, const PackKind& kind,
                                                       std::uint64_t pack_id, std::uint64_t part_index);

/// The record of a part that a manifest lists; nothing where the part or its record is missing or another.
[[nodiscard]] std::optional<PartManifest> whole_part(const std::string& folder, const PackManifest& manifest,
                                                     const PartRecord& listed);

/// Copies what a writer reports of a part's file into the part's record.
void add_written(const PartReport& written, std::string file, PartRecord& record);

/// Owns a pack's folder for the time of a run, and publishes the pack part by part. A run that ends early
/// leaves the parts that it finished; the next run of the same pack keeps them.
class OutputPack {
 public:
  /// Creates the folder if need be and takes it: throws try_again when another process writes there,
  /// cannot_write when it holds what no pack of this kind holds or no pack command wrote. `force` removes an
  /// earlier pack, of whatever kind; left-overs of killed runs are always removed. What a living process of
  /// this machine writes aside always stays, and so does what another machine wrote within a day, but under
  /// `force`: the lock is a courtesy that other machines may not see.
  /// `is_shared`: other processes write other parts of the same planned pack; the folder is made where it is
  /// missing, and nothing in it is looked at or removed.
  OutputPack(const PackKind& kind, const std::string& path, bool force, bool is_shared = false);
  /// Throws what the constructor would, cannot_write also where the folder could not be made, and changes
  /// nothing.
  static void check(const PackKind& kind, const std::string& path, bool force);
  OutputPack(const OutputPack&) = delete;
  OutputPack& operator=(const OutputPack&) = delete;
  /// Removes the folders that the constructor made where nothing was put into them.
  ~OutputPack();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  /// Whether there is such a file.
  [[nodiscard]] bool has(std::string_view name) const { return file_exists(file(name)); }
  /// Names what another machine writes aside here, or left within a day, and says which parts another
  /// version of the codec's library compressed.
  [[nodiscard]] std::vector<std::string> notices() const;
  /// Throws cannot_write where the disk cannot hold it: before a part is begun, not after hours of packing.
  void check_space(const SpaceNeed& need) const;

  /// Says which pack the folder is to hold; throws cannot_write where it holds another one, unless planned.
  void identify(PackIdentity identity);
  [[nodiscard]] const PackIdentity& identity() const { return identity_; }
  [[nodiscard]] std::optional<AnyManifest> finished() const { return finished_pack(path_, kind_); }
  /// Whether all that a manifest lists is there: each part in its size and with its record, and the tables.
  [[nodiscard]] bool is_whole(const PackManifest& manifest, const std::vector<FileRecord>& tables) const;
  /// The record of a part that an earlier run of this pack finished, that is accepted
  /// and whose file has the recorded size.
  [[nodiscard]] std::optional<PartRecord> finished_part(std::uint64_t part_index) const;

  /// Makes a finished pack unfinished: removes its manifest, then what of its parts is not whole.
  void reopen(const PackManifest& manifest) const;
  /// Makes a part unfinished, so that it is packed again.
  void remove_part(std::uint64_t part_index, std::string_view extension) const;
  /// Removes files of packs that are neither of the manifest nor among its tables: an earlier run that was
  /// killed published them.
  void remove_others(const PackManifest& manifest, const std::vector<FileRecord>& tables) const;
  /// Removes what killed runs left.
  void remove_left_overs() const { remove_entries(false); }
  /// Removes all of a pack, the manifest first.
  void clear() const { remove_entries(true); }
  /// The same, and the folder.
  void remove() const;

  /// Appends the next part; `is_kept`: an earlier run finished it.
  void add_part(PartRecord record, bool is_kept);
  [[nodiscard]] const std::vector<PartRecord>& parts() const { return parts_; }
  /// Parts of them that an earlier run finished.
  [[nodiscard]] std::uint64_t parts_kept() const { return parts_kept_; }
  /// Calls `complete`, which returns a CompleteRecord, in a thread of its own and publishes its part, so that
  /// the next part is packed meanwhile. The future's destructor waits for it.
  template <class Complete>
  [[nodiscard]] std::future<PartRecord> finish_part(std::uint64_t part_index, Complete complete) const {
    return std::async(std::launch::async, [this, part_index, complete = std::move(complete)]() mutable {
      return publish_part(part_index, complete());
    });
  }
  /// Fills in what manifests of both kinds hold, but rows and label columns.
  void describe(const RunFrame& frame, std::uint64_t input_xxh3, PackManifest& manifest) const;
  /// Publishes run.json and the manifest. Throws try_again where another process removed a part or a table.
  void publish(const PackManifest& manifest, const std::vector<FileRecord>& tables, std::string_view text,
               const RunFrame& frame) const;

 private:
  void remove_entries(bool all) const;
  [[nodiscard]] std::string other_writers_notice() const;
  [[nodiscard]] std::string other_codecs_notice() const;
  [[nodiscard]] PartRecord publish_part(std::uint64_t part_index, CompleteRecord part) const;

  const PackKind& kind_;
  std::string path_;
  std::vector<std::string> made_;  ///< folders that were not there before, the deepest first
  FileDescriptor lock_;
  PackIdentity identity_;
  std::vector<PartRecord> parts_;
  std::uint64_t parts_kept_ = 0;
};

}  // namespace chunkhit
