// libjpeg reports errors by longjmp: its calls run inside of TileWriter::run, where no local needs a
// destructor.
#include "decode/jpeg_tiles.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <new>
// jpeglib.h needs FILE and size_t before it.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "decode/formats.h"
#include "decode/jpeg_entropy.h"

namespace chunkhit {
namespace {

std::uint32_t divide_up(std::uint32_t count, std::uint32_t by) { return count / by + (count % by != 0); }

/// The divisor of a row's MCUs that is nearest to the wanted one. Tiles of one MCU cost bytes: a row of up to
/// kMaxPrimeRow MCUs that has no other divisor is one tile.
std::uint32_t tile_for(std::uint32_t row_mcus, std::uint32_t wanted) {
  constexpr std::uint32_t kMaxPrimeRow = 40;
  const auto distance = [&](std::uint32_t mcus) {
    return std::fabs(std::log(static_cast<double>(mcus) / wanted));
  };
  std::uint32_t best = row_mcus;
  for (std::uint32_t mcus = wanted > 1 && row_mcus <= kMaxPrimeRow ? 2 : 1; mcus < row_mcus; ++mcus)
    if (row_mcus % mcus == 0 && distance(mcus) < distance(best)) best = mcus;
  return best;
}

/// Writes a JPEG in tiles; the errors of libjpeg end `run`.
class TileWriter : protected JpegEntropy {
 public:
  TileWriter(const TileWriter&) = delete;
  TileWriter& operator=(const TileWriter&) = delete;
  virtual ~TileWriter() {
    // Only then `written_` is where the bytes are: they move when they become more.
    if (has_room_) out_.dest->term_destination(&out_);
    jpeg_destroy_compress(&out_);
    std::free(written_);
  }

  /// What was written is there until this ends.
  Bytes run() {
    if (setjmp(return_here_) != 0) {
      if (out_of_memory_) throw std::bad_alloc();
      throw ImageError(kind_, reason_.data());
    }
    jpeg_create_compress(&out_);
    write();
    return {written_, written_bytes_};
  }

 protected:
  TileWriter(std::uint32_t tile_mcus, DecodeMonitor& monitor) : tile_mcus_(tile_mcus), monitor_(monitor) {
    out_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr common) { of(common).fail(); };
    errors_.emit_message = [](j_common_ptr common, int level) {
      if (level < 0 && !of(common).is_harmless()) of(common).fail();
    };
    errors_.output_message = [](j_common_ptr) {};
    progress_.progress_monitor = [](j_common_ptr common) { of(common).check_time(); };
    out_.client_data = static_cast<JpegEntropy*>(this);
  }
  /// Writes the whole JPEG into `out_`.
  virtual void write() = 0;
  /// Sets the tiles of `out_` for rows of `row_mcus` MCUs.
  void set_tiles(std::uint32_t row_mcus) {
    out_.optimize_coding = TRUE;
    if (tile_mcus_ != 0) out_.restart_interval = tile_for(row_mcus, tile_mcus_);
  }
  /// Sets where `out_` is written.
  void open() {
    out_.progress = &progress_;
    jpeg_mem_dest(&out_, &written_, &written_bytes_);
    has_room_ = true;
  }

  [[noreturn]] void end(const char* reason) {
    std::snprintf(reason_.data(), reason_.size(), "%s", reason);
    std::longjmp(return_here_, 1);
  }
  [[noreturn]] void fail() {
    out_of_memory_ = errors_.msg_code == JERR_OUT_OF_MEMORY;
    std::array<char, JMSG_LENGTH_MAX> text;
    errors_.format_message(reinterpret_cast<j_common_ptr>(&out_), text.data());
    end(text.data());
  }
  [[nodiscard]] bool is_harmless() const {
    return errors_.msg_code == JWRN_JFIF_MAJOR || errors_.msg_code == JWRN_ADOBE_XFORM ||
           errors_.msg_code == JWRN_NOT_SEQUENTIAL;
  }
  void check_time() {
    if (!monitor_.is_out_of_time()) return;
    kind_ = RejectKind::too_slow;
    monitor_.time_error().copy(reason_.data(), reason_.size() - 1);
    std::longjmp(return_here_, 1);
  }

  jpeg_compress_struct out_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};

 private:
  static TileWriter& of(j_common_ptr common) {
    return static_cast<TileWriter&>(*static_cast<JpegEntropy*>(common->client_data));
  }

  std::uint32_t tile_mcus_;
  DecodeMonitor& monitor_;
  unsigned char* written_ = nullptr;
  unsigned long written_bytes_ = 0;
  bool has_room_ = false;
  std::jmp_buf return_here_{};
  std::array<char, JMSG_LENGTH_MAX + 32> reason_{};
  RejectKind kind_ = RejectKind::damaged;
  bool out_of_memory_ = false;
};

/// Reads the coefficients of one JPEG and writes them as another one.
class Transcoder : public TileWriter {
 public:
  Transcoder(Bytes file, std::uint32_t tile_mcus, DecodeMonitor& monitor)
      : TileWriter(tile_mcus, monitor), file_(file) {
    in_.err = &errors_;
    in_.client_data = out_.client_data;
    begin_.progress_monitor = [](j_common_ptr common) {
      static_cast<Transcoder&>(*static_cast<JpegEntropy*>(common->client_data)).begin_codes();
    };
  }
  ~Transcoder() override { jpeg_destroy_decompress(&in_); }
  /// Appends the codes to the headers, which is all that `run` wrote where libjpeg does not write them.
  void append_codes(ByteBuffer& to) {
    if (has_codes_) codes_.write(out_, to);
  }

 private:
  void write() override {
    jpeg_create_decompress(&in_);
    read_header();
    has_codes_ = recode();
    if (has_codes_) return;
    jpeg_abort_decompress(&in_);
    read_header();
    read();
    copy();
  }
  void read_header() {
    jpeg_mem_src(&in_, file_.data(), static_cast<unsigned long>(file_.size()));
    jpeg_read_header(&in_, TRUE);
    if (in_.jpeg_color_space == JCS_CMYK || in_.jpeg_color_space == JCS_YCCK) end("CMYK has no tiles");
  }
  /// Takes the codes, and writes the headers. False where libjpeg has to read and write coefficients.
  bool recode() {
    if (in_.progressive_mode != FALSE || in_.arith_code != FALSE || jpeg_has_multiple_scans(&in_) != FALSE)
      return false;
    in_.out_color_space = in_.jpeg_color_space;
    jpeg_start_decompress(&in_);
    in_.progress = &progress_;
    set_parameters();
    if (!codes_.read(in_, out_)) return false;
    codes_.set_tables(out_);
    open();
    codes_.write_headers(out_);
    return true;
  }
  void read() {
    in_.progress = &begin_;
    coefficients_ = jpeg_read_coefficients(&in_);
    if (in_.progressive_mode && !are_all_bits_known()) end("progressive JPEG whose scans are not all there");
  }
  /// Called by jpeg_read_coefficients once it is set up, before it decodes.
  void begin_codes() {
    in_.progress = &progress_;
    try {
      take_over(in_);
    } catch (const std::bad_alloc&) {
      return;  // exceptions do not pass libjpeg, which decodes without us
    }
  }
  /// Else decoders smooth what is missing, in progressive files alone.
  [[nodiscard]] bool are_all_bits_known() const {
    constexpr int kSmoothed = 6;  // more than libjpeg-turbo 2.1 looks at
    for (int component = 0; component < in_.num_components; ++component)
      for (int i = 0; i < kSmoothed; ++i)
        if (in_.coef_bits[component][i] != 0) return false;
    return true;
  }
  /// Whether a decoder takes the same color space from the components' numbers alone.
  [[nodiscard]] bool needs_jfif() const {
    for (int i = 0; i < in_.num_components && in_.num_components == 3; ++i)
      if (in_.comp_info[i].component_id != i + 1) return true;
    return false;
  }
  void set_parameters() {
    jpeg_copy_critical_parameters(&in_, &out_);
    out_.write_JFIF_header = in_.saw_JFIF_marker && needs_jfif() ? TRUE : FALSE;
    out_.write_Adobe_marker = in_.saw_Adobe_marker;
    const int mcu_width = in_.num_components == 1 ? DCTSIZE : in_.max_h_samp_factor * DCTSIZE;
    const auto row_mcus =
        (in_.image_width + static_cast<JDIMENSION>(mcu_width) - 1) / static_cast<JDIMENSION>(mcu_width);
    set_tiles(row_mcus);
  }
  void copy() {
    set_parameters();
    open();
    jpeg_write_coefficients(&out_, coefficients_);
    jpeg_finish_compress(&out_);
    jpeg_finish_decompress(&in_);
  }

  Bytes file_;
  jpeg_decompress_struct in_{};
  jpeg_progress_mgr begin_{};
  jvirt_barray_ptr* coefficients_ = nullptr;
  JpegCodes codes_;
  bool has_codes_ = false;
};

/// Encodes pixels.
class Encoder : public TileWriter {
 public:
  Encoder(ImageView pixels, std::uint32_t quality, std::uint32_t tile_mcus, DecodeMonitor& monitor)
      : TileWriter(tile_mcus, monitor), pixels_(pixels), quality_(quality) {}

 private:
  void write() override {
    const bool is_gray = pixels_.channels == 1;
    out_.image_width = pixels_.width;
    out_.image_height = pixels_.height;
    out_.input_components = is_gray ? 1 : 3;
    out_.in_color_space = is_gray ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&out_);
    jpeg_set_quality(&out_, static_cast<int>(quality_), TRUE);
    out_.write_JFIF_header = FALSE;
    // libjpeg halves chroma by default.
    set_tiles(divide_up(pixels_.width, is_gray ? DCTSIZE : 2 * DCTSIZE));
    open();
    jpeg_start_compress(&out_, TRUE);
    while (out_.next_scanline < out_.image_height) {
      auto* row = const_cast<JSAMPROW>(pixels_.row(out_.next_scanline));  // libjpeg only reads it
      jpeg_write_scanlines(&out_, &row, 1);
    }
    jpeg_finish_compress(&out_);
  }

  ImageView pixels_;
  std::uint32_t quality_;
};

// Markers of ITU-T T.81, table B.1.
constexpr std::uint8_t kBaseline = 0xc0;
constexpr std::uint8_t kExtended = 0xc1;
constexpr std::uint8_t kHuffmanTables = 0xc4;
constexpr std::uint8_t kFirstRestart = 0xd0;
constexpr std::uint8_t kEndOfImage = 0xd9;
constexpr std::uint8_t kScan = 0xda;
constexpr std::uint8_t kQuantTables = 0xdb;
constexpr std::uint8_t kRestartInterval = 0xdd;
constexpr std::uint8_t kFirstApp = 0xe0;
constexpr std::uint8_t kLastApp = 0xef;
constexpr std::uint8_t kComment = 0xfe;
constexpr std::size_t kMarkerBytes = 2;

/// Tiles [first, end) along one axis.
struct TileRange {
  std::uint32_t first;
  std::uint32_t end;
};

/// Pixels around those that are wanted, without which these would be others.
struct Margin {
  std::uint32_t before;
  std::uint32_t behind;
};

/// Upsampling reads a neighbour of the chroma, which is two pixels wide where it is halved. libjpeg does not
/// interpolate rows of up to four pixels: the last tile of a row may have so few.
Margin columns_margin(bool is_upsampled) { return is_upsampled ? Margin{4, 2} : Margin{0, 0}; }
Margin rows_margin(bool is_upsampled) { return is_upsampled ? Margin{2, 2} : Margin{0, 0}; }

/// The tiles that pixels [begin, begin + count) need.
TileRange tiles_of(std::uint32_t begin, std::uint32_t count, std::uint32_t tile_pixels, const Margin& margin,
                   std::uint32_t tile_count) {
  return {(begin - std::min(begin, margin.before)) / tile_pixels,
          std::min(divide_up(begin + count + margin.behind, tile_pixels), tile_count)};
}

void store_big16(std::uint8_t* to, std::uint32_t value) {
  to[0] = static_cast<std::uint8_t>(value >> 8);
  to[1] = static_cast<std::uint8_t>(value);
}

}  // namespace

void write_tiled_jpeg(Bytes file, std::uint32_t tile_mcus, DecodeMonitor& monitor, ByteBuffer& out) {
  Transcoder transcoder(file, tile_mcus, monitor);
  const Bytes written = transcoder.run();
  out.assign(written.begin(), written.end());
  transcoder.append_codes(out);
}

void encode_tiled_jpeg(ImageView pixels, std::uint32_t quality, std::uint32_t tile_mcus,
                       DecodeMonitor& monitor, ByteBuffer& out) {
  Encoder encoder(pixels, quality, tile_mcus, monitor);
  const Bytes written = encoder.run();
  out.assign(written.begin(), written.end());
}

bool JpegTiles::read_frame(Bytes payload) {
  constexpr std::size_t kComponentsAt = 6, kComponentBytes = 3, kMaxComponents = 4;
  if (width_ != 0 || payload.size() <= kComponentsAt) return false;
  components_ = payload[5];
  if (payload[0] != 8 || components_ < 1 || components_ > kMaxComponents ||
      payload.size() != kComponentsAt + components_ * kComponentBytes)
    return false;
  height_ = load_big16(&payload[1]);
  width_ = load_big16(&payload[3]);
  std::uint32_t across = 1, down = 1;
  for (std::size_t i = 0; i < components_; ++i) {
    const std::uint8_t sampling = payload[kComponentsAt + i * kComponentBytes + 1];
    if (sampling / 16 < 1 || sampling / 16 > 4 || sampling % 16 < 1 || sampling % 16 > 4) return false;
    if (components_ == 1) continue;
    across = std::max(across, std::uint32_t{sampling} / 16);
    down = std::max(down, std::uint32_t{sampling} % 16);
  }
  mcu_width_ = across * DCTSIZE;
  mcu_height_ = down * DCTSIZE;
  return width_ != 0 && height_ != 0;
}

bool JpegTiles::read_segment(std::uint8_t marker, Bytes payload, std::size_t offset) {
  switch (marker) {
    case kBaseline:
    case kExtended:
      frame_at_ = offset;
      return read_frame(payload);
    case kRestartInterval:
      if (payload.size() != 2) return false;
      tile_mcus_ = load_big16(payload.data());
      return true;
    case kScan:
      return !payload.empty() && payload[0] == components_;
    case kHuffmanTables:
    case kQuantTables:
    case kComment:
      return true;
    default:
      return marker >= kFirstApp && marker <= kLastApp;
  }
}

bool JpegTiles::find(Bytes file) {
  *this = JpegTiles();
  std::size_t at = kMarkerBytes;
  if (!is_jpeg(file)) return false;
  for (std::uint8_t marker = 0; marker != kScan;) {
    if (file.size() - at < 2 * kMarkerBytes || file[at] != 0xff) return false;
    marker = file[at + 1];
    const std::size_t bytes = load_big16(&file[at + kMarkerBytes]);
    if (bytes < 2 || bytes > file.size() - at - kMarkerBytes ||
        !read_segment(marker, file.subspan(at + 2 * kMarkerBytes, bytes - 2), at))
      return false;
    at += kMarkerBytes + bytes;
  }
  if (width_ == 0 || tile_mcus_ == 0) return false;
  const std::uint32_t row_mcus = divide_up(width_, mcu_width_);
  tiles_across_ = row_mcus / tile_mcus_;
  return row_mcus % tile_mcus_ == 0 && find_ends(file, at);
}

// A byte 0xff inside of codes is followed by 0, so that it is never taken for a marker.
bool JpegTiles::find_ends(Bytes file, std::size_t begin) {
  scan_at_ = begin;
  const std::size_t count = std::size_t{tiles_across_} * divide_up(height_, mcu_height_);
  if (count > file.size() / kMarkerBytes) return false;
  ends_.reserve(count);
  const std::uint8_t* const last = file.data() + file.size() - 1;
  for (const std::uint8_t* at = file.data() + begin; at < last; ++at) {
    at = static_cast<const std::uint8_t*>(std::memchr(at, 0xff, static_cast<std::size_t>(last - at)));
    if (at == nullptr) return false;
    if (at[1] == 0) continue;
    const bool is_end = ends_.size() + 1 == count;
    if (at[1] != (is_end ? kEndOfImage : kFirstRestart + ends_.size() % 8)) return false;
    ends_.push_back(static_cast<std::size_t>(at - file.data()) + kMarkerBytes);
    if (is_end) return true;
  }
  return false;
}

Rect JpegTiles::cut(Bytes file, const Rect& region, ByteBuffer& out) const {
  const std::uint32_t tile_width = tile_mcus_ * mcu_width_, tiles_down = divide_up(height_, mcu_height_);
  const TileRange columns =
      tiles_of(region.x, region.width, tile_width, columns_margin(mcu_width_ > DCTSIZE), tiles_across_);
  const TileRange rows =
      tiles_of(region.y, region.height, mcu_height_, rows_margin(mcu_height_ > DCTSIZE), tiles_down);
  const auto begin_of = [&](std::size_t tile) { return tile == 0 ? scan_at_ : ends_[tile - 1]; };
  out.assign(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(scan_at_));
  constexpr std::size_t kHeightAt = 5, kWidthAt = 7;
  const std::uint32_t left = columns.first * tile_width, top = rows.first * mcu_height_;
  store_big16(&out[frame_at_ + kHeightAt], std::min(height_, rows.end * mcu_height_) - top);
  store_big16(&out[frame_at_ + kWidthAt], std::min(width_, columns.end * tile_width) - left);
  std::size_t written = 0;
  for (std::uint32_t row = rows.first; row < rows.end; ++row) {
    const std::size_t first = std::size_t{row} * tiles_across_ + columns.first;
    const std::size_t end = std::size_t{row} * tiles_across_ + columns.end;
    const std::size_t begin = begin_of(first), base = out.size() - begin;
    out.insert(out.end(), file.begin() + static_cast<std::ptrdiff_t>(begin),
               file.begin() + static_cast<std::ptrdiff_t>(ends_[end - 1]));
    for (std::size_t tile = first; tile < end; ++tile)
      out[base + ends_[tile] - 1] = static_cast<std::uint8_t>(kFirstRestart + written++ % 8);
  }
  out.back() = kEndOfImage;
  return {region.x - left, region.y - top, region.width, region.height};
}

}  // namespace chunkhit
