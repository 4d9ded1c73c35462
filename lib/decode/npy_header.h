// The header of a NumPy array file (.npy, versions 1 to 3).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chunkhit {

/// The type of an array's items, as NumPy writes it: "<f8".
struct NpyType {
  char kind = 0;            ///< b bool, i and u integers, f floats, S bytes, U characters of 4 bytes
  std::uint32_t bytes = 0;  ///< of one item
  bool big_endian = false;
};

/// What a header says.
struct NpyHeader {
  std::string descr;  ///< the type as written
  NpyType type;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
  [[nodiscard]] std::uint64_t count() const {
    std::uint64_t count = 1;
    for (const std::uint64_t side : shape) count *= side;
    return count;
  }
};

/// The bytes before the dictionary: magic, version, length.
inline constexpr std::size_t kNpyPreludeBytes = 8;

/// Reads the dictionary: {'descr': '<f8', 'fortran_order': False, 'shape': (3,), }. Throws bad_data, with
/// `place` before it, for anything else, for objects (which only Python code could make) and for more than
/// 2^60 bytes.
[[nodiscard]] NpyHeader parse_npy_header(std::string_view dictionary, const std::string& place);

}  // namespace chunkhit
