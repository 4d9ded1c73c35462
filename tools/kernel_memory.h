// What the kernel holds for this process: pages of files, and memory.
#pragma once

#include <cstdint>
#include <string>

namespace chunkhit {

/// Asks the kernel to forget the pages of a file, or of a pack's files (a folder, or a manifest in it);
/// throws bad_data where there is nothing that can be opened. Gives the bytes that stayed in the page cache,
/// because some process maps them or they are in a tmpfs; 0 where the kernel does not report it.
[[nodiscard]] std::uint64_t drop_from_page_cache(const std::string& path);

/// The most memory that this process had in use so far, mapped files included; 0 where the system does not
/// tell.
[[nodiscard]] std::uint64_t peak_rss_bytes();

}  // namespace chunkhit
