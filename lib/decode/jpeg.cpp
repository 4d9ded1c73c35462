// JPEG by libjpeg-turbo. libjpeg reports errors by longjmp, so every call of it runs inside
// JpegSession::attempt, in functions whose locals need no destructor; whatever owns memory lives outside of
// them.
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>
// jpeglib.h needs FILE and size_t before it.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "decode/channels.h"
#include "decode/exif.h"
#include "decode/formats.h"
#include "decode/jpeg_entropy.h"

namespace chunkhit {
namespace {

constexpr unsigned kCallsPerCheck = 16;  // of the clock: libjpeg calls for each row
constexpr int kMaxScans =
    100;  // real progressive files have about 10; each scan costs a pass over all blocks

// Returns whether libjpeg smooths across blocks, as for progressive files that lack refining scans: cropping
// would then change pixels at any margin.
bool smooths_blocks(const jpeg_decompress_struct& info) {
  if (!info.progressive_mode || info.coef_bits == nullptr) return false;
  for (int c = 0; c < info.num_components; ++c)
    if (std::any_of(info.coef_bits[c], info.coef_bits[c] + DCTSIZE2, [](int bits) { return bits != 0; }))
      return true;
  return false;
}

/// One decompression and the state that libjpeg's callbacks need.
class JpegSession : public JpegEntropy {
 public:
  JpegSession(Bytes file, DecodeMonitor& monitor) : file_(file), monitor_(monitor) {
    info.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr common) { of(common).fail(); };
    errors_.emit_message = [](j_common_ptr common, int level) { of(common).note(level); };
    errors_.output_message = [](j_common_ptr) {};
    progress_.progress_monitor = [](j_common_ptr common) { of(common).check_progress(); };
    info.client_data = static_cast<JpegEntropy*>(this);
  }
  JpegSession(const JpegSession&) = delete;
  JpegSession& operator=(const JpegSession&) = delete;
  ~JpegSession() { jpeg_destroy_decompress(&info); }

  /// Runs libjpeg calls; throws ImageError when one of them fails.
  void attempt(void (*calls)(JpegSession&)) {
    if (setjmp(return_here_) == 0) {
      calls(*this);
      return;
    }
    if (out_of_memory_) throw std::bad_alloc();
    throw ImageError(kind_, reason_.data());
  }
  [[nodiscard]] Bytes file() const { return file_; }
  [[nodiscard]] bool checks_whole() const { return monitor_.options().check == DecodeCheck::whole; }
  [[nodiscard]] bool requires_end() const { return monitor_.options().requires_end; }
  [[nodiscard]] bool is_stock() const { return monitor_.options().stock_entropy; }
  /// Notes what costs no pixel once the last row was read.
  void note_end() {
    if (lacks_end_marker_) monitor_.oddity("there is no end-of-image marker after the last row");
  }
  void watch_progress() { info.progress = &progress_; }
  /// Ends the attempt with a reason unless warnings are accepted.
  void warn(const char* text) {
    if (!monitor_.options().accept_warnings) end_attempt(text);
    monitor_.damage(text);
  }

  jpeg_decompress_struct info{};
  bool has_header = false;
  Rect region;                      ///< wanted, after shrinking
  JDIMENSION first_column = 0;      ///< of what libjpeg gives, at or left of region.x
  JSAMPROW row = nullptr;           ///< what libjpeg gives, one row
  std::uint8_t* rgb_row = nullptr;  ///< scratch for CMYK
  Image* image = nullptr;

 private:
  static JpegSession& of(j_common_ptr common) {
    return *static_cast<JpegSession*>(static_cast<JpegEntropy*>(common->client_data));
  }

  [[noreturn]] void fail() {
    out_of_memory_ = errors_.msg_code == JERR_OUT_OF_MEMORY;
    std::array<char, JMSG_LENGTH_MAX> text;
    errors_.format_message(reinterpret_cast<j_common_ptr>(&info), text.data());
    std::array<char, JMSG_LENGTH_MAX + 32> reason;
    std::snprintf(reason.data(), reason.size(), "damaged JPEG: %s", text.data());
    if (describe_unsupported(reason)) kind_ = RejectKind::unsupported;
    end_attempt(reason.data());
  }

  [[noreturn]] void end_attempt(const char* reason) {
    std::snprintf(reason_.data(), reason_.size(), "%s", reason);
    std::longjmp(return_here_, 1);
  }

  // Distinguishes formats that libjpeg-turbo does not support from damage. SOF markers: ITU-T T.81, table
  // B.1; JPEG-LS: T.87.
  bool describe_unsupported(std::array<char, JMSG_LENGTH_MAX + 32>& reason) const {
    const int number = errors_.msg_parm.i[0];
    constexpr int kJpegLs = 0xf7;
    if (errors_.msg_code == JERR_BAD_PRECISION) {
      std::snprintf(reason.data(), reason.size(), "JPEG of %d bits a sample is not supported", number);
    } else if (errors_.msg_code == JERR_SOF_UNSUPPORTED) {
      const bool lossless = (number & 3) == 3;
      const bool differential = (number & 4) != 0;
      std::snprintf(reason.data(), reason.size(), "%s%s JPEG (SOF 0x%02x) is not supported",
                    differential ? "hierarchical" : "",
                    lossless ? differential ? " lossless" : "lossless" : "", static_cast<unsigned>(number));
    } else if (errors_.msg_code == JERR_UNKNOWN_MARKER && number == kJpegLs) {
      std::snprintf(reason.data(), reason.size(), "JPEG-LS is not supported");
    } else {
      return false;
    }
    return true;
  }

  // Returns whether a warning affects no pixel. Decoders of baseline JPEG ignore the progression in a scan's
  // header, which some phones fill with zeros. Extraneous bytes before a marker are harmless only between
  // header segments; in the data of a scan they are the remains of damaged codes.
  [[nodiscard]] bool is_harmless() const {
    switch (errors_.msg_code) {
      case JWRN_JFIF_MAJOR:
      case JWRN_ADOBE_XFORM:
      case JWRN_NOT_SEQUENTIAL:
        return true;
      case JWRN_EXTRANEOUS_DATA:
        return !has_header;
      default:
        return false;
    }
  }

  void note(int level) {
    if (level >= 0) return;
    std::array<char, JMSG_LENGTH_MAX> text;
    errors_.format_message(reinterpret_cast<j_common_ptr>(&info), text.data());
    if (is_harmless()) {
      monitor_.oddity(text.data());
    } else if (errors_.msg_code == JWRN_JPEG_EOF) {
      describe_end(end_);
      lacks_end_marker_ = lacks_no_scan();
      if (!lacks_end_marker_) warn(end_.data());
    } else {
      const bool is_cut = lacks_end_marker_;
      lacks_end_marker_ = false;
      warn(is_cut ? end_.data() : text.data());
    }
  }

  // Returns whether codes that are missing bring a warning, now that the data has ended. Arithmetic decoders
  // take what is missing as zeros. Scans that are not progressive have all of a component, whose table
  // libjpeg keeps when its scan begins.
  [[nodiscard]] bool lacks_no_scan() {
    if (!has_header || info.arith_code != FALSE) return false;
    if (jpeg_has_multiple_scans(&info) == FALSE) return true;
    if (info.progressive_mode != FALSE) return info.coef_bits != nullptr && !smooths_blocks(info);
    return std::all_of(info.comp_info, info.comp_info + info.num_components,
                       [](const jpeg_component_info& each) { return each.quant_table != nullptr; });
  }

  /// Names the row near which the data ends, by libjpeg's count of MCU rows.
  void describe_end(std::array<char, JMSG_LENGTH_MAX>& text) const {
    if (!has_header) {
      std::snprintf(text.data(), text.size(), "truncated: the data ends in the header");
      return;
    }
    const std::uint64_t last_row = std::uint64_t{info.input_iMCU_row} * info.max_v_samp_factor * DCTSIZE;
    std::snprintf(text.data(), text.size(), "truncated: the data ends near row %u of %u",
                  static_cast<unsigned>(std::min<std::uint64_t>(last_row, info.image_height)),
                  info.image_height);
    if (info.input_scan_number <= 1) return;
    const std::size_t used = std::strlen(text.data());
    std::snprintf(text.data() + used, text.size() - used, " in scan %d", info.input_scan_number);
  }

  void check_progress() {
    const bool is_late = ++progress_calls_ % kCallsPerCheck == 0 && monitor_.is_out_of_time();
    if (!is_late && info.input_scan_number <= kMaxScans) return;
    kind_ = is_late ? RejectKind::too_slow : RejectKind::too_large;
    if (is_late)
      std::snprintf(reason_.data(), reason_.size(), "%s", monitor_.time_error().c_str());
    else
      std::snprintf(reason_.data(), reason_.size(), "has more than %d scans", kMaxScans);
    std::longjmp(return_here_, 1);
  }

  Bytes file_;
  DecodeMonitor& monitor_;
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf return_here_{};
  std::array<char, JMSG_LENGTH_MAX + 32> reason_{};
  RejectKind kind_ = RejectKind::damaged;
  std::array<char, JMSG_LENGTH_MAX> end_{};  // where the data ends
  unsigned progress_calls_ = 0;
  bool lacks_end_marker_ = false;
  bool out_of_memory_ = false;
};

void read_header(JpegSession& session) {
  jpeg_create_decompress(&session.info);
  session.watch_progress();
  jpeg_mem_src(&session.info, session.file().data(), static_cast<unsigned long>(session.file().size()));
  jpeg_save_markers(&session.info, JPEG_APP0 + 1, 0xffff);
  jpeg_read_header(&session.info, TRUE);
  session.has_header = true;
}

// Returns the memory for the coefficients of all blocks, which libjpeg keeps if there are several scans.
std::uint64_t coefficient_bytes(const jpeg_decompress_struct& info) {
  std::uint64_t samples = 0;
  for (int c = 0; c < info.num_components; ++c) {
    const jpeg_component_info& component = info.comp_info[c];
    samples += round_up(component.width_in_blocks, component.h_samp_factor) * DCTSIZE *
               round_up(component.height_in_blocks, component.v_samp_factor) * DCTSIZE;
  }
  return samples * sizeof(JCOEF);
}

// Estimates libjpeg's buffers of a few block rows of all components, before and after upsampling, and tables.
std::uint64_t working_bytes(const jpeg_decompress_struct& info) {
  constexpr std::uint64_t kTables = 192 << 10;
  constexpr std::uint64_t kRowsHeld = 4;
  std::uint64_t marker_bytes = 0;
  for (jpeg_saved_marker_ptr marker = info.marker_list; marker != nullptr; marker = marker->next)
    marker_bytes += sizeof *marker + marker->data_length;
  return kTables + marker_bytes +
         round_up(info.image_width, 32) * info.num_components * info.max_v_samp_factor * DCTSIZE * kRowsHeld;
}

Bytes find_exif(const jpeg_decompress_struct& info) {
  for (jpeg_saved_marker_ptr marker = info.marker_list; marker != nullptr; marker = marker->next) {
    const Bytes data(marker->data, marker->data_length);
    if (as_text(data).starts_with(kExifMark)) return data;
  }
  return {};
}

bool is_cmyk(const jpeg_decompress_struct& info) {
  return info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
}

void describe(JpegSession& session, ImageHeader& header) {
  header.width = session.info.image_width;
  header.height = session.info.image_height;
  header.channels = session.info.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
  header.is_cmyk = is_cmyk(session.info);
  header.scales = true;
  const bool holds_all_blocks = jpeg_has_multiple_scans(&session.info) != FALSE;
  header.block_bytes = coefficient_bytes(session.info);
  header.extra_bytes = working_bytes(session.info) + (holds_all_blocks ? header.block_bytes : 0);
}

// jpeg_crop_scanline of 2.1.5 takes a component's width as if its blocks shrank like all others. Where they
// shrink less, to spare upsampling, and some upsampling is left (4:1:0, say), pixels would differ.
bool crops_exactly(const jpeg_decompress_struct& info) {
  return std::all_of(info.comp_info, info.comp_info + info.num_components,
                     [&](const jpeg_component_info& component) {
                       const int scale = component.DCT_scaled_size / info.min_DCT_scaled_size;
                       return scale == 1 || (component.h_samp_factor * scale == info.max_h_samp_factor &&
                                             component.v_samp_factor * scale == info.max_v_samp_factor);
                     });
}

// Decodes one column more on each side, because fancy upsampling reads the neighbours, and at least kMinWidth
// columns, because libjpeg upsamples a few columns differently.
void crop_columns(JpegSession& session) {
  constexpr JDIMENSION kMinWidth = 64;
  if (!crops_exactly(session.info)) return;
  const Rect& region = session.region;
  const JDIMENSION end =
      std::min(session.info.output_width, std::max(region.x + region.width + 1, region.x + kMinWidth));
  JDIMENSION first = std::min(std::max(region.x, JDIMENSION{1}) - 1, end - std::min(end, kMinWidth));
  JDIMENSION width = end - first;
  jpeg_crop_scanline(&session.info, &first, &width);
  session.first_column = first;
}

void start(JpegSession& session) {
  jpeg_start_decompress(&session.info);
  if (!session.is_stock()) session.take_over(session.info);
  if (smooths_blocks(session.info)) return;
  crop_columns(session);
  if (session.region.y > 0) jpeg_skip_scanlines(&session.info, session.region.y);
}

// Reads the rest of the file, so that libjpeg notices all that it can. Rows are skipped by decoding their
// codes and no more, all but the last: libjpeg reads nothing where all are to be skipped. Components that are
// not needed spare that row's arithmetic, too.
void check_rest(JpegSession& session) {
  jpeg_decompress_struct& info = session.info;
  for (int c = 0; c < info.num_components; ++c) info.comp_info[c].component_needed = FALSE;
  const JDIMENSION left = info.output_height - info.output_scanline;
  // libjpeg-turbo 2.1.5 skips too many blocks behind rows that were shrunk and read.
  if (info.scale_denom == 1 && left > 1) jpeg_skip_scanlines(&info, left - 1);
  while (info.output_scanline < info.output_height) jpeg_read_scanlines(&info, &session.row, 1);
  jpeg_finish_decompress(&info);
}

void require_end(JpegSession& session) {
  const auto& info = session.info;
  constexpr int kEndOfImage = 0xd9;
  if (!session.requires_end() || info.unread_marker == kEndOfImage || jpeg_input_complete(&session.info))
    return;
  const std::string_view rest(reinterpret_cast<const char*>(info.src->next_input_byte),
                              info.src->bytes_in_buffer);
  if (rest.rfind("\xff\xd9") == std::string_view::npos)
    session.warn("truncated: there is no end-of-image marker after the last row");
}

void take_row(JpegSession& session, std::uint32_t y) {
  auto channels = static_cast<std::uint32_t>(session.info.output_components);
  const std::uint8_t* row = session.row + std::size_t{session.region.x - session.first_column} * channels;
  if (session.rgb_row != nullptr) {
    cmyk_to_rgb(row, session.rgb_row, session.region.width);
    row = session.rgb_row;
    channels = 3;
  }
  convert_channels(row, channels, session.image->row(y), session.image->channels, session.region.width);
}

void read_rows(JpegSession& session) {
  const Rect& region = session.region;
  while (session.info.output_scanline < region.y) jpeg_read_scanlines(&session.info, &session.row, 1);
  for (std::uint32_t y = 0; y < region.height; ++y) {
    jpeg_read_scanlines(&session.info, &session.row, 1);
    take_row(session, y);
  }
  if (session.checks_whole() && !jpeg_has_multiple_scans(&session.info))
    check_rest(session);
  else
    require_end(session);
  session.note_end();
}

void decode_region(JpegSession& session, const DecodePlan& wanted, Image& image) {
  jpeg_decompress_struct& info = session.info;
  const bool gray = info.jpeg_color_space == JCS_GRAYSCALE;
  info.scale_num = 1;
  info.scale_denom = wanted.shrink;
  info.out_color_space = is_cmyk(info) ? JCS_CMYK : gray && wanted.channels != 3 ? JCS_GRAYSCALE : JCS_RGB;
  session.region = wanted.region;
  session.attempt(start);

  image.reshape(wanted.region.width, wanted.region.height, wanted.channels);
  session.image = &image;
  // libjpeg-turbo writes aligned rows past the caches, where the next reader then waits for them: an odd
  // address keeps them in, and one such row copied into place is faster than decoding there.
  ByteBuffer row(std::size_t{info.output_width} * info.output_components + 1);
  ByteBuffer rgb_row(is_cmyk(info) ? std::size_t{wanted.region.width} * 3 : 0);
  session.row = row.data() + 1;
  session.rgb_row = is_cmyk(info) ? rgb_row.data() : nullptr;
  session.attempt(read_rows);
}

class JpegFile : public OpenedImage {
 public:
  JpegFile(Bytes file, DecodeMonitor& monitor) : session_(file, monitor) {
    session_.attempt(read_header);
    const int components = session_.info.num_components;
    if (components == 2 || components > 4)
      throw ImageError(RejectKind::unsupported,
                       "JPEG with " + std::to_string(components) + " color components is not supported");
    describe(session_, header);
    exif = find_exif(session_.info);
  }
  void decode(const DecodePlan& plan, Image& image) override { decode_region(session_, plan, image); }

 private:
  JpegSession session_;
};

}  // namespace

bool is_jpeg(Bytes file) { return as_text(file).starts_with("\xff\xd8\xff"); }

std::unique_ptr<OpenedImage> open_jpeg(Bytes file, DecodeMonitor& monitor) {
  return std::make_unique<JpegFile>(file, monitor);
}

}  // namespace chunkhit
