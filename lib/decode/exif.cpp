#include "decode/exif.h"

#include <libexif/exif-data.h>

#include <memory>
#include <new>

namespace chunkhit {
namespace {

struct ReleaseExif {
  void operator()(ExifData* data) const { exif_data_unref(data); }
};

}  // namespace

int exif_orientation(Bytes exif) { return find_exif_orientation(exif).value_or(1); }

std::optional<int> find_exif_orientation(Bytes exif) {
  const std::unique_ptr<ExifData, ReleaseExif> data(exif_data_new());
  if (data == nullptr) throw std::bad_alloc();
  // Nothing is written back, so entries need not be completed to what the specification demands.
  exif_data_unset_option(data.get(), EXIF_DATA_OPTION_FOLLOW_SPECIFICATION);
  exif_data_load_data(data.get(), exif.data(), static_cast<unsigned>(exif.size()));
  const ExifEntry* entry = exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr || entry->format != EXIF_FORMAT_SHORT || entry->size < 2) return std::nullopt;
  const int orientation = exif_get_short(entry->data, exif_data_get_byte_order(data.get()));
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

}  // namespace chunkhit
