// Any bytes as a .npz file: they end in blocks of ratings whose ids lie in the shape, or in an Error.
#include "fuzz/rating_blocks.h"
#include "ratings/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const chunkhit::MemoryFile file({data, size});
  chunkhit::check_reader([&] { return std::make_unique<chunkhit::NpzReader>(file.path(), false); });
  return 0;
}
