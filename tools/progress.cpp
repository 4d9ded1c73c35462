#include "progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "chunkhit/error.h"
#include "cli.h"

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

std::size_t terminal_columns() {
  struct winsize size {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

ProgressStyle progress_style(const std::string& choice) {
  if (choice == "json") return ProgressStyle::json;
  if (choice == "none") return ProgressStyle::none;
  return ::isatty(STDERR_FILENO) != 0 ? ProgressStyle::bar : ProgressStyle::lines;
}

bool ProgressDisplay::is_due(const PackProgress& progress) {
  if (std::exchange(phase_shown_, progress.phase) != progress.phase &&
      progress.phase != PackProgress::Phase::packing)
    return style_ != ProgressStyle::lines || progress.phase == PackProgress::Phase::listing;
  if (progress.phase != PackProgress::Phase::packing) return false;
  const Clock::time_point now = Clock::now();
  if (packing_since_ == Clock::time_point{}) {
    packing_since_ = now;
    next_ = style_ == ProgressStyle::lines ? now + std::chrono::seconds(1) : now;
  }
  if (now < next_) return false;
  next_ = now + (style_ == ProgressStyle::bar    ? std::chrono::milliseconds(100)
                 : style_ == ProgressStyle::json ? std::chrono::milliseconds(1000)
                                                 : std::chrono::milliseconds(30000));
  return true;
}

double ProgressDisplay::rate(const PackProgress& progress) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - packing_since_).count();
  return seconds > 0 ? static_cast<double>(progress.rows_done - progress.rows_skipped) / seconds : 0;
}

void ProgressDisplay::show(const PackProgress& progress) {
  if (style_ == ProgressStyle::none || !is_due(progress)) return;
  if (style_ == ProgressStyle::json) return show_json(progress);
  bar_shown_ = style_ == ProgressStyle::bar;
  if (progress.phase == PackProgress::Phase::packing)
    bar_shown_ ? show_bar(progress) : show_line(progress);
  else
    std::fprintf(stderr, bar_shown_ ? "\r\033[K%s" : "%s\n",
                 progress.phase == PackProgress::Phase::listing ? "listing the input …"
                                                                : "flushing the last part to disk …");
}

void ProgressDisplay::show_bar(const PackProgress& progress) const {
  const double share = static_cast<double>(progress.rows_done) /
                       static_cast<double>(std::max<std::uint64_t>(1, progress.rows_total));
  const double per_second = rate(progress);
  const double left =
      per_second > 0 ? static_cast<double>(progress.rows_total - progress.rows_done) / per_second : 0;
  char numbers[160];
  std::snprintf(numbers, sizeof numbers, " %3.0f %%  %s of %s  %s img/s  %s left  %s rejected", share * 100,
                count_text(progress.rows_done).c_str(), count_text(progress.rows_total).c_str(),
                count_text(static_cast<std::uint64_t>(per_second)).c_str(), duration_text(left).c_str(),
                count_text(progress.rejected).c_str());
  const std::size_t columns = terminal_columns();
  const std::size_t taken = std::char_traits<char>::length(numbers) + 3;
  const std::size_t width = columns > taken + 5 ? std::min<std::size_t>(30, columns - taken) : 0;
  const auto full = static_cast<std::size_t>(share * static_cast<double>(width));
  const std::string bar =
      width == 0 ? "" : "[" + std::string(full, '#') + std::string(width - full, '.') + "]";
  std::fprintf(stderr, "\r\033[K%s%s", bar.c_str(), numbers);
  std::fflush(stderr);
}

void ProgressDisplay::show_line(const PackProgress& progress) const {
  std::fprintf(stderr, "%s: %s of %s rows, %s img/s, %s rejected\n", progress.pack.c_str(),
               count_text(progress.rows_done).c_str(), count_text(progress.rows_total).c_str(),
               count_text(static_cast<std::uint64_t>(rate(progress))).c_str(),
               count_text(progress.rejected).c_str());
}

void ProgressDisplay::show_json(const PackProgress& progress) const {
  constexpr const char* kPhases[] = {"listing", "packing", "finishing"};
  const bool listing = progress.phase == PackProgress::Phase::listing;
  std::fprintf(
      stderr,
      "{\"phase\":\"%s\",\"rows_done\":%llu,\"rows_total\":%llu,\"rejected\":%llu,\"rows_per_second\":%.0f,"
      "\"seconds\":%.3f}\n",
      kPhases[static_cast<int>(progress.phase)], static_cast<unsigned long long>(progress.rows_done),
      static_cast<unsigned long long>(progress.rows_total),
      static_cast<unsigned long long>(progress.rejected), listing ? 0.0 : rate(progress),
      std::chrono::duration<double>(Clock::now() - begin_).count());
}

void ProgressDisplay::end() {
  if (std::exchange(bar_shown_, false)) std::fputs("\r\033[K", stderr);
}

}  // namespace chunkhit
