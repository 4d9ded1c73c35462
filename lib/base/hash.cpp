#include "base/hash.h"

#include <xxhash.h>
// The library is built for the oldest processors; these functions take AVX2 or AVX-512 where they are there.
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#endif

#include <new>

namespace chunkhit {

struct Xxh3Stream::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() {
    if (xxh == nullptr) throw std::bad_alloc();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(xxh); }
};

std::uint64_t xxh3(Bytes bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Xxh3Stream::Xxh3Stream() : state_(std::make_unique<State>()) { XXH3_64bits_reset(state_->xxh); }
Xxh3Stream::~Xxh3Stream() = default;
void Xxh3Stream::update(Bytes bytes) { XXH3_64bits_update(state_->xxh, bytes.data(), bytes.size()); }
void Xxh3Stream::reset() { XXH3_64bits_reset(state_->xxh); }
std::uint64_t Xxh3Stream::value() const { return XXH3_64bits_digest(state_->xxh); }

std::string hash_text(std::uint64_t hash) {
  std::string text(16, '0');
  for (int digit = 15; digit >= 0; --digit, hash >>= 4) text[digit] = "0123456789abcdef"[hash & 15];
  return text;
}

bool parse_hash(std::string_view text, std::uint64_t& hash) {
  if (text.size() != 16) return false;
  hash = 0;
  for (const char c : text) {
    const bool decimal = c >= '0' && c <= '9';
    if (!decimal && !(c >= 'a' && c <= 'f')) return false;
    hash = hash << 4 | static_cast<std::uint64_t>(decimal ? c - '0' : c - 'a' + 10);
  }
  return true;
}

}  // namespace chunkhit
