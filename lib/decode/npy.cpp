// Arrays of NumPy that are images: uint8, H x W, or H x W x 1, 3 or 4, rows one after the other. Class ids
// also of other integers.
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/npy_header.h"
#include "chunkhit/error.h"
#include "decode/channels.h"
#include "decode/class_ids.h"
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
      throw ImageError(RejectKind::too_large, "has an npy header of " + std::to_string(bytes) + " bytes");
    const std::size_t begin = kNpyPreludeBytes + length_bytes;
    require_bytes(file, begin + bytes);
    header = parse_npy_header(as_text(file.subspan(begin, bytes)), name);
    return begin + bytes;
  } catch (const Error& error) {
    throw ImageError(RejectKind::damaged, error.what());
  }
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string text;
  for (const std::uint64_t side : shape) text += (text.empty() ? "" : " x ") + std::to_string(side);
  return text.empty() ? "of one number" : text;
}

/// An array's rows.
struct NpyImage {
  NpyHeader array;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 0;
  StoredRows rows;
};

/// Reads the header of an array; `check_type` throws for a type of other items.
template <class CheckType>
NpyImage read_npy(Bytes file, CheckType check_type) {
  NpyImage image;
  NpyHeader& array = image.array;
  const std::size_t begin = read_header(file, array);
  check_type(array);
  if (array.fortran_order)
    throw ImageError(RejectKind::unsupported,
                     "NPY: is in Fortran order, expected C order; numpy.ascontiguousarray makes it so");
  const std::vector<std::uint64_t>& shape = array.shape;
  const std::uint64_t channels = shape.size() == 3 ? shape[2] : 1;
  if (shape.size() < 2 || shape.size() > 3 || (channels != 1 && channels != 3 && channels != 4))
    throw ImageError(RejectKind::shape,
                     "NPY: has shape " + shape_text(shape) + ", expected H x W, or H x W x 1, 3 or 4");
  if (std::max(shape[0], shape[1]) > std::numeric_limits<std::uint32_t>::max())
    throw ImageError(RejectKind::too_large,
                     "NPY: has shape " + shape_text(shape) + ", with sides of over 32 bits");
  image.height = static_cast<std::uint32_t>(shape[0]);
  image.width = static_cast<std::uint32_t>(shape[1]);
  image.channels = static_cast<std::uint32_t>(channels);
  const std::uint64_t row_bytes = shape[1] * channels * array.type.bytes;
  image.rows = {file.subspan(begin), row_bytes, row_bytes};
  return image;
}

class NpyFile : public OpenedImage {
 public:
  NpyFile(Bytes file, DecodeMonitor& monitor) : monitor_(monitor) {
    const NpyImage image = read_npy(file, [](const NpyHeader& array) {
      if (array.type.kind != 'u' || array.type.bytes != 1)
        throw ImageError(RejectKind::values,
                         "NPY: has type \"" + array.descr + "\", expected uint8 (\"|u1\")");
    });
    header.height = image.height;
    header.width = image.width;
    header.channels = image.channels;
    rows_ = image.rows;
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

/// Class ids of any integer type.
class NpyIds final : public OpenedImage {
 public:
  NpyIds(Bytes file, DecodeMonitor& monitor) : monitor_(monitor), image_(read_npy(file, check_ids)) {
    header.height = image_.height;
    header.width = image_.width;
    header.channels = 1;
  }

  void decode(const DecodePlan&, Image& image) override {
    static_cast<void>(count_whole_rows(image_.rows, image_.height, monitor_));
    image.reshape(image_.width, image_.height, 1);
    const bool is_signed = image_.array.type.kind == 'i';
    switch (image_.array.type.bytes) {
      case 1:
        return is_signed ? take<std::int8_t>(image) : take<std::uint8_t>(image);
      case 2:
        return is_signed ? take<std::int16_t>(image) : take<std::uint16_t>(image);
      case 4:
        return is_signed ? take<std::int32_t>(image) : take<std::uint32_t>(image);
      default:
        return is_signed ? take<std::int64_t>(image) : take<std::uint64_t>(image);
    }
  }

 private:
  static void check_ids(const NpyHeader& array) {
    if (array.type.kind != 'u' && array.type.kind != 'i' && array.type.kind != 'b')
      throw ImageError(RejectKind::values,
                       "NPY: has type \"" + array.descr +
                           "\", expected class ids: bool or integers; astype(\"uint8\") makes them");
  }

  template <class Value>
  void take(Image& image) const {
    ClassIds ids(image_.channels);
    std::vector<Value> row(std::size_t{image_.width} * image_.channels);
    for (std::uint32_t y = 0; y < image_.height; ++y) {
      monitor_.check_time();
      const std::uint8_t* const stored = image_.rows.bytes.data() + y * image_.rows.row_step;
      if constexpr (sizeof(Value) == 1) {
        ids.take(reinterpret_cast<const Value*>(stored), 0, y, image_.width, image.row(y));
      } else {
        for (std::size_t i = 0; i < row.size(); ++i) row[i] = value_at<Value>(stored + i * sizeof(Value));
        ids.take(row.data(), 0, y, image_.width, image.row(y));
      }
    }
    ids.finish();
  }

  template <class Value>
  [[nodiscard]] Value value_at(const std::uint8_t* stored) const {
    if (!image_.array.type.big_endian) return load_little<Value>(stored);
    std::array<std::uint8_t, sizeof(Value)> bytes;
    std::reverse_copy(stored, stored + sizeof(Value), bytes.data());
    return load_little<Value>(bytes.data());
  }

  DecodeMonitor& monitor_;
  NpyImage image_;
};

}  // namespace

bool is_npy(Bytes file) { return as_text(file).starts_with(kNpyMagic); }

std::unique_ptr<OpenedImage> open_npy(Bytes file, DecodeMonitor& monitor) {
  return std::make_unique<NpyFile>(file, monitor);
}

std::unique_ptr<OpenedImage> open_npy_ids(Bytes file, DecodeMonitor& monitor) {
  return std::make_unique<NpyIds>(file, monitor);
}

}  // namespace chunkhit
