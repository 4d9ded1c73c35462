#include "pack/images/memory_plan.h"

#include <algorithm>

#include "base/resources.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "codec/chunk_codec.h"
#include "codec/zstd.h"
#include "pack/images/image_pipeline.h"
#include "pack/images/mask_decoder.h"
#include "pack/images/pack_spec.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
/// Code that is not loaded yet, and what containers hold of an open part.
constexpr std::uint64_t kLaterBytes = 16 * kMiB;
/// A thread's stack, a decoder's tables and rows, and blocks that the allocator keeps.
constexpr std::uint64_t kThreadBytes = 2 * kMiB;
constexpr std::uint64_t kMinKeptBytes = 1 * kMiB;
constexpr std::uint64_t kMaxKeptBytes = 64 * kMiB;
/// A file takes the writes of one thread at a time: Linux locks the inode. Copying samples into the page
/// cache is a small part of the work, but one that more threads than this would wait for.
constexpr std::uint32_t kThreadsPerPart = 4;

/// What a thread holds to encode a chunk.
std::uint64_t encoder_bytes(const CodecChoice& choice, std::uint64_t chunk_bytes) {
  constexpr std::uint64_t kDeflateBytes = 10 * kMiB;
  if (choice.codec == "none") return 0;
  if (choice.codec == "deflate") return kDeflateBytes;
  return zstd_context_bytes(choice.level, chunk_bytes) + (choice.codec == "photo" ? 2 * chunk_bytes : 0);
}

/// What one image may need at least where `max_decode_bytes` is the default.
constexpr std::uint64_t kMinDecodeBytes = 64 * kMiB;

/// What is kept for one image at least. The default limit of an image gives way to little memory: half of it
/// is kept, or what is left beside `others`. A limit that was given does not.
std::uint64_t reserved_bytes(const PackImagesSpec& spec, std::uint64_t memory_bytes, std::uint64_t others) {
  if (spec.max_decode_bytes != PackImagesSpec{}.max_decode_bytes) return spec.max_decode_bytes;
  const std::uint64_t left = memory_bytes - std::min(memory_bytes, others);
  return std::clamp(std::min(memory_bytes / 2, left), kMinDecodeBytes, spec.max_decode_bytes);
}

[[noreturn]] void refuse(const PackImagesSpec& spec, const PackImagesOptions& options, std::uint64_t enough) {
  const bool is_default = spec.max_decode_bytes == PackImagesSpec{}.max_decode_bytes;
  throw_usage("`memory_bytes`: " + size_text(options.memory_bytes) + " cannot hold one image of " +
              (is_default ? size_text(kMinDecodeBytes)
                          : "`max_decode_bytes` (" + size_text(spec.max_decode_bytes) + ")") +
              " beside chunks and threads, which need at least " + std::to_string(enough / kMiB + 1) +
              "M in all; raise `memory_bytes`, or lower `max_decode_bytes`");
}

}  // namespace

void check_memory(const PackImagesSpec& spec, const PackImagesOptions& options) {
  const std::uint64_t enough = kLaterBytes + kThreadBytes + kMinKeptBytes + reserved_bytes(spec, 0, 0);
  if (options.memory_bytes < enough) refuse(spec, options, enough);
}

MemoryPlan plan_memory(const PackImagesSpec& spec, const PackImagesOptions& options,
                       const SampleShape& sample, const ChunkPlan& chunk, std::uint64_t held_bytes) {
  const std::uint64_t chunk_bytes = work_bytes(codec_choice(spec).codec, chunk.chunk_bytes);
  const std::uint64_t thread_bytes =
      kThreadBytes + kMinKeptBytes + encoder_bytes(codec_choice(spec), chunk.chunk_bytes);
  const std::uint64_t others = held_bytes + kLaterBytes + kMinChunks * chunk_bytes;
  const std::uint64_t reserved =
      reserved_bytes(spec, options.memory_bytes, others + std::max(options.threads, 1u) * thread_bytes);
  const std::uint64_t fixed = others + reserved;
  MemoryPlan plan;
  plan.threads = options.threads > 0 ? options.threads : allowed_cpus();
  if (options.memory_bytes > fixed)
    plan.threads = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>((options.memory_bytes - fixed) / thread_bytes, 1, plan.threads));
  const std::uint64_t enough = fixed + plan.threads * thread_bytes;
  if (options.memory_bytes < enough) refuse(spec, options, enough);

  std::uint64_t rest = options.memory_bytes - enough;
  const std::uint64_t blocks_per_chunk = std::max<std::uint64_t>(1, chunk.chunk_samples / kBlockSamples);
  const std::uint64_t more_chunks = kBlocksPerThread * plan.threads / blocks_per_chunk * chunk_bytes;
  std::uint64_t share = std::min(rest / 2, options.memory_bytes / 4);
  const std::uint64_t part_bytes = kLaterBytes + kMinChunks * chunk_bytes;
  const std::uint64_t more_parts =
      std::min<std::uint64_t>(std::max(plan.threads / kThreadsPerPart, 1u) - 1, share / part_bytes);
  share -= more_parts * part_bytes;
  const std::uint64_t more_bytes = std::min(more_chunks, share);
  plan.parts = static_cast<std::uint32_t>(1 + more_parts);
  plan.buffer_bytes = plan.parts * kMinChunks * chunk_bytes + more_bytes;
  rest -= more_parts * part_bytes + more_bytes;
  const std::uint64_t kept = std::min(kMaxKeptBytes - kMinKeptBytes, rest / 2 / plan.threads);
  plan.kept_bytes = kMinKeptBytes + kept;
  const auto is_view = [](const SampleField& field) { return traits_of(field.role).is_image; };
  if (std::ranges::any_of(sample.pairs, is_view)) plan.kept_bytes /= 2;  // each thread has 2 decoders
  plan.decode_bytes = reserved + rest - kept * plan.threads;
  return plan;
}

}  // namespace chunkhit
