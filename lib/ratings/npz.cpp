#include "ratings/npz.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <new>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "base/file.h"
#include "base/free_archive.h"
#include "base/throw_error.h"
#include "base/words.h"

namespace chunkhit {
namespace {

constexpr std::string_view kArrayEnding = ".npy";
constexpr std::array<const char*, 7> kArrayNames{"format", "shape", "data", "indices",
                                                 "indptr", "row",   "col"};

IntegerSource integers_of(NpyArray& array) {
  return [&array](std::span<std::int64_t> numbers) { array.read(numbers); };
}

ValueSource values_of(NpyArray& array) {
  return [&array](std::span<float> numbers) { array.read(numbers); };
}

constexpr std::uint64_t kMaxTextBytes = 256;

/// IEEE half precision, kept as its bits.
struct Half {
  std::uint16_t bits = 0;
};

double number_of(Half half) {
  const int exponent = (half.bits >> 10) & 31;
  const double fraction = half.bits & 1023;
  double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) magnitude = fraction == 0 ? INFINITY : NAN;
  return (half.bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <class Number>
Number number_of(Number number) {
  return number;
}

template <class Item>
Item load(const std::uint8_t* from, bool big_endian) {
  std::array<std::uint8_t, sizeof(Item)> bytes;
  std::copy_n(from, sizeof(Item), bytes.begin());
  if (big_endian) std::ranges::reverse(bytes);
  return std::bit_cast<Item>(bytes);
}

/// Calls `use` with a value of the C++ type of the items.
template <class Use>
void with_item_type(const NpyType& type, Use use) {
  if (type.kind == 'f') {
    if (type.bytes == 2) return use(Half{});
    return type.bytes == 4 ? use(float{}) : use(double{});
  }
  const bool has_sign = type.kind == 'i';
  switch (type.bytes) {
    case 1:
      return has_sign ? use(std::int8_t{}) : use(std::uint8_t{});
    case 2:
      return has_sign ? use(std::int16_t{}) : use(std::uint16_t{});
    case 4:
      return has_sign ? use(std::int32_t{}) : use(std::uint32_t{});
    default:
      return has_sign ? use(std::int64_t{}) : use(std::uint64_t{});
  }
}

/// The nearest float.
template <class Number>
float nearest_float(Number number, RoundedValues& rounded) {
  using Wide = std::conditional_t<std::is_integral_v<Number>, long double, double>;
  return rounded.take(static_cast<Wide>(number));
}

constexpr std::size_t kReadBytes = std::size_t{256} << 10;
// More members than any array file has; a hostile list could go on for long.
constexpr std::size_t kMaxMembers = 4096;

/// A ZIP file that is walked from member to member.
class ZipWalk {
 public:
  explicit ZipWalk(const std::string& path) : file_(path), fd_(file_.duplicate()) {
    if (reader_ == nullptr) throw std::bad_alloc();
    // Only by the list at its end: a ZIP that is cut off is refused at once.
    check(archive_read_support_format_zip_seekable(reader_.get()));
    check(archive_read_open_fd(reader_.get(), fd_.get(), kReadBytes));
  }
  /// Continues with the next member; false behind the last.
  bool next(std::string& name) {
    struct archive_entry* entry = nullptr;
    const int status = archive_read_next_header(reader_.get(), &entry);
    if (status == ARCHIVE_EOF) return false;
    check(status);
    const char* text = archive_entry_pathname(entry);
    name = text == nullptr ? "" : text;
    return true;
  }
  [[nodiscard]] std::size_t read(MutableBytes out, const std::string& location) {
    const la_ssize_t count = archive_read_data(reader_.get(), out.data(), out.size());
    if (count < 0) throw_bad_data(location + ": cannot be read on: " + reason());
    return static_cast<std::size_t>(count);
  }

 private:
  void check(int status) const {
    if (status < ARCHIVE_WARN)
      throw_bad_data(file_.path() + ": cannot be read as ZIP, or is cut off: " + reason());
  }
  [[nodiscard]] std::string reason() const {
    const char* text = archive_error_string(reader_.get());
    const std::string_view words = text != nullptr ? text : "unknown error";
    return std::string(words.substr(0, words.find_last_not_of('\n') + 1));
  }
  InputFile file_;
  FileDescriptor fd_;
  std::unique_ptr<struct archive, FreeArchive> reader_{archive_read_new()};
};

}  // namespace

NpzReader::NpzReader(const std::string& path, bool transpose)
    : path_(path), transpose_(transpose), collector_(path, {}, {}, transpose_) {
  open_arrays();
  const std::string format = read_format();
  read_shape(format);
  if (format == "csr" || format == "csc")
    entries_ = open_compressed(format == "csc");
  else if (format == "coo")
    entries_ = open_coordinates();
  else
    refuse("has format \"" + printable_text(format) +
           "\", expected csr, csc or coo; convert it: scipy.sparse.save_npz(path, matrix.tocsr())");
}

bool NpzReader::next(RatingBlock& block) {
  collector_.begin(block);
  while (!at_end_ && !collector_.is_full()) at_end_ = !entries_(collector_);
  const bool has_ratings = collector_.finish();
  facts_.rounded = array("data").rounded();
  if (shape_.found_columns != nullptr) (transpose_ ? facts_.user_count : facts_.item_count) = found_columns_;
  return has_ratings;
}

void NpzReader::open_arrays() {
  std::string listed;
  // Other members may be there: programs add names of rows, say.
  for (const std::string& member : list_zip_members(path_)) {
    listed += (listed.empty() ? "" : ", ") + printable_text(member);
    if (!member.ends_with(kArrayEnding)) continue;
    const std::string name = member.substr(0, member.size() - kArrayEnding.size());
    if (name == "coords")
      refuse(
          "has coordinates of n dimensions (coords.npy); make a matrix of them: scipy.sparse.csr_array(x)");
    for (const char* known : kArrayNames)
      if (name == known) arrays_.emplace(name, NpyArray(path_, member));
  }
  if (!has("data"))
    refuse("has no data.npy, only " + (listed.empty() ? "nothing" : listed.substr(0, 400)) +
           "; expected what scipy.sparse.save_npz writes");
}

NpyArray& NpzReader::array(const char* name) {
  const auto found = arrays_.find(name);
  if (found == arrays_.end()) refuse(std::string("has no ") + name + ".npy");
  return found->second;
}

NpyArray& NpzReader::list(const char* name) {
  NpyArray& found = array(name);
  if (found.header().shape.size() != 1)
    found.refuse("has " + std::to_string(found.header().shape.size()) + " dimensions, expected 1");
  return found;
}

std::string NpzReader::read_format() {
  if (has("format")) return array("format").read_text();
  const bool is_csr = has("indices") && has("indptr");
  if (!is_csr && !(has("row") && has("col") && has("shape")))
    refuse("does not say its format, and is neither data, indices and indptr nor data, row, col and shape");
  facts_.notices.push_back(path_ + ": does not say its format: taken as " + (is_csr ? "csr" : "coo"));
  return is_csr ? "csr" : "coo";
}

void NpzReader::read_shape(const std::string& format) {
  shape_.name = path_;
  if (has("shape")) {
    require_count("shape", 2);
    std::array<std::int64_t, 2> sides;
    array("shape").read(sides);
    if (sides[0] < 0 || sides[1] < 0 || sides[0] == INT64_MAX)
      refuse("has shape (" + std::to_string(sides[0]) + ", " + std::to_string(sides[1]) + ")");
    shape_.row_count = static_cast<std::uint64_t>(sides[0]);
    shape_.column_count = static_cast<std::uint64_t>(sides[1]);
  } else if (format == "csr") {
    const std::uint64_t count = list("indptr").count();
    if (count == 0) refuse("indptr is empty");
    shape_.row_count = count - 1;
    shape_.column_count = ArrayShape::kUnknown;
    shape_.found_columns = &found_columns_;
    facts_.notices.push_back(path_ + ": does not say its shape: columns behind the last entry are lost");
  } else {
    refuse("has no shape.npy");
  }
  facts_.is_transposed = transpose_;
  facts_.first_item = 0;
  facts_.user_count = transpose_ ? shape_.column_count : shape_.row_count;
  facts_.item_count = transpose_ ? shape_.row_count : shape_.column_count;
}

EntrySource NpzReader::open_compressed(bool by_columns) {
  const std::uint64_t entry_count = list("data").count();
  require_count("indices", entry_count);
  require_count("indptr", (by_columns ? shape_.column_count : shape_.row_count) + 1);
  return compressed_entries(shape_, {.entry_count = entry_count,
                                     .by_columns = by_columns,
                                     .indptr = integers_of(array("indptr")),
                                     .indices = integers_of(array("indices")),
                                     .values = values_of(array("data"))});
}

EntrySource NpzReader::open_coordinates() {
  const std::uint64_t entry_count = list("data").count();
  require_count("row", entry_count);
  require_count("col", entry_count);
  return coordinate_entries(shape_, entry_count, integers_of(array("row")), integers_of(array("col")),
                            values_of(array("data")));
}

void NpzReader::require_count(const char* name, std::uint64_t expected) {
  const NpyArray& found = list(name);
  if (found.count() != expected)
    found.refuse("has " + std::to_string(found.count()) + " numbers, expected " + std::to_string(expected));
}

void NpzReader::refuse(const std::string& what) const { throw_bad_data(path_ + ": " + what); }

NpyArray::NpyArray(const std::string& path, const std::string& member) : member_(path, member) {
  std::array<std::uint8_t, kNpyPreludeBytes> prelude;
  fill(prelude);
  std::array<std::uint8_t, 4> length{};
  fill(MutableBytes(length).first(npy_length_bytes(prelude, location())));
  const auto bytes = load_little<std::uint32_t>(length.data());
  if (bytes > kMaxNpyHeaderBytes) refuse("has an npy header of " + std::to_string(bytes) + " bytes");
  ByteBuffer dictionary(bytes);
  fill(dictionary);
  header_ = parse_npy_header(as_text(dictionary), location());
  remaining_ = count();
}

void NpyArray::read(std::span<float> numbers) {
  if (header_.type.kind == 'S' || header_.type.kind == 'U') refuse("holds text, expected numbers");
  const std::uint8_t* from = read_raw(numbers.size()).data();
  with_item_type(header_.type, [&](auto item) {
    using Item = decltype(item);
    for (float& number : numbers) {
      number = nearest_float(number_of(load<Item>(from, header_.type.big_endian)), rounded_);
      from += sizeof(Item);
    }
  });
}

void NpyArray::read(std::span<std::int64_t> numbers) {
  if (header_.type.kind != 'i' && header_.type.kind != 'u')
    refuse("has type \"" + header_.descr + "\", expected whole numbers");
  const std::uint8_t* from = read_raw(numbers.size()).data();
  with_item_type(header_.type, [&](auto item) {
    using Item = decltype(item);
    if constexpr (std::is_integral_v<Item>) {
      for (std::int64_t& number : numbers) {
        const Item read = load<Item>(from, header_.type.big_endian);
        if (std::cmp_greater(read, INT64_MAX)) refuse("has the number " + std::to_string(read));
        number =
            static_cast<std::int64_t>(read);  // NOLINT(bugprone-signed-char-misuse): bytes are numbers here
        from += sizeof(Item);
      }
    }
  });
}

std::string NpyArray::read_text() {
  if ((header_.type.kind != 'S' && header_.type.kind != 'U') || count() != 1 ||
      header_.type.bytes > kMaxTextBytes)
    refuse("is no single text");
  const std::size_t step = header_.type.kind == 'U' ? 4 : 1;
  const Bytes raw = read_raw(1);
  std::string text;
  for (std::size_t at = 0; at < raw.size(); at += step) {
    const std::uint32_t c = step == 1                 ? raw[at]
                            : header_.type.big_endian ? load<std::uint32_t>(&raw[at], true)
                                                      : load<std::uint32_t>(&raw[at], false);
    if (c > 126) refuse("is no text of ASCII");
    if (c != 0) text += static_cast<char>(c);
  }
  return text;
}

/// Reads items as they are stored; behind the last there must be nothing, and only its end tells whether the
/// member's checksum is right.
Bytes NpyArray::read_raw(std::uint64_t item_count) {
  if (item_count > remaining_) refuse("has no more numbers");
  raw_.resize(item_count * header_.type.bytes);
  fill(raw_);
  remaining_ -= item_count;
  std::array<std::uint8_t, 1> more;
  if (remaining_ == 0 && item_count > 0 && member_.read(more) != 0)
    refuse("has more bytes than its shape says");
  return raw_;
}

void NpyArray::fill(MutableBytes out) {
  while (!out.empty()) {
    const std::size_t count = member_.read(out);
    if (count == 0) refuse("ends early: its shape says more");
    out = out.subspan(count);
  }
}

void NpyArray::refuse(const std::string& what) const { throw_bad_data(location() + ": " + what); }

std::vector<std::string> list_zip_members(const std::string& path) {
  ZipWalk walk(path);
  std::vector<std::string> names;
  std::unordered_set<std::string> known;
  for (std::string name; walk.next(name);) {
    if (!known.insert(name).second) throw_bad_data(path + ": has two members " + printable_text(name));
    if (names.size() == kMaxMembers)
      throw_bad_data(path + ": has more than " + count_text(kMaxMembers) + " members");
    names.push_back(name);
  }
  return names;
}

struct ZipMember::State {
  ZipWalk walk;
  std::string location;
};

ZipMember::ZipMember(const std::string& path, const std::string& name)
    : state_(new State{ZipWalk(path), path + ": " + printable_text(name)}) {
  std::string found;
  do {
    if (!state_->walk.next(found)) throw_bad_data(path + ": has no member " + printable_text(name));
  } while (found != name);
}

ZipMember::ZipMember(ZipMember&&) noexcept = default;

ZipMember::~ZipMember() = default;

std::size_t ZipMember::read(MutableBytes out) {
  return out.empty() ? 0 : state_->walk.read(out, state_->location);
}

const std::string& ZipMember::location() const { return state_->location; }

}  // namespace chunkhit
