// An array of a NumPy archive (.npz), read from front to back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ratings/zip_members.h"
#include "types/rating_block.h"

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

/// The bytes before the dictionary: magic, version, length.
inline constexpr std::size_t kNpyPreludeBytes = 8;

/// Reads the dictionary: {'descr': '<f8', 'fortran_order': False, 'shape': (3,), }. Throws bad_data, with
/// `location` before it, for anything else, for objects (which only Python code could make) and for more than
/// 2^60 bytes.
[[nodiscard]] NpyHeader parse_npy_header(std::string_view dictionary, const std::string& location);

/// Reads the numbers of MEMBER of a .npz file, whatever their type and byte order.
class NpyArray {
 public:
  /// Reads the header; throws bad_data.
  NpyArray(const std::string& path, const std::string& member);
  [[nodiscard]] const NpyHeader& header() const { return header_; }
  [[nodiscard]] std::uint64_t count() const { return header_.count(); }
  [[nodiscard]] const std::string& location() const { return member_.location(); }
  /// Fills `numbers` with the next ones; the caller asks for no more than `count` in all. Throws bad_data for
  /// what is no number of this kind, or not there.
  void read(std::span<float> numbers);
  void read(std::span<std::int64_t> numbers);
  /// Reads a single text of ASCII, as bytes or characters; throws bad_data when it is none.
  [[nodiscard]] std::string read_text();
  /// Floats so far that no 32-bit float is equal to.
  [[nodiscard]] const RoundedValues& rounded() const { return rounded_; }
  /// Throws "FILE: MEMBER: what".
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  [[nodiscard]] Bytes read_raw(std::uint64_t item_count);
  void fill(MutableBytes out);

  ZipMember member_;
  NpyHeader header_;
  ByteBuffer raw_;
  std::uint64_t remaining_ = 0;  // items
  RoundedValues rounded_;
};

}  // namespace chunkhit
