// Gzip members (RFC 1952) → text, with every check that they carry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"

namespace chunkhit {

/// Undoes gzip members that lie one behind the other, given in pieces. Checks each member's CRC-32 and
/// length. Behind the last member only zero bytes may stand.
class GzipText {
 public:
  /// `name` begins the messages.
  explicit GzipText(std::string name);
  ~GzipText();
  GzipText(const GzipText&) = delete;
  GzipText& operator=(const GzipText&) = delete;

  /// Takes bytes off the front of `stored` and fills the front of `out`; returns how many bytes of text. 0
  /// with `stored` empty: more is needed. Throws bad_data naming the member and what is wrong with it.
  [[nodiscard]] std::size_t read(Bytes& stored, MutableBytes out);
  /// Throws bad_data where the file must not end.
  void finish() const;

 private:
  struct Inflater;
  enum class Step { header, body, trailer, zeros };

  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_magic();
  void read_header(Bytes& stored);
  [[nodiscard]] std::size_t inflate(Bytes& stored, MutableBytes out);
  void read_trailer(Bytes& stored);

  std::string name_;
  std::unique_ptr<Inflater> inflater_;
  Step step_ = Step::header;
  std::size_t member_ = 1;
  ByteBuffer pending_;            // of a header or trailer that is not whole yet
  std::uint32_t crc_ = 0;         // of the member's text so far
  std::uint32_t byte_count_ = 0;  // of it, modulo 2^32
};

}  // namespace chunkhit
