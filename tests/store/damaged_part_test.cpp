// Damaged parts must be refused or read right, and never crash the reader.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/part.h"
#include "support/depth.h"
#include "support/known_part_check.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kSamples = 10;

struct KnownPart {
  std::string container;
  std::string codec;
  std::size_t label_columns;
};

const std::vector<KnownPart> kParts{
    {"shard", "photo", 1}, {"shard", "none", 3}, {"hdf5", "none", 1}, {"hdf5", "zstd", 3}};

PartSpec spec_of(const KnownPart& part) {
  return known_spec({8, 7, 3, Layout::nchw}, part.codec, part.label_columns);
}

std::string part_bytes(const std::string& path, const KnownPart& part) {
  write_known_part(container(part.container), path, spec_of(part), kSamples);
  return std::string(as_text(read_file(path, 1 << 30)));
}

ReadOutcome outcome_of(const std::string& path, const std::string& bytes, const KnownPart& part) {
  std::ofstream(path, std::ios::binary) << bytes;
  return part.container == "hdf5" ? read_known_part_in_child(path, spec_of(part), kSamples)
                                  : read_known_part(path, spec_of(part), kSamples);
}

/// Positions in a file, without those inside of long runs of zeros, whose damage nobody could see.
std::vector<std::size_t> locations(const std::string& bytes) {
  constexpr std::size_t kLongRun = 64;
  std::vector<std::size_t> locations;
  std::size_t zeros = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    zeros = bytes[at] == 0 ? zeros + 1 : 0;
    if (zeros < kLongRun) locations.push_back(at);
  }
  return locations;
}

TEST(DamagedPart, WithAFlippedBitIsRefusedOrReadRight) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part");
  for (const KnownPart& part : kParts) {
    std::string bytes = part_bytes(path, part);
    const std::vector<std::size_t> all = locations(bytes);
    const std::size_t step = (part.container == "hdf5" ? 11 : 3) * sweep_stride(10);
    std::size_t refused = 0;
    for (std::size_t i = 0; i < all.size(); i += step) {
      const auto flip = static_cast<char>(1 << mix_bits(all[i]) % 8);
      bytes[all[i]] = static_cast<char>(bytes[all[i]] ^ flip);
      const ReadOutcome outcome = outcome_of(path, bytes, part);
      ASSERT_TRUE(outcome == ReadOutcome::right || outcome == ReadOutcome::refused)
          << part.container << " " << part.codec << ": bit " << int{flip} << " of byte " << all[i]
          << (outcome == ReadOutcome::wrong ? " gives wrong samples" : " crashes");
      refused += outcome == ReadOutcome::refused ? 1 : 0;
      bytes[all[i]] = static_cast<char>(bytes[all[i]] ^ flip);
    }
    // Half of the bytes of these small HDF5 parts are metadata that only the HDF5 library reads.
    EXPECT_GT(refused, all.size() / step / (part.container == "hdf5" ? 3 : 2))
        << part.container << " " << part.codec;
  }
}

TEST(DamagedPart, ThatEndsEarlyIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part");
  for (const KnownPart& part : kParts) {
    const std::string bytes = part_bytes(path, part);
    for (std::size_t size = 0; size < bytes.size(); size += (1 + bytes.size() / 300) * sweep_stride(10))
      ASSERT_EQ(outcome_of(path, bytes.substr(0, size), part), ReadOutcome::refused)
          << part.container << " of " << size << " bytes";
    EXPECT_EQ(outcome_of(path, bytes.substr(0, bytes.size() - 1), part), ReadOutcome::refused);
  }
}

TEST(DamagedPart, WithAPageOfZerosIsRefusedOrReadRight) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part");
  for (const KnownPart& part : kParts) {
    const std::string bytes = part_bytes(path, part);
    for (std::size_t page = 0; page * 4096 < bytes.size(); ++page) {
      std::string damaged = bytes;
      const std::size_t size = std::min<std::size_t>(4096, bytes.size() - page * 4096);
      damaged.replace(page * 4096, size, size, '\0');
      if (damaged == bytes) continue;
      const ReadOutcome outcome = outcome_of(path, damaged, part);
      ASSERT_TRUE(outcome == ReadOutcome::right || outcome == ReadOutcome::refused)
          << part.container << " page " << page;
    }
  }
}

TEST(DamagedPart, WithBytesBehindItsEndIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part");
  for (const KnownPart& part : kParts) {
    const std::string bytes = part_bytes(path, part);
    EXPECT_EQ(outcome_of(path, bytes + std::string(5000, 'x'), part), ReadOutcome::refused);
  }
}

}  // namespace
}  // namespace chunkhit
