// Whether the files of a pack are those that its manifest lists.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "chunkhit/pack.h"
#include "manifest/manifest.h"

namespace chunkhit {

/// Says whether a file has the bytes that a manifest says.
bool check_size(const std::string& path, std::uint64_t bytes, std::vector<std::string>& problems);

/// Says whether a file has the bytes and the checksum that a manifest says.
bool check_file(const std::string& path, std::uint64_t bytes, std::uint64_t xxh3,
                std::vector<std::string>& problems);

/// Names files that are no part of the pack.
void check_unknown_files(const std::string& folder, const std::set<std::string>& known,
                         std::vector<std::string>& problems);

/// Lists a file among those to remove, if it is there.
void add_damaged(const std::string& folder, std::string_view name, VerifyReport& report);

/// Checks a CSV beside the parts: bytes, checksum, and rows below its header.
void check_list(const std::string& folder, const FileRecord& file, std::uint64_t rows, VerifyReport& report);

}  // namespace chunkhit
