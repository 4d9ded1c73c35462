// HDF5's checksum filter: the bytes, then four of checksum, least first.
#pragma once

#include "base/bytes.h"

namespace chunkhit {

inline constexpr std::uint64_t kFletcher32Bytes = 4;

/// Gives the bytes before their checksum; throws bad_data when it does not fit them.
[[nodiscard]] Bytes check_fletcher32(Bytes stored);

}  // namespace chunkhit
