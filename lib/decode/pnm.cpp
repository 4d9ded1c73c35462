// Binary PNM: P5 (gray), P6 (RGB) and PAM (P7, which may have alpha), 8 or 16 bits a value, any largest
// value. stb_image would only copy the rows: it scales no value below 255, and keeps the low byte of one
// above. Class ids also of P2 and P3, whose values are text.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/text.h"
#include "base/words.h"
#include "decode/channels.h"
#include "decode/class_ids.h"
#include "decode/formats.h"

namespace chunkhit {
namespace {

constexpr std::string_view kBlanks = " \t\n\v\f\r";

// Reads a number and the one blank after it; blanks and comments come before it. False when there is none.
bool read_number(std::string_view text, std::size_t& at, std::uint32_t& number) {
  while (at < text.size() && (kBlanks.find(text[at]) != std::string_view::npos || text[at] == '#')) {
    if (text[at] == '#')
      while (at < text.size() && text[at] != '\n' && text[at] != '\r') ++at;
    else
      ++at;
  }
  constexpr std::size_t kMaxDigits = 9;  // so that the number fits in 32 bits
  const std::size_t begin = at;
  for (number = 0; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    if (at - begin == kMaxDigits) return false;
    number = number * 10 + static_cast<std::uint32_t>(text[at] - '0');
  }
  return at > begin && at < text.size() && kBlanks.find(text[at++]) != std::string_view::npos;
}

/// The values of a header, and where the rows begin.
struct PnmHeader {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t largest = 0;
  std::uint32_t channels = 0;
  std::size_t end = 0;
};

std::optional<PnmHeader> read_pnm_header(std::string_view text) {
  PnmHeader header;
  header.channels = text[1] == '5' || text[1] == '2' ? 1 : 3;
  header.end = 2;
  const bool is_whole = read_number(text, header.end, header.width) &&
                        read_number(text, header.end, header.height) &&
                        read_number(text, header.end, header.largest);
  return is_whole ? std::optional(header) : std::nullopt;
}

/// Tuple types of PAM; those with alpha have it last, not multiplied into the colors.
constexpr std::array<std::pair<std::string_view, std::uint32_t>, 6> kTupleTypes{{{"GRAYSCALE", 1},
                                                                                 {"BLACKANDWHITE", 1},
                                                                                 {"GRAYSCALE_ALPHA", 2},
                                                                                 {"BLACKANDWHITE_ALPHA", 2},
                                                                                 {"RGB", 3},
                                                                                 {"RGB_ALPHA", 4}}};

/// Reads lines of a keyword and its value up to ENDHDR.
std::optional<PnmHeader> read_pam_header(std::string_view text) {
  PnmHeader header;
  std::string_view type;
  for (header.end = 3;;) {
    const std::size_t end = text.find('\n', header.end);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = text.substr(header.end, end - header.end);
    const std::size_t blank = line.find(' ');
    const std::string_view word = line.substr(0, blank);
    header.end = end + 1;
    if (word == "ENDHDR") break;
    if (word.empty() || word.starts_with('#')) continue;
    if (blank == std::string_view::npos) return std::nullopt;
    std::size_t at = end - line.size() + blank;
    if (word == "TUPLTYPE") type = line.substr(blank + 1);
    std::uint32_t* const number = word == "WIDTH"    ? &header.width
                                  : word == "HEIGHT" ? &header.height
                                  : word == "DEPTH"  ? &header.channels
                                  : word == "MAXVAL" ? &header.largest
                                                     : nullptr;
    if (number != nullptr && !read_number(text, at, *number)) return std::nullopt;
  }
  const auto is_own = [&](const auto& known) {
    return known.second == header.channels && (type.empty() || known.first == type);
  };
  return std::ranges::any_of(kTupleTypes, is_own) ? std::optional(header) : std::nullopt;
}

// round(v / largest · 255) in doubles, ties to even: Pillow's PpmDecoder; or by a range of 16-bit values.
ByteBuffer scale_table(std::uint32_t largest, const std::array<std::uint16_t, 2>& range) {
  ByteBuffer scaled(largest > 255 ? 65536 : 256);
  DeepValues values(range);
  const bool has_range = largest > 255 && !values.is_whole_range();
  for (std::uint32_t v = 0; v < scaled.size(); ++v)
    scaled[v] = has_range      ? values.scaled(v)
                : v >= largest ? 255
                               : static_cast<std::uint8_t>(std::nearbyint(
                                     static_cast<double>(v) / static_cast<double>(largest) * 255));
  return scaled;
}

PnmHeader checked_header(Bytes file) {
  const bool is_pam = file[1] == '7';
  const auto found = is_pam ? read_pam_header(as_text(file)) : read_pnm_header(as_text(file));
  if (!found || found->largest == 0 || found->largest > 65535)
    throw ImageError(RejectKind::damaged,
                     is_pam ? "damaged PAM: its header lacks width, height, depth or largest value, or is "
                              "of other than gray and RGB, with or without alpha"
                            : "damaged PNM: its header is not width, height and largest value");
  return *found;
}

class PnmFile : public OpenedImage {
 public:
  PnmFile(Bytes file, DecodeMonitor& monitor) : monitor_(monitor) {
    const PnmHeader found = checked_header(file);
    header.width = found.width;
    header.height = found.height;
    header.channels = found.channels;
    largest_ = found.largest;
    header.extra_bytes = std::uint64_t{header.width} * header.channels + 65536;
    value_bytes_ = largest_ > 255 ? 2 : 1;
    const std::uint64_t row_bytes = std::uint64_t{header.width} * header.channels * value_bytes_;
    rows_ = {file.subspan(found.end), row_bytes, row_bytes};
  }

  void decode(const DecodePlan& plan, Image& image) override {
    const std::uint64_t whole_rows = count_whole_rows(rows_, header.height, monitor_);
    const auto& range = monitor_.options().scale_from;
    const ByteBuffer scaled = scale_table(largest_, range);
    const bool is_measured = largest_ == 65535 && DeepValues(range).is_whole_range();
    const Rect& region = plan.region;
    image.reshape(region.width, region.height, plan.channels);
    ByteBuffer natural(std::size_t{region.width} * header.channels);
    for (std::uint32_t y = 0; y < region.height; ++y) {
      monitor_.check_time();
      if (region.y + y >= whole_rows) {
        std::fill_n(image.row(y), image.row_bytes(), std::uint8_t{0});
        continue;
      }
      const std::uint8_t* values = rows_.bytes.data() + (region.y + y) * rows_.row_step +
                                   std::size_t{region.x} * header.channels * value_bytes_;
      const bool is_scaled = largest_ != 255;
      for (std::size_t i = 0; is_scaled && i < natural.size(); ++i)
        natural[i] = scaled[value_bytes_ == 2 ? load_big16(values + 2 * i) : values[i]];
      if (is_measured) measure(values, natural.size());
      convert_channels(is_scaled ? natural.data() : values, header.channels, image.row(y), plan.channels,
                       region.width);
    }
  }

 private:
  /// Keeps the largest of a row's values, alpha aside.
  void measure(const std::uint8_t* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      if (header.channels % 2 != 0 || i % header.channels != header.channels - 1)
        header.max_value = std::max(header.max_value, load_big16(values + 2 * i));
  }

  DecodeMonitor& monitor_;
  StoredRows rows_;
  std::uint32_t largest_ = 0;
  std::size_t value_bytes_ = 1;
};

/// Class ids: values as they stand in the file, whatever its largest one is.
class PnmIds final : public OpenedImage {
 public:
  PnmIds(Bytes file, DecodeMonitor& monitor)
      : monitor_(monitor), found_(checked_header(file)), left_(file.subspan(found_.end)) {
    header.width = found_.width;
    header.height = found_.height;
    header.channels = 1;
    is_text_ = is_plain_pnm(file);
  }

  void decode(const DecodePlan&, Image& image) override {
    image.reshape(found_.width, found_.height, 1);
    ClassIds ids(found_.channels, found_.largest);
    std::vector<std::uint32_t> row(std::size_t{found_.width} * found_.channels);
    for (std::uint32_t y = 0; y < found_.height; ++y) {
      monitor_.check_time();
      for (std::uint32_t& value : row) value = is_text_ ? next_number(y) : next_value(y);
      ids.take(row.data(), 0, y, found_.width, image.row(y));
    }
    ids.finish();
  }

 private:
  [[noreturn]] void fail(const std::string& what, std::uint32_t y) const {
    throw ImageError(RejectKind::damaged,
                     what + " near row " + std::to_string(y) + " of " + std::to_string(found_.height));
  }

  std::uint32_t next_value(std::uint32_t y) {
    const std::size_t bytes = found_.largest > 255 ? 2 : 1;
    if (left_.size() < bytes) fail("truncated: the data ends", y);
    const std::uint32_t value = bytes == 2 ? load_big16(left_.data()) : left_[0];
    left_ = left_.subspan(bytes);
    return value;
  }

  std::uint32_t next_number(std::uint32_t y) {
    const std::string_view text = as_text(left_);
    const std::size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) fail("truncated: the data ends", y);
    const std::string_view word = text.substr(begin, text.find_first_of(kBlanks, begin) - begin);
    std::uint32_t number = 0;
    if (!parse_all(word, number))
      fail("damaged PNM: expected a number, found \"" + printable_text(word.substr(0, 20)) + '"', y);
    left_ = left_.subspan(begin + word.size());
    return number;
  }

  DecodeMonitor& monitor_;
  PnmHeader found_;
  Bytes left_;
  bool is_text_ = false;
};

bool has_blank_third(std::string_view text) {
  return text.size() > 2 && (kBlanks.find(text[2]) != std::string_view::npos || text[2] == '#');
}

}  // namespace

bool is_pnm(Bytes file) {
  const std::string_view text = as_text(file);
  if (text.starts_with("P7\n")) return true;
  return (text.starts_with("P5") || text.starts_with("P6")) && has_blank_third(text);
}

bool is_plain_pnm(Bytes file) {
  const std::string_view text = as_text(file);
  return (text.starts_with("P2") || text.starts_with("P3")) && has_blank_third(text);
}

std::unique_ptr<OpenedImage> open_pnm(Bytes file, DecodeMonitor& monitor) {
  return std::make_unique<PnmFile>(file, monitor);
}

std::unique_ptr<OpenedImage> open_pnm_ids(Bytes file, DecodeMonitor& monitor) {
  return std::make_unique<PnmIds>(file, monitor);
}

}  // namespace chunkhit
