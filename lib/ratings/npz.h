// Sparse matrices of scipy's save_npz (.npz), and the ZIP members and arrays that they consist of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/npy_header.h"
#include "ratings/entry_collector.h"
#include "ratings/rating_reader.h"
#include "types/rating_block.h"

namespace chunkhit {

/// Lists the names of a ZIP file's members; throws bad_data when it is none, or has a name twice.
[[nodiscard]] std::vector<std::string> list_zip_members(const std::string& path);

/// Reads one member, undone, through a descriptor of its own, so that several can be read side by side.
class ZipMember {
 public:
  /// Finds the member; throws bad_data when the file has none of that name.
  ZipMember(const std::string& path, const std::string& name);
  ZipMember(ZipMember&&) noexcept;
  ~ZipMember();
  /// Fills the front of `out` and returns how many bytes, 0 at the end; throws bad_data when the member is
  /// broken, which a flipped byte shows only at its end.
  [[nodiscard]] std::size_t read(MutableBytes out);
  /// "FILE: MEMBER", for messages.
  [[nodiscard]] const std::string& location() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

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

/// Reads csr, csc and coo matrices without holding their arrays. Ids are rows and columns, from 0.
class NpzReader : public RatingReader {
 public:
  /// Reads what the arrays are; throws bad_data.
  NpzReader(const std::string& path, bool transpose);
  NpzReader(const NpzReader&) = delete;
  NpzReader& operator=(const NpzReader&) = delete;
  [[nodiscard]] bool next(RatingBlock& block) override;

 private:
  void open_arrays();
  [[nodiscard]] bool has(const char* name) const { return arrays_.contains(name); }
  [[nodiscard]] NpyArray& array(const char* name);
  /// An array of one dimension.
  [[nodiscard]] NpyArray& list(const char* name);
  [[nodiscard]] std::string read_format();
  void read_shape(const std::string& format);
  [[nodiscard]] EntrySource open_compressed(bool by_columns);
  [[nodiscard]] EntrySource open_coordinates();
  void require_count(const char* name, std::uint64_t expected);
  [[noreturn]] void refuse(const std::string& what) const;

  std::string path_;
  std::map<std::string, NpyArray, std::less<>> arrays_;
  ArrayShape shape_;
  std::uint64_t found_columns_ = 0;
  bool transpose_;
  bool at_end_ = false;
  EntryCollector collector_;
  EntrySource entries_;
};

}  // namespace chunkhit
