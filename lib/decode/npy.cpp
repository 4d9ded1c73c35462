// Arrays of NumPy that are images: uint8, H x W, or H x W x 1, 3 or 4, rows one after the other.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/npy_header.h"
#include "chunkhit/error.h"
#include "decode/channels.h"
#include "decode/formats.h"

namespace chunkhit {
namespace {

/// Reads the header and gives the offset of the numbers behind it.
std::size_t read_header(Bytes file, NpyHeader& header) {
  try {
    const std::string name = "NPY";
    const std::size_t length_bytes =
        npy_length_bytes(file.first(std::min(file.size(), kNpyPreludeBytes)), name);
    require_bytes(file, kNpyPreludeBytes + length_bytes);
    std::size_t bytes = 0;
    for (std::size_t at = 0; at < length_bytes; ++at)
      bytes |= std::size_t{file[kNpyPreludeBytes + at]} << (8 * at);
    if (bytes > kMaxNpyHeaderBytes)
      throw ImageError("has an npy header of " + std::to_string(bytes) + " bytes");
    const std::size_t begin = kNpyPreludeBytes + length_bytes;
    require_bytes(file, begin + bytes);
    header = parse_npy_header(as_text(file.subspan(begin, bytes)), name);
    return begin + bytes;
  } catch (const Error& error) {
    throw ImageError(error.what());
  }
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string text;
  for (const std::uint64_t side : shape) text += (text.empty() ? "" : " x ") + std::to_string(side);
  return text.empty() ? "of one number" : text;
}

class NpyFile : public OpenedImage {
 public:
  NpyFile(Bytes file, DecodeMonitor& monitor) : monitor_(monitor) {
    NpyHeader array;
    const std::size_t begin = read_header(file, array);
    if (array.type.kind != 'u' || array.type.bytes != 1)
      throw ImageError("NPY: has type \"" + array.descr + "\", expected uint8 (\"|u1\")");
    if (array.fortran_order)
      throw ImageError("NPY: is in Fortran order, expected C order; numpy.ascontiguousarray makes it so");
    const std::vector<std::uint64_t>& shape = array.shape;
    const std::uint64_t channels = shape.size() == 3 ? shape[2] : 1;
    if (shape.size() < 2 || shape.size() > 3 || (channels != 1 && channels != 3 && channels != 4))
      throw ImageError("NPY: has shape " + shape_text(shape) + ", expected H x W, or H x W x 1, 3 or 4");
    if (std::max(shape[0], shape[1]) > std::numeric_limits<std::uint32_t>::max())
      throw ImageError("NPY: has shape " + shape_text(shape) + ", with sides of over 32 bits");
    header.height = static_cast<std::uint32_t>(shape[0]);
    header.width = static_cast<std::uint32_t>(shape[1]);
    header.channels = static_cast<std::uint32_t>(channels);
    const std::uint64_t row_bytes = shape[1] * channels;
    rows_ = {file.subspan(begin), row_bytes, row_bytes};
  }

  void decode(const DecodePlan& plan, Image& image) override {
    const std::uint64_t whole_rows = count_whole_rows(rows_, header.height, monitor_);
    const Rect& region = plan.region;
    image.reshape(region.width, region.height, plan.channels);
    for (std::uint32_t y = 0; y < region.height; ++y) {
      monitor_.check_time();
      if (region.y + y >= whole_rows)
        std::fill_n(image.row(y), image.row_bytes(), std::uint8_t{0});
      else
        convert_channels(
            rows_.bytes.data() + (region.y + y) * rows_.row_step + std::size_t{region.x} * header.channels,
            header.channels, image.row(y), plan.channels, region.width);
    }
  }

 private:
  DecodeMonitor& monitor_;
  StoredRows rows_;
};

}  // namespace

bool is_npy(Bytes file) { return as_text(file).starts_with(kNpyMagic); }

std::unique_ptr<OpenedImage> open_npy(Bytes file, DecodeMonitor& monitor) {
  return std::make_unique<NpyFile>(file, monitor);
}

}  // namespace chunkhit
