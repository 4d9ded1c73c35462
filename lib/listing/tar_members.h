// The members of a tar, and where in the file their bytes lie.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/file.h"

namespace chunkhit {

/// What a member of a tar is.
enum class TarKind : std::uint8_t { file, folder, link, hard_link, sparse, special };

/// A member of a tar.
struct TarMember {
  std::string name;    ///< path without "./" and "/" at its beginning
  std::string target;  ///< of a hard link: the name of the member that it is, too
  TarKind kind = TarKind::file;
  std::uint64_t offset = 0;  ///< of its bytes in the tar
  std::uint64_t bytes = 0;
};

/// Whether a file of this beginning (512 bytes or more) is a tar: v7, ustar, pax or GNU.
[[nodiscard]] bool is_tar(Bytes head);
/// Whether a file begins as a tar, as it is.
[[nodiscard]] bool is_tar(const InputFile& file);

/// Walks a tar from member to member; reads their headers, and skips their bytes.
class TarReader {
 public:
  /// Opens the tar in `bytes` of a file from `begin` on; `name` begins messages. Throws bad_data where its
  /// end is missing.
  TarReader(const InputFile& file, std::uint64_t begin, std::uint64_t bytes, std::string name);
  TarReader(const TarReader&) = delete;
  TarReader& operator=(const TarReader&) = delete;
  ~TarReader();
  /// Gives the next member; false behind the last. Throws bad_data, with the byte, where the tar is damaged
  /// or truncated, and what InputFile throws.
  [[nodiscard]] bool next(TarMember& member);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chunkhit
