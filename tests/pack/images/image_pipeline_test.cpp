#include "pack/images/image_pipeline.h"

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <numeric>
#include <string>
#include <vector>

#include "jpeg_writer.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

constexpr std::uint32_t kThreads = 8;
constexpr std::uint64_t kChunkBytes = 20'000;

/// Keeps the bytes of chunks.
struct KeptChunks : ChunkWriter {
  void append(const EncodedChunk& chunk) override {
    chunks.emplace_back(chunk.stored.begin(), chunk.stored.end());
  }
  CompletePart complete(PartSamples) override { throw std::logic_error("is not completed"); }
  std::vector<ByteBuffer> chunks;
};

/// JPEG files of many sizes, some of them damaged, packed as images of their own sizes.
struct SizedPipelineTest : testing::Test {
  SizedPipelineTest() {
    spec.sizes = Sizes::own;
    spec.container = "shard";
    spec.own_sizes.store = SizedStore::raw;
    std::string box;
    for (std::uint32_t row = 0; row < 300; ++row) {
      auto file = write_jpeg(make_image(8 + row * 37 % 300, 8 + row * 53 % 200, 3, row), {});
      if (row % 7 == 3) file.resize(file.size() / 2);
      list.ranges.push_back({box.size(), file.size(), 0});
      box.append(file.begin(), file.end());
      SampleRows(list).add(std::to_string(row));
      list.class_ids.push_back(0);
    }
    list.containers.push_back(open_container(folder.write("box", box)));
  }

  [[nodiscard]] std::vector<ByteBuffer> pack(std::uint32_t threads, std::uint64_t payload_bytes,
                                             std::uint64_t decode_bytes, std::uint64_t kept_bytes) {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    DecoderContext context{spec, root, {0, 0, 3, Layout::nhwc}, "0", MemoryBudget(decode_bytes), kept_bytes};
    std::vector<std::uint32_t> indices(list.size());
    std::iota(indices.begin(), indices.end(), 0u);
    const PartJob job{.context = context,
                      .list = list,
                      .indices = indices,
                      .codec = chunk_codec("none"),
                      .chunk_samples = 0,
                      .chunk_bytes = kChunkBytes,
                      .container = container("shard"),
                      .buffer_bytes = kChunkBytes + payload_bytes,
                      .threads = threads,
                      .is_stopped = [] { return false; },
                      .on_row = [](const Reject*, const Reject*) {}};
    KeptChunks kept;
    tbb::task_arena(static_cast<int>(threads)).execute([&] {
      const PartOutcome outcome = part_packer(context)->pack(job, kept);
      EXPECT_EQ(outcome.record.rejects.size(), 43u);
      EXPECT_EQ(outcome.record.samples, 257u);
    });
    return std::move(kept.chunks);
  }

  TemporaryFolder folder;
  std::string path = folder.make_folder("root");
  RootFolder root{path};
  PackImagesSpec spec;
  SampleList list;
};

TEST_F(SizedPipelineTest, HasEqualBytesWithTheSmallestMemory) {
  const std::vector<ByteBuffer> expected = pack(1, 1 << 30, 1 << 30, 16 << 20);
  EXPECT_GT(expected.size(), 50u);
  // Each image waits for its share of both budgets, and some payloads are larger than all of theirs.
  const std::uint64_t one_image = 600'000;
  for (int repeat = 0; repeat < 5; ++repeat) {
    EXPECT_EQ(pack(kThreads, kChunkBytes, one_image, 0), expected);
    EXPECT_EQ(pack(kThreads, kChunkBytes, 4 * one_image, 0), expected);
    EXPECT_EQ(pack(kThreads, 1 << 30, one_image, 0), expected);
  }
}

}  // namespace
}  // namespace chunkhit
