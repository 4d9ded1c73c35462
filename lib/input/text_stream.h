// A text file, plain or compressed, as a stream of bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/bytes.h"

namespace chunkhit {

/// Reads a file, or stdin for "-", from its beginning to its end. Gzip and zstd are told by content and
/// undone.
class TextStream {
 public:
  /// Opens the file; throws bad_data when it cannot be read.
  explicit TextStream(const std::string& path);
  ~TextStream();
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  /// The path, or "stdin".
  [[nodiscard]] const std::string& name() const;
  /// Fills the front of `out` and returns how many bytes, 0 at the end; throws bad_data when the file cannot
  /// be read on or its compressed data are broken.
  [[nodiscard]] std::size_t read(MutableBytes out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chunkhit
