// The header of an npy file: type, order and shape of NumPy's array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace chunkhit {

/// The type of an array's items, as NumPy writes it: "<f8".
struct NpyType {
  char kind = 0;            ///< b bool, i and u integers, f floats, S bytes, U characters of 4 bytes
  std::uint32_t bytes = 0;  ///< size of one item
  bool big_endian = false;
};

/// Fields of an npy header.
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

/// Begins every npy file.
inline constexpr std::string_view kNpyMagic = "\x93NUMPY";
/// The bytes before the length of the dictionary: magic and version.
inline constexpr std::size_t kNpyPreludeBytes = 8;
/// The longest dictionary that is read.
inline constexpr std::size_t kMaxNpyHeaderBytes = std::size_t{1} << 16;

/// Gives the bytes of the dictionary's length, behind the prelude: 2 or 4. Throws bad_data, with `location`
/// before it, where the prelude is not that of an npy file.
[[nodiscard]] std::size_t npy_length_bytes(Bytes prelude, const std::string& location);

/// Reads the dictionary: {'descr': '<f8', 'fortran_order': False, 'shape': (3,), }. Throws bad_data, with
/// `location` before it, for anything else, for objects (which only Python code could make) and for more than
/// 2^60 bytes.
[[nodiscard]] NpyHeader parse_npy_header(std::string_view dictionary, const std::string& location);

}  // namespace chunkhit
