#include "decode/exif.h"

#include <libexif/exif-data.h>

#include <cstdint>
#include <memory>
#include <new>

namespace chunkhit {
namespace {

struct ReleaseExif {
  void operator()(ExifData* data) const { exif_data_unref(data); }
};

/// A whole number of any type but bytes, as Pillow reads it; the specification wants SHORT, programs write
/// LONG.
std::optional<std::int64_t> whole_number(const ExifEntry& entry, ExifByteOrder order) {
  if (entry.size < exif_format_get_size(entry.format) || entry.data == nullptr) return std::nullopt;
  switch (entry.format) {
    case EXIF_FORMAT_SHORT:
      return exif_get_short(entry.data, order);
    case EXIF_FORMAT_LONG:
      return exif_get_long(entry.data, order);
    case EXIF_FORMAT_SBYTE:
      return static_cast<std::int8_t>(entry.data[0]);
    case EXIF_FORMAT_SSHORT:
      return exif_get_sshort(entry.data, order);
    case EXIF_FORMAT_SLONG:
      return exif_get_slong(entry.data, order);
    default:
      return std::nullopt;
  }
}

}  // namespace

int exif_orientation(Bytes exif) { return find_exif_orientation(exif).value_or(1); }

std::optional<int> find_exif_orientation(Bytes exif) {
  const std::unique_ptr<ExifData, ReleaseExif> data(exif_data_new());
  if (data == nullptr) throw std::bad_alloc();
  // Nothing is written back, so entries need not be completed to what the specification demands.
  exif_data_unset_option(data.get(), EXIF_DATA_OPTION_FOLLOW_SPECIFICATION);
  exif_data_load_data(data.get(), exif.data(), static_cast<unsigned>(exif.size()));
  const ExifEntry* entry = exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr) return std::nullopt;
  const auto orientation = whole_number(*entry, exif_data_get_byte_order(data.get()));
  if (!orientation) return std::nullopt;
  return *orientation >= 1 && *orientation <= 8 ? static_cast<int>(*orientation) : 1;
}

}  // namespace chunkhit
