#include "chunkhit/remote.h"

#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/remote/http_client.h"
#include "base/remote/remote_file.h"
#include "read/worker_threads.h"

// Not in base/remote, which each library has a copy of: what is exported by two would set the variable of
// one.
namespace chunkhit {

StopScope::StopScope(const std::atomic<bool>* stop) : before_(std::exchange(stop_of_thread(), stop)) {}

StopScope::~StopScope() { stop_of_thread() = before_; }

const std::atomic<bool>* StopScope::current() { return stop_of_thread(); }

void run_on_threads(std::size_t count, const std::function<void()>& work) {
  std::vector<std::jthread> threads;
  try {
    for (std::size_t thread = 1; thread < count; ++thread)
      threads.emplace_back([&work, stop = StopScope::current(), opened = opened_files_of_thread()] {
        const StopScope scope(stop);
        opened_files_of_thread() = opened;
        work();
      });
  } catch (const std::system_error&) {
  }
  work();
}

std::string server_trouble() { return HttpClient::trouble(); }

}  // namespace chunkhit
