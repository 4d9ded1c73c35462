// Huffman decoding of baseline JPEG in place of libjpeg-turbo's own decoder, which takes most of the time of
// decoding a photo, and more where there are restart markers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "base/bytes.h"

struct jpeg_compress_struct;
struct jpeg_decompress_struct;

namespace chunkhit {

/// Decodes the codes of one JPEG for libjpeg, which does everything else.
///
/// Pixels, warnings and errors are those of libjpeg alone, for damaged files, too. This takes what is in
/// order: one scan of baseline JPEG, with or without restart markers. At the first MCU where something is not
/// (codes that do not exist, end early or leave bytes over, a restart marker that is not the expected one, a
/// block of more than 64 coefficients) libjpeg's decoder starts at the begin of the scan, passes the MCUs
/// that were decoded, and continues from there. Files without an end marker, and what is progressive,
/// arithmetic or of several scans, are its from the start.
class JpegEntropy {
 public:
  JpegEntropy();
  JpegEntropy(const JpegEntropy&) = delete;
  JpegEntropy& operator=(const JpegEntropy&) = delete;
  ~JpegEntropy();

  /// Whether this build has the decoder: it needs an internal header of libjpeg-turbo, see
  /// cmake/Dependencies.cmake. Without it `take_over` does nothing.
  [[nodiscard]] static bool is_built();
  /// Decodes from now on where it can. Called before the first MCU, but when jpeg_start_decompress, or the
  /// first part of jpeg_read_coefficients, is done, for an `info` that reads from memory and whose
  /// `client_data` is this; this outlives the decoding.
  void take_over(jpeg_decompress_struct& info);
  /// Whether this decodes, not libjpeg.
  [[nodiscard]] bool is_decoding() const { return decoder_ != nullptr && !is_handed_back_; }

 private:
  friend class JpegCodes;
  struct Decoder;
  std::unique_ptr<Decoder> decoder_;
  bool is_handed_back_ = false;
};

/// The codes of a baseline scan, to be written with the shortest codes and other restart markers. libjpeg
/// writes the same bytes of the file's coefficients, and takes several times as long.
class JpegCodes {
 public:
  JpegCodes();
  JpegCodes(const JpegCodes&) = delete;
  JpegCodes& operator=(const JpegCodes&) = delete;
  ~JpegCodes();
  /// Reads the codes as `out` is to have them, whose parameters are set, for an `info` that decoding has
  /// begun for and that reads from memory. False for what JpegEntropy leaves to libjpeg, for codes that its
  /// encoder does not take, and where more than an end marker follows.
  [[nodiscard]] bool read(jpeg_decompress_struct& info, const jpeg_compress_struct& out);
  /// Sets the tables of `out`.
  void set_tables(jpeg_compress_struct& out) const;
  /// Writes all of `out` up to its scan.
  static void write_headers(jpeg_compress_struct& out);
  /// Appends the scan, and the end marker, to these.
  void write(jpeg_compress_struct& out, ByteBuffer& to) const;

 private:
  friend class JpegEntropy;
  // A token is a symbol with its table (bits 24 to 26: 0..3 DC, 4..7 AC) and its number's bits, or a restart.
  static constexpr unsigned kSlots = 8;
  static constexpr std::uint32_t kRestart = 1u << 31;
  template <class Component>
  static std::uint32_t dc_slot(const Component& component) {
    return static_cast<std::uint32_t>(component.dc_tbl_no) << 24;
  }
  template <class Component>
  static std::uint32_t ac_slot(const Component& component) {
    return static_cast<std::uint32_t>(component.ac_tbl_no + 4) << 24;
  }
  [[nodiscard]] std::span<const std::uint32_t> tokens() const { return {tokens_.get(), count_}; }
  [[nodiscard]] std::uint32_t* end() { return tokens_.get() + count_; }
  void set_end(const std::uint32_t* end) { count_ = static_cast<std::size_t>(end - tokens_.get()); }
  void add_restart() { *end() = kRestart, ++count_; }
  /// Makes room for so many tokens, and a restart.
  void reserve(std::size_t more) {
    if (capacity_ - count_ > more) return;
    capacity_ = count_ + more + capacity_ / 2 + 1;
    auto tokens = std::make_unique_for_overwrite<std::uint32_t[]>(capacity_);
    if (count_ > 0) std::memcpy(tokens.get(), tokens_.get(), count_ * sizeof(std::uint32_t));
    tokens_ = std::move(tokens);
  }

  // No local: libjpeg's progress monitor, which is called after every row of MCUs, may leave by longjmp.
  std::unique_ptr<JpegEntropy::Decoder> decoder_;
  std::unique_ptr<std::uint32_t[]> tokens_;
  std::size_t count_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace chunkhit
