// Kept columns in the index of a part of images. Layout: schemas/shard.md, "Index".
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "store/part_index.h"
#include "types/sample_column.h"

namespace chunkhit {

/// Columns that an index may have.
inline constexpr std::uint64_t kMaxKeptColumns = 1024;

/// Appends the columns behind the rest of an index; no bytes where there are none.
void append_columns(const std::vector<SampleColumn>& columns, ByteBuffer& bytes);

/// Reads what `append_columns` wrote of at least one column; throws bad_data.
[[nodiscard]] std::vector<SampleColumn> decode_columns(IndexCursor& cursor, std::uint64_t sample_count);

}  // namespace chunkhit
