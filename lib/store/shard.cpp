#include "store/shard.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/throw_error.h"
#include "chunkhit/error.h"
#include "codec/chunk_codec.h"
#include "codec/zstd.h"
#include "store/part_index.h"
#include "store/part_rules.h"

namespace chunkhit {
namespace {

// Skippable frames of zstd: `zstd -d` reads a shard as the bytes of its chunks.
constexpr std::uint32_t kHeaderMagic = 0x184d2a50;
constexpr std::uint32_t kIndexMagic = 0x184d2a51;
constexpr std::uint32_t kPaddingMagic = 0x184d2a52;
constexpr std::uint32_t kSeekTableMagic = 0x184d2a5e;
constexpr std::uint32_t kSeekTableFooterMagic = 0x8f92eab1;

constexpr std::string_view kShardMagic = "chunkhit shard\r\n";
constexpr std::uint32_t kShardVersion = 1;
constexpr std::uint32_t kRepeatingShardVersion = 2;
constexpr std::size_t kSpecAt = 32;
constexpr std::size_t kCountsAt = 88;
constexpr std::size_t kHeaderHashAt = kShardAlignment - 8;

[[noreturn]] void throw_bad_header(const std::string& what) { throw_bad_data("shard header: " + what); }

std::uint32_t version_of(const PartSpec& spec) {
  return spec.holds_rows() && spec.rows().matrix.has_repeats ? kRepeatingShardVersion : kShardVersion;
}

void store_frame_header(std::uint8_t* to, std::uint32_t magic, std::uint64_t frame_bytes) {
  store_little(to, magic);
  store_little(to + 4, static_cast<std::uint32_t>(frame_bytes - kSkippableHeaderBytes));
}

}  // namespace

bool is_shard(Bytes first_bytes) {
  return first_bytes.size() >= 24 && load_little<std::uint32_t>(first_bytes.data()) == kHeaderMagic &&
         as_text(first_bytes.subspan(8, kShardMagic.size())) == kShardMagic;
}

ShardHeaderBytes encode_shard_header(const ShardHeader& header) {
  ShardHeaderBytes bytes{};
  store_frame_header(bytes.data(), kHeaderMagic, bytes.size());
  std::memcpy(bytes.data() + 8, kShardMagic.data(), kShardMagic.size());
  store_little(bytes.data() + 24, version_of(header.spec));
  store_little(bytes.data() + 28, static_cast<std::uint32_t>(header.spec.payload().kind()));
  std::ranges::copy(encode_part_spec(header.spec), bytes.begin() + kSpecAt);
  std::uint8_t* to = bytes.data() + kCountsAt;
  for (const std::uint64_t number : {header.sample_count, header.chunk_count, header.index_offset,
                                     header.index_bytes, header.index_xxh3, header.file_bytes}) {
    store_little(to, number);
    to += sizeof number;
  }
  store_little(bytes.data() + kHeaderHashAt, xxh3(Bytes(bytes).first(kHeaderHashAt)));
  return bytes;
}

ShardHeader decode_shard_header(const ShardHeaderBytes& bytes) {
  const auto version = load_little<std::uint32_t>(bytes.data() + 24);
  const auto kind = load_little<std::uint32_t>(bytes.data() + 28);
  const std::uint64_t found = xxh3(Bytes(bytes).first(kHeaderHashAt));
  const auto expected = load_little<std::uint64_t>(bytes.data() + kHeaderHashAt);
  if (!is_shard(bytes)) throw_bad_header("another magic text");
  if (version != kShardVersion && version != kRepeatingShardVersion)
    throw_bad_header("version " + std::to_string(version) + ", this reader knows versions " +
                     std::to_string(kShardVersion) + " and " + std::to_string(kRepeatingShardVersion));
  if (found != expected)
    throw_bad_header("checksum " + hash_text(found) + ", expected " + hash_text(expected));
  if (kind < static_cast<std::uint32_t>(SampleKind::images) ||
      kind > static_cast<std::uint32_t>(SampleKind::sized_images))
    throw_bad_header("kind " + std::to_string(kind) +
                     ", expected 1 (images), 2 (matrices) or 3 (images of their own sizes)");
  PartSpecBytes spec{};
  std::copy_n(bytes.begin() + kSpecAt, spec.size(), spec.begin());
  ShardHeader header{.spec = decode_part_spec(static_cast<SampleKind>(kind), spec)};
  if (version != version_of(header.spec))
    throw_bad_header("version " + std::to_string(version) + " of a part that has version " +
                     std::to_string(version_of(header.spec)));
  const std::uint8_t* from = bytes.data() + kCountsAt;
  for (std::uint64_t* number : {&header.sample_count, &header.chunk_count, &header.index_offset,
                                &header.index_bytes, &header.index_xxh3, &header.file_bytes}) {
    *number = load_little<std::uint64_t>(from);
    from += sizeof *number;
  }
  return header;
}

/// Padding is a frame that decompressors skip; it is never smaller than a frame header.
ByteBuffer encode_shard_padding(std::uint64_t bytes) {
  ByteBuffer frame(bytes);
  std::ranges::fill(frame, std::uint8_t{0});
  store_frame_header(frame.data(), kPaddingMagic, bytes);
  return frame;
}

std::array<std::uint8_t, kSkippableHeaderBytes> encode_index_frame_header(std::uint64_t index_bytes) {
  std::array<std::uint8_t, kSkippableHeaderBytes> header{};
  store_frame_header(header.data(), kIndexMagic, index_bytes + kSkippableHeaderBytes);
  return header;
}

constexpr std::uint64_t seek_table_bytes(std::uint64_t frames) {
  constexpr std::uint64_t kFooterBytes = 9;
  return kSkippableHeaderBytes + frames * sizeof(SeekEntry) + kFooterBytes;
}

/// The table of zstd's seekable format: stored and raw bytes of every frame, so that other readers can seek.
ByteBuffer encode_seek_table(std::span<const SeekEntry> frames) {
  ByteBuffer table(kSkippableHeaderBytes);
  table.reserve(seek_table_bytes(frames.size()));
  for (const SeekEntry& frame : frames) {
    append_little(table, frame.stored_bytes);
    append_little(table, frame.raw_bytes);
  }
  append_little(table, static_cast<std::uint32_t>(frames.size()));
  table.push_back(0);
  append_little(table, kSeekTableFooterMagic);
  store_frame_header(table.data(), kSeekTableMagic, table.size());
  return table;
}

namespace {

ShardHeader read_header(const InputFile& file) {
  ShardHeaderBytes bytes{};
  if (file.byte_count() < bytes.size())
    throw_bad_data("has " + std::to_string(file.byte_count()) + " bytes, expected at least " +
                   std::to_string(bytes.size()));
  file.read_at(0, bytes);
  ShardHeader header = decode_shard_header(bytes);
  if (header.file_bytes != file.byte_count())
    throw_bad_data("has " + std::to_string(file.byte_count()) + " bytes, expected " +
                   std::to_string(header.file_bytes));
  return header;
}

/// Checks bounds and frame header of the index before it is decoded.
void check_index_frame(const InputFile& file, const ShardHeader& header) {
  const std::uint64_t room = file.byte_count() - std::min(header.index_offset, file.byte_count());
  if (room < kSkippableHeaderBytes ||
      header.index_bytes > std::min<std::uint64_t>(room - kSkippableHeaderBytes, UINT32_MAX))
    throw_bad_data("the index lies outside of the file");
  auto frame_header = encode_index_frame_header(header.index_bytes);
  file.read_at(header.index_offset, frame_header);
  if (frame_header != encode_index_frame_header(header.index_bytes))
    throw_bad_data("the index has another frame header");
}

/// Throws bad_data unless chunks and index follow one another with only padding between them.
void check_order(const PartSpec& spec, const std::vector<StoredChunk>& chunks, std::uint64_t index_offset) {
  std::uint64_t expected = kShardAlignment;
  const auto check = [&](const std::string& what, std::uint64_t offset) {
    if (offset != expected)
      throw_bad_data(what + " begins at byte " + std::to_string(offset) + ", expected " +
                     std::to_string(expected));
  };
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    check("chunk " + std::to_string(i), chunks[i].offset);
    const std::uint64_t end = chunks[i].offset + chunks[i].stored_bytes;
    expected = end + shard_padding(spec, end);
  }
  check("the index", index_offset);
}

/// Reads the seek table, whose size must be that of as many frames as it says, at most `max_frames`.
std::vector<SeekEntry> read_seek_table(const InputFile& file, const ShardHeader& header,
                                       std::uint64_t max_frames) {
  const std::uint64_t offset = header.index_offset + kSkippableHeaderBytes + header.index_bytes;
  const std::uint64_t bytes = file.byte_count() - offset;
  if (bytes < seek_table_bytes(0) || (bytes - seek_table_bytes(0)) % sizeof(SeekEntry) != 0 ||
      bytes > seek_table_bytes(max_frames))
    throw_bad_data("the seek table has " + std::to_string(bytes) + " bytes, expected those of at most " +
                   std::to_string(max_frames) + " frames");
  ByteBuffer table(bytes);
  file.read_at(offset, table);
  std::vector<SeekEntry> frames((bytes - seek_table_bytes(0)) / sizeof(SeekEntry));
  const std::uint8_t* from = table.data() + kSkippableHeaderBytes;
  for (SeekEntry& frame : frames) {
    frame = {load_little<std::uint32_t>(from), load_little<std::uint32_t>(from + sizeof(std::uint32_t))};
    from += sizeof frame;
  }
  if (table != encode_seek_table(frames)) throw_bad_data("the seek table has another header or footer");
  return frames;
}

/// Compares the seek table with the index, frame by frame; notes whether chunks are of several frames.
class SeekTableCheck {
 public:
  SeekTableCheck(const ShardHeader& header, PartContents& contents, std::vector<SeekEntry> frames)
      : header_(header), contents_(contents), frames_(std::move(frames)) {}

  void check() {
    expect({kShardAlignment, 0});
    for (const StoredChunk& chunk : contents_.chunks) {
      if (contents_.spec.payload().frames_samples())
        check_samples(chunk);
      else
        check_frames(chunk);
      const std::uint64_t padding = shard_padding(contents_.spec, chunk.offset + chunk.stored_bytes);
      if (padding != 0) expect({static_cast<std::uint32_t>(padding), 0});
    }
    expect({static_cast<std::uint32_t>(kSkippableHeaderBytes + header_.index_bytes), 0});
    if (next_ != frames_.size()) refuse();
  }

 private:
  [[noreturn]] static void refuse() { throw_bad_data("the seek table does not fit the index"); }

  [[nodiscard]] const SeekEntry& next() {
    if (next_ == frames_.size()) refuse();
    return frames_[next_++];
  }

  void expect(const SeekEntry& expected) {
    if (next() != expected) refuse();
  }

  void check_samples(const StoredChunk& chunk) {
    for (std::uint64_t i = 0; i < chunk.sample_count; ++i) {
      const std::uint32_t bytes = contents_.samples.sizes.payload_bytes[chunk.first_sample + i];
      expect({static_cast<std::uint32_t>(raw_frame_bytes(bytes)), bytes});
    }
  }

  /// Images that are filtered may be in several frames of whole samples.
  void check_frames(const StoredChunk& chunk) {
    const std::uint64_t frame_step = contents_.spec.payload().frame_step();
    const std::uint64_t step = chunk.filtered && frame_step != 0 ? frame_step : chunk.raw_bytes;
    std::uint64_t stored_bytes = 0, raw_bytes = 0, count = 0;
    for (; stored_bytes < chunk.stored_bytes; ++count) {
      const SeekEntry& frame = next();
      if (frame.stored_bytes == 0 || frame.raw_bytes == 0 || frame.raw_bytes % step != 0) refuse();
      stored_bytes += frame.stored_bytes;
      raw_bytes += frame.raw_bytes;
    }
    if (stored_bytes != chunk.stored_bytes || raw_bytes != chunk.raw_bytes) refuse();
    contents_.splits_chunks = contents_.splits_chunks || count > 1;
  }

  const ShardHeader& header_;
  PartContents& contents_;
  std::vector<SeekEntry> frames_;
  std::size_t next_ = 0;
};

void check_seek_table(const InputFile& file, const ShardHeader& header, PartContents& contents) {
  // Header, index, and of each chunk a padding and at most a frame for each sample.
  const std::uint64_t max_frames = 2 + header.chunk_count + header.sample_count;
  SeekTableCheck(header, contents, read_seek_table(file, header, max_frames)).check();
}

PartContents read_contents(const InputFile& file, std::uint64_t memory_bytes, bool takes_matrices) {
  const ShardHeader header = read_header(file);
  if (header.spec.holds_rows() && !takes_matrices) throw_bad_data("holds matrices, expected images");
  const Container& shard = container("shard");
  check_index_frame(file, header);
  PartContents contents = decode_file_index(
      {file, header.index_offset + kSkippableHeaderBytes, header.index_bytes}, header.index_xxh3,
      [&](IndexCursor& index) {
        PartContents decoded;
        decoded.spec = header.spec;
        check_part_spec(decoded.spec, shard);
        decoded.spec.payload().decode_index(index, {file.byte_count(), memory_bytes}, decoded);
        return decoded;
      });
  if (contents.samples.rows.size() != header.sample_count || contents.chunks.size() != header.chunk_count)
    throw_bad_data("the header's counts are not the index's");
  check_part_contents(contents, shard, file.byte_count());
  check_order(contents.spec, contents.chunks, header.index_offset);
  check_seek_table(file, header, contents);
  return contents;
}

}  // namespace

bool is_matrix_shard(const std::string& path) {
  const InputFile file(path);
  try {
    return read_header(file).spec.holds_rows();
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.what());
  }
}

std::unique_ptr<ChunkReader> open_shard(const std::string& path, std::uint64_t memory_bytes,
                                        bool takes_matrices) {
  InputFile file(path);
  try {
    PartContents contents = read_contents(file, memory_bytes, takes_matrices);
    return std::make_unique<ChunkReader>(std::move(file), std::move(contents));
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.what());
  }
}

namespace {

class ShardWriter final : public ChunkWriter {
 public:
  ShardWriter(const std::string& path, const PartSpec& spec)
      : spec_(spec), frames_samples_(spec.payload().frames_samples()), file_(path) {
    // Reserves the header's bytes; its numbers are known and written at the end.
    file_.append(encode_shard_header({.spec = spec}));
  }

  void append(const EncodedChunk& chunk) override {
    StoredChunk stored{.offset = file_.byte_count(),
                       .raw_bytes = chunk.raw_bytes,
                       .first_sample = sample_count_,
                       .sample_count = chunk.sample_count,
                       .xxh3 = chunk.xxh3,
                       .filtered = chunk.filtered};
    if (chunk.filtered || frames_samples_)
      file_.append(chunk.stored);
    else
      stored.xxh3 = append_raw_frame(chunk.stored);
    stored.stored_bytes = file_.byte_count() - stored.offset;
    const std::uint64_t padding = shard_padding(spec_, file_.byte_count());
    if (padding != 0) file_.append(encode_shard_padding(padding));
    list_frames(stored, chunk.stored, padding);
    chunks_.push_back(stored);
    sample_count_ += chunk.sample_count;
  }

  CompletePart complete(PartSamples samples) override {
    ByteBuffer index = spec_.payload().encode_index(spec_, chunks_, std::move(samples));
    if (index.size() > UINT32_MAX - kSkippableHeaderBytes)
      throw Error(ErrorCode::cannot_write, file_.path() + ": an index of " + std::to_string(index.size()) +
                                               " bytes, expected less than 4 GiB: make smaller parts");
    if (spec_.holds_rows()) spec_.rows().item_ids = {};  // frees memory: the index, read back soon, has them
    ShardHeader header{.spec = spec_,
                       .sample_count = sample_count_,
                       .chunk_count = chunks_.size(),
                       .index_offset = file_.byte_count(),
                       .index_bytes = index.size(),
                       .index_xxh3 = xxh3(index)};
    file_.append(encode_index_frame_header(index.size()));
    file_.append(index);
    index = ByteBuffer();  // frees memory: it is read back
    frames_.push_back({static_cast<std::uint32_t>(kSkippableHeaderBytes + header.index_bytes), 0});
    file_.append(encode_seek_table(frames_));
    header.file_bytes = file_.byte_count();
    file_.write_at(0, encode_shard_header(header));
    const PartReport report = check_written_part(
        file_, [](const std::string& path) { return open_shard(path); }, chunks_);
    file_.flush();
    return {report, std::move(file_)};
  }

 private:
  /// Appends raw bytes in a frame of raw blocks, without a copy of them; returns the frame's hash.
  std::uint64_t append_raw_frame(Bytes raw) {
    Xxh3Stream hash;
    const auto add = [&](Bytes bytes) {
      file_.append(bytes);
      hash.update(bytes);
    };
    const RawFrameParts frame = frame_raw_bytes(raw);
    add(frame.header);
    for (const auto& block_header : frame.block_headers) {
      const Bytes block = raw.first(std::min<std::size_t>(raw.size(), kRawBlockBytes));
      add(block_header);
      add(block);
      raw = raw.subspan(block.size());
    }
    add(frame.checksum);
    return hash.value();
  }

  /// Notes the frames of a chunk for the seek table, and the padding behind it.
  void list_frames(const StoredChunk& chunk, Bytes stored, std::uint64_t padding) {
    const auto add = [&](std::uint64_t stored_bytes, std::uint64_t raw_bytes) {
      frames_.push_back({static_cast<std::uint32_t>(stored_bytes), static_cast<std::uint32_t>(raw_bytes)});
    };
    if (!chunk.filtered && !frames_samples_) {
      add(chunk.stored_bytes, chunk.raw_bytes);
      stored = {};
    }
    for (ZstdFrame frame; !stored.empty(); stored = stored.subspan(frame.stored_bytes)) {
      frame = first_zstd_frame(stored);
      add(frame.stored_bytes, frame.raw_bytes);
    }
    if (padding != 0) add(padding, 0);
  }

  PartSpec spec_;
  bool frames_samples_;
  PendingFile file_;
  std::vector<StoredChunk> chunks_;
  std::vector<SeekEntry> frames_{{kShardAlignment, 0}};
  std::uint64_t sample_count_ = 0;
};

}  // namespace

std::unique_ptr<ChunkWriter> create_shard(const std::string& path, const PartSpec& spec) {
  check_part_spec(spec, container("shard"));
  return std::make_unique<ShardWriter>(path, spec);
}

}  // namespace chunkhit
