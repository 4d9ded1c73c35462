#include "manifest/manifest.h"

#include <gtest/gtest.h>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

Manifest small_manifest() {
  Manifest manifest;
  manifest.pack_id = 0x0123456789abcdef;
  manifest.tool = "pack-images 0.1.0";
  manifest.spec = {{"resize", "96x128"}, {"seed", "0"}};
  manifest.sample = {64, 48, 3, Layout::nchw};
  manifest.container = "hdf5";
  manifest.filter = "none";
  manifest.chunk_samples = 2;
  manifest.chunk_bytes = 2 * 64 * 48 * 3;
  manifest.rows = 4;
  manifest.samples = 3;
  manifest.rejected = 1;
  manifest.label_columns = {"label"};
  manifest.classes = {{0, "cat \"x\"", 1}, {1, "d\xc3\xb6g", 2}};
  manifest.mean = {1.5, 2, 3};
  manifest.std = {0.1, 0.2, 0.3};
  PartRecord part;
  part.file = "part-00000.h5";
  part.rows = 4;
  part.samples = 3;
  manifest.parts = {part};
  return manifest;
}

PartManifest small_part() {
  PartManifest manifest;
  manifest.spec = {{"seed", "0"}};
  manifest.part.file = "part-00000.h5";
  manifest.part.rows = 3;
  manifest.part.samples = 2;
  manifest.part.class_counts = {{-1, 1}, {7, 1}};
  manifest.part.pixels.sum = {1, 2, 3, 0};
  manifest.part.pixels.pixel_count = 9;
  manifest.part.rejects = {{2, "a,b.jpg", {"x"}, "is empty"}};
  return manifest;
}

TEST(Manifest, ComesBackAsItWasWritten) {
  const Manifest before = small_manifest();
  const Manifest after = parse_manifest(manifest_text(before), "manifest.json");
  EXPECT_EQ(after.pack_id, before.pack_id);
  EXPECT_EQ(after.spec, before.spec);
  EXPECT_EQ(after.sample, before.sample);
  EXPECT_EQ(after.classes[1].name, "d\xc3\xb6g");
  EXPECT_EQ(after.mean, before.mean);
  EXPECT_EQ(manifest_text(after), manifest_text(before));
}

TEST(Manifest, NoticesEveryFlippedBit) {
  const std::string text = manifest_text(small_manifest());
  for (std::size_t byte = 0; byte < text.size(); ++byte) {
    std::string damaged = text;
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << byte % 8));
    EXPECT_THROW(static_cast<void>(parse_manifest(damaged, "manifest.json")), Error) << "byte " << byte;
  }
}

TEST(Manifest, NoticesEveryTruncation) {
  const std::string text = manifest_text(small_manifest());
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_THROW(static_cast<void>(parse_manifest(text.substr(0, size), "manifest.json")), Error) << size;
}

TEST(Manifest, RefusesCountsThatDoNotAddUp) {
  Manifest manifest = small_manifest();
  manifest.samples = 4;
  EXPECT_THROW(static_cast<void>(parse_manifest(manifest_text(manifest), "manifest.json")), Error);
}

TEST(Manifest, RefusesAPartOutsideItsFolder) {
  Manifest manifest = small_manifest();
  manifest.parts[0].file = "../../etc/passwd";
  EXPECT_THROW(static_cast<void>(parse_manifest(manifest_text(manifest), "manifest.json")), Error);
}

TEST(PartManifest, ComesBackAsItWasWritten) {
  const PartManifest after = parse_part_manifest(part_manifest_text(small_part()), "part-00000.json");
  EXPECT_EQ(after.part.class_counts, small_part().part.class_counts);
  EXPECT_EQ(after.part.rejects[0].file, "a,b.jpg");
  EXPECT_EQ(part_manifest_text(after), part_manifest_text(small_part()));
}

TEST(PartManifest, IsNoManifest) {
  EXPECT_THROW(static_cast<void>(parse_manifest(part_manifest_text(small_part()), "manifest.json")), Error);
}

TEST(Spec, NamesTheFirstDifference) {
  EXPECT_EQ(first_difference({{"crop", "none"}, {"seed", "0"}}, {{"crop", "none"}, {"seed", "1"}}),
            "seed: 0 before, 1 now");
  EXPECT_EQ(first_difference({{"seed", "0"}}, {{"seed", "0"}}), "");
}

}  // namespace
}  // namespace chunkhit
