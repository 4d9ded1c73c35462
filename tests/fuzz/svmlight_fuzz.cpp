// Any bytes as an svmlight file: they end in blocks of ratings, or in an Error; a row has at most one label
// line.
#include "fuzz/rating_blocks.h"
#include "ratings/svmlight.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const chunkhit::MemoryFile file({data, size});
  chunkhit::check_reader([&] {
    return std::make_unique<chunkhit::SvmlightReader>(std::vector<std::string>{file.path()}, false);
  });
  return 0;
}
