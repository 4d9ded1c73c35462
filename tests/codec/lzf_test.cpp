#include <gtest/gtest.h>

#include <string>

#include "base/random.h"
#include "chunkhit/error.h"
#include "codec/deflate.h"

namespace chunkhit {
namespace {

using namespace std::string_view_literals;

std::string restored(std::string_view stored) {
  ByteBuffer raw(lzf_content_bytes(as_bytes(stored)));
  decode_lzf(as_bytes(stored), raw);
  return std::string(as_text(raw));
}

// Worked by hand after the description in lzf.h; matrices that h5py compressed are in hdf5_matrices_test.py.
TEST(Lzf, RestoresLiteralsAndCopies) {
  EXPECT_EQ(restored(""), "");
  EXPECT_EQ(restored("\x02"
                     "abc"sv),
            "abc");
  EXPECT_EQ(restored("\x02"
                     "abc"
                     "\x20\x02"sv),
            "abcabc");  // 3 bytes, 3 back
  EXPECT_EQ(restored("\x00"
                     "a"
                     "\xe0\x01\x00"sv),
            "aaaaaaaaaaa");  // 7 + 1 + 2 bytes, 1 back: overlapping
  EXPECT_EQ(restored("\x01"
                     "ab"
                     "\x40\x01\x00"
                     "c"sv),
            "abababc");
  // y, x, 264 more x, then 3 bytes from 266 back: yxx.
  EXPECT_EQ(restored("\x00y\x00x\xe0\xff\x00\x21\x09"sv), "y" + std::string(265, 'x') + "yxx");
}

TEST(Lzf, RefusesWhatIsCutOrCopiesFromBeforeTheBegin) {
  for (const std::string_view stored : {"\x02"
                                        "ab"sv,
                                        "\x00"sv,
                                        "\x00"
                                        "a"
                                        "\x20"sv,
                                        "\x00"
                                        "a"
                                        "\xe0\x01"sv,
                                        "\x20\x00"sv,
                                        "\x00"
                                        "a"
                                        "\x20\x01"sv}) {
    EXPECT_THROW(static_cast<void>(restored(stored)), Error);
    ByteBuffer raw(100);
    EXPECT_THROW(decode_lzf(as_bytes(stored), raw), Error);
  }
  ByteBuffer raw(2);
  EXPECT_THROW(decode_lzf(as_bytes("\x02"
                                   "abc"sv),
                          raw),
               Error);
  raw.resize(4);
  EXPECT_THROW(decode_lzf(as_bytes("\x02"
                                   "abc"sv),
                          raw),
               Error);
}

TEST(Lzf, StaysWithinItsBoundsWhateverIsStored) {
  for (std::uint64_t round = 0; round < 20'000; ++round) {
    std::string stored(1 + mix_bits(round) % 40, '\0');
    for (std::size_t at = 0; at < stored.size(); ++at)
      stored[at] = static_cast<char>(mix_bits(round * 64 + at));
    ByteBuffer raw(mix_bits(round + 1) % 300);
    try {
      decode_lzf(as_bytes(stored), raw);
      EXPECT_EQ(lzf_content_bytes(as_bytes(stored)), raw.size());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data);
    }
  }
}

}  // namespace
}  // namespace chunkhit
