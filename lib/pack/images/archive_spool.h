// Containers of a list that are copied first: what is compressed, or cannot be read twice.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/file.h"
#include "base/spill_file.h"
#include "listing/sample_list.h"

namespace chunkhit {

/// Copies bytes into one file without a name, which lives as long as the containers that are ranges of it.
class ArchiveSpool {
 public:
  /// The file is made in `folder` once it is needed.
  ArchiveSpool(SampleList& list, std::string folder) : list_(list), folder_(std::move(folder)) {}
  /// Begins the copy of an input that needs so many bytes, or at least so many. Throws cannot_write where
  /// they are not free.
  void begin(const std::string& path, std::uint64_t bytes, bool is_least);
  /// Appends bytes; returns where they begin. Throws cannot_write.
  std::uint64_t append(Bytes bytes);
  /// Where the next bytes will begin.
  [[nodiscard]] std::uint64_t end() const { return end_; }
  /// Adds the copy to the list as a container; `source` is recorded for its samples.
  void add_container(const std::string& path, const FileStamp& source);
  /// All is copied: from now on a change of the file is an error.
  void finish();

 private:
  void remove_left_overs() const;

  SampleList& list_;
  std::string folder_;
  std::unique_ptr<SpillFile> file_;
  std::shared_ptr<const FileDescriptor> fd_;
  std::uint64_t end_ = 0;
};

}  // namespace chunkhit
