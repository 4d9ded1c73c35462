#include "base/process_state.h"

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

namespace chunkhit {

std::optional<ProcessState> process_state(std::uint64_t pid) {
  errno = 0;
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  if (!file.is_open() && errno != ENOENT && errno != ESRCH && errno != EACCES)
    return ProcessState{.is_known = false};
  std::string text;
  std::getline(file, text, '\0');  // its iterators throw where the process ends meanwhile
  // The command's name stands in parentheses and may hold anything. Behind it follow the state, the number of
  // threads as the 18th field, and the start time as the 20th.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  std::string state;
  std::string skipped;
  fields >> state;
  for (int number = 1; number < 17; ++number) fields >> skipped;
  std::uint64_t threads = 0;
  std::uint64_t start = 0;
  fields >> threads >> skipped >> start;
  if (!fields) return std::nullopt;
  // A process whose first thread has ended may have others that still write.
  if (state == "X" || (state == "Z" && threads <= 1)) return std::nullopt;
  return ProcessState{.start = start, .is_stopped = state == "T" || state == "t"};
}

}  // namespace chunkhit
