// Whether the system says that it has files in its page cache: `preadv2` of chunks_ahead_test.cpp tells it.
#pragma once

#include <atomic>
#include <cstdint>

namespace chunkhit {

enum class SystemHasFiles : std::uint8_t { as_it_says, no, yes };
inline std::atomic<SystemHasFiles> system_has_files{SystemHasFiles::as_it_says};

}  // namespace chunkhit
