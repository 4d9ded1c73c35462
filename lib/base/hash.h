// XXH3, 64 bits: the one hash of every chunk, part and manifest.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace chunkhit {

/// Hashes bytes with XXH3 (64 bits, seed 0), as `xxhsum -H3` does.
[[nodiscard]] std::uint64_t xxh3(Bytes bytes);

/// Hashes bytes that come in pieces; the result equals `xxh3` of all of them in a row.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();
  Xxh3Stream(const Xxh3Stream&) = delete;
  Xxh3Stream& operator=(const Xxh3Stream&) = delete;
  void update(Bytes bytes);
  /// Begins again, with the memory that there is.
  void reset();
  [[nodiscard]] std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Writes a hash as 16 lower-case hexadecimal digits.
[[nodiscard]] std::string hash_text(std::uint64_t hash);

/// Reads 16 lower-case hexadecimal digits; false when the text is anything else.
[[nodiscard]] bool parse_hash(std::string_view text, std::uint64_t& hash);

}  // namespace chunkhit
