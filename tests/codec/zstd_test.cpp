#include "codec/zstd.h"

#include <gtest/gtest.h>

#include <array>

#include "base/random.h"

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
