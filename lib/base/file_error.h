// Why a file cannot be used.
#pragma once

#include <cstdint>
#include <string>

namespace chunkhit {

/// What is certainly wrong with a file; what may be the machine's error is an exception.
struct FileError {
  enum class Kind : std::uint8_t {
    none,
    no_name,
    nul_in_name,
    missing,
    below_no_folder,  ///< missing, as a part of its path is not a folder
    outside,          ///< its path leads out of the folder
    circular,
    denied,
    folder,
    not_regular,
    empty,
    changed,
    other,
  };
  Kind kind = Kind::none;
  int error_number = 0;  ///< where `other`

  explicit operator bool() const { return kind != Kind::none; }
  [[nodiscard]] bool is_missing() const { return kind == Kind::missing || kind == Kind::below_no_folder; }
  /// "no such file"; empty where there is none.
  [[nodiscard]] std::string reason() const;
};

}  // namespace chunkhit
