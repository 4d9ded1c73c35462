#include "base/remote/remote_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/remote/url.h"
#include "base/throw_error.h"

namespace chunkhit {
namespace {

// The begin of a file: of most manifests all, of a part more than its header.
constexpr std::uint64_t kHeadBytes = 64 << 10;
// While a file is opened, small reads take so much around them: an index lies at the end of its part.
constexpr std::uint64_t kSmallBytes = 4096;
constexpr std::uint64_t kTailBytes = 4 << 20;
// What is kept of the end of a file until the hash of its part was compared.
constexpr std::uint64_t kMaxIndexBytes = 16 << 20;
// Files that are read from begin to end are asked for in such pieces.
constexpr std::uint64_t kPieceBytes = 4 << 20;
constexpr std::uint64_t kPiecesAhead = 3;

const std::string& checked(const std::string& url) {
  check_url(url);
  return url;
}

}  // namespace

OpenedFiles*& opened_files_of_thread() {
  static thread_local OpenedFiles* opened = nullptr;
  return opened;
}

RemoteFile::RemoteFile(const std::string& url)
    : FileBytes(checked(url), 0),
      retry_seconds_(retry_seconds()),
      opened_(opened_files_of_thread() != nullptr ? opened_files_of_thread()->shared_from_this() : nullptr),
      client_(HttpClient::shared()),
      process_(::getpid()) {
  if (!take_opened()) info_ = ask_for_info(kHeadBytes);
  bytes_ = info_.bytes;
}

/// Asks for the begin of the file.
RemoteFileInfo RemoteFile::ask_for_info(std::uint64_t byte_count) {
  auto head = std::make_shared<Transfer>(path_, 0, byte_count, std::nullopt, retry_seconds_);
  client_->start(head);
  RemoteFileInfo info = head->wait_for_info();
  opening_.push_front(std::move(head));
  return info;
}

/// Takes what another process has read; returns whether it has, and the file is still the same.
bool RemoteFile::take_opened() {
  const OpenedFiles::File* const file = opened_ ? opened_->find(path_) : nullptr;
  if (file == nullptr) return false;
  if (!opened_->was_just_read() && (file->info.etag.empty() || ask_for_info(1) != file->info)) {
    opening_.clear();
    return false;
  }
  info_ = file->info;
  opening_.clear();
  for (const auto& [offset, bytes] : file->ranges)
    opening_.push_back(std::make_shared<Transfer>(path_, offset, info_, bytes));
  return true;
}

/// Under the lock, when the file was opened: keeps what arrived for other processes.
void RemoteFile::add_opened() const {
  if (!opened_ || process_ != ::getpid() || opened_->find(path_) != nullptr) return;
  try {
    OpenedFiles::File file{info_, {}};
    for (const auto& each : opening_) {
      const std::uint64_t count = std::min(each->end(), bytes_) - each->offset();
      if (each->received() == count) file.ranges.push_back({each->offset(), each->wait(count)});
    }
    opened_->add(path_, file);
  } catch (const std::exception&) {
    // The others read it themselves.
  }
}

RemoteFile::~RemoteFile() {
  if (is_opening_) add_opened();
  for (const Transfers* const list : {&ahead_, &opening_})
    for (const auto& each : *list) each->cancel();
}

void RemoteFile::require_local(std::string_view what) const {
  throw_usage(path_ + ": is " + std::string(what) + " on a server, expected a local file: download it first");
}

FileDescriptor RemoteFile::duplicate() const {
  require_local("a file");
  return {};
}

/// Under the lock. In a forked child, what its parent asked for never comes.
void RemoteFile::leave_parent() const {
  if (process_ == ::getpid()) return;
  process_ = ::getpid();
  client_ = HttpClient::shared();
  ahead_.clear();
  opening_.clear();
}

/// Under the lock: the transfer that has the byte at `offset`.
std::shared_ptr<Transfer> RemoteFile::find(std::uint64_t offset) const {
  for (const Transfers* const list : {&ahead_, &opening_})
    for (const auto& each : *list)
      if (each->offset() <= offset && offset < std::min(each->end(), bytes_)) return each;
  return nullptr;
}

/// Under the lock.
std::shared_ptr<Transfer> RemoteFile::ask(std::uint64_t offset, std::uint64_t end, Transfers& list) const {
  auto transfer = std::make_shared<Transfer>(path_, offset, end - offset, info_, retry_seconds_);
  client_->start(transfer);
  list.push_back(transfer);
  return transfer;
}

/// Under the lock: where the first transfer behind `offset` begins.
std::uint64_t RemoteFile::next_asked(std::uint64_t offset) const {
  std::uint64_t next = bytes_;
  for (const Transfers* const list : {&ahead_, &opening_})
    for (const auto& each : *list)
      if (each->offset() > offset) next = std::min(next, each->offset());
  return next;
}

/// Under the lock: asks for bytes that nothing was asked ahead for, up to where something was.
std::shared_ptr<Transfer> RemoteFile::request_at(std::uint64_t offset, std::uint64_t end) const {
  if (is_opening_ && end - offset <= kSmallBytes) {
    const std::uint64_t tail = bytes_ - std::min(bytes_, kTailBytes);
    const std::uint64_t last = bytes_ - std::min(bytes_, kHeadBytes);
    if (offset >= tail) return ask(std::min(offset, last), bytes_, opening_);
    return ask(offset, std::min(bytes_, offset + kHeadBytes), opening_);
  }
  // Once a part is open, its chunks are asked for one by one.
  const bool is_sequential = is_opening_ && offset == last_end_ && offset > 0;
  if (is_sequential) end = std::min(bytes_, std::max(end, offset + kPieceBytes));
  end = std::min(end, next_asked(offset));
  // An index is read again, for the hash of the part.
  const auto list_of = [&](std::uint64_t begin) -> Transfers& {
    return is_opening_ && bytes_ - begin <= kMaxIndexBytes ? opening_ : ahead_;
  };
  std::shared_ptr<Transfer> asked = ask(offset, end, list_of(offset));
  for (std::uint64_t piece = 0; is_sequential && piece < kPiecesAhead; ++piece) {
    const std::uint64_t begin = end + piece * kPieceBytes;
    if (begin < bytes_ && find(begin) == nullptr)
      static_cast<void>(ask(begin, std::min(bytes_, begin + kPieceBytes), list_of(begin)));
  }
  return asked;
}

void RemoteFile::drop(const std::shared_ptr<Transfer>& transfer) const {
  const std::lock_guard lock(mutex_);
  ahead_.remove(transfer);
}

void RemoteFile::require_bytes(std::uint64_t offset, std::uint64_t byte_count) const {
  if (offset > bytes_ || byte_count > bytes_ - offset)
    throw_bad_data(path_ + ": ends at byte " + std::to_string(bytes_) + ", expected bytes " +
                   std::to_string(offset) + " to " + std::to_string(offset + byte_count));
}

std::shared_ptr<Transfer> RemoteFile::receive(std::uint64_t offset, MutableBytes out) const {
  require_bytes(offset, out.size());
  const std::lock_guard lock(mutex_);
  leave_parent();
  auto transfer = std::make_shared<Transfer>(path_, offset, out.size(), info_, retry_seconds_, out);
  client_->start(transfer);
  return transfer;
}

void RemoteFile::read_at(std::uint64_t offset, MutableBytes out) const {
  require_bytes(offset, out.size());
  while (!out.empty()) {
    std::shared_ptr<Transfer> transfer;
    {
      const std::lock_guard lock(mutex_);
      leave_parent();
      transfer = find(offset);
      if (transfer == nullptr) transfer = request_at(offset, offset + out.size());
      last_end_ = offset + out.size();
    }
    const std::uint64_t in_transfer = offset - transfer->offset();
    const std::uint64_t end = std::min(transfer->end(), bytes_);
    const std::uint64_t count = std::min<std::uint64_t>(out.size(), end - offset);
    try {
      std::memcpy(out.data(), transfer->wait(in_transfer + count).data() + in_transfer, count);
    } catch (...) {
      drop(transfer);
      const std::lock_guard lock(mutex_);
      opening_.remove(transfer);
      throw;
    }
    offset += count;
    out = out.subspan(count);
    if (offset == end) drop(transfer);
  }
}

void RemoteFile::read_ahead(std::uint64_t offset, std::uint64_t byte_count) const {
  if (offset >= bytes_) return;
  const std::uint64_t end = offset + std::min(byte_count, bytes_ - offset);
  const std::lock_guard lock(mutex_);
  leave_parent();
  // Some of it may be there, or be asked for.
  while (offset < end) {
    const std::shared_ptr<Transfer> found = find(offset);
    offset = (found ? found : ask(offset, std::min(end, next_asked(offset)), ahead_))->end();
  }
}

void RemoteFile::forget_ahead() const {
  const std::lock_guard lock(mutex_);
  for (const auto& each : ahead_) each->cancel();
  ahead_.clear();
  // What was read while the file was opened is read once more, for the hash of the part.
  if (std::exchange(is_opening_, false)) return add_opened();
  for (const auto& each : opening_) each->cancel();
  opening_.clear();
}

}  // namespace chunkhit
