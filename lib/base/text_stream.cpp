#include "base/text_stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#define ZLIB_CONST
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/free_archive.h"
#include "base/throw_error.h"

namespace chunkhit {
namespace {

/// Decompresses consecutive gzip members, given in pieces. zlib compares each member's CRC-32 and length;
/// libarchive does not. Behind the last member only zero bytes may stand.
class GzipText {
 public:
  /// `name` begins the messages.
  explicit GzipText(std::string name) : name_(std::move(name)) {
    constexpr int kWithHeaders = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kWithHeaders) != Z_OK) throw std::bad_alloc();
  }
  GzipText(const GzipText&) = delete;
  GzipText& operator=(const GzipText&) = delete;
  ~GzipText() { inflateEnd(&stream_); }

  /// Takes bytes off the front of `stored` and fills the front of `out`; returns how many bytes of text. 0
  /// with `stored` empty: more is needed. Throws bad_data naming the member and what is wrong with it.
  [[nodiscard]] std::size_t read(Bytes& stored, MutableBytes out) {
    if (!is_inside_ && !begin_member(stored)) return 0;
    constexpr std::size_t kMaxStep = std::numeric_limits<uInt>::max();
    const auto given = static_cast<uInt>(std::min(stored.size(), kMaxStep));
    const auto room = static_cast<uInt>(std::min(out.size(), kMaxStep));
    stream_.next_in = stored.data();
    stream_.avail_in = given;
    stream_.next_out = out.data();
    stream_.avail_out = room;
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      fail(std::string("is damaged: ") +
           (stream_.msg != nullptr ? stream_.msg : "deflate stream cannot be read"));
    stored = stored.subspan(given - stream_.avail_in);
    is_inside_ = result != Z_STREAM_END;
    return room - stream_.avail_out;
  }
  /// Throws bad_data where the file must not end.
  void finish() const {
    if (is_inside_) fail("is truncated: the file ends inside it; copy or download it again");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw_bad_data(name_ + ": cannot be read: gzip member " + std::to_string(member_) + ": " + what);
  }
  /// False where there are no bytes, or zeros, which are taken: tar and tapes fill their last block with
  /// them.
  [[nodiscard]] bool begin_member(Bytes& stored) {
    constexpr std::uint8_t kMagic = 0x1f;
    are_zeros_ = are_zeros_ || (!stored.empty() && stored[0] == 0);
    const Bytes odd = are_zeros_ ? stored : stored.first(std::min<std::size_t>(1, stored.size()));
    const std::uint8_t expected = are_zeros_ ? 0 : kMagic;
    if (std::ranges::any_of(odd, [&](std::uint8_t byte) { return byte != expected; }))
      fail("is followed by bytes that begin no other member");
    if (are_zeros_) stored = {};
    if (stored.empty()) return false;
    ++member_;
    is_inside_ = true;
    inflateReset(&stream_);
    return true;
  }

  std::string name_;
  z_stream stream_{};
  std::size_t member_ = 0;  // from 1
  bool is_inside_ = false;  // a member that has not ended
  bool are_zeros_ = false;  // behind the last one
};

constexpr std::size_t kReadBytes = std::size_t{256} << 10;
constexpr int kStopMilliseconds = 100;

// Gzip members begin with 1f 8b (RFC 1952).
bool is_gzip(Bytes bytes) { return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b; }

// Zstd frames begin with fd2fb528, skippable ones with 184d2a50 to 184d2a5f (RFC 8878).
bool is_zstd(Bytes bytes) {
  if (bytes.size() < 4) return false;
  const auto magic = load_little<std::uint32_t>(bytes.data());
  return magic == 0xfd2fb528u || (magic & 0xfffffff0u) == 0x184d2a50u;
}

// The magic of a stream of xz.
bool is_xz(Bytes bytes) {
  return as_text(bytes).starts_with(
      std::string_view("\xfd"
                       "7zXZ\0",
                       6));
}

// The magic of a stream of bzip2, its level, and the magic of its first block, or of its end.
bool is_bzip2(Bytes bytes) {
  constexpr std::string_view kBlock("\x31\x41\x59\x26\x53\x59"), kEnd("\x17\x72\x45\x38\x50\x90");
  const std::string_view text = as_text(bytes);
  if (!text.starts_with("BZh") || text.size() < 10 || text[3] < '1' || text[3] > '9') return false;
  return text.substr(4).starts_with(kBlock) || text.substr(4).starts_with(kEnd);
}

/// The bytes of a file as stored; the first ones may be peeked at before they are read.
class StoredFile {
 public:
  StoredFile(const std::string& path, const std::atomic<bool>* stop) : stop_(stop) {
    if (path == "-") return;
    // A FIFO without a writer would hold the opening itself; await_input waits for the writer.
    file_ = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!file_.is_open()) throw_failed_read(path, "cannot be opened: ", errno);
    struct stat status {};
    if (::fstat(fd(), &status) != 0) return;
    if (S_ISDIR(status.st_mode)) fail(path, "is a folder, expected a file");
    if (S_ISREG(status.st_mode)) byte_count_ = static_cast<std::uint64_t>(status.st_size);
    is_fifo_ = S_ISFIFO(status.st_mode);
    static_cast<void>(::fcntl(fd(), F_SETFL, ::fcntl(fd(), F_GETFL) & ~O_NONBLOCK));
  }
  [[noreturn]] static void fail(const std::string& name, const std::string& what) {
    throw_bad_data(name + ": " + what);
  }

  /// Reads the first bytes; returns false and sets errno on failure.
  [[nodiscard]] bool fill_head() {
    head_.resize(kReadBytes);
    std::size_t filled = 0;
    for (ssize_t count = 1; count > 0 && filled < head_.size(); filled += static_cast<std::size_t>(count)) {
      count = read_file(MutableBytes(head_).subspan(filled));
      if (count < 0) return false;
    }
    head_.resize(filled);
    return true;
  }
  [[nodiscard]] Bytes head() const { return head_; }
  [[nodiscard]] std::optional<std::uint64_t> byte_count() const { return byte_count_; }

  /// Fills the front of `out`; returns -1 and sets errno on failure.
  [[nodiscard]] ssize_t read(MutableBytes out) {
    if (head_at_ == head_.size()) return read_file(out);
    const std::size_t count = std::min(out.size(), head_.size() - head_at_);
    std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(head_at_), count, out.begin());
    head_at_ += count;
    return static_cast<ssize_t>(count);
  }

 private:
  [[nodiscard]] int fd() const { return file_.is_open() ? file_.get() : STDIN_FILENO; }
  [[nodiscard]] ssize_t read_file(MutableBytes out) const {
    const bool may_wait = is_fifo_ || (!file_.is_open() && stop_ != nullptr);
    if (may_wait && !await_input()) return 0;
    ssize_t count = 0;
    do count = ::read(fd(), out.data(), out.size());
    while (count < 0 && errno == EINTR);
    return count;
  }

  /// Waits until bytes can be read; returns false if `stop` is set before.
  [[nodiscard]] bool await_input() const {
    struct pollfd input {
      fd(), POLLIN, 0
    };
    for (;;) {
      if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) return false;
      const int ready = ::poll(&input, 1, kStopMilliseconds);
      if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
    }
  }

  const std::atomic<bool>* stop_;
  FileDescriptor file_;  // closed for stdin, which is not ours to close
  bool is_fifo_ = false;
  std::optional<std::uint64_t> byte_count_;
  ByteBuffer head_;
  std::size_t head_at_ = 0;
};

}  // namespace

struct TextStream::State {
  State(const std::string& path, const std::atomic<bool>* stop)
      : name(path == "-" ? "stdin" : path), file(path, stop) {}

  std::string name;
  StoredFile file;
  ByteBuffer piece;  // of the file, compressed
  std::optional<GzipText> gzip;
  Bytes stored;                                         // of `piece`, not undone yet
  std::unique_ptr<struct archive, FreeArchive> reader;  // of zstd, xz and bzip2
  ByteBuffer ahead;                                     // text that was looked at and not read yet
  std::size_t ahead_at = 0;
  bool at_end = false;
  bool is_latin1 = false;
  std::optional<std::uint8_t> half;  // of a character of two bytes, the first of which was given
  int read_error = 0;                // of the file, that libarchive was given
  std::uint64_t given_bytes = 0;     // to libarchive
  bool wants_more = false;           // libarchive asked for bytes behind the end

  [[noreturn]] void fail_archive(const std::string& what) const {
    if (read_error != 0) throw_failed_read(name, what, read_error);
    StoredFile::fail(name,
                     what + (wants_more ? "the file ends inside its compressed data: " : "") + reason());
  }
  void check(int result) const {
    if (result < ARCHIVE_WARN) fail_archive("cannot be read: ");
  }
  [[nodiscard]] std::string reason() const {
    const char* text = archive_error_string(reader.get());
    return text != nullptr
               ? text
               : "libarchive names no reason, error " + std::to_string(archive_errno(reader.get()));
  }
  static la_ssize_t give_piece(struct archive* reader, void* data, const void** bytes);
  void open_archive();
  [[nodiscard]] bool is_compressed() const { return gzip || reader; }
  [[nodiscard]] std::size_t read_gzip(MutableBytes out);
  [[nodiscard]] std::size_t read_archive(MutableBytes out);
  void check_end();
  [[nodiscard]] std::size_t read_plain(MutableBytes out);
  [[nodiscard]] std::size_t read_stored(MutableBytes out);
  [[nodiscard]] std::size_t read_latin1(MutableBytes out);
  [[nodiscard]] std::size_t read_text(MutableBytes out);
};

// libarchive's callback for more bytes of the file.
la_ssize_t TextStream::State::give_piece(struct archive* reader, void* data, const void** bytes) {
  auto& state = *static_cast<State*>(data);
  state.piece.resize(kReadBytes);
  const ssize_t count = state.file.read(state.piece);
  if (count < 0) {
    state.read_error = errno;
    archive_set_error(reader, errno, "%s", error_text(errno).c_str());
  }
  state.wants_more = count == 0;
  *bytes = state.piece.data();
  state.given_bytes += count > 0 ? static_cast<std::uint64_t>(count) : 0;
  return count;
}

void TextStream::State::open_archive() {
  reader.reset(archive_read_new());
  if (reader == nullptr) throw std::bad_alloc();
  check(archive_read_support_filter_zstd(reader.get()));
  check(archive_read_support_filter_xz(reader.get()));
  check(archive_read_support_filter_bzip2(reader.get()));
  check(archive_read_support_format_raw(reader.get()));
  check(archive_read_support_format_empty(reader.get()));
  check(archive_read_open(reader.get(), this, nullptr, give_piece, nullptr));
  struct archive_entry* entry = nullptr;
  const int header = archive_read_next_header(reader.get(), &entry);
  at_end = header == ARCHIVE_EOF;
  if (!at_end) check(header);
}

/// GzipText consumes stored bytes without giving text for headers and trailers, hence the loop.
std::size_t TextStream::State::read_gzip(MutableBytes out) {
  for (;;) {
    const std::size_t count = gzip->read(stored, out);
    if (count > 0) return count;
    if (!stored.empty()) continue;
    piece.resize(kReadBytes);
    stored = Bytes(piece).first(read_plain(piece));
    if (stored.empty()) break;
  }
  gzip->finish();
  return 0;
}

std::size_t TextStream::State::read_archive(MutableBytes out) {
  const la_ssize_t count = archive_read_data(reader.get(), out.data(), out.size());
  if (count < 0) fail_archive("cannot be read on: ");
  if (count == 0) check_end();
  return static_cast<std::size_t>(count);
}

/// libarchive takes no notice of what stands behind the last stream of bzip2.
void TextStream::State::check_end() {
  if (!is_bzip2(file.head())) return;
  const auto used = static_cast<std::uint64_t>(archive_filter_bytes(reader.get(), -1));
  ByteBuffer more(1);
  if (used < given_bytes || file.read(more) > 0)
    StoredFile::fail(name, "cannot be read: the bzip2 stream that ends at byte " + std::to_string(used) +
                               " is followed by bytes that begin no other one");
}

std::size_t TextStream::State::read_plain(MutableBytes out) {
  const ssize_t count = file.read(out);
  if (count < 0) throw_failed_read(name, "cannot be read on: ", errno);
  return static_cast<std::size_t>(count);
}

std::size_t TextStream::State::read_stored(MutableBytes out) {
  return gzip ? read_gzip(out) : reader ? read_archive(out) : read_plain(out);
}

/// Reads into the back half of `out` and writes UTF-8, at most two bytes for one, from its front on.
std::size_t TextStream::State::read_latin1(MutableBytes out) {
  std::size_t count = 0;
  if (half) out[count++] = *std::exchange(half, std::nullopt);
  if (out.size() == count) return count;
  const std::size_t room = std::max<std::size_t>(1, (out.size() - count) / 2);
  const MutableBytes back = out.last(room);
  const std::size_t read = read_stored(back);
  for (std::size_t at = 0; at < read; ++at) {
    const std::uint8_t byte = back[at];
    if (byte < 0x80) {
      out[count++] = byte;
      continue;
    }
    const auto last = static_cast<std::uint8_t>(0x80 | (byte & 0x3f));
    out[count++] = static_cast<std::uint8_t>(0xc0 | (byte >> 6));
    if (count == out.size())
      half = last;
    else
      out[count++] = last;
  }
  return count;
}

std::size_t TextStream::State::read_text(MutableBytes out) {
  if (at_end || out.empty()) return 0;
  const std::size_t count = is_latin1 ? read_latin1(out) : read_stored(out);
  at_end = count == 0;
  return count;
}

TextStream::TextStream(const std::string& path, const std::atomic<bool>* stop, bool is_latin1)
    : state_(std::make_unique<State>(path, stop)) {
  state_->is_latin1 = is_latin1;
  if (!state_->file.fill_head()) throw_failed_read(name(), "cannot be read: ", errno);
  if (is_gzip(state_->file.head()))
    state_->gzip.emplace(name());
  else if (const Bytes head = state_->file.head(); is_zstd(head) || is_xz(head) || is_bzip2(head))
    state_->open_archive();
}

TextStream::~TextStream() = default;

const std::string& TextStream::name() const { return state_->name; }

std::size_t TextStream::read(MutableBytes out) {
  const std::size_t left = state_->ahead.size() - state_->ahead_at;
  if (left == 0) return state_->read_text(out);
  const std::size_t count = std::min(out.size(), left);
  std::copy_n(state_->ahead.begin() + static_cast<std::ptrdiff_t>(state_->ahead_at), count, out.begin());
  state_->ahead_at += count;
  return count;
}

Bytes TextStream::head() {
  ByteBuffer& ahead = state_->ahead;
  if (ahead.empty()) {
    ahead.resize(kHeadBytes);
    std::size_t filled = 0;
    for (std::size_t count = 1; count > 0 && filled < ahead.size(); filled += count)
      count = state_->read_text(MutableBytes(ahead).subspan(filled));
    ahead.resize(filled);
  }
  return ahead;
}

std::optional<std::uint64_t> TextStream::byte_count() const {
  return state_->is_compressed() || state_->is_latin1 ? std::nullopt : state_->file.byte_count();
}

}  // namespace chunkhit
