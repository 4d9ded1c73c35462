// IDX, the format of MNIST: an array of numbers behind its shape.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/text_stream.h"

namespace chunkhit {

/// Whether a file of this beginning is IDX, of bytes or of other numbers.
[[nodiscard]] bool is_idx(Bytes head);

/// Reads an IDX file from front to back, plain or compressed.
class IdxReader {
 public:
  /// Reads the shape; throws bad_data for what is no IDX file, or of no dimension, and what TextStream
  /// throws.
  explicit IdxReader(const std::string& path, const std::atomic<bool>* stop = nullptr);
  /// The sides, the count of items first; none is 0, and all bytes together are fewer than 2^63.
  [[nodiscard]] const std::vector<std::uint32_t>& shape() const { return shape_; }
  /// The type of its numbers: "uint8", "int8", "int16", "int32", "float32" or "float64".
  [[nodiscard]] std::string_view type() const;
  /// Reads the next number as text, such that the same number is read from it.
  [[nodiscard]] std::string read_number();
  /// Bytes of one item.
  [[nodiscard]] std::uint64_t item_bytes() const;
  /// Fills `out` with the next bytes; throws bad_data where the file ends before.
  void read(MutableBytes out);
  /// Throws bad_data where there is more than the shape says.
  void finish();
  /// Throws bad_data that begins with the path.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  TextStream stream_;
  std::uint8_t type_ = 0;
  std::vector<std::uint32_t> shape_;
  std::uint64_t taken_ = 0;  ///< bytes
};

}  // namespace chunkhit
