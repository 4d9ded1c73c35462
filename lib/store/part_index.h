// What specs and indexes of all payloads have in common, as bytes. Layout: schemas/shard.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/throw_error.h"
#include "store/part.h"
#include "types/sample_column.h"

namespace chunkhit {

[[noreturn]] inline void throw_bad_index(const std::string& what) { throw_bad_data("index: " + what); }

// Kinds of labels.
inline constexpr std::uint64_t kClassIds = 0;
inline constexpr std::uint64_t kNumbers = 1;

/// Takes what an index says from the front of its bytes, never more than there are; throws bad_data where it
/// ends early.
class IndexCursor {
 public:
  explicit IndexCursor(Bytes bytes) : ready_(bytes), left_(bytes.size()) {}
  /// An index of a file: a local one is read piece by piece, a remote one at once.
  IndexCursor(const InputFile& file, std::uint64_t offset, std::uint64_t byte_count);

  std::uint64_t number() {
    check_left(1, sizeof(std::uint64_t));
    std::uint64_t number = 0;
    fill({reinterpret_cast<std::uint8_t*>(&number), sizeof number});
    return number;
  }

  template <class Number>
  std::vector<Number> numbers(std::uint64_t count) {
    check_left(count, sizeof(Number));
    std::vector<Number> result(count);
    fill({reinterpret_cast<std::uint8_t*>(result.data()), count * sizeof(Number)});
    return result;
  }

  /// Names that end at `ends` of a text, which they must fill.
  TextList names(std::vector<std::uint64_t> ends, std::uint64_t text_bytes) {
    check_left(text_bytes, 1);
    TextList names{std::string(text_bytes, '\0'), std::move(ends)};
    fill({reinterpret_cast<std::uint8_t*>(names.text.data()), text_bytes});
    const bool whole = names.ends.empty()
                           ? text_bytes == 0
                           : names.ends.back() == text_bytes && std::ranges::is_sorted(names.ends);
    if (!whole) throw_bad_index("names do not fill their text");
    return names;
  }

  /// They are valid until more is taken.
  Bytes take(std::uint64_t count, std::uint64_t item_bytes);

  [[nodiscard]] std::uint64_t left() const { return left_; }

  /// Throws bad_data unless this is the hash of the file's index, also of what was not taken.
  void check_hash(std::uint64_t expected);

 private:
  void check_left(std::uint64_t count, std::uint64_t item_bytes) const {
    if (count > left_ / item_bytes)
      throw_bad_index("ends early: " + std::to_string(left_) + " bytes left, expected " +
                      std::to_string(count) + " times " + std::to_string(item_bytes));
  }
  void fill(MutableBytes out);
  void read(MutableBytes out);

  Bytes ready_;  // what was read and not taken
  std::uint64_t left_;
  const InputFile* file_ = nullptr;
  std::uint64_t offset_ = 0;  // of what is read next
  std::uint64_t end_ = 0;
  std::size_t piece_bytes_ = 0;
  ByteBuffer piece_, taken_;
  Xxh3Stream hash_;
};

/// Decodes the index of a file. Where its hash is another one, the error says that and not what it led to.
template <class Decode>
auto decode_file_index(IndexCursor cursor, std::uint64_t xxh3, const Decode& decode) {
  try {
    auto decoded = decode(cursor);
    cursor.check_hash(xxh3);
    return decoded;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::try_again) cursor.check_hash(xxh3);
    throw;
  }
}

/// Writes the table of a part's chunks.
void append_chunks(ByteBuffer& bytes, const std::vector<StoredChunk>& chunks);

/// Reads it; throws bad_data.
[[nodiscard]] std::vector<StoredChunk> decode_chunks(IndexCursor& cursor, std::uint64_t count);

/// Turns names into one buffer, and back.
[[nodiscard]] TextList names_of(const std::vector<std::string>& list);
[[nodiscard]] std::vector<std::string> list_of(const TextList& names);

// What a sample consists of, in bytes 28–31 of a spec of images; 0 stands for an image of the part's shape.
inline constexpr std::size_t kFieldsAt = 28;
inline constexpr std::uint32_t kImageAlone = 1;

/// Writes all of a spec but the names of classes and columns and the cache advice.
[[nodiscard]] PartSpecBytes encode_part_spec(const PartSpec& spec);

/// Reads it; throws bad_data. Names of classes and columns are in the index.
[[nodiscard]] PartSpec decode_part_spec(SampleKind kind, const PartSpecBytes& bytes);

/// Columns that an index may have.
inline constexpr std::uint64_t kMaxKeptColumns = 1024;

/// Appends the columns behind the rest of an index; no bytes where there are none.
void append_columns(const std::vector<SampleColumn>& columns, ByteBuffer& bytes);

/// Reads what `append_columns` wrote of at least one column; throws bad_data.
[[nodiscard]] std::vector<SampleColumn> decode_columns(IndexCursor& cursor, std::uint64_t sample_count);

}  // namespace chunkhit
