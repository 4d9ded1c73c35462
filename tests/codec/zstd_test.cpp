#include "codec/zstd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/random.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

/// Random bytes: of few values, then of many, between which the few are.
ByteBuffer two_kinds() {
  ByteBuffer raw(60'000);
  for (std::size_t at = 0; at < raw.size(); ++at) {
    const auto noise = static_cast<std::uint8_t>(mix_bits(at));
    raw[at] = at < raw.size() / 2 ? noise & 3 : noise & 127;
  }
  return raw;
}

TEST(Zstd, PiecesGiveOneFrameOfAllOfThem) {
  const ByteBuffer raw = two_kinds();
  const Bytes all(raw);
  const std::array<Bytes, 3> pieces{all.first(30'000), all.subspan(30'000, 1), all.subspan(30'001)};
  ByteBuffer stored;
  encode_zstd(pieces, 1, stored);
  ByteBuffer restored(raw.size());
  decode_zstd(stored, restored);
  EXPECT_EQ(restored, raw);
}

TEST(Zstd, FirstBytesOfAFrameGiveItsFirstBytes) {
  const ByteBuffer raw = two_kinds();
  ByteBuffer stored;
  const std::vector<Bytes> pieces{Bytes(raw).first(500), Bytes(raw).subspan(500)};
  encode_zstd(pieces, 3, stored);
  ByteBuffer head(400);
  ASSERT_GT(stored.size(), 600u);
  EXPECT_EQ(decode_zstd_head(Bytes(stored).first(600), head), head.size());
  EXPECT_TRUE(std::ranges::equal(head, Bytes(raw).first(head.size())));
  EXPECT_EQ(decode_zstd_head(Bytes(stored).first(20), head), 0u);
  ByteBuffer all(raw.size() + 10);
  EXPECT_EQ(decode_zstd_head(stored, all), raw.size());
  stored[0] ^= 1;
  EXPECT_THROW(static_cast<void>(decode_zstd_head(stored, head)), Error);
}

TEST(Zstd, PiecesOfDifferentKindsAreSmallerByThemselves) {
  const ByteBuffer raw = two_kinds();
  const std::array<Bytes, 2> pieces{Bytes(raw).first(30'000), Bytes(raw).subspan(30'000)};
  ByteBuffer apart;
  encode_zstd(pieces, 1, apart);
  ByteBuffer together;
  encode_zstd(Bytes(raw), 1, together);
  EXPECT_LT(apart.size(), together.size());
}

TEST(Zstd, APieceThatCannotBeMadeSmallerHasRoom) {
  std::array<std::uint8_t, 3> bytes{1, 2, 3};
  const std::array<Bytes, 3> pieces{Bytes(bytes).first(1), Bytes(bytes).subspan(1, 1),
                                    Bytes(bytes).subspan(2)};
  ByteBuffer stored;
  encode_zstd(pieces, 1, stored);
  ByteBuffer restored(3);
  decode_zstd(stored, restored);
  EXPECT_EQ(restored, ByteBuffer(bytes.begin(), bytes.end()));
}

}  // namespace
}  // namespace chunkhit
