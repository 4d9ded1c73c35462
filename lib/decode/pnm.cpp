// Binary PNM: P5 (gray) and P6 (RGB), 8 or 16 bits a value, any largest value. stb_image would only copy the
// rows: it scales no value below 255, and keeps the low byte of one above.
#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "decode/channels.h"
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

// round(v / largest · 255) in doubles, ties to even: Pillow's PpmDecoder.
ByteBuffer scale_table(std::uint32_t largest) {
  ByteBuffer scaled(largest > 255 ? 65536 : 256);
  for (std::size_t v = 0; v < scaled.size(); ++v)
    scaled[v] = v >= largest ? 255
                             : static_cast<std::uint8_t>(std::nearbyint(static_cast<double>(v) /
                                                                        static_cast<double>(largest) * 255));
  return scaled;
}

class PnmFile : public OpenedImage {
 public:
  PnmFile(Bytes file, DecodeMonitor& monitor) : monitor_(monitor) {
    header.channels = file[1] == '5' ? 1 : 3;
    std::size_t at = 2;
    if (!read_number(as_text(file), at, header.width) || !read_number(as_text(file), at, header.height) ||
        !read_number(as_text(file), at, largest_) || largest_ == 0 || largest_ > 65535)
      throw ImageError("damaged PNM: its header is not width, height and largest value");
    header.extra_bytes = std::uint64_t{header.width} * header.channels + 65536;
    value_bytes_ = largest_ > 255 ? 2 : 1;
    const std::uint64_t row_bytes = std::uint64_t{header.width} * header.channels * value_bytes_;
    rows_ = {file.subspan(at), row_bytes, row_bytes};
  }

  void decode(const DecodePlan& plan, Image& image) override {
    const std::uint64_t whole_rows = count_whole_rows(rows_, header.height, monitor_);
    const ByteBuffer scaled = scale_table(largest_);
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
      for (std::size_t i = 0; i < natural.size(); ++i)
        natural[i] = scaled[value_bytes_ == 2 ? load_big16(values + 2 * i) : values[i]];
      convert_channels(natural.data(), header.channels, image.row(y), plan.channels, region.width);
    }
  }

 private:
  DecodeMonitor& monitor_;
  StoredRows rows_;
  std::uint32_t largest_ = 0;
  std::size_t value_bytes_ = 1;
};

}  // namespace

bool is_pnm(Bytes file) {
  const std::string_view text = as_text(file);
  return (text.starts_with("P5") || text.starts_with("P6")) && text.size() > 2 &&
         (kBlanks.find(text[2]) != std::string_view::npos || text[2] == '#');
}

std::unique_ptr<OpenedImage> open_pnm(Bytes file, DecodeMonitor& monitor) {
  return std::make_unique<PnmFile>(file, monitor);
}

}  // namespace chunkhit
