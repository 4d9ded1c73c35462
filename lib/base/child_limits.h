// What a child process changes of itself: its signals, its time, where the C library complains.
#pragma once

#include <cstdint>

namespace chunkhit {

/// On the wall a child may take so many times its CPU time.
inline constexpr std::uint32_t kWallFactor = 30;

/// Makes the calling process, just forked, a child that crashes and ends without a sound: its parent's
/// signals are the parent's business, nothing goes to stderr, and once the parent is gone it ends within a
/// second, whatever it does. `max_seconds` as in ChildOptions; `line_end` is a descriptor to leave alone.
void become_child(std::uint32_t max_seconds, int line_end);

/// Lets the calling process take so much more memory than it has; nothing where a sanitizer takes its own.
void limit_memory(std::uint64_t bytes);

/// In a child with limited time: it begins anew. Elsewhere nothing.
void allow_more_time();

/// In a child with limited time: it stands still until `allow_more_time`. Elsewhere nothing.
void stop_time();

}  // namespace chunkhit
