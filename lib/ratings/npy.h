// An array of a NumPy archive (.npz), read from front to back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/npy_header.h"
#include "ratings/zip_members.h"
#include "types/rating_block.h"

namespace chunkhit {

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
