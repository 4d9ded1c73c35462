// A row of the input that was not packed, or not without a warning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chunkhit {

/// Why no sample was made of a row.
enum class RejectKind : std::uint8_t {
  other,       ///< recorded by a build that knew no kinds
  row,         ///< its label, name or members, before any file is opened
  missing,     ///< no such file
  unreadable,  ///< denied, a folder, outside of `root`
  empty,
  changed,  ///< while it was read
  unknown_type,
  unsupported,  ///< a variant of a known type
  damaged,      ///< malformed, or it ends early
  too_large,    ///< over a limit of pixels or bytes
  too_slow,     ///< over the limit of seconds
  no_pair,      ///< its mask or view is missing
  shape,        ///< sizes or channels do not fit the samples, or its image
  values,       ///< of another type, or not of 8 bits
};

/// A row that cannot be packed, known before any file is opened or after; in a list of warnings, one that was
/// packed.
struct Reject {
  std::uint64_t row = 0;            ///< zero-based row of the input list
  std::string file;                 ///< file as in the input list
  std::vector<std::string> labels;  ///< labels as in the input list
  std::string reason;
  RejectKind kind = RejectKind::row;
};

}  // namespace chunkhit
