#include "progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "base/text.h"
#include "base/words.h"
#include "chunkhit/remote.h"
#include "cli.h"
#include "pack/run_frame.h"

namespace chunkhit {
namespace {

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  char text[32];
  if (whole >= 3600)
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%ld:%02ld", whole / 60, whole % 60);
  return text;
}

/// Formats bytes with a unit, other amounts with thousands separators.
std::string amount_text(const ShownProgress& progress, std::uint64_t amount) {
  return progress.things == "bytes" ? bytes_text(static_cast<double>(amount)) : count_text(amount);
}

double share_done(const ShownProgress& progress) {
  return progress.total == 0 ? 0 : static_cast<double>(progress.done) / static_cast<double>(progress.total);
}

std::size_t terminal_columns() {
  struct winsize size {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

int warn_of_servers(const std::string& name, std::span<char* const> arguments,
                    const std::function<int()>& body) {
  constexpr std::chrono::milliseconds kQuiet{3000}, kLook{100};
  if (std::ranges::none_of(arguments, [](std::string_view each) { return each.find("://") != each.npos; }))
    return body();
  std::mutex mutex;
  std::condition_variable_any never;
  const std::jthread watch([&](const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    const auto waits = [&](std::chrono::milliseconds longest) {
      never.wait_for(lock, stop, longest, [] { return false; });
      return !stop.stop_requested();
    };
    std::string trouble;
    for (bool goes_on = waits(kQuiet); goes_on && trouble.empty(); goes_on = waits(kLook))
      trouble = server_trouble();
    if (!trouble.empty()) std::fprintf(stderr, "%s: %s\n", name.c_str(), printable_text(trouble).c_str());
  });
  return body();
}

static std::string json_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : escape_bytes(text)) {
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
    const bool is_control = static_cast<unsigned char>(c) < 0x20;
    quoted += is_control              ? std::string(escaped)
              : c == '"' || c == '\\' ? std::string{'\\', c}
                                      : std::string{c};
  }
  return quoted + '"';
}

/// Rows that an earlier run packed do not count: they took no time now.
static std::uint64_t done_now(const ShownProgress& progress) {
  return progress.done - std::min(progress.done, progress.skipped);
}

ProgressStyle progress_style(const std::string& choice) {
  if (choice == "json") return ProgressStyle::json;
  if (choice == "none") return ProgressStyle::none;
  return ::isatty(STDERR_FILENO) != 0 ? ProgressStyle::bar : ProgressStyle::lines;
}

/// Limits the output rate: a bar ten times, JSON once a second, lines every 30 seconds; rates count from the
/// first number of a phase.
bool ProgressDisplay::is_due(const ShownProgress& progress) {
  const Clock::time_point now = Clock::now();
  if (phase_shown_ != progress.phase) {
    phase_shown_ = progress.phase;
    counting_since_ = {};
    if (progress.things.empty()) return style_ != ProgressStyle::lines || progress.is_first;
  }
  if (progress.things.empty()) return false;
  if (counting_since_ == Clock::time_point{}) {
    counting_since_ = now;
    done_before_ = done_now(progress);
    next_ = style_ == ProgressStyle::lines ? now + std::chrono::seconds(1) : now;
  }
  if (now < next_) return false;
  next_ = now + (style_ == ProgressStyle::bar    ? std::chrono::milliseconds(100)
                 : style_ == ProgressStyle::json ? std::chrono::milliseconds(1000)
                                                 : std::chrono::milliseconds(30000));
  return true;
}

/// Rows of earlier phases and packs do not count: they took none of this phase's time. 0 where so little time
/// has passed since the first number that it says nothing.
double ProgressDisplay::rate(const ShownProgress& progress) const {
  constexpr double kMinSeconds = 0.05;
  const double seconds = std::chrono::duration<double>(Clock::now() - counting_since_).count();
  return seconds >= kMinSeconds
             ? static_cast<double>(done_now(progress) - std::min(done_now(progress), done_before_)) / seconds
             : 0;
}

void ProgressDisplay::show(const ShownProgress& progress) {
  if (style_ == ProgressStyle::none || !is_due(progress)) return;
  if (style_ == ProgressStyle::json) return show_json(progress);
  bar_shown_ = style_ == ProgressStyle::bar;
  if (!progress.things.empty())
    bar_shown_ ? show_bar(progress) : show_line(progress);
  else
    std::fprintf(stderr, bar_shown_ ? "\r\033[K%s" : "%s\n", std::string(progress.words).c_str());
}

std::string ProgressDisplay::left_text(const ShownProgress& progress) const {
  const double per_second = rate(progress);
  if (progress.total == 0 || per_second <= 0) return "?";
  const std::uint64_t left = progress.total - std::min(progress.total, progress.done);
  return duration_text(static_cast<double>(left) / per_second);
}

void ProgressDisplay::show_bar(const ShownProgress& progress) const {
  const double share = share_done(progress);
  const double per_second = rate(progress);
  const std::string of_total = progress.total == 0 ? "" : " of " + amount_text(progress, progress.total);
  char numbers[200];
  std::snprintf(numbers, sizeof numbers, " %3.0f %%  %s%s  %s %s  %s left  %s %s", share * 100,
                amount_text(progress, progress.done).c_str(), of_total.c_str(),
                amount_text(progress, static_cast<std::uint64_t>(per_second)).c_str(),
                std::string(progress.rate).c_str(), left_text(progress).c_str(),
                count_text(progress.problems).c_str(), std::string(progress.problem_name).c_str());
  const std::size_t columns = terminal_columns();
  const std::size_t taken = std::char_traits<char>::length(numbers) + 3;
  const std::size_t width = columns > taken + 5 ? std::min<std::size_t>(30, columns - taken) : 0;
  const auto full = static_cast<std::size_t>(std::min(share, 1.0) * static_cast<double>(width));
  const std::string bar =
      width == 0 ? "" : "[" + std::string(full, '#') + std::string(width - full, '.') + "]";
  std::fprintf(stderr, "\r\033[K%s%s", bar.c_str(), numbers);
  std::fflush(stderr);
}

void ProgressDisplay::show_line(const ShownProgress& progress) const {
  const std::string things = progress.things == "bytes" ? "" : " " + std::string(progress.things);
  const std::string of_total = progress.total == 0 ? "" : " of " + amount_text(progress, progress.total);
  char percent[32] = "";
  if (progress.total > 0) std::snprintf(percent, sizeof percent, "%.0f %%, ", share_done(progress) * 100);
  const std::string left = progress.total == 0 ? "" : ", " + left_text(progress) + " left";
  std::fprintf(stderr, "%s: %s%s%s%s, %s %s%s, %s %s\n", printable_text(progress.subject).c_str(), percent,
               amount_text(progress, progress.done).c_str(), of_total.c_str(), things.c_str(),
               amount_text(progress, static_cast<std::uint64_t>(rate(progress))).c_str(),
               std::string(progress.rate).c_str(), left.c_str(), count_text(progress.problems).c_str(),
               std::string(progress.problem_name).c_str());
}

void ProgressDisplay::show_json(const ShownProgress& progress) const {
  const std::string things(progress.things.empty() ? "rows" : progress.things);
  std::fprintf(
      stderr,
      "{\"phase\":\"%s\",\"%s_done\":%llu,\"%s_total\":%llu,\"rejected\":%llu,\"%s_per_second\":%.0f,"
      "\"seconds\":%.3f,\"time\":\"%s\",\"subject\":%s}\n",
      std::string(progress.phase).c_str(), things.c_str(), static_cast<unsigned long long>(progress.done),
      things.c_str(), static_cast<unsigned long long>(progress.total),
      static_cast<unsigned long long>(progress.problems), things.c_str(),
      progress.things.empty() ? 0.0 : rate(progress),
      std::chrono::duration<double>(Clock::now() - begin_).count(), utc_time().c_str(),
      json_text(progress.subject).c_str());
}

void ProgressDisplay::end() {
  if (std::exchange(bar_shown_, false)) std::fputs("\r\033[K", stderr);
}

void print_interrupted(std::uint64_t parts) {
  if (parts == 0)
    std::printf("interrupted; nothing was packed yet, rerun the same command\n");
  else
    std::printf("interrupted; %s finished and kept, rerun the same command to resume\n",
                (count_text(parts, "part") + (parts == 1 ? " is" : " are")).c_str());
}

}  // namespace chunkhit
