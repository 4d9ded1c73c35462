#include "base/remote/http_client.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/remote/http_request.h"
#include "base/text.h"
#include "base/words.h"

namespace chunkhit {
namespace {

constexpr double kFirstRetrySeconds = 5;  // of a host that never answered: most often a wrong name
constexpr double kFirstDelaySeconds = 0.1;
constexpr double kMaxDelaySeconds = 5;
constexpr double kConnectSeconds = 10;
constexpr double kMaxStallSeconds = 30;

std::string host_of(const std::string& url) {
  const std::size_t begin = url.find("://") + 3;
  return url.substr(0, url.find('/', begin));
}

}  // namespace

HttpClient::HttpClient()
    : multi_(curl().multi_init()), jitter_(std::random_device{}()), process_(::getpid()) {
  if (multi_ == nullptr) throw std::bad_alloc();
  sockets_ = std::make_unique<CurlSockets>(static_cast<CURLM*>(multi_));
  curl().multi_setopt(static_cast<CURLM*>(multi_), CURLMOPT_MAXCONNECTS, static_cast<long>(kMaxRequests));
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    curl().multi_cleanup(static_cast<CURLM*>(multi_));
    throw Error(ErrorCode::try_again,
                std::string("the system does not start a thread for the network: ") + error.what());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

HttpClient::~HttpClient() {
  if (process_ != ::getpid()) {
    // A forked child has neither the thread nor a right to its sockets: both are left alone.
    static_cast<void>(std::make_unique<std::thread>(std::move(thread_)).release());
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  sockets_->wake();
  thread_.join();
  for (const auto& request : active_) {
    curl().multi_remove_handle(static_cast<CURLM*>(multi_), request->handle);
    curl().easy_cleanup(request->handle);
  }
  for (void* const handle : idle_handles_) curl().easy_cleanup(static_cast<CURL*>(handle));
  curl().multi_cleanup(static_cast<CURLM*>(multi_));
}

namespace {

struct SharedClient {
  std::mutex mutex;
  std::weak_ptr<HttpClient> client;
};

SharedClient& shared_client() {
  static SharedClient shared;
  return shared;
}

}  // namespace

std::shared_ptr<HttpClient> HttpClient::shared() {
  const std::lock_guard lock(shared_client().mutex);
  std::shared_ptr<HttpClient> client = shared_client().client.lock();
  if (client == nullptr || client->process_ != ::getpid()) {
    client = std::make_shared<HttpClient>();
    shared_client().client = client;
  }
  return client;
}

std::string HttpClient::trouble() {
  std::shared_ptr<HttpClient> client;  // ends without the lock
  {
    const std::lock_guard lock(shared_client().mutex);
    client = shared_client().client.lock();
  }
  if (client == nullptr) return "";
  const std::lock_guard lock(client->mutex_);
  return client->trouble_;
}

void HttpClient::set_trouble(const std::string& text) {
  const std::lock_guard lock(mutex_);
  trouble_ = text;
}

void HttpClient::start(std::shared_ptr<Transfer> transfer) {
  {
    const std::lock_guard lock(mutex_);
    wanted_.push_back(std::move(transfer));
  }
  sockets_->wake();
}

void HttpClient::run() {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (is_stopping_) return;
    }
    send_due(Clock::now());
    sockets_->wait(longest_wait());
    collect();
    end_stalled(Clock::now());
  }
}

std::chrono::milliseconds HttpClient::longest_wait() const {
  constexpr std::chrono::milliseconds kMax(1000), kNone(0);
  if (active_.size() == kMaxRequests || waiting_.empty()) return kMax;
  const auto due = (*std::ranges::min_element(waiting_, {}, [](const auto& each) { return each->due; }))->due;
  return std::clamp(std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now()), kNone, kMax);
}

/// Sends what is to be tried again before what is new.
void HttpClient::send_due(Clock::time_point now) {
  for (auto each = waiting_.begin(); each != waiting_.end() && active_.size() < kMaxRequests;) {
    if ((*each)->due > now) {
      ++each;
      continue;
    }
    std::unique_ptr<Request> request = std::move(*each);
    each = waiting_.erase(each);
    send(std::move(request));
  }
  while (active_.size() < kMaxRequests) {
    auto request = std::make_unique<Request>();
    {
      const std::lock_guard lock(mutex_);
      if (wanted_.empty()) return;
      request->transfer = std::move(wanted_.front());
      wanted_.pop_front();
    }
    send(std::move(request));
  }
}

void HttpClient::send(std::unique_ptr<Request> request) {
  Transfer& transfer = *request->transfer;
  {
    const std::lock_guard lock(transfer.mutex_);
    if (transfer.is_cancelled_) return;
    request->received_before = transfer.received_;
  }
  const CurlFunctions& c = curl();
  CURL* handle = nullptr;
  if (idle_handles_.empty()) {
    handle = c.easy_init();
  } else {
    handle = static_cast<CURL*>(idle_handles_.back());
    idle_handles_.pop_back();
    c.easy_reset(handle);
  }
  if (handle == nullptr) return request->finish(ErrorCode::try_again, "no memory for a request");
  request->handle = handle;
  request->response = {};
  request->is_rejected = false;
  c.slist_free_all(std::exchange(request->headers, nullptr));
  const bool is_known = reached_.contains(host_of(transfer.url()));
  set_common_options(handle,
                     std::min(transfer.retry_seconds_, is_known ? kConnectSeconds : kFirstRetrySeconds));
  std::string url;
  try {
    url = request->address();
  } catch (const Error& error) {
    idle_handles_.push_back(handle);
    return request->finish(error.code(), error.what());
  }
  c.easy_setopt(handle, CURLOPT_URL, url.c_str());
  // A server that is reached safely must not send us to one that is not.
  c.easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, url.starts_with("https://") ? "https" : "http,https");
  const std::string range =
      std::to_string(transfer.offset_ + request->received_before) + "-" + std::to_string(transfer.end() - 1);
  c.easy_setopt(handle, CURLOPT_RANGE, range.c_str());
  if (request->headers != nullptr) c.easy_setopt(handle, CURLOPT_HTTPHEADER, request->headers);
  c.easy_setopt(handle, CURLOPT_ERRORBUFFER, request->error_text);
  c.easy_setopt(handle, CURLOPT_HEADERFUNCTION, &Request::take_header);
  c.easy_setopt(handle, CURLOPT_HEADERDATA, request.get());
  c.easy_setopt(handle, CURLOPT_WRITEFUNCTION, &Request::take_bytes);
  c.easy_setopt(handle, CURLOPT_WRITEDATA, request.get());
  request->try_window = {Clock::now(), request->received_before,
                         host_bytes(host_of(request->transfer->url()))};
  if (c.multi_add_handle(static_cast<CURLM*>(multi_), handle) != CURLM_OK) {
    c.easy_cleanup(handle);
    return request->finish(ErrorCode::try_again, "no memory for a request");
  }
  active_.push_back(std::move(request));
}

void HttpClient::collect() {
  int left = 0;
  while (const CURLMsg* const message = curl().multi_info_read(static_cast<CURLM*>(multi_), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    take_back(message->easy_handle, message->data.result);
  }
}

/// The bytes that a host has sent.
std::uint64_t HttpClient::host_bytes(const std::string& host) const {
  const auto settled = settled_bytes_.find(host);
  std::uint64_t bytes = settled == settled_bytes_.end() ? 0 : settled->second;
  for (const std::unique_ptr<Request>& each : active_)
    if (host_of(each->transfer->url()) == host) bytes += each->transfer->received() - each->received_before;
  return bytes;
}

/// Whether a request brings too few bytes, though not because many share a slow host evenly.
bool HttpClient::is_slow(const Request& request, const Window& now) const {
  constexpr double kFairShare = 0.25;
  const Window& window = request.try_window;
  const double seconds = std::max(1.0, window.seconds(now.begin));
  const double host_rate = static_cast<double>(now.host_bytes - window.host_bytes) / seconds;
  const auto count = static_cast<double>(active_.size());
  const double fair = host_rate < kMinBytesPerSecond ? kMinBytesPerSecond : kFairShare * host_rate / count;
  return static_cast<double>(now.received - window.received) / seconds < std::min(kMinBytesPerSecond, fair);
}

/// Ends tries that bring too few bytes of their files, whatever else the server sends.
void HttpClient::end_stalled(Clock::time_point now) {
  for (std::size_t at = 0; at < active_.size();) {
    Request& request = *active_[at];
    const double longest = std::clamp(request.transfer->retry_seconds_ / 2, 1.0, kMaxStallSeconds);
    const double seconds = request.try_window.seconds(now);
    const Window until{now, request.transfer->received(), host_bytes(host_of(request.transfer->url()))};
    if (seconds < longest || !is_slow(request, until)) {
      if (seconds >= longest) {
        request.try_window = until;
        request.tries = 0;
      }
      ++at;
      continue;
    }
    const std::string what = "found " + count_text(until.received - request.try_window.received, "byte") +
                             " in " + number_text(std::round(seconds)) + " s, expected " +
                             number_text(kMinBytesPerSecond) + " a second";
    std::snprintf(request.error_text, sizeof request.error_text, "%s", what.c_str());
    take_back(request.handle, CURLE_OPERATION_TIMEDOUT);
  }
}

/// Settles the request of a handle, which is used again.
void HttpClient::take_back(void* handle, int result) {
  const auto found =
      std::ranges::find_if(active_, [handle](const auto& each) { return each->handle == handle; });
  std::unique_ptr<Request> request = std::move(*found);
  active_.erase(found);
  settled_bytes_[host_of(request->transfer->url())] +=
      request->transfer->received() - request->received_before;
  curl().multi_remove_handle(static_cast<CURLM*>(multi_), static_cast<CURL*>(handle));
  idle_handles_.push_back(handle);
  settle(std::move(request), result);
}

/// Ends a try: the transfer has all of its bytes, is tried again, or fails.
void HttpClient::settle(std::unique_ptr<Request> request, int result) {
  Transfer& transfer = *request->transfer;
  const auto code = static_cast<CURLcode>(result);
  const HttpResponse& response = request->response;
  const auto fail = [&](ErrorCode error, const std::string& what) { request->finish(error, what); };
  bool is_whole = false;
  {
    const std::lock_guard lock(transfer.mutex_);
    if (transfer.is_cancelled_) return;
    // An empty file has no range, or no bytes, to answer with.
    if (response.is_empty_file() && !transfer.info_) transfer.info_ = RemoteFileInfo{0, response.etag};
    const bool has_info = transfer.info_.has_value() && !request->is_rejected;
    is_whole = has_info && (response.is_success() || response.is_empty_file()) &&
               transfer.received_ ==
                   std::min(transfer.byte_count_,
                            transfer.info_->bytes - std::min(transfer.offset_, transfer.info_->bytes));
  }
  if (response.status != 0) reached_.insert(host_of(transfer.url()));
  if (is_whole) {
    set_trouble("");
    return request->finish();
  }
  if (request->is_rejected) return fail(ErrorCode::bad_data, response.problem);
  if (request->lacks_memory) return fail(ErrorCode::try_again, "no memory for its bytes: lower cache_bytes");
  // A redirect is a failure only where it was not followed; else its server is.
  const bool is_failure = response.status >= 400 || (response.is_failure() && code == CURLE_OK);
  if (code != CURLE_OK && !is_failure) {
    const std::string what =
        request->error_text[0] != '\0' ? request->error_text : curl().easy_strerror(code);
    if (!is_transient(code)) return fail(ErrorCode::usage, what);
    if (!retry(*request, what)) return;
    waiting_.push_back(std::move(request));
    return;
  }
  if (!is_failure || response.is_transient()) {
    const std::string what = is_failure ? response.text() : "the answer ends early";
    if (!retry(*request, what)) return;
    waiting_.push_back(std::move(request));
    return;
  }
  fail(response.error_code(), response.text() + response.advice(transfer.url().starts_with("s3://")));
}

/// Plans the next try; returns false, and ends the transfer, where it was tried for long enough.
bool HttpClient::retry(Request& request, const std::string& reason) {
  const Window now{Clock::now(), request.transfer->received()};
  if (request.tries == 0) request.failing = request.try_window;
  if (request.failing.is_fast(now)) {
    request.failing = now;
    request.tries = 0;
  }
  ++request.tries;
  const double failing = request.failing.seconds(now.begin);
  const bool is_known = reached_.contains(host_of(request.transfer->url()));
  const double allowed = request.transfer->retry_seconds_;
  const double limit = is_known ? allowed : std::min(allowed, kFirstRetrySeconds);
  double delay = std::min(kMaxDelaySeconds,
                          kFirstDelaySeconds * static_cast<double>(1U << std::min(request.tries - 1, 10U)));
  // Many processes that failed together must not come back together.
  delay *= std::uniform_real_distribution(0.5, 1.0)(jitter_);
  const double left = limit - failing;
  const bool ends = delay > left;
  // A server that wants more time than is left is asked once more at the end.
  delay = std::clamp(request.response.retry_after_seconds, delay, std::max(delay, left));
  if (ends) {
    request.finish(ErrorCode::try_again, reason + " (tried " + count_text(request.tries, "time") + " in " +
                                             number_text(std::round(failing * 10) / 10) + " s)");
    return false;
  }
  set_trouble(request.transfer->url() + ": " + reason + ", tried again for up to " + number_text(limit) +
              " s");
  request.due = now.begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(delay));
  return true;
}

}  // namespace chunkhit
