#include "store/index_fields.h"

namespace chunkhit {

void append_chunks(ByteBuffer& bytes, const std::vector<StoredChunk>& chunks) {
  for (const StoredChunk& chunk : chunks)
    for (const std::uint64_t number : {chunk.offset, chunk.stored_bytes, chunk.raw_bytes, chunk.first_sample,
                                       chunk.sample_count, chunk.xxh3, std::uint64_t{chunk.filtered}})
      append_little(bytes, number);
}

std::vector<StoredChunk> decode_chunks(IndexCursor& cursor, std::uint64_t count) {
  IndexCursor table(cursor.take(count, 56));
  std::vector<StoredChunk> chunks(count);
  for (StoredChunk& chunk : chunks) {
    for (std::uint64_t* number : {&chunk.offset, &chunk.stored_bytes, &chunk.raw_bytes, &chunk.first_sample,
                                  &chunk.sample_count, &chunk.xxh3})
      *number = table.number();
    const std::uint64_t flags = table.number();
    if (flags > 1) throw_bad_index("chunk flags " + std::to_string(flags) + ", expected 0 or 1");
    chunk.filtered = flags == 1;
  }
  return chunks;
}

Names names_of(const std::vector<std::string>& list) {
  Names names;
  for (const std::string& name : list) names.add(name);
  return names;
}

std::vector<std::string> list_of(const Names& names) {
  std::vector<std::string> list;
  list.reserve(names.count());
  for (std::size_t i = 0; i < names.count(); ++i) list.emplace_back(names[i]);
  return list;
}

}  // namespace chunkhit
