// What specs and indexes of all payloads have in common, as bytes. Layout: schemas/shard.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
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
  explicit IndexCursor(Bytes bytes) : left_(bytes) {}

  std::uint64_t number() { return load_little<std::uint64_t>(take(1, 8).data()); }

  template <class Number>
  std::vector<Number> numbers(std::uint64_t count) {
    const Bytes bytes = take(count, sizeof(Number));
    std::vector<Number> result(count);
    if (count != 0) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }

  /// Names that end at `ends` of a text, which they must fill.
  TextList names(std::vector<std::uint64_t> ends, std::uint64_t text_bytes) {
    TextList names{std::string(as_text(take(text_bytes, 1))), std::move(ends)};
    const bool whole = names.ends.empty()
                           ? text_bytes == 0
                           : names.ends.back() == text_bytes && std::ranges::is_sorted(names.ends);
    if (!whole) throw_bad_index("names do not fill their text");
    return names;
  }

  Bytes take(std::uint64_t count, std::uint64_t item_bytes) {
    if (count > left_.size() / item_bytes)
      throw_bad_index("ends early: " + std::to_string(left_.size()) + " bytes left, expected " +
                      std::to_string(count) + " times " + std::to_string(item_bytes));
    const Bytes taken = left_.first(count * item_bytes);
    left_ = left_.subspan(taken.size());
    return taken;
  }

  [[nodiscard]] std::size_t left() const { return left_.size(); }

 private:
  Bytes left_;
};

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
