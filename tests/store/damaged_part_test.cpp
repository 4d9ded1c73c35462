// Damaged parts must be refused or read right, and never crash the reader.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/part.h"
#include "store/part_index.h"
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

/// Larger than the pieces that an index is read in.
ByteBuffer large_index() {
  ByteBuffer index(1'000'003);
  std::minstd_rand random(3);
  for (std::uint8_t& byte : index) byte = static_cast<std::uint8_t>(random() >> 8);
  return index;
}

/// All bytes as a decoder takes them, few and many at a time.
ByteBuffer taken_of(IndexCursor& cursor) {
  ByteBuffer all;
  const auto add = [&](Bytes bytes) { all.insert(all.end(), bytes.begin(), bytes.end()); };
  const std::uint64_t number = cursor.number();
  add(bytes_of(std::vector<std::uint64_t>{number}));
  add(bytes_of(cursor.numbers<std::uint32_t>(70'001)));
  add(cursor.take(3, 1));
  add(bytes_of(cursor.numbers<std::uint8_t>(262'144)));
  add(cursor.take(100'000, 4));
  add(as_bytes(cursor.names({cursor.left()}, cursor.left()).text));
  return all;
}

std::string error_of_index(const std::string& path, std::uint64_t byte_count, std::uint64_t hash,
                           const std::function<int(IndexCursor&)>& decode) {
  const InputFile file(path);
  try {
    decode_file_index(IndexCursor(file, 7, byte_count), hash, decode);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    return error.what();
  }
  return "";
}

TEST(DamagedPart, WithADamagedIndexSaysSoWhateverItsNumbersAre) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file");
  const ByteBuffer index = large_index();
  const std::uint64_t hash = xxh3(index);
  const auto write = [&](const ByteBuffer& bytes) {
    std::ofstream(path, std::ios::binary) << "before:" << as_text(bytes) << "behind";
  };
  const auto take_all = [&](IndexCursor& cursor) { return taken_of(cursor) == index ? 0 : 1; };
  const auto take_some = [](IndexCursor& cursor) {
    return static_cast<int>(cursor.numbers<char>(300'000)[0]);
  };
  const auto fail = [](IndexCursor& cursor) -> int {
    throw_bad_data("number " + std::to_string(cursor.numbers<char>(9).size()));
  };
  const auto take_too_many = [](IndexCursor& cursor) -> int {
    return cursor.numbers<double>(125'001)[0] > 0;
  };

  write(index);
  const InputFile file(path);
  std::filesystem::resize_file(path, 900'000);
  const std::string cut = error_of_index(path, index.size(), hash, take_all);
  EXPECT_TRUE(cut != "" && cut.find("checksum") == std::string::npos) << cut;
  write(index);
  EXPECT_EQ(decode_file_index(IndexCursor(file, 7, index.size()), hash, take_all), 0);
  EXPECT_EQ(error_of_index(path, index.size(), hash, take_some), "");
  EXPECT_EQ(error_of_index(path, index.size(), hash, fail), "number 9");
  EXPECT_NE(error_of_index(path, index.size(), hash, take_too_many).find("ends early"), std::string::npos);
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{262'143}, std::size_t{262'144}, std::size_t{542'155}, index.size() - 1}) {
    ByteBuffer damaged = index;
    damaged[at] ^= 1;
    write(damaged);
    for (const std::function<int(IndexCursor&)>& decode :
         std::vector<std::function<int(IndexCursor&)>>{take_all, take_some, fail, take_too_many})
      EXPECT_EQ(error_of_index(path, index.size(), hash, decode),
                "index: checksum " + hash_text(xxh3(damaged)) + ", expected " + hash_text(hash));
  }
}

}  // namespace
}  // namespace chunkhit
