// What a program can do while the library waits for a server.
#pragma once

#include <atomic>
#include <string>

#include "chunkhit/error.h"

namespace chunkhit {

/// As long as it lives, what this thread waits for from servers (opening a pack, reading a dataset,
/// verifying) ends with Error try_again within a tenth of a second once `stop` is true. A loader's batches
/// need none: see wait_for. To be destroyed by the thread that made it, in the reverse order.
class CHUNKHIT_API StopScope {
 public:
  explicit StopScope(const std::atomic<bool>* stop);
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
  ~StopScope();
  /// What ends the waiting of this thread, or null: for a thread that works for it.
  [[nodiscard]] static const std::atomic<bool>* current();

 private:
  const std::atomic<bool>* before_;
};

/// What requests of this process fail with at present, and are sent again for: "URL: HTTP 503 …, tried again
/// for up to 60 s"; empty where none does.
[[nodiscard]] CHUNKHIT_API std::string server_trouble();

}  // namespace chunkhit
