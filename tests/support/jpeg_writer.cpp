#include "jpeg_writer.h"

#include <cstdio>
#include <cstdlib>
// jpeglib.h needs FILE and size_t before it.
#include <jpeglib.h>

#include <algorithm>
#include <array>

#include "base/random.h"

namespace chunkhit {
namespace {

// "Exif\0\0", a little-endian TIFF header, one directory with one entry: orientation (0x112), SHORT, count 1.
std::vector<std::uint8_t> exif_marker(int orientation) {
  std::vector<std::uint8_t> bytes{'E',  'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0,
                                  0x12, 1,   3,   0,   1, 0, 0,   0,   0,  0, 0, 0, 0, 0, 0, 0};
  bytes[24] = static_cast<std::uint8_t>(orientation);
  return bytes;
}

// The DC coefficients of all components, then a coarse part of the first one's AC coefficients, and no more.
std::vector<jpeg_scan_info> first_scans(int components) {
  return {{components, {0, 1, 2, 3}, 0, 0, 0, 1}, {1, {0, 0, 0, 0}, 1, 5, 0, 2}};
}

std::vector<jpeg_scan_info> scan_of_each(int components) {
  std::vector<jpeg_scan_info> scans;
  for (int component = 0; component < components; ++component)
    scans.push_back({1, {component, 0, 0, 0}, 0, 63, 0, 0});
  return scans;
}

// The same symbols, the frequent ones last: `ones` codes of different lengths, all others of 16 bits.
void make_codes_long(JHUFF_TBL& table, int first_length, int ones) {
  int symbols = 0;
  for (int length = 1; length <= 16; ++length) symbols += table.bits[length];
  std::reverse(table.huffval, table.huffval + symbols);
  for (int length = 1; length <= 16; ++length)
    table.bits[length] = length >= first_length && length < first_length + ones ? 1 : 0;
  table.bits[16] = static_cast<UINT8>(symbols - ones);
}

void set_up(jpeg_compress_struct& info, const Image& image, const JpegWriteSpec& spec) {
  info.image_width = image.width;
  info.image_height = image.height;
  info.input_components = static_cast<int>(image.channels);
  info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : image.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  if (spec.adobe_rgb && image.channels == 3) jpeg_set_colorspace(&info, JCS_RGB);
  jpeg_set_quality(&info, spec.quality, TRUE);
  if (image.channels > 1) {
    info.comp_info[0].h_samp_factor = spec.h_samp;
    info.comp_info[0].v_samp_factor = spec.v_samp;
  }
  info.arith_code = spec.arithmetic ? TRUE : FALSE;
  info.optimize_coding = spec.arithmetic || spec.long_codes ? FALSE : TRUE;
  for (int table = 0; table < 2 && spec.long_codes; ++table) {
    make_codes_long(*info.dc_huff_tbl_ptrs[table], 6, 10);
    make_codes_long(*info.ac_huff_tbl_ptrs[table], 1, 8);
  }
  info.restart_in_rows = static_cast<int>(spec.restart_rows);
  info.restart_interval = spec.restart_mcus;
}

// A number in [first, last], by a position in the test.
std::uint32_t draw(std::uint64_t& position, std::uint32_t first, std::uint32_t last) {
  return first + static_cast<std::uint32_t>(random_below(last - first + 1, 7, Purpose::split, position++));
}

}  // namespace

std::vector<std::uint8_t> write_jpeg(const Image& image, const JpegWriteSpec& spec) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  set_up(info, image, spec);
  const std::vector<jpeg_scan_info> script =
      spec.separate_scans ? scan_of_each(info.num_components) : first_scans(info.num_components);
  if (spec.first_scan_only || spec.separate_scans) {
    info.scan_info = script.data();
    info.num_scans = static_cast<int>(script.size());
  } else if (spec.progressive) {
    jpeg_simple_progression(&info);
  }
  jpeg_start_compress(&info, TRUE);
  if (spec.exif_orientation > 0) {
    const std::vector<std::uint8_t> exif = exif_marker(spec.exif_orientation);
    jpeg_write_marker(&info, JPEG_APP0 + 1, exif.data(), static_cast<unsigned>(exif.size()));
  }
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(image.row(info.next_scanline));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::vector<std::uint8_t> file(bytes, bytes + size);
  std::free(bytes);
  return file;
}

std::vector<std::uint8_t> transcode_jpeg(const std::vector<std::uint8_t>& file, unsigned restart_mcus) {
  jpeg_error_mgr errors{};
  jpeg_decompress_struct in{};
  jpeg_compress_struct out{};
  in.err = out.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&in);
  jpeg_create_compress(&out);
  jpeg_mem_src(&in, file.data(), static_cast<unsigned long>(file.size()));
  jpeg_read_header(&in, TRUE);
  jvirt_barray_ptr* const coefficients = jpeg_read_coefficients(&in);
  jpeg_copy_critical_parameters(&in, &out);
  out.write_JFIF_header = FALSE;
  out.write_Adobe_marker = in.saw_Adobe_marker;
  out.optimize_coding = TRUE;
  out.restart_interval = restart_mcus;
  unsigned char* written = nullptr;
  unsigned long bytes = 0;
  jpeg_mem_dest(&out, &written, &bytes);
  jpeg_write_coefficients(&out, coefficients);
  jpeg_finish_compress(&out);
  std::vector<std::uint8_t> transcoded(written, written + bytes);
  jpeg_destroy_compress(&out);
  jpeg_destroy_decompress(&in);
  std::free(written);
  return transcoded;
}

Image make_image(std::uint32_t width, std::uint32_t height, std::uint32_t channels, std::uint64_t seed) {
  Image image;
  image.reshape(width, height, channels);
  for (std::uint32_t y = 0; y < height; ++y)
    for (std::uint32_t x = 0; x < width; ++x)
      for (std::uint32_t c = 0; c < channels; ++c) {
        const std::uint64_t noise = mix_bits(seed ^ mix_bits((std::uint64_t{y} << 32 | x) * 4 + c)) % 64;
        const std::uint32_t edge = (x / 5 + y / 7 + c) % 2 * 90;
        image.row(y)[x * channels + c] =
            static_cast<std::uint8_t>((x * 3 + y * 2 + c * 40) % 100 + edge + noise);
      }
  return image;
}

std::size_t find_marker(const std::vector<std::uint8_t>& file, std::uint8_t marker) {
  for (std::size_t i = 0; i + 1 < file.size(); ++i)
    if (file[i] == 0xff && file[i + 1] == marker) return i;
  return file.size();
}

Rect draw_region(std::uint64_t& position, const Image& whole) {
  Rect region;
  region.x = draw(position, 0, whole.width - 1);
  region.y = draw(position, 0, whole.height - 1);
  region.width = draw(position, 1, whole.width - region.x);
  region.height = draw(position, 1, whole.height - region.y);
  if (position % 3 == 0) region.width = std::min(region.width, 3u);
  return region;
}

}  // namespace chunkhit
