#include "pack/images/chunk_assembler.h"

#include <gtest/gtest.h>

#include <string>

namespace chunkhit {
namespace {

constexpr std::uint64_t kChunkSamples = 4;

/// Feeds samples of one byte ('a', 'b', …) where `kept` says so; returns the chunks as texts.
std::vector<std::string> assemble(const std::string& kept) {
  ChunkAssembler assembler(kChunkSamples, 1);
  std::vector<FilledChunk> chunks;
  std::shared_ptr<ChunkBuffer> buffer;
  for (std::size_t row = 0; row < kept.size(); ++row) {
    if (row % kChunkSamples == 0) {
      buffer = std::make_shared<ChunkBuffer>();
      for (std::size_t slot = 0; slot < kChunkSamples; ++slot)
        buffer->bytes.push_back(static_cast<std::uint8_t>('a' + row + slot));
    }
    if (kept[row] == '1') assembler.take(buffer, row % kChunkSamples);
    for (FilledChunk& chunk : assembler.collect()) chunks.push_back(std::move(chunk));
  }
  assembler.finish();
  for (FilledChunk& chunk : assembler.collect()) chunks.push_back(std::move(chunk));
  std::vector<std::string> texts;
  for (const FilledChunk& chunk : chunks)
    texts.emplace_back(chunk.buffer->bytes.begin(),
                       chunk.buffer->bytes.begin() + static_cast<long>(chunk.sample_count));
  return texts;
}

TEST(ChunkAssembler, LeavesSamplesWhereTheyWereMade) {
  EXPECT_EQ(assemble("1111111111"), (std::vector<std::string>{"abcd", "efgh", "ij"}));
}

TEST(ChunkAssembler, ClosesTheGapsOfRejectedRows) {
  EXPECT_EQ(assemble("1011111111"), (std::vector<std::string>{"acde", "fghi", "j"}));
  EXPECT_EQ(assemble("0000111101"), (std::vector<std::string>{"efgh", "j"}));
}

TEST(ChunkAssembler, KeepsEveryOrderForEveryPatternOfRejects) {
  for (unsigned pattern = 0; pattern < 1u << 14; ++pattern) {
    std::string kept;
    std::string expected;
    for (unsigned row = 0; row < 14; ++row) {
      kept += (pattern >> row & 1) != 0 ? '1' : '0';
      if (kept.back() == '1') expected += static_cast<char>('a' + row);
    }
    std::string all;
    const std::vector<std::string> chunks = assemble(kept);
    for (const std::string& chunk : chunks) all += chunk;
    ASSERT_EQ(all, expected) << kept;
    for (std::size_t chunk = 0; chunk + 1 < chunks.size(); ++chunk)
      ASSERT_EQ(chunks[chunk].size(), kChunkSamples);
  }
}

}  // namespace
}  // namespace chunkhit
