// One pack of a run, of images or of matrices: which pack it is, the parts that an earlier run of it
// finished, and how the others and the manifest are published.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "manifest/manifest.h"
#include "pack/output_folder.h"
#include "pack/pack_folder.h"
#include "store/part.h"

namespace chunkhit {

/// A pack that a folder holds, finished or begun.
struct EarlierPack {
  std::uint64_t pack_id = 0;
  const std::vector<SpecEntry>& spec;
  std::optional<std::uint64_t> rows;  ///< where they are known
};

/// The pack that a folder is to hold.
struct PackIdentity {
  std::string_view format;  ///< kImagesFormat, kMatrixFormat
  std::vector<SpecEntry> spec;
  std::uint64_t pack_id = 0;
  std::function<std::string(const EarlierPack& before)> difference;  ///< what differs, for messages
  /// Whether a finished part's record is one that this pack can have; a part with another is packed again.
  /// Empty: every record is.
  std::function<bool(const PartRecord& part, std::uint64_t part_index)> accepts{};
  /// Of a planned pack: throws where its plan is no longer there. A part of another pack is what an earlier
  /// plan's task left, and is packed again; so is a part whose record is damaged.
  std::function<void()> check_plan{};
};

/// The same for the same input and spec, whatever the machine.
[[nodiscard]] std::uint64_t pack_id(const std::vector<SpecEntry>& spec, std::uint64_t input_xxh3);

/// Throws cannot_write where a folder holds another pack, finished or begun; changes nothing.
void check_same_pack(const std::string& folder, const PackIdentity& wanted);

/// The absolute path of the folder of the images; empty where the system does not say it: a folder above may
/// be closed to this user.
[[nodiscard]] std::string absolute_root(const std::string& root);

/// How the run that packs was called, and when it began.
struct RunCall {
  std::string tool;
  std::string command_line;
  RunStart start;
  std::uint32_t threads = 1;
  std::string root{};  ///< absolute path of the folder of the images; empty: not known
};

/// A part whose file is complete, but not yet published.
struct CompleteRecord {
  PartRecord record;
  PendingFile file;
  std::optional<PendingFile> stamps{};  ///< of its inputs, published before it
};

/// Publishes a pack part by part. A run that ends early leaves the parts that it finished; the next run of
/// the same pack keeps them.
class PackRun {
 public:
  /// Throws cannot_write where the folder holds another pack.
  PackRun(const OutputFolder& folder, PackIdentity identity);
  [[nodiscard]] const PackIdentity& identity() const { return identity_; }
  /// The record of a part that an earlier run of this pack finished, that is accepted
  /// and whose file has the recorded size.
  [[nodiscard]] std::optional<PartRecord> finished_part(std::uint64_t part_index) const;
  /// Appends the next part; `is_kept`: an earlier run finished it.
  void add_part(PartRecord record, bool is_kept);
  /// Calls `complete`, which returns a CompleteRecord, in a thread of its own and publishes its part, so that
  /// the next part is packed meanwhile. The future's destructor waits for it.
  template <class Complete>
  [[nodiscard]] std::future<PartRecord> finish_part(std::uint64_t part_index, Complete complete) const {
    return std::async(std::launch::async, [this, part_index, complete = std::move(complete)]() mutable {
      return publish_part(part_index, complete());
    });
  }
  [[nodiscard]] const std::vector<PartRecord>& parts() const { return parts_; }
  /// Parts of them that an earlier run finished.
  [[nodiscard]] std::uint64_t parts_kept() const { return parts_kept_; }
  /// Fills in what manifests of both kinds hold, but rows and label columns.
  void describe(const RunCall& call, std::uint64_t input_xxh3, PackManifest& manifest) const;
  /// Publishes run.json and the manifest. Throws try_again where another process removed a part or a table.
  void publish(const PackManifest& manifest, const std::vector<FileRecord>& tables, std::string_view text,
               const RunCall& call) const;

 private:
  [[nodiscard]] std::optional<PartManifest> part_manifest(std::uint64_t part_index) const;
  [[nodiscard]] PartRecord publish_part(std::uint64_t part_index, CompleteRecord part) const;

  const OutputFolder& folder_;
  PackIdentity identity_;
  std::vector<PartRecord> parts_;
  std::uint64_t parts_kept_ = 0;
};

/// Copies what a writer reports of a part's file into the part's record.
void add_written(const PartReport& written, std::string file, PartRecord& record);

}  // namespace chunkhit
