#include "decode/stb.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "decode/channels.h"

namespace chunkhit {
namespace {

/// What stb_image may still allocate on this thread.
struct Budget {
  std::uint64_t left = 0;
  bool exceeded = false;
  bool out_of_memory = false;
};

thread_local Budget budget;

// Before each block stands its size, in as many bytes as keep the block aligned.
constexpr std::size_t kSizeBytes = alignof(std::max_align_t);

std::size_t block_size(const void* block) {
  std::size_t size;
  std::memcpy(&size, static_cast<const char*>(block) - kSizeBytes, sizeof size);
  return size;
}

void* resize_block(void* block, std::size_t size) {
  const std::size_t held = block == nullptr ? 0 : block_size(block);
  if (size > held && size - held > budget.left) {
    budget.exceeded = true;
    return nullptr;
  }
  void* start = block == nullptr ? nullptr : static_cast<char*>(block) - kSizeBytes;
  void* moved = std::realloc(start, size + kSizeBytes);
  if (moved == nullptr) {
    budget.out_of_memory = true;
    return nullptr;
  }
  std::memcpy(moved, &size, sizeof size);
  budget.left = budget.left + held - size;
  return static_cast<char*>(moved) + kSizeBytes;
}

void* new_block(std::size_t size) { return resize_block(nullptr, size); }

void free_block(void* block) {
  if (block == nullptr) return;
  budget.left += block_size(block);
  std::free(static_cast<char*>(block) - kSizeBytes);
}

}  // namespace
}  // namespace chunkhit

#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_BMP
#define STBI_ONLY_GIF
#define STBI_ONLY_TGA
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_ASSERT(condition) static_cast<void>(condition)
#define STBI_MALLOC(size) chunkhit::new_block(size)
#define STBI_REALLOC(block, size) chunkhit::resize_block(block, size)
#define STBI_FREE(block) chunkhit::free_block(block)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wextra"
#include <stb_image.h>
#pragma GCC diagnostic pop

namespace chunkhit {
namespace {

struct FreeBlock {
  void operator()(std::uint8_t* block) const { free_block(block); }
};

using StbPixels = std::unique_ptr<std::uint8_t, FreeBlock>;

/// The pixels that stb_image gave.
struct StbImage {
  StbPixels pixels;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 0;
  bool is_whole = true;  ///< false where the data ends before the last pixel: what is missing is 0
  [[nodiscard]] ImageView view() const {
    return {pixels.get(), width, height, channels, std::size_t{width} * channels};
  }
};

/// Hands a file's pieces to stb_image's callbacks.
class PieceReader {
 public:
  PieceReader(const std::array<Bytes, 3>& pieces, const DecodeMonitor& monitor)
      : pieces_(pieces), monitor_(monitor) {}

  /// Copies up to `count` bytes. stb_image asks only when it needs a byte that it does not hold, so that a
  /// call that gives none is a read past the end; stb continues with zeros.
  int read(char* into, int count) {
    constexpr unsigned kCallsPerCheck = 64;  // 8 KiB
    is_late_ = is_late_ || (++calls_ % kCallsPerCheck == 0 && monitor_.is_out_of_time());
    const std::size_t taken = is_late_ ? 0 : take(into, static_cast<std::size_t>(count));
    is_past_end_ = is_past_end_ || taken == 0;
    return static_cast<int>(taken);
  }
  std::size_t take(char* into, std::size_t count) {
    std::size_t taken = 0;
    for (Bytes& piece : pieces_) {
      const std::size_t bytes = std::min(piece.size(), count - taken);
      if (into != nullptr && bytes > 0) std::memcpy(into + taken, piece.data(), bytes);
      piece = piece.subspan(bytes);
      taken += bytes;
    }
    return taken;
  }
  [[nodiscard]] bool is_late() const { return is_late_; }
  [[nodiscard]] bool is_past_end() const { return is_past_end_; }

 private:
  std::array<Bytes, 3> pieces_;
  const DecodeMonitor& monitor_;
  unsigned calls_ = 0;
  bool is_late_ = false;
  bool is_past_end_ = false;
};

constexpr stbi_io_callbacks kCallbacks{
    [](void* reader, char* into, int count) { return static_cast<PieceReader*>(reader)->read(into, count); },
    [](void* reader, int count) {
      static_cast<PieceReader*>(reader)->take(nullptr, static_cast<std::size_t>(std::max(count, 0)));
    },
    [](void* reader) { return static_cast<PieceReader*>(reader)->is_past_end() ? 1 : 0; }};

// stb_image's own function takes a frame that ends early as whole.
stbi_uc* load_first_frame(stbi__context& context, const DecodeMonitor& monitor, int& width, int& height,
                          bool& is_whole) {
  stbi__gif gif;
  std::memset(&gif, 0, sizeof gif);
  int channels = 0;
  stbi_uc* pixels = stbi__gif_load_next(&context, &gif, &channels, 4, nullptr);
  const bool has_frame = pixels != nullptr && pixels == gif.out;
  free_block(gif.history);
  free_block(gif.background);
  if (!has_frame) free_block(gif.out);
  if (!has_frame && std::string_view(stbi_failure_reason()) == "too many codes") {
    monitor.check_time();  // the zeros that stand for what is read too late may be these codes
    throw ImageError(RejectKind::unsupported,
                     "GIF that uses a full table for more than 4096 codes is not supported");
  }
  width = gif.w;
  height = gif.h;
  is_whole = gif.cur_y >= gif.max_y;
  return has_frame ? pixels : nullptr;
}

StbImage load(const StbFile& file, const std::string& type, const DecodeMonitor& monitor) {
  for (const Bytes& piece : file.pieces)
    if (piece.size() > INT_MAX)
      throw ImageError(RejectKind::unsupported, type + " over 2 GiB is not supported");
  budget = {file.max_bytes, false, false};
  PieceReader reader(file.pieces, monitor);
  stbi__context context;
  stbi_io_callbacks callbacks = kCallbacks;
  stbi__start_callbacks(&context, &callbacks, &reader);
  StbImage image;
  int width = static_cast<int>(file.header.width), height = static_cast<int>(file.header.height),
      channels = 4;
  stbi__result_info kind{8, 0, 0};
  image.pixels.reset(
      stbi__gif_test(&context) != 0
          ? load_first_frame(context, monitor, width, height, image.is_whole)
          : static_cast<stbi_uc*>(stbi__load_main(&context, &width, &height, &channels, 0, &kind, 8)));
  if (budget.out_of_memory) throw std::bad_alloc();
  monitor.check_time();
  if (budget.exceeded)
    throw ImageError(RejectKind::damaged,
                     "damaged " + type + ": its data inflates to more than its size allows");
  if (image.pixels == nullptr)
    throw ImageError(RejectKind::damaged, reader.is_past_end()
                                              ? "truncated: the data ends before the last pixel"
                                              : "damaged " + type + ": " + stbi_failure_reason());
  image.width = static_cast<std::uint32_t>(width);
  image.height = static_cast<std::uint32_t>(height);
  image.channels = static_cast<std::uint32_t>(channels);
  image.is_whole = image.is_whole && !reader.is_past_end();
  return image;
}

// stb_image may give more channels than the image has: those of a palette, say.
void copy_region(const ImageView& whole, std::uint32_t natural, const DecodePlan& wanted, Image& image) {
  const Rect& region = wanted.region;
  image.reshape(region.width, region.height, wanted.channels);
  ByteBuffer narrowed(std::size_t{region.width} * natural);
  for (std::uint32_t y = 0; y < region.height; ++y) {
    const std::uint8_t* row = whole.row(region.y + y) + std::size_t{region.x} * whole.channels;
    if (natural != whole.channels) {
      convert_channels(row, whole.channels, narrowed.data(), natural, region.width);
      row = narrowed.data();
    }
    convert_channels(row, natural, image.row(y), wanted.channels, region.width);
  }
}

void fill_background(const Pixel& background, const StbImage& whole) {
  const std::size_t pixel_count = std::size_t{whole.width} * whole.height;
  for (std::uint8_t* pixel = whole.pixels.get(); pixel != whole.pixels.get() + 4 * pixel_count; pixel += 4)
    if (pixel[3] == 0) std::ranges::copy(background, pixel);
}

void blacken_missing_rows(const StbFile& file, std::uint64_t whole_rows, const Rect& region, Image& image) {
  if (whole_rows == file.header.height) return;
  for (std::uint32_t y = 0; y < region.height; ++y) {
    const std::uint32_t row = file.top_first ? region.y + y : file.header.height - 1 - region.y - y;
    if (row >= whole_rows) std::fill_n(image.row(y), image.row_bytes(), std::uint8_t{0});
  }
}

}  // namespace

void StbFile::describe(std::uint64_t width, std::uint64_t height, std::uint32_t channels,
                       std::uint32_t stb_channels) {
  constexpr std::uint64_t kSmallBytes = 64 << 10;
  header.width = static_cast<std::uint32_t>(width);
  header.height = static_cast<std::uint32_t>(height);
  header.channels = channels;
  max_bytes = width * height * stb_channels + kSmallBytes;
  constexpr std::uint64_t kMaxChannels = 4;
  header.peak_bytes = max_bytes + own_piece.size();
  header.extra_bytes = width * height * std::min<std::uint64_t>(stb_channels, kMaxChannels) + kSmallBytes +
                       width * channels + own_piece.size();
}

void StbFile::decode(const DecodePlan& plan, Image& image) {
  const std::uint64_t whole_rows =
      rows.row_step == 0 ? header.height : count_whole_rows(rows, header.height, monitor_);
  const std::string type(type_);
  const StbImage whole = load(*this, type, monitor_);
  if (whole.width != header.width || whole.height != header.height)
    throw ImageError(RejectKind::damaged, "damaged " + type + ": it has two sizes");
  if (!whole.is_whole && whole_rows == header.height)
    monitor_.damage("truncated: the data ends before the last pixel");
  if (background && whole.is_whole) fill_background(*background, whole);
  copy_region(whole.view(), header.channels, plan, image);
  blacken_missing_rows(*this, whole_rows, plan.region, image);
}

}  // namespace chunkhit
