// What a part holds, one file a kind: images of one shape, images of their own sizes, rows of matrices. A
// payload writes its spec and index, checks samples and chunks, and knows where a sample lies.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "chunk/row_block.h"
#include "types/sample_shape.h"

namespace chunkhit {

class IndexCursor;
struct Container;
struct PartContents;
struct PartSamples;
struct PartSpec;
struct StoredChunk;

/// What samples are, as files number it.
enum class SampleKind : std::uint32_t { images = 1, matrices = 2, sized_images = 3 };

/// Bytes 32–87 of a shard's header: pack id to chunk samples.
using PartSpecBytes = std::array<std::uint8_t, 56>;

/// What an index may need.
struct IndexLimits {
  std::uint64_t file_bytes = UINT64_MAX;    ///< of the file that it is in
  std::uint64_t memory_bytes = UINT64_MAX;  ///< for ids and the table of chunks
};

/// One of FixedSamples, SizedSamples and RowBlocks.
class Payload {
 public:
  [[nodiscard]] virtual SampleKind kind() const = 0;
  /// What messages call what it holds.
  [[nodiscard]] virtual const char* text() const = 0;
  /// What messages call the samples: "samples", "rows".
  [[nodiscard]] virtual const char* samples_text() const { return "samples"; }
  /// The shape that codecs of samples need; empty for rows.
  [[nodiscard]] virtual const SampleShape& shape() const = 0;

  /// Writes its part of a spec, and reads it; throws bad_data.
  virtual void encode(PartSpecBytes& bytes) const = 0;
  virtual void decode(const PartSpecBytes& bytes) = 0;
  /// Writes the index that stands beside the chunks, with room for a spec in front of it; frees the samples
  /// one field after the other.
  [[nodiscard]] virtual ByteBuffer encode_index(const PartSpec& spec, const std::vector<StoredChunk>& chunks,
                                                PartSamples samples) const = 0;
  /// Reads it into `contents`, whose spec was decoded before; throws bad_data, usage where it needs too much
  /// memory.
  virtual void decode_index(IndexCursor& cursor, const IndexLimits& limits, PartContents& contents) const = 0;

  /// Throw bad_data: for a spec that the container cannot hold; samples other than the spec says; chunks that
  /// do not fit both, or a file of `file_bytes`.
  virtual void check_spec(const PartSpec& spec, const Container& container) const = 0;
  virtual void check_samples(const PartSpec& spec, const PartSamples& samples) const = 0;
  virtual void check_chunks(const PartContents& contents, const Container& container,
                            std::uint64_t file_bytes) const;
  virtual void check_raw_bytes(const StoredChunk& chunk, const PartSpec& spec,
                               const Container& container) const = 0;
  /// Throws bad_data, naming both parts, unless samples of both can be read as those of one source.
  virtual void check_alike(const std::string& path, const Payload& first,
                           const std::string& first_path) const = 0;

  /// Whether a shard's chunks begin at multiples of kShardAlignment.
  [[nodiscard]] virtual bool is_aligned() const { return true; }
  /// Whether a raw chunk of a shard consists of the samples' own frames.
  [[nodiscard]] virtual bool frames_samples() const { return false; }
  /// Raw bytes of a sample, of which frames of a filtered chunk hold whole ones; 0: it has one frame.
  [[nodiscard]] virtual std::uint64_t frame_step() const { return 0; }
  /// Bytes from one decoded sample of a chunk to the next; 0 where they are not alike.
  [[nodiscard]] virtual std::uint64_t sample_step() const { return 0; }
  /// Where each sample of a part begins in its chunk, where samples lie one by one but are not alike.
  [[nodiscard]] virtual std::vector<std::uint32_t> sample_offsets(const std::vector<StoredChunk>&,
                                                                  const PartSamples&) const {
    return {};
  }

 protected:
  ~Payload() = default;
};

/// What images of one shape and of their own sizes share.
class ImageSamples : public Payload {
 public:
  SampleShape sample;                ///< without sides where each image has its own
  std::vector<std::string> classes;  ///< names by id; empty when labels are numbers

  [[nodiscard]] const SampleShape& shape() const final { return sample; }
  void encode(PartSpecBytes& bytes) const override;
  void decode(const PartSpecBytes& bytes) override;
  [[nodiscard]] ByteBuffer encode_index(const PartSpec& spec, const std::vector<StoredChunk>& chunks,
                                        PartSamples samples) const final;
  void decode_index(IndexCursor& cursor, const IndexLimits& limits, PartContents& contents) const final;
  void check_samples(const PartSpec& spec, const PartSamples& samples) const final;
  void check_alike(const std::string& path, const Payload& first, const std::string& first_path) const final;

 protected:
  ImageSamples() = default;
  ImageSamples(const ImageSamples&) = default;
  ImageSamples(ImageSamples&&) noexcept = default;
  ImageSamples& operator=(const ImageSamples&) = default;
  ImageSamples& operator=(ImageSamples&&) noexcept = default;
  ~ImageSamples() = default;
  /// What an index has behind the rows: sizes and hashes of samples.
  virtual void append_more(const PartSpec& spec, const std::vector<StoredChunk>& chunks,
                           const PartSamples& samples, ByteBuffer& bytes) const = 0;
  virtual void decode_more(IndexCursor& cursor, PartContents& contents) const = 0;
};

/// Images of one shape, one behind the other.
class FixedSamples final : public ImageSamples {
 public:
  [[nodiscard]] SampleKind kind() const override { return SampleKind::images; }
  [[nodiscard]] const char* text() const override { return "images of one shape"; }
  void check_spec(const PartSpec& spec, const Container& container) const override;
  void check_raw_bytes(const StoredChunk& chunk, const PartSpec& spec,
                       const Container& container) const override;
  [[nodiscard]] std::uint64_t frame_step() const override { return sample.byte_count(); }
  [[nodiscard]] std::uint64_t sample_step() const override { return sample.byte_count(); }

 private:
  void append_more(const PartSpec& spec, const std::vector<StoredChunk>& chunks, const PartSamples& samples,
                   ByteBuffer& bytes) const override;
  void decode_more(IndexCursor& cursor, PartContents& contents) const override;
};

/// Images of their own sizes: PartSamples::sizes says which, and how each is stored.
class SizedSamples final : public ImageSamples {
 public:
  [[nodiscard]] SampleKind kind() const override { return SampleKind::sized_images; }
  [[nodiscard]] const char* text() const override { return "images of their own sizes"; }
  void encode(PartSpecBytes& bytes) const override;
  void decode(const PartSpecBytes& bytes) override;
  void check_spec(const PartSpec& spec, const Container& container) const override;
  void check_chunks(const PartContents& contents, const Container& container,
                    std::uint64_t file_bytes) const override;
  /// The bytes of the samples were added up.
  void check_raw_bytes(const StoredChunk&, const PartSpec&, const Container&) const override {}
  [[nodiscard]] bool frames_samples() const override { return true; }
  [[nodiscard]] std::vector<std::uint32_t> sample_offsets(const std::vector<StoredChunk>& chunks,
                                                          const PartSamples& samples) const override;

 private:
  void append_more(const PartSpec& spec, const std::vector<StoredChunk>& chunks, const PartSamples& samples,
                   ByteBuffer& bytes) const override;
  void decode_more(IndexCursor& cursor, PartContents& contents) const override;
};

/// Rows of sparse matrices: chunks are row blocks.
class RowBlocks final : public Payload {
 public:
  MatrixShape matrix;
  std::vector<std::string> item_ids;  ///< by column; empty where items have none

  [[nodiscard]] SampleKind kind() const override { return SampleKind::matrices; }
  [[nodiscard]] const char* text() const override { return "matrices"; }
  [[nodiscard]] const char* samples_text() const override { return "rows"; }
  [[nodiscard]] const SampleShape& shape() const override;
  void encode(PartSpecBytes& bytes) const override;
  void decode(const PartSpecBytes& bytes) override;
  [[nodiscard]] ByteBuffer encode_index(const PartSpec& spec, const std::vector<StoredChunk>& chunks,
                                        PartSamples samples) const override;
  void decode_index(IndexCursor& cursor, const IndexLimits& limits, PartContents& contents) const override;
  void check_spec(const PartSpec& spec, const Container& container) const override;
  void check_samples(const PartSpec& spec, const PartSamples& samples) const override;
  void check_raw_bytes(const StoredChunk& chunk, const PartSpec& spec,
                       const Container& container) const override;
  void check_alike(const std::string& path, const Payload& first,
                   const std::string& first_path) const override;
  /// Rows are so small that gaps would count.
  [[nodiscard]] bool is_aligned() const override { return false; }
};

}  // namespace chunkhit
