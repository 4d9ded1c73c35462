#include "chunkhit/remote.h"

#include <utility>

#include "base/remote/http_client.h"

// Not in base/remote, which each library has a copy of: what is exported by two would set the variable of
// one.
namespace chunkhit {

StopScope::StopScope(const std::atomic<bool>* stop) : before_(std::exchange(stop_of_thread(), stop)) {}

StopScope::~StopScope() { stop_of_thread() = before_; }

const std::atomic<bool>* StopScope::current() { return stop_of_thread(); }

std::string server_trouble() { return HttpClient::trouble(); }

}  // namespace chunkhit
