// Filling a SampleList row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "input/sample_list.h"

namespace chunkhit {

/// Takes the rows of an input list in their order: each is a sample or a reject.
class SampleRows {
 public:
  explicit SampleRows(SampleList& list) : list_(list) {}
  /// Adds the next row as a sample; its label is the caller's to add. Throws bad_data beyond 2^32 - 1 rows.
  void add(std::string_view file);
  /// Adds the next row as a reject.
  void reject(std::string_view file, std::vector<std::string> labels, std::string reason);

 private:
  SampleList& list_;
};

/// Hashes texts in a row, each behind its length in 64 bits, so that no two lists of texts look alike.
class TextHash {
 public:
  void add(std::string_view text);
  [[nodiscard]] std::uint64_t value();

 private:
  static constexpr std::size_t kBufferBytes = 65536;
  void flush();

  Xxh3Stream stream_;
  ByteBuffer buffer_;
};

/// Writes out the rows of a list whose rows have been its indices so far.
void write_rows(SampleList& list);

/// For each sample the index of the first one of the same file ("./a" is "a"); empty where none repeats.
[[nodiscard]] std::vector<std::uint32_t> first_samples_of_files(const SampleList& list);

/// Adds a notice when several samples name the same file, and of how many files their labels differ.
void notice_repeated_files(SampleList& list);

}  // namespace chunkhit
