#include "base/remote/curl.h"

#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <string>
#include <system_error>

#include "chunkhit/error.h"
#include "chunkhit/version.h"

namespace chunkhit {
namespace {

constexpr long kMaxRedirects = 5;
constexpr long kReceiveBytes = 512 << 10;

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr)
    throw Error(ErrorCode::try_again,
                std::string("libcurl.so.4 has no ") + name + ", expected version 7.85 or newer");
}

/// Older ones do not know all options: without signatures they would send the secret key as a password.
void check_version(void* library) {
  decltype(&curl_version_info) version_info = nullptr;
  find(library, "curl_version_info", version_info);
  const curl_version_info_data* const found = version_info(CURLVERSION_NOW);
  if (found->version_num < 0x075500)
    throw Error(ErrorCode::try_again,
                std::string("libcurl.so.4 is version ") + found->version + ", expected 7.85 or newer");
}

CurlFunctions load() {
  void* const library = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw Error(
        ErrorCode::try_again,
        std::string("URLs are read by libcurl, which is not installed (package libcurl4): ") + ::dlerror());
  CurlFunctions functions{};
  check_version(library);
  find(library, "curl_global_init", functions.global_init);
  find(library, "curl_easy_init", functions.easy_init);
  find(library, "curl_easy_reset", functions.easy_reset);
  find(library, "curl_easy_cleanup", functions.easy_cleanup);
  find(library, "curl_easy_setopt", functions.easy_setopt);
  find(library, "curl_easy_strerror", functions.easy_strerror);
  find(library, "curl_multi_init", functions.multi_init);
  find(library, "curl_multi_cleanup", functions.multi_cleanup);
  find(library, "curl_multi_setopt", functions.multi_setopt);
  find(library, "curl_multi_add_handle", functions.multi_add_handle);
  find(library, "curl_multi_remove_handle", functions.multi_remove_handle);
  find(library, "curl_multi_socket_action", functions.multi_socket_action);
  find(library, "curl_multi_info_read", functions.multi_info_read);
  find(library, "curl_slist_append", functions.slist_append);
  find(library, "curl_slist_free_all", functions.slist_free_all);
  functions.global_init(CURL_GLOBAL_DEFAULT);
  return functions;
}

/// The bundle of certificates that the environment names for other tools, or null.
const char* certificates() {
  for (const char* const name : {"CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const char* const path = std::getenv(name); path != nullptr && *path != '\0') return path;
  return nullptr;
}

}  // namespace

const CurlFunctions& curl() {
  static const CurlFunctions functions = load();
  return functions;
}

void set_common_options(CURL* handle, double connect_seconds) {
  const CurlFunctions& c = curl();
  c.easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  c.easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  c.easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  c.easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
  c.easy_setopt(handle, CURLOPT_MAXREDIRS, kMaxRedirects);
  c.easy_setopt(handle, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  c.easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, std::max(1L, static_cast<long>(connect_seconds * 1000)));
  c.easy_setopt(handle, CURLOPT_BUFFERSIZE, kReceiveBytes);
  c.easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  c.easy_setopt(handle, CURLOPT_USERAGENT, ("chunkhit/" + version()).c_str());
  if (const char* const path = certificates()) c.easy_setopt(handle, CURLOPT_CAINFO, path);
}

bool is_transient(CURLcode result) {
  switch (result) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_NOT_BUILT_IN:
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
      return false;
    default:
      return true;
  }
}

CurlSockets::CurlSockets(CURLM* multi)
    : multi_(multi),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wakes_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wakes_.get();
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wakes_.get(), &event) != 0)
    throw Error(ErrorCode::try_again,
                "the network cannot be waited for: " + std::generic_category().message(errno));
  const CurlFunctions& c = curl();
  c.multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlSockets::watch);
  c.multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  c.multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlSockets::set_timer);
  c.multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
}

int CurlSockets::watch(CURL* /*handle*/, curl_socket_t socket, int what, void* self, void* /*of_socket*/) {
  const int epoll = static_cast<CurlSockets*>(self)->epoll_.get();
  if (what == CURL_POLL_REMOVE) {
    ::epoll_ctl(epoll, EPOLL_CTL_DEL, socket, nullptr);
    return 0;
  }
  epoll_event event{};
  if ((what & CURL_POLL_IN) != 0) event.events |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) event.events |= EPOLLOUT;
  event.data.fd = socket;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event) != 0 &&
      ::epoll_ctl(epoll, EPOLL_CTL_MOD, socket, &event) != 0)
    return -1;
  return 0;
}

int CurlSockets::set_timer(CURLM* /*multi*/, long milliseconds, void* self) {
  auto& due = static_cast<CurlSockets*>(self)->due_;
  due.reset();
  if (milliseconds >= 0) due = Clock::now() + std::chrono::milliseconds(milliseconds);
  return 0;
}

void CurlSockets::wait(std::chrono::milliseconds longest) {
  constexpr int kMaxEvents = 64;
  std::array<epoll_event, kMaxEvents> events;
  if (due_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*due_ - Clock::now());
    longest = std::clamp(left, std::chrono::milliseconds(0), longest);
  }
  const int count = ::epoll_wait(epoll_.get(), events.data(), kMaxEvents, static_cast<int>(longest.count()));
  int running = 0;
  for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(std::max(count, 0)))) {
    if (event.data.fd == wakes_.get()) {
      eventfd_t wakes = 0;
      static_cast<void>(::eventfd_read(wakes_.get(), &wakes));
      continue;
    }
    int what = 0;
    if ((event.events & EPOLLIN) != 0) what |= CURL_CSELECT_IN;
    if ((event.events & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
    if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) what |= CURL_CSELECT_ERR;
    curl().multi_socket_action(multi_, event.data.fd, what, &running);
  }
  if (due_ && *due_ <= Clock::now()) {
    due_.reset();
    curl().multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
  }
}

void CurlSockets::wake() { static_cast<void>(::eventfd_write(wakes_.get(), 1)); }

}  // namespace chunkhit
