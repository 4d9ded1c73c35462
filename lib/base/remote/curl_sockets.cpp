#include "base/remote/curl_sockets.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <system_error>

#include "chunkhit/error.h"

namespace chunkhit {

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
