// What the ways of packing share: keywords → spec and options, and runs that report.
#pragma once

#include <atomic>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "binding.h"
#include "binding_options.h"
#include "chunkhit/pack.h"

namespace chunkhit {

[[nodiscard]] PackImagesSpec images_spec(OptionDict& from);
[[nodiscard]] PackImagesOptions images_options(OptionDict& from);
/// Appends the files of a split that is given as files to `inputs`.
[[nodiscard]] PackSparseSpec sparse_spec(OptionDict& from, std::vector<std::string>& inputs);
[[nodiscard]] PackSparseOptions sparse_options(OptionDict& from);

/// What users should be warned of: notices, and labels that are another kind than they may think.
[[nodiscard]] std::vector<std::string> warnings_of(const PackImagesReport& report);
[[nodiscard]] std::vector<std::string> warnings_of(const PlanReport& report);
/// Lines that were left out.
[[nodiscard]] std::vector<std::string> warnings_of(const PackSparseReport& report);

[[nodiscard]] py::dict progress_dict(const PackProgress& progress);
[[nodiscard]] py::dict progress_dict(const PackSparseProgress& progress);

/// Watches a run: this thread, which holds the GIL in between, hands the latest progress to `on_progress`,
/// unless that is None, and looks for signals.
template <class Progress>
class RunWatch {
 public:
  explicit RunWatch(py::object on_progress) : on_progress_(std::move(on_progress)) {}
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;
  /// Lets a run report here, and be stopped from here.
  template <class Options>
  void watch(Options& options) {
    options.stop = &stop_;
    options.on_progress = [this](const Progress& progress) {
      const std::lock_guard lock(mutex_);
      latest_ = progress;
    };
  }
  void show() {
    std::optional<Progress> progress;
    {
      const std::lock_guard lock(mutex_);
      progress.swap(latest_);
    }
    if (progress && !on_progress_.is_none()) on_progress_(progress_dict(*progress));
  }
  /// Returns what `work` does, in a thread of its own. What a handler or `on_progress` raises meanwhile stops
  /// the run after the samples in hand, and is passed on when it has ended.
  template <class Work>
  auto run(Work work) {
    auto running = std::async(std::launch::async, std::move(work));
    const auto is_done = [&] {
      const ReleasedGil release;
      return running.wait_for(kSignalInterval) == std::future_status::ready;
    };
    try {
      while (!is_done()) {
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        show();
      }
      show();
    } catch (...) {
      stop_ = true;
      const ReleasedGil release;
      running.wait();
      throw;
    }
    return running.get();
  }

 private:
  py::object on_progress_;
  std::mutex mutex_;
  std::optional<Progress> latest_;
  std::atomic<bool> stop_{false};
};

}  // namespace chunkhit
