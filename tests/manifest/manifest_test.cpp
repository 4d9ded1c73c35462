#include "manifest/manifest.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "base/hash.h"
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
  manifest.codec = "none";
  manifest.chunk_samples = 2;
  manifest.chunk_bytes = 2 * 64 * 48 * 3;
  manifest.rows = 4;
  manifest.samples = 3;
  manifest.rejected = 1;
  manifest.label_columns = {"label"};
  manifest.classes = {{0, "cat \"x\"", 1}, {1, "d\xc3\xb6g", 2}};
  manifest.mean = {0.5, 0.25, 0.75};
  manifest.std = {0.1, 0.2, 0.3};
  PartRecord part;
  part.file = "part-00000.h5";
  part.rows = 4;
  part.samples = 3;
  part.chunks = 2;
  part.bytes = 40000;
  part.stored_bytes = 36864;
  manifest.parts = {part};
  manifest.warned = 1;
  manifest.rejects = {"rejects.csv", 42, 7};
  manifest.warnings = {"warnings.csv", 43, 8};
  return manifest;
}

PartManifest small_part() {
  PartManifest manifest;
  manifest.format = kImagePacks.format;
  manifest.spec = {{"seed", "0"}};
  manifest.part.file = "part-00000.h5";
  manifest.part.rows = 3;
  manifest.part.samples = 2;
  manifest.part.class_counts = {{-1, 1}, {7, 1}};
  manifest.part.pixels.sum = {1, 2, 3, 0};
  manifest.part.pixels.pixel_count = 9;
  manifest.part.rejects = {{2, "a,b.jpg", {"x"}, "is empty", RejectKind::empty}};
  manifest.part.warnings = {{1, "c.jpg", {"x"}, "odd"}};
  return manifest;
}

/// Replaces the first `before` in a manifest's text and sets its hash right.
std::string edited(std::string text, const std::string& before, const std::string& after) {
  constexpr std::size_t kSealBytes = 31;
  text.resize(text.size() - kSealBytes);
  const std::size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos) << before;
  text.replace(at, before.size(), after);
  return text + "  \"xxh3\": \"" + hash_text(xxh3(as_bytes(text))) + "\"\n}\n";
}

std::string error_of(const std::string& text) {
  try {
    static_cast<void>(text.find("-part\"") == std::string::npos ? parse_manifest(text, "m").rows
                                                                : parse_part_manifest(text, "m").part.rows);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

Manifest merged_manifest() {
  Manifest manifest = small_manifest();
  manifest.is_merged = true;
  PartRecord second = manifest.parts[0];
  second.file = "part-00009.h5";
  second.source = 1;
  second.number = 4;
  second.chunks = 1;
  manifest.parts.push_back(second);
  manifest.sources = {{1, "pack-images 0.1.0", manifest.spec, 11, 4, "none", 2, {0, 1}},
                      {2, "pack-images 0.1.0", {}, 12, 4, "deflate", 3, {1, 0}}};
  manifest.rows = 8;
  manifest.samples = 6;
  manifest.rejected = 2;
  manifest.rejects.file = "rejects-0123456789abcdef.csv";
  return manifest;
}

TEST(Manifest, OfAMergedPackComesBackAsItWasWritten) {
  const std::string text = manifest_text(merged_manifest());
  const Manifest after = parse_manifest(text, "m");
  EXPECT_TRUE(after.is_merged);
  EXPECT_EQ(manifest_text(after), text);
  EXPECT_EQ(after.pack_id_of(after.parts[1]), 2u);
  EXPECT_EQ(after.parts[1].number, 4u);
  EXPECT_EQ(after.sources[1].class_id(0), 1);
  EXPECT_EQ(after.sources[1].chunk_samples, 3u);
  EXPECT_EQ(plain_table_name(after.rejects.file), kRejectsName);
}

TEST(Manifest, OfAMergedPackIsCheckedAgainstItsSources) {
  const std::string text = manifest_text(merged_manifest());
  EXPECT_NE(error_of(edited(text, "\"source\": 1", "\"source\": 2")).find("source: 2 of 2"),
            std::string::npos);
  EXPECT_NE(error_of(edited(text, "        1,\n        0", "        1,\n        2")).find("no class 2"),
            std::string::npos);
  EXPECT_NE(
      error_of(edited(text, "\"chunk_samples\": 3", "\"chunk_samples\": 1")).find("chunks: 1, expected 3"),
      std::string::npos);
  EXPECT_NE(
      error_of(edited(text, "rejects-0123456789abcdef.csv", "rejects-0123456789abcdeg.csv")).find("file:"),
      std::string::npos);
  EXPECT_NE(error_of(edited(text, "\"rows\": 4,\n      \"codec\": \"none\"",
                            "\"rows\": 3,\n      \"codec\": \"none\""))
                .find("rows"),
            std::string::npos);
  EXPECT_EQ(error_of(edited(text, "\"version\": 2", "\"version\": 3")),
            "m: version: expected 1 or 2, found 3");
}

TEST(Manifest, ComesBackAsItWasWritten) {
  const Manifest before = small_manifest();
  const Manifest after = parse_manifest(manifest_text(before), "manifest.json");
  EXPECT_EQ(after.pack_id, before.pack_id);
  EXPECT_EQ(after.spec, before.spec);
  EXPECT_EQ(after.sample, before.sample);
  EXPECT_EQ(after.classes[1].name, "d\xc3\xb6g");
  EXPECT_EQ(after.mean, before.mean);
  EXPECT_EQ(after.warned, 1u);
  EXPECT_EQ(after.warnings->bytes, 43u);
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

TEST(Manifest, MeanAndStdOf0To255AreRefused) {
  Manifest manifest = small_manifest();
  manifest.mean[1] = 123.7;
  EXPECT_NE(error_of(manifest_text(manifest)).find("mean: 123.7"), std::string::npos);
  manifest = small_manifest();
  manifest.normalize = SharedStats{"train", {0.5, 0.5, 0.5}, {0.2, 58.4, 0.2}};
  EXPECT_NE(error_of(manifest_text(manifest)).find("std: 58.4"), std::string::npos);
}

TEST(Manifest, RefusesCountsThatAddUpOnlyModulo2To64) {
  Manifest manifest = small_manifest();
  manifest.parts.push_back(manifest.parts[0]);
  manifest.parts[0].samples = ~std::uint64_t{0};
  manifest.parts[1].samples = manifest.samples + 1;
  EXPECT_THROW(static_cast<void>(parse_manifest(manifest_text(manifest), "manifest.json")), Error);
}

TEST(Manifest, ChunksOfNoBytesAreAnErrorAndNotADivisionByZero) {
  const std::string text = manifest_text(small_manifest());
  EXPECT_EQ(error_of(text), "none");
  for (const auto& [before, after] : std::vector<std::pair<std::string, std::string>>{
           {"\"chunk_bytes\": 18432", "\"chunk_bytes\": 0"},
           {"\"chunk_bytes\": 18432", "\"chunk_bytes\": 18433"},
           {"\"chunk_samples\": 2", "\"chunk_samples\": 0"},
           {"\"chunk_samples\": 2", "\"chunk_samples\": 18446744073709551615"},
           {"\"channels\": 3", "\"channels\": 0"},
           {"\"height\": 64", "\"height\": 2147483647"},
           {"\"container\": \"hdf5\"", "\"container\": \"tar\""},
           {"\"codec\": \"none\"", "\"filter\": \"photo\""},
           {"\"chunks\": 2", "\"chunks\": 3"},
           {"\"warned\": 1", "\"warned\": 4"},
           {"warnings.csv", "../../warnings.csv"},
           {"\"bytes\": 40000", "\"bytes\": 18446744073709551615"},
           {"\"stored_bytes\": 36864", "\"stored_bytes\": 40001"},
           {"\"samples\": 2\n", "\"samples\": 9\n"},
           {"part-00000.h5", ".."}}) {
    const std::string error = error_of(edited(text, before, after));
    EXPECT_NE(error, "none") << after;
    EXPECT_TRUE(error.starts_with("m: ")) << error;
  }
}

TEST(Manifest, RefusesAClassIdThatIsNoWholeNumberOf64Bits) {
  const std::string text = manifest_text(small_manifest());
  for (const std::string id : {"1e300", "0.5", "18446744073709551615", "\"0\"", "true"})
    EXPECT_EQ(error_of(edited(text, "\"id\": 0", "\"id\": " + id)).find("m: id: expected a whole number"), 0u)
        << id;
  EXPECT_EQ(error_of(edited(text, "\"id\": 0", "\"id\": -9223372036854775808")), "none");
}

TEST(Manifest, RefusesAnUnknownKindOfLabels) {
  EXPECT_EQ(error_of(edited(manifest_text(small_manifest()), "class_id", "images")),
            "m: labels: kind: expected class_id or numbers, found images");
}

TEST(Manifest, ListsFieldsThatAreNotOneOfItsUsualName) {
  Manifest manifest = small_manifest();
  manifest.sample.pairs = {{"mask", FieldRole::mask}, {"depth", FieldRole::view}};
  manifest.chunk_bytes = manifest.chunk_samples * manifest.sample.byte_count();
  const std::string text = manifest_text(manifest);
  EXPECT_EQ(parse_manifest(text, "m").sample, manifest.sample);
  EXPECT_EQ(error_of(edited(text, "\"version\": 5", "\"version\": 3")), "m: version: expected 5, found 3");
  EXPECT_EQ(error_of(edited(text, "\"name\": \"depth\"", "\"name\": \"mask\"")),
            "m: sample: fields: mask: is the name of a mask, found a view");
  EXPECT_EQ(error_of(edited(text, "\"role\": \"view\"", "\"role\": \"text\"")),
            "m: sample: fields: role: expected mask or view, found text");
  EXPECT_EQ(error_of(edited(text, "\"fields\"", "\"mask\": \"uint8\", \"fields\"")),
            "m: sample: has fields beside a mask or view, expected one of them");
  manifest.sample.pairs.pop_back();
  EXPECT_EQ(error_of(edited(manifest_text(manifest), "\"mask\": \"uint8\"",
                            "\"fields\": [{\"name\": \"mask\", \"role\": \"mask\"}]")),
            "m: sample: fields: expected several, or a name of its own");
}

TEST(Manifest, RefusesListsOfAnotherType) {
  const std::string text = manifest_text(small_manifest());
  EXPECT_EQ(error_of(edited(text, "\"classes\": [", "\"classes\": null, \"were\": [")),
            "m: classes: expected a list, found null");
  EXPECT_EQ(error_of(edited(text, "\"spec\": {", "\"spec\": [], \"was\": {")),
            "m: spec: expected an object, found []");
}

TEST(Manifest, RefusesAPartOutsideItsFolder) {
  Manifest manifest = small_manifest();
  manifest.parts[0].file = "../../etc/passwd";
  EXPECT_THROW(static_cast<void>(parse_manifest(manifest_text(manifest), "manifest.json")), Error);
}

TEST(Manifest, OfAnEarlierBuildHasNoWarnings) {
  std::string text = manifest_text(small_manifest());
  text = edited(edited(text, "\"warned\": 1", "\"were\": 1"), "\"warnings\"", "\"others\"");
  const Manifest manifest = parse_manifest(text, "m");
  EXPECT_EQ(manifest.warned, 0u);
  EXPECT_FALSE(manifest.warnings);
  const std::string part = edited(part_manifest_text(small_part()), "\"warnings\"", "\"others\"");
  EXPECT_TRUE(parse_part_manifest(part, "m").part.warnings.empty());
}

InputSizes three_inputs() {
  return {{{"jpeg",
            2,
            {40, 61, {{40, 1}, {60, 1}}},
            {30, 33, {{30, 1}, {32, 1}}},
            {4.0 / 3, 61.0 / 33, {{1.25, 1}, {1.75, 1}}}},
           {"png", 1, {8, 8, {{8, 1}}}, {8, 8, {{8, 1}}}, {1, 1, {{1, 1}}}}},
          1,
          2.5};
}

TEST(Manifest, SizesOfInputsComeBackAsTheyWereWritten) {
  Manifest manifest = small_manifest();
  manifest.inputs = three_inputs();
  EXPECT_EQ(parse_manifest(manifest_text(manifest), "m").inputs, manifest.inputs);
  manifest.inputs->frames_dropped = 1;
  manifest.inputs->deep = 2;
  manifest.inputs->max_value = 4095;
  EXPECT_EQ(parse_manifest(manifest_text(manifest), "m").inputs, manifest.inputs);
  EXPECT_EQ(parse_manifest(manifest_text(small_manifest()), "m").inputs, std::nullopt);
  PartManifest part = small_part();
  part.part.inputs = three_inputs();
  part.part.inputs->formats.pop_back();
  EXPECT_EQ(parse_part_manifest(part_manifest_text(part), "p").part.inputs, part.part.inputs);
}

TEST(Manifest, RefusesSizesOfInputsThatAreNotThoseOfTheSamples) {
  Manifest manifest = small_manifest();
  manifest.inputs = three_inputs();
  const std::string text = manifest_text(manifest);
  for (const auto& [before, after, message] :
       {std::array{"\"images\": 2", "\"images\": 1", "m: inputs: ranges: 1, expected at most 0"},
        {"\"60\": 1", "\"60\": 7", "m: inputs: ranges: 7, expected at most 1"},
        {"\"60\": 1", "\"62\": 1", "m: ranges: expected numbers from 0 to max, found \"62\""},
        {"\"60\": 1", "\"6o\": 1", "m: ranges: expected numbers from 0 to max, found \"6o\""},
        {"\"60\": 1", "\"60\": -1", "m: 60: expected a count, found -1"},
        {"\"squeezed\": 1", "\"squeezed\": 4", "m: inputs: squeezed: 4, expected at most 3"},
        {"\"min\": 40", "\"min\": \"40\"", "min: expected a number above 0, found \"40\""}})
    EXPECT_EQ(error_of(edited(text, before, after)), message);
  manifest.inputs->formats.pop_back();
  EXPECT_EQ(error_of(manifest_text(manifest)), "m: inputs: images: 2, expected 3");
}

TEST(Manifest, OfAnotherVersionEndedWithTheTextOfAnException) {
  EXPECT_EQ(
      error_of(edited(manifest_text(small_manifest()), "\"rejects\"", "\"refused\"")),
      "m: was written by another version, whose layout this one does not read (key 'rejects' not found); "
      "pack again");
}

TEST(PartManifest, OfRatingsHasTheRecordAlone) {
  PartManifest manifest;
  manifest.format = kMatrixPacks.format;
  manifest.part.file = "part-00000.zst";
  manifest.part.rows = manifest.part.samples = 2;
  const std::string text = part_manifest_text(manifest);
  EXPECT_EQ(text.find("pixels"), std::string::npos);
  const PartManifest after = parse_part_manifest(text, "part-00000.json");
  EXPECT_EQ(after.format, kMatrixPacks.format);
  EXPECT_EQ(part_manifest_text(after), text);
  manifest.part.rows = 3;
  EXPECT_NE(error_of(part_manifest_text(manifest)), "none");
}

TEST(PartManifest, HasNoMoreWarningsThanSamples) {
  PartManifest manifest = small_part();
  manifest.part.warnings.resize(3);
  EXPECT_NE(error_of(part_manifest_text(manifest)), "none");
}

TEST(PartManifest, NumbersThatNoPartHasWereTaken) {
  const auto error_with = [](const auto& change) {
    PartManifest manifest = small_part();
    change(manifest.part);
    return error_of(part_manifest_text(manifest));
  };
  EXPECT_EQ(error_with([](PartRecord&) {}), "none");
  const auto says = [&](const auto& change, const std::string& words) {
    const std::string error = error_with(change);
    EXPECT_NE(error.find(words), std::string::npos) << error;
  };
  says([](PartRecord& part) { part.bytes = UINT64_MAX; }, "part-00000.h5: bytes: ");
  says([](PartRecord& part) { part.stored_bytes = part.bytes + 1; }, "part-00000.h5: stored_bytes: ");
  says([](PartRecord& part) { part.chunks = part.bytes + 1; }, "part-00000.h5: chunks: ");
  says([](PartRecord& part) { part.class_counts[8] = UINT64_MAX; }, "classes: samples: ");
  says([](PartRecord& part) { part.pixels.pixel_count = UINT64_MAX; }, "pixels: pixel_count: ");
  says([](PartRecord& part) { part.pixels.sum[1] = 9 * 255 + 1; }, "pixels: sum: ");
  says([](PartRecord& part) { part.pixels.sum_of_squares[3] = 9 * 65025 + 1; }, "pixels: sum_of_squares: ");
}

TEST(PartManifest, ComesBackAsItWasWritten) {
  const PartManifest after = parse_part_manifest(part_manifest_text(small_part()), "part-00000.json");
  EXPECT_EQ(after.part.class_counts, small_part().part.class_counts);
  EXPECT_EQ(after.part.rejects[0].file, "a,b.jpg");
  EXPECT_EQ(after.part.rejects[0].kind, RejectKind::empty);
  EXPECT_EQ(after.part.warnings[0].reason, "odd");
  EXPECT_EQ(part_manifest_text(after), part_manifest_text(small_part()));
}

TEST(PartManifest, RefusesSumsThatAreNotFourCounts) {
  const std::string text = part_manifest_text(small_part());
  for (const std::string sums : {"1e300, 0, 0, 0", "-1, 0, 0, 0", "1, 2, 3", "1, 2, 3, 4, 5"})
    EXPECT_EQ(error_of(edited(text, "\"sum\": [", "\"sum\": [" + sums + "], \"was\": ["))
                  .find("m: sum: expected 4 counts"),
              0u)
        << sums;
}

TEST(PartManifest, IsNoManifest) {
  EXPECT_THROW(static_cast<void>(parse_manifest(part_manifest_text(small_part()), "manifest.json")), Error);
}

TEST(Spec, NamesTheFirstDifference) {
  EXPECT_EQ(first_difference({{"crop", "none"}, {"seed", "0"}}, {{"crop", "none"}, {"seed", "1"}}),
            "seed: 0 before, 1 now");
  EXPECT_EQ(first_difference({{"seed", "0"}}, {{"seed", "0"}}), "");
  EXPECT_EQ(first_difference({{"classes", "none"}, {"seed", "0"}},
                             {{"label-type", "numbers"}, {"classes", "none"}, {"seed", "0"}}),
            "label-type: not given before, numbers now");
  EXPECT_EQ(first_difference({{"label-type", "numbers"}, {"seed", "0"}}, {{"seed", "0"}}),
            "label-type: numbers before, not given now");
}

}  // namespace
}  // namespace chunkhit
