// Stops a thread's waits for servers.
#pragma once

#include <atomic>
#include <string>

#include "chunkhit/error.h"

namespace chunkhit {

/// While alive, aborts this thread's network waits (opening a pack, reading a dataset, verifying) with
/// try_again within 0.1 s once `stop` is true. A loader's batches
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
