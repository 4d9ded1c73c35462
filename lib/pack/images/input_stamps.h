// part-NNNNN.inputs: sizes and times of the files that a part was made of, so that a repeated run sees what
// changed. Layout: schemas/manifest.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "listing/root_folder.h"
#include "listing/sample_list.h"
#include "pack/images/mask_decoder.h"

namespace chunkhit {

/// Which part stamps belong to.
struct StampedPart {
  std::uint64_t pack_id = 0;
  std::uint64_t part_index = 0;
};

/// Writes aside the stamps of a part's rows, in the order of packing.
[[nodiscard]] PendingFile write_stamps(const std::string& path, const StampedPart& part,
                                       std::span<const FileStamp> stamps);

/// Reads them; nothing where the file is missing, damaged, of another part or of other rows.
[[nodiscard]] std::optional<std::vector<FileStamp>> read_stamps(const std::string& path,
                                                                const StampedPart& part,
                                                                std::size_t row_count);

/// Gives those of the rows `indices` whose files are not as `stamps` say, in order; several threads look.
/// Throws MachineError.
[[nodiscard]] std::vector<std::uint32_t> find_changed(const InputFolders& folders, const SampleList& list,
                                                      std::span<const std::uint32_t> indices,
                                                      std::span<const FileStamp> stamps);

/// Names a few of the files that changed, in `part_count` parts. `may_be_folders`: other folders of fields
/// may have been given.
[[nodiscard]] std::string changed_text(const std::vector<std::string>& files, std::uint64_t part_count,
                                       bool may_be_folders);

}  // namespace chunkhit
