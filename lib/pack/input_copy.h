// A copy on disk of an input whose format is not read from front to back: from stdin, or compressed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "input/text_stream.h"
#include "pack/spill_file.h"

namespace chunkhit {

/// Keeps the copy while this object lives.
class InputCopy {
 public:
  /// Copies a stream to a file without a name in `folder`, up to where `stop` was set, and tells on the way
  /// how many bytes there are; throws what reading throws, and cannot_write.
  InputCopy(TextStream& stream, const std::string& folder, const std::atomic<bool>* stop,
            const std::function<void(std::uint64_t)>& on_bytes);
  [[nodiscard]] std::uint64_t byte_count() const { return byte_count_; }
  /// By what this process and children that it forks open the copy.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// A message of what read the copy, with the input's own name.
  [[nodiscard]] std::string own_words(std::string message) const;

 private:
  SpillFile file_;
  std::string name_;
  std::string path_;
  std::uint64_t byte_count_ = 0;
};

}  // namespace chunkhit
