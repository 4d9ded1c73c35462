#include "decode/stb.h"

#include <climits>
#include <cstdlib>
#include <cstring>
#include <new>

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
#define STBI_ONLY_PNG
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

void StbPicture::Release::operator()(std::uint8_t* block) const { free_block(block); }

std::string decode_by_stb(Bytes png, std::uint64_t most_bytes, StbPicture& picture) {
  if (png.size() > INT_MAX) return "PNG over 2 GiB is not supported";
  budget = {most_bytes, false, false};
  int width = 0, height = 0, channels = 0;
  picture.pixels.reset(
      stbi_load_from_memory(png.data(), static_cast<int>(png.size()), &width, &height, &channels, 0));
  if (budget.out_of_memory) throw std::bad_alloc();
  if (budget.exceeded) return "damaged PNG: its data inflates to more than its size allows";
  if (picture.pixels == nullptr) return std::string("damaged PNG: ") + stbi_failure_reason();
  picture.width = static_cast<std::uint32_t>(width);
  picture.height = static_cast<std::uint32_t>(height);
  picture.channels = static_cast<std::uint32_t>(channels);
  return {};
}

}  // namespace chunkhit
