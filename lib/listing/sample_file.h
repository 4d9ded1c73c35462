// The bytes of a list's samples: files below a root folder, or ranges of container files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "listing/root_folder.h"
#include "listing/sample_list.h"

namespace chunkhit {

/// A sample whose bytes can be read, or why they cannot: then `error` is not empty and the rest means
/// nothing.
struct SampleFile {
  std::string error;
  std::uint64_t bytes = 0;
  FileStamp stamp;  ///< of the file, or of the container
  RootFolder::File file;
  const SampleContainer* container = nullptr;  ///< of the list, which outlives this; none: `file`
  std::uint64_t offset = 0;                    ///< in the container
  /// Reads all of it into `buffer` (resized); returns an empty text, or what went wrong with a file. Throws
  /// MachineError, and bad_data where the container is not as it was when the list was made.
  [[nodiscard]] std::string read(ByteBuffer& buffer) const;
};

/// Opens a sample. Throws MachineError, and bad_data for a range that does not lie in its container.
/// Thread-safe.
[[nodiscard]] SampleFile open_sample(const RootFolder& root, const SampleList& list, std::size_t index);

/// The stamp of a sample without opening it; throws MachineError. Thread-safe.
[[nodiscard]] FileStamp stamp_sample(const RootFolder& root, const SampleList& list, std::size_t index);

/// Opens a container as it is now: samples that are read from it later are an error where it has changed.
/// Throws as InputFile.
[[nodiscard]] SampleContainer open_container(const std::string& path);

/// Takes an open file as a container whose samples are stamped as those of `source` are.
[[nodiscard]] SampleContainer make_container(InputFile file, const FileStamp& source);

}  // namespace chunkhit
