// The head and body of a server's answer: any bytes, cut into lines as libcurl does.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/remote/http_response.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace chunkhit;
  std::string_view left(reinterpret_cast<const char*>(bytes), size);
  HttpResponse response;
  while (!left.empty() && !left.starts_with("\r\n")) {
    const std::size_t end = left.find('\n');
    const std::string_view line = left.substr(0, end == std::string_view::npos ? end : end + 1);
    response.add_header(line);
    left.remove_prefix(line.size());
  }
  response.add_body(left);
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{0}}) {
    response.problem.clear();
    response.check_range(offset, RemoteFileInfo{100, "\"a\""});
    // What is taken is never of another place or file.
    if (response.problem.empty() && (response.first_byte != offset || response.total_bytes != 100))
      std::abort();
  }
  for (const char letter : response.text() + response.advice(true))
    if (static_cast<unsigned char>(letter) < 0x20) std::abort();
  static_cast<void>(response.is_transient());
  return 0;
}
