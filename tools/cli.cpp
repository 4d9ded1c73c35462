#include "cli.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <sstream>
#include <string_view>

#include "base/text.h"
#include "chunkhit/error.h"
#include "types/fields.h"

namespace chunkhit {

std::string plan_folder(std::string path) {
  const std::string name = "plan.json";
  if (path == name) return ".";
  if (path.ends_with("/" + name)) path.resize(path.size() - name.size());
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::vector<std::uint64_t> parse_tasks(const std::string& flag, const std::string& text) {
  constexpr std::uint64_t kMaxTasks = 1'000'000;
  std::vector<std::uint64_t> tasks;
  std::istringstream entries(text);
  std::string entry;
  if (text.empty() || text.ends_with(',')) refuse_text(flag, "tasks as 3,17,40-42", text);
  while (std::getline(entries, entry, ',')) {
    const std::size_t dash = entry.find('-');
    std::uint64_t first = 0;
    const bool is_first = parse_all(entry.substr(0, dash), first) && first <= UINT32_MAX;
    std::uint64_t last = first;
    const bool is_last =
        dash == std::string::npos || (parse_all(entry.substr(dash + 1), last) && last <= UINT32_MAX);
    if (!is_first || !is_last || last < first) refuse_text(flag, "tasks as 3,17,40-42", text);
    if (last - first >= kMaxTasks - tasks.size()) refuse_text(flag, "at most a million tasks", text);
    for (std::uint64_t task = first; task <= last; ++task) tasks.push_back(task);
  }
  return tasks;
}

std::atomic<bool> stop_requested{false};
std::string_view root_name = "ROOT";

namespace {

std::atomic<int> seen_signal{0};

/// The first signal asks for an orderly stop, the second one exits at once. Only async-signal-safe calls.
extern "C" void on_signal(int signal) {
  if (seen_signal.exchange(signal) != 0) ::_exit(128 + signal);
  stop_requested = true;
  constexpr char kMessage[] = "\nstopping after what is in hand; once more to stop at once\n";
  static_cast<void>(!::write(STDERR_FILENO, kMessage, sizeof kMessage - 1));
}

}  // namespace

std::string flag_text(const std::string& message) {
  std::string text;
  std::size_t at = 0;
  for (std::size_t open = 0; (open = message.find('`', at)) != std::string::npos;) {
    const std::size_t close = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", open + 1);
    const bool is_field = close != std::string::npos && close > open + 1 && message[close] == '`';
    text.append(message, at, (is_field ? open : open + 1) - at);
    at = is_field ? close + 1 : open + 1;
    if (!is_field) continue;
    std::string field = message.substr(open + 1, close - open - 1);
    if (field == "root")
      field = root_name;
    else if (field == "inputs")
      field = "INPUT";
    else
      field = "--" + field;
    std::ranges::replace(field, '_', '-');
    text += field;
  }
  return text.append(message, at);
}

std::vector<PackStep> changing_steps(const std::vector<PackStep>& steps) {
  std::vector<PackStep> changing;
  for (const PackStep& step : steps)
    if (changing.empty() || step.users != changing.back().users || step.items != changing.back().items ||
        step.ratings != changing.back().ratings)
      changing.push_back(step);
  return changing;
}

std::string shell_word(const std::string& path) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+=:,@%").find(c) != std::string_view::npos;
  };
  if (!path.empty() && std::ranges::all_of(path, is_plain)) return path;
  std::string word = "'";
  for (const char c : path) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

void handle_signals() {
  // A run continues when the reader of its progress exits.
  std::signal(SIGPIPE, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // nohup
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

int signal_exit_code() { return seen_signal == 0 ? 0 : 128 + seen_signal; }

int exit_code(bool interrupted) {
  if (!interrupted) return 0;
  return signal_exit_code() != 0 ? signal_exit_code() : static_cast<int>(ErrorCode::try_again);
}

std::string command_line(int argc, char** argv) {
  std::string line = shell_word(argv[0]);
  for (int index = 1; index < argc; ++index) line += " " + shell_word(argv[index]);
  return line;
}

}  // namespace chunkhit
