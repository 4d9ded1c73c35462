// Checks packs and parts of user-item matrices.
#pragma once

#include <string>

#include "chunkhit/verify.h"
#include "manifest/manifest.h"

namespace chunkhit {

/// Checks a pack of matrices: files, hashes, every row block or HDF5 matrix, counts.
[[nodiscard]] VerifyReport verify_matrix_pack(const std::string& folder, const MatrixManifest& manifest,
                                              const VerifyOptions& options);

/// Checks a single part of matrices. Of an external file it was seen before that it can be opened.
[[nodiscard]] std::vector<std::string> check_lone_matrix_part(const std::string& path,
                                                              const VerifyOptions& options);

/// Returns whether a single part holds matrices; false where that cannot be told.
[[nodiscard]] bool is_matrix_part(const std::string& path);

}  // namespace chunkhit
