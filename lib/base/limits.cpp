#include "base/limits.h"

#include <sys/resource.h>

#include <cstdint>
#include <optional>

#include "base/words.h"

namespace chunkhit {
namespace {

std::optional<std::uint64_t> limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::string limit_text(const char* flag, const std::optional<std::uint64_t>& bytes) {
  if (!bytes) return {};
  return std::string(" (ulimit ") + flag + " is " + bytes_text(static_cast<double>(*bytes)) + ")";
}

}  // namespace

bool has_memory_limit() { return limit_of(RLIMIT_AS).has_value() || limit_of(RLIMIT_DATA).has_value(); }

std::string memory_limit_text() {
  return "needs more memory than can be had" + limit_text("-v", limit_of(RLIMIT_AS)) +
         limit_text("-d", limit_of(RLIMIT_DATA));
}

std::uint64_t open_files_limit() { return limit_of(RLIMIT_NOFILE).value_or(UINT64_MAX); }

std::string open_files_limit_text() {
  const std::optional<std::uint64_t> files = limit_of(RLIMIT_NOFILE);
  return "this process may have " + (files ? count_text(*files) : std::string("no more")) +
         " files open: ulimit -n";
}

}  // namespace chunkhit
