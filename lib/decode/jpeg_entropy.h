// Huffman decoding of baseline JPEG in place of libjpeg-turbo's own decoder, which takes most of the time of
// decoding a photo, and more where there are restart markers.
#pragma once

#include <memory>

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
  struct Decoder;
  std::unique_ptr<Decoder> decoder_;
  bool is_handed_back_ = false;
};

}  // namespace chunkhit
