#include "base/remote/http_request.h"

#include <cstring>
#include <new>

#include "base/remote/url.h"

namespace chunkhit {

/// Returns where the request goes; signs it where it goes to a bucket and there are keys.
std::string HttpClient::Request::address() {
  const std::string& url = transfer->url();
  if (!url.starts_with("s3://")) return escaped_url(url);
  const S3Access access = read_s3_access();
  if (!access.key_id.empty()) {
    const CurlFunctions& c = curl();
    c.easy_setopt(handle, CURLOPT_AWS_SIGV4, ("aws:amz:" + access.region + ":s3").c_str());
    // Another server would get the token, and a signature that is not for it.
    c.easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
    c.easy_setopt(handle, CURLOPT_USERPWD, (access.key_id + ":" + access.secret).c_str());
    add_header("x-amz-content-sha256: UNSIGNED-PAYLOAD");
    if (!access.session_token.empty()) add_header("x-amz-security-token: " + access.session_token);
  }
  return s3_request_url(url, access);
}

std::size_t HttpClient::Request::take_header(char* text, std::size_t size, std::size_t count, void* self) {
  static_cast<Request*>(self)->response.add_header({text, size * count});
  return size * count;
}

/// Compares the head of an answer with what was asked for, before its first byte is taken.
bool HttpClient::Request::accept_head() {
  Transfer& to = *transfer;
  const std::lock_guard lock(to.mutex_);
  response.check_range(to.offset_ + to.received_, to.info_);
  if (!response.problem.empty()) return false;
  if (!to.info_) to.info_ = RemoteFileInfo{response.total_bytes, response.etag};
  return true;
}

/// Makes room for the bytes of the transfer, under its lock; returns whether there is memory.
bool HttpClient::Request::make_room() {
  try {
    transfer->own_.resize(std::min(transfer->byte_count_, transfer->info_->bytes - transfer->offset_));
  } catch (const std::bad_alloc&) {
    lacks_memory = true;
    return false;
  }
  transfer->out_ = transfer->own_;
  return true;
}

/// Takes bytes of a body; returning another number than `count` ends the transfer.
std::size_t HttpClient::Request::take_bytes(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& request = *static_cast<Request*>(self);
  const std::size_t taken = size * count;
  if (!request.response.is_success()) {
    return request.response.add_body({bytes, taken}) ? taken : 0;
  }
  Transfer& to = *request.transfer;
  if (to.received_ == request.received_before && !request.accept_head()) {
    request.is_rejected = true;
    return 0;
  }
  {
    const std::lock_guard lock(to.mutex_);
    if (to.is_cancelled_) return 0;
    if (to.out_.empty() && !request.make_room()) return 0;
    const std::size_t room = std::min<std::size_t>(taken, to.out_.size() - to.received_);
    std::memcpy(to.out_.data() + to.received_, bytes, room);
    to.received_ += room;
    if (room < taken) return 0;  // a whole file instead of its first bytes
    // A thread that is woken for each piece would only take the CPU from those that receive and send.
    if (to.received_ < to.awaited_) return taken;
    to.awaited_ = Transfer::kNone;  // those that wait for more say so again
  }
  to.changed_.notify_all();
  return taken;
}

}  // namespace chunkhit
