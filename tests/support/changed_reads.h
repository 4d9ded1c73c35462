// A byte that storage gives otherwise than it was written: `pread` of chunks_ahead_test.cpp changes it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace chunkhit {

/// Whether the system tells of its page cache: `preadv2` of chunks_ahead_test.cpp.
inline std::atomic<bool> tells_of_page_cache{true};

inline constexpr std::int64_t kNoByte = -1;
inline std::atomic<std::int64_t> changed_byte{kNoByte};  // offset in every file
inline std::atomic<std::uint32_t> changed_period{1};     // each so many reads of it give another byte
inline std::atomic<std::uint32_t> changed_reads{0};      // reads of it

/// Changes the byte in what was read.
inline void change_read(std::uint8_t* out, ssize_t got, std::int64_t offset) {
  const std::int64_t at = changed_byte;
  if (at == kNoByte || got <= 0 || at < offset || at >= offset + got) return;
  if (++changed_reads % changed_period == 0) out[at - offset] ^= 4;
}

/// Changes a byte, in each of `period` reads of it, for as long as it lives.
class ChangedReads {
 public:
  explicit ChangedReads(std::uint64_t at, std::uint32_t period = 1) {
    changed_period = period;
    changed_reads = 0;
    changed_byte = static_cast<std::int64_t>(at);
  }
  ChangedReads(const ChangedReads&) = delete;
  ChangedReads& operator=(const ChangedReads&) = delete;
  ~ChangedReads() { changed_byte = kNoByte; }
};

}  // namespace chunkhit
