// A text file, plain or compressed, as a stream of bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"

namespace chunkhit {

/// Reads a file, or stdin for "-", from its beginning to its end. Gzip, zstd, xz and bzip2 are detected by
/// content and undone.
class TextStream {
 public:
  /// Opens the file; throws bad_data when it cannot be read, try_again when the machine cannot read it now.
  /// Once `stop` is set, stdin or a FIFO ends where it is, also while nothing comes or nobody writes.
  /// `is_latin1`: the text is ISO 8859-1, and given as UTF-8.
  explicit TextStream(const std::string& path, const std::atomic<bool>* stop = nullptr,
                      bool is_latin1 = false);
  ~TextStream();
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  /// The path, or "stdin".
  [[nodiscard]] const std::string& name() const;
  /// Fills the front of `out` and returns how many bytes, 0 at the end; throws as the constructor when the
  /// file cannot be read on, and bad_data when its compressed data are broken.
  [[nodiscard]] std::size_t read(MutableBytes out);
  /// The first bytes of the text, kHeadBytes or all that there are; `read` gives them too. Only before the
  /// first `read`.
  [[nodiscard]] Bytes head();
  static constexpr std::size_t kHeadBytes = std::size_t{64} << 10;
  /// How many bytes the text has, where that is known from the beginning: of a plain regular file in UTF-8.
  [[nodiscard]] std::optional<std::uint64_t> byte_count() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chunkhit
