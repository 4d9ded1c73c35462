#include "base/npy_header.h"

#include <charconv>
#include <system_error>

#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 60;
constexpr std::size_t kMaxDimensions = 32;

/// Reads the little of Python's literals that a header may have.
class LiteralReader {
 public:
  LiteralReader(std::string_view text, const std::string& location) : text_(text), location_(location) {}
  [[noreturn]] void fail(const std::string& expected) const {
    throw_bad_data(location_ + ": broken npy header: expected " + expected + " at byte " +
                   std::to_string(at_) + " of \"" + printable_text(text_.substr(0, 200)) + '"');
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("\"") + c + '"');
  }
  std::string read_text() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"' && !take('"')) fail("a text (arrays of records have none and are no numbers)");
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("the end of a text");
    const std::string_view text = text_.substr(at_, end - at_);
    if (text.find('\\') != std::string_view::npos) fail("a text without \\");
    at_ = end + 1;
    return std::string(text);
  }
  bool read_truth() {
    skip_blanks();
    for (const bool truth : {true, false}) {
      const std::string_view word = truth ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return truth;
    }
    fail("True or False");
  }
  std::uint64_t read_count() {
    skip_blanks();
    std::uint64_t count = 0;
    const char* const begin = text_.data() + at_;
    const auto [stop, error] = std::from_chars(begin, text_.data() + text_.size(), count);
    if (error != std::errc()) fail("a length");
    at_ += static_cast<std::size_t>(stop - begin);
    static_cast<void>(take('L'));  // Python 2's long numbers
    return count;
  }
  void expect_end() {
    skip_blanks();
    if (at_ != text_.size()) fail("the end");
  }

 private:
  std::string_view text_;
  const std::string& location_;
  std::size_t at_ = 0;
};

std::vector<std::uint64_t> read_shape(LiteralReader& literal) {
  std::vector<std::uint64_t> shape;
  literal.expect('(');
  while (!literal.take(')')) {
    if (shape.size() == kMaxDimensions) literal.fail("fewer dimensions");
    shape.push_back(literal.read_count());
    if (!literal.take(',')) {
      literal.expect(')');
      break;
    }
  }
  return shape;
}

NpyType parse_type(const std::string& descr, const std::string& location) {
  const auto refuse = [&](const std::string& why) {
    throw_bad_data(location + ": has type \"" + printable_text(descr) + "\": " + why);
  };
  std::string_view text = descr;
  NpyType type;
  if (!text.empty() && std::string_view("<>|=").find(text[0]) != std::string_view::npos) {
    type.big_endian = text[0] == '>';
    text.remove_prefix(1);
  }
  if (text.starts_with('O')) refuse("Python objects, which are never loaded; save arrays of numbers");
  if (text.starts_with('c')) refuse("complex numbers");
  if (text.empty() || std::string_view("biufSU").find(text[0]) == std::string_view::npos)
    refuse("expected numbers or text");
  type.kind = text[0];
  if (!parse_all(text.substr(1), type.bytes) || type.bytes > (1u << 20)) refuse("expected a size");
  if (type.kind == 'U') {
    type.bytes *= 4;
    return type;
  }
  if (type.kind == 'S') return type;
  const bool is_whole = type.bytes == 1 || type.bytes == 2 || type.bytes == 4 || type.bytes == 8;
  const bool is_known = type.kind == 'b'   ? type.bytes == 1
                        : type.kind == 'f' ? is_whole && type.bytes != 1
                                           : is_whole;
  if (!is_known) refuse("no numbers of this size are known here");
  return type;
}

void check_size(const NpyHeader& header, const std::string& location) {
  std::uint64_t bytes = header.type.bytes == 0 ? 1 : header.type.bytes;
  for (const std::uint64_t side : header.shape) {
    if (side == 0) return;
    if (bytes > kMaxBytes / side) throw_bad_data(location + ": has impossibly many numbers");
    bytes *= side;
  }
}

}  // namespace

NpyHeader parse_npy_header(std::string_view dictionary, const std::string& location) {
  LiteralReader literal(dictionary, location);
  NpyHeader header;
  bool has_descr = false;
  bool has_order = false;
  bool has_shape = false;
  literal.expect('{');
  while (!literal.take('}')) {
    const std::string key = literal.read_text();
    literal.expect(':');
    bool& seen = key == "descr" ? has_descr : key == "fortran_order" ? has_order : has_shape;
    if (seen || (&seen == &has_shape && key != "shape"))
      literal.fail("each of descr, fortran_order, shape once");
    seen = true;
    if (&seen == &has_descr)
      header.descr = literal.read_text();
    else if (&seen == &has_order)
      header.fortran_order = literal.read_truth();
    else
      header.shape = read_shape(literal);
    if (!literal.take(',')) {
      literal.expect('}');
      break;
    }
  }
  literal.expect_end();
  if (!has_descr || !has_order || !has_shape) literal.fail("descr, fortran_order and shape");
  header.type = parse_type(header.descr, location);
  check_size(header, location);
  return header;
}

std::size_t npy_length_bytes(Bytes prelude, const std::string& location) {
  constexpr std::size_t kVersionAt = 6;
  const auto refuse = [&](const std::string& what) { throw_bad_data(location + ": " + what); };
  if (prelude.size() < kNpyPreludeBytes || !as_text(prelude).starts_with(kNpyMagic))
    refuse("is no npy array");
  const std::uint8_t version = prelude[kVersionAt];
  if (version < 1 || version > 3) refuse("has npy version " + std::to_string(version) + ", expected 1 to 3");
  return version == 1 ? 2 : 4;
}

}  // namespace chunkhit
