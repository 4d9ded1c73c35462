// GIF's variant of LZW (Welch 1984; GIF89a specification, appendix F).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace chunkhit {

/// Memory that undo_lzw uses for its table.
inline constexpr std::size_t kLzwTableBytes = std::size_t{4096} * 6;

/// Fills `out` from codes that begin with `code_bits` + 1 bits (code_bits 1..8), and returns how many bytes
/// it has filled: fewer than out.size() when the data ends early or holds an impossible code. Goes on with a
/// full table when no clear code comes (deferred clear).
[[nodiscard]] std::size_t undo_lzw(Bytes data, unsigned code_bits, MutableBytes out);

}  // namespace chunkhit
