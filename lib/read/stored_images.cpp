#include "read/stored_images.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "read/sized_images.h"

namespace chunkhit {
namespace {

using Location = ChunkSet::SampleLocation;

class FixedReader final : public ImageReader {
 public:
  explicit FixedReader(const ChunkSet& chunks) : sample_(chunks.sample()) {}
  [[nodiscard]] SampleShape shape(Location) const override { return sample_; }
  void read(Location, const std::uint8_t* stored, std::uint8_t* out) override {
    std::memcpy(out, stored, sample_.pixel_bytes());
  }
  void read_field(Location, const std::uint8_t* stored, std::size_t field, std::uint8_t* out) override {
    const std::uint64_t begin = sample_.offset_of(field);
    std::memcpy(out, stored + begin, sample_.offset_of(field + 1) - begin);
  }

 private:
  const SampleShape& sample_;
};

class SizedReader final : public ImageReader {
 public:
  explicit SizedReader(const ChunkSet& chunks) : chunks_(chunks) {}
  [[nodiscard]] SampleShape shape(Location location) const override {
    const StoredImage image = stored_image(chunks_, location);
    SampleShape shape = chunks_.sample();
    shape.height = image.upright_height();
    shape.width = image.upright_width();
    return shape;
  }
  void read(Location location, const std::uint8_t* stored, std::uint8_t* out) override {
    decoder_.decode_whole(stored_image(chunks_, location, stored), chunks_.sample().channels, out);
  }
  void read_field(Location location, const std::uint8_t* stored, std::size_t field,
                  std::uint8_t* out) override {
    const StoredImage image = stored_image(chunks_, location, stored);
    const ImageView masks = decoder_.decode_masks(image, chunks_.sample().pairs.size());
    const std::size_t bytes = masks.row_bytes * image.upright_height();
    std::copy_n(masks.pixels + field * bytes, bytes, out);
  }
  [[nodiscard]] bool is_jpeg(Location location) const override {
    return stored_image(chunks_, location).kind == PayloadKind::jpeg;
  }
  [[nodiscard]] StoredJpeg jpeg(Location location, const std::uint8_t* stored) const override {
    const StoredImage image = stored_image(chunks_, location, stored);
    ByteBuffer room;
    const Bytes payload = image_payload(image, room);
    return {{payload.begin(), payload.end()}, image.orientation};
  }

 private:
  const ChunkSet& chunks_;
  SizedImageDecoder decoder_;
};

/// Copies by a writer of images, and one of each field: of the same boxes and flips.
template <class Writer>
class CopierOf : public ImageCopier {
 public:
  CopierOf(const ChunkSet& chunks, const SampleFormat& format) : chunks_(chunks), images_(format) {
    for (const SampleField& field : chunks.sample().pairs)
      fields_.emplace_back(pair_format(format, field.role));
  }
  [[nodiscard]] std::size_t field_count() const final { return fields_.size(); }

 protected:
  const ChunkSet& chunks_;
  Writer images_;
  std::vector<Writer> fields_;
};

class FixedCopier final : public CopierOf<SampleWriter> {
 public:
  using CopierOf::CopierOf;
  [[nodiscard]] const SampleWriter& images() const override { return images_; }
  [[nodiscard]] const SampleWriter& field(std::size_t index) const override { return fields_[index]; }
  [[nodiscard]] bool copies() const override { return fields_.empty() && images_.copies(); }
  double write(const std::uint8_t* stored, const SampleUse& use, std::uint8_t* out,
               std::span<std::uint8_t* const> fields) override {
    images_.write(stored, use, out);
    for (std::size_t i = 0; i < fields_.size(); ++i)
      fields_[i].write(stored + chunks_.sample().offset_of(i), use, fields[i]);
    return 0;
  }
};

class SizedCopier final : public CopierOf<SizedImageWriter> {
 public:
  using CopierOf::CopierOf;
  void check() const override {
    for (const auto& part : chunks_.parts()) images_.check(*part);
  }
  [[nodiscard]] const SampleWriter& images() const override { return images_.finish(); }
  [[nodiscard]] const SampleWriter& field(std::size_t index) const override {
    return fields_[index].finish();
  }
  double write(const std::uint8_t* stored, const SampleUse& use, std::uint8_t* out,
               std::span<std::uint8_t* const> fields) override {
    const StoredImage image = stored_image(chunks_, chunks_.find_sample(use.sample), stored);
    const double seconds = images_.write(image, kept_, use, out);
    SizedImageWriter::write_masks(fields_, image, use, fields);
    return seconds;
  }
  std::uint64_t keep_pixels(std::uint64_t bytes, std::optional<std::uint64_t> arena) override {
    kept_ = DecodedImages(chunks_, bytes, arena);
    return kept_.count();
  }

 private:
  DecodedImages kept_;
};

template <class Base, class Sized, class Fixed, class... Arguments>
std::unique_ptr<Base> of_payload(const ChunkSet& chunks, const Arguments&... arguments) {
  if (chunks.holds_own_sizes()) return std::make_unique<Sized>(chunks, arguments...);
  return std::make_unique<Fixed>(chunks, arguments...);
}

}  // namespace

std::unique_ptr<ImageReader> image_reader(const ChunkSet& chunks) {
  return of_payload<ImageReader, SizedReader, FixedReader>(chunks);
}

std::unique_ptr<ImageCopier> image_copier(const ChunkSet& chunks, const SampleFormat& format) {
  return of_payload<ImageCopier, SizedCopier, FixedCopier>(chunks, format);
}

}  // namespace chunkhit
