// Verification of packs and parts.
#pragma once

#include <chunkhit/error.h>
#include <chunkhit/pack_info.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace chunkhit {

/// Options of verify_pack.
struct VerifyOptions {
  bool quick = false;         ///< check manifest, sizes and structure only, no samples
  std::uint32_t threads = 0;  ///< worker threads; 0: all available CPUs
  Hdf5Names names{};          ///< datasets of an external HDF5 file
  std::function<void(const std::string& part)> on_part;  ///< called before each part
};

/// Result of verify_pack: what was checked and what is wrong.
struct VerifyReport {
  std::uint64_t parts = 0;
  std::uint64_t chunks = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  /// External HDF5 file: without hashes and a manifest, changed samples go unnoticed unless they cannot be
  /// decoded.
  bool external = false;
  std::vector<std::string>
      problems;  ///< "part-00003.h5: chunk 17 (samples 1700-1799): checksum …, expected …"
  /// What is odd and no damage: files of runs that append packs, under way or killed.
  std::vector<std::string> notices;
  /// Files to remove so that rerunning the packing command rebuilds them: damaged files and the manifest.
  /// None of a merged pack, which no packing command makes.
  std::vector<std::string> remove_to_rebuild;
};

/// Formats VerifyReport as one JSON object of the field names.
[[nodiscard]] CHUNKHIT_API std::string verify_report_json(const VerifyReport& report);

/// Verifies a pack or a single part: manifest, sizes, hashes of files and chunks, decoding of every chunk,
/// statistics, unknown and missing files. An external HDF5 file is opened by pack-verify first, as
/// loaders do (image_loader.h). Throws bad_data only if there is
/// nothing to verify, and try_again if memory, descriptors or storage fail (also EIO): a problem is something
/// that was read and is wrong, never something that could not be read.
[[nodiscard]] CHUNKHIT_API VerifyReport verify_pack(const std::string& path,
                                                    const VerifyOptions& options = {});

/// Finds the packs that splits in a folder lack, by the specs of the packs beside them: path → problem.
/// Nothing where the path is a pack by itself. Throws try_again where a manifest cannot be read now.
[[nodiscard]] CHUNKHIT_API std::map<std::string, std::string> missing_packs(const std::string& path);

}  // namespace chunkhit
