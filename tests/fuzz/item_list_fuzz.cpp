// Any bytes as items.csv end in a list of ids and of counts, equally many, or in an Error.
#include <optional>
#include <string>
#include <vector>

#include "fuzz/rating_blocks.h"
#include "manifest/id_list.h"
#include "pack/id_lists.h"

namespace {

using namespace chunkhit;

template <class Read>
auto list_of(Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    require(error.code() == ErrorCode::bad_data);
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes(data, size);
  const MemoryFile file(bytes);
  const auto ids = list_of([&] { return read_item_ids(file.path()); });
  const std::uint64_t count = ids ? ids->size() : 3;
  const auto counts = list_of([&] { return parse_item_counts(as_text(bytes), "items.csv", count); });
  require(!counts || counts->size() == count);
  return 0;
}
