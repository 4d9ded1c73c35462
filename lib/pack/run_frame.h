// What every run of a packing command has once: its start and call, its threads, and whether it is to stop.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "manifest/run_record.h"

namespace chunkhit {

/// The absolute path of the folder of the images; empty where the system does not say it: a folder above may
/// be closed to this user.
[[nodiscard]] std::string absolute_root(const std::string& root);

/// The time now: UTC, ISO 8601.
[[nodiscard]] std::string utc_time();

/// One run, from its start to the run.json of its packs.
class RunFrame {
 public:
  /// Begins a run now. `tool`: the command without its version. `stop` may be null.
  RunFrame(const std::string& tool, const std::string& command_line, const std::atomic<bool>* stop);
  [[nodiscard]] bool is_stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }
  /// Memory that the process holds for the run. A program that packs held more before, which is not the
  /// run's: a GPU's context alone takes gigabytes.
  [[nodiscard]] std::uint64_t held_bytes() const;
  /// Seconds since the start.
  [[nodiscard]] double seconds() const;
  /// Does `work` with `threads` in an arena of its own, which keeps a caller's other work out; the limit
  /// counts the calling thread.
  void execute(std::uint32_t threads, const std::function<void()>& work);
  /// Publishes run.json in a pack's folder; `roots` are the folders of its images, by content_ids.
  void publish(const std::string& folder, std::map<std::uint64_t, std::string> roots) const;

  RunRecord record;    ///< what run.json says; its roots and seconds are filled in by `publish`
  std::string root{};  ///< absolute path of the folder of the images; empty: not known

 private:
  const std::atomic<bool>* stop_;
  std::uint64_t bytes_before_ = 0;  ///< held before the run, above what a command holds
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace chunkhit
