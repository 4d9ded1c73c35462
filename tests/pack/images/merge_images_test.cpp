#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"
#include "chunkhit/error.h"
#include "pack/images/image_fields.h"
#include "pack/merge_inputs.h"
#include "pack/ratings/sparse_fields.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kSide = 8;

/// A pack of one part and these classes; class k has k + 1 samples.
MergeInput named_pack(std::uint64_t pack_id, const std::vector<std::string>& names) {
  Manifest manifest;
  manifest.pack_id = pack_id;
  manifest.spec = {{"resize", "8"}, {"seed", std::to_string(pack_id)}};
  manifest.sample = {kSide, kSide, 1, Layout::nhwc};
  manifest.container = "shard";
  manifest.codec = "zstd";
  manifest.chunk_samples = pack_id;
  manifest.label_columns = {"label"};
  for (std::size_t id = 0; id < names.size(); ++id) {
    manifest.classes.push_back({static_cast<std::int64_t>(id), names[id], id + 1});
    manifest.samples += id + 1;
  }
  manifest.rows = manifest.samples;
  PartRecord part;
  part.file = "part-00000.zst";
  part.rows = part.samples = manifest.samples;
  manifest.parts = {part};
  manifest.sources = {{pack_id,
                       "pack-images",
                       manifest.spec,
                       10 * pack_id,
                       manifest.rows,
                       manifest.codec,
                       manifest.chunk_samples,
                       {}}};
  MergeInput input;
  input.folder = "pack " + std::to_string(pack_id);
  input.images = manifest;
  return input;
}

MergeInput as_input(const Manifest& manifest) {
  MergeInput input;
  input.folder = "merged";
  input.images = manifest;
  return input;
}

std::vector<std::string> names_of(const Manifest& manifest) {
  std::vector<std::string> names;
  for (const PackClass& each : manifest.classes) names.push_back(each.name);
  return names;
}

std::string error_of(const std::vector<MergeInput>& inputs) {
  try {
    static_cast<void>(merge_images(inputs, "out"));
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(MergeImages, KeepsTheFirstIdsAndAppendsNewNamesSorted) {
  const std::vector<MergeInput> inputs{named_pack(1, {"dog", "cat"}), named_pack(2, {"yak", "cat", "ant"}),
                                       named_pack(3, {"bee", "dog"})};
  const Manifest merged = merge_images(inputs, "out");
  EXPECT_EQ(names_of(merged), (std::vector<std::string>{"dog", "cat", "ant", "yak", "bee"}));
  EXPECT_EQ(merged.sources[0].class_ids, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(merged.sources[1].class_ids, (std::vector<std::int64_t>{3, 1, 2}));
  EXPECT_EQ(merged.sources[2].class_ids, (std::vector<std::int64_t>{4, 0}));
  EXPECT_EQ(merged.classes[0].samples, 1u + 2u);  // dog
  EXPECT_EQ(merged.classes[1].samples, 2u + 2u);  // cat
  EXPECT_EQ(merged.spec, (RecordedSpec{{"resize", "8"}}));
}

TEST(MergeImages, AppendingOneByOneNumbersAsMergingAtOnce) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<MergeInput> inputs;
    for (std::uint64_t pack = 1; pack <= 4; ++pack) {
      std::vector<std::string> names;
      for (std::uint64_t letter = 0; letter < 12; ++letter)
        if (mix_bits(seed * 1000 + pack * 100 + letter) % 3 == 0)
          names.insert(
              names.begin() + static_cast<std::ptrdiff_t>(mix_bits(letter + seed) % (names.size() + 1)),
              std::string(1, static_cast<char>('a' + letter)));
      inputs.push_back(named_pack(pack, names));
    }
    const Manifest at_once = merge_images(inputs, "out");
    Manifest grown = *inputs[0].images;
    for (std::size_t pack = 1; pack < inputs.size(); ++pack)
      grown = merge_images(std::vector{as_input(grown), inputs[pack]}, "out");
    EXPECT_EQ(names_of(grown), names_of(at_once));
    EXPECT_EQ(grown.pack_id, at_once.pack_id);
    std::map<std::string, std::uint64_t> samples;  // by name, without any numbering
    for (std::size_t pack = 0; pack < inputs.size(); ++pack) {
      EXPECT_EQ(grown.sources[pack].class_ids, at_once.sources[pack].class_ids);
      for (const PackClass& each : inputs[pack].images->classes) {
        samples[each.name] += each.samples;
        EXPECT_EQ(at_once.classes[static_cast<std::size_t>(at_once.sources[pack].class_id(each.id))].name,
                  each.name);
      }
    }
    for (const PackClass& each : at_once.classes) EXPECT_EQ(each.samples, samples[each.name]);
  }
}

TEST(MergeImages, IdsWithoutNamesStay) {
  std::vector<MergeInput> inputs{named_pack(1, {"", ""}), named_pack(2, {"", "", ""})};
  inputs[1].images->classes[2].id = -7;
  const Manifest merged = merge_images(inputs, "out");
  ASSERT_EQ(merged.classes.size(), 3u);
  EXPECT_EQ(merged.classes[0].id, -7);
  EXPECT_EQ(merged.classes[2].samples, 4u);
  EXPECT_TRUE(merged.sources[1].class_ids.empty());
}

TEST(MergeImages, NamesWhatDisagreesAndBothPacks) {
  const auto first = named_pack(1, {"a"});
  auto other = named_pack(2, {"a"});
  other.images->sample.layout = Layout::nchw;
  EXPECT_NE(error_of({first, other}).find("pack 2: samples of 8x8x1 nchw, expected 8x8x1 nhwc as in pack 1"),
            std::string::npos);
  EXPECT_NE(error_of({first, named_pack(2, {""})}).find("pack 2: has class ids without names, but pack 1"),
            std::string::npos);
  other = named_pack(2, {});
  other.images->class_labels = false;
  EXPECT_NE(error_of({first, other}).find("labels are the numbers label, expected class ids"),
            std::string::npos);
}

/// Collects the names of all fields that a manifest records.
struct RecordedNames : FieldVisitor<RecordedNames> {
  template <class Value, class Form>
  void operator()(const Field& field, Value&, const Form&) {
    names.insert(dashed(field.name));
  }
  template <class Value, class Form>
  void unrecorded(const Field&, Value&, const Form&) {}
  template <class Value, class Form>
  void not_in_recipes(const Field&, Value&, const Form&) {}
  std::set<std::string> names;
};

/// The recorded fields of which a merge does not say that they differ.
template <class Spec>
std::set<std::string> unnoticed(const std::vector<std::string>& settings) {
  RecordedNames recorded;
  Spec spec;
  show(spec, recorded);
  for (const std::string& name : settings) EXPECT_EQ(recorded.names.erase(name), 1u) << name;
  return recorded.names;
}

// What a field means for samples is decided here, field by field: a new one is noticed.
TEST(MergeSettings, EachRecordedFieldIsNoticedButForThese) {
  EXPECT_EQ(unnoticed<PackImagesSpec>(image_settings()), (std::set<std::string>{"check",
                                                                                "chunk-bytes",
                                                                                "chunk-samples",
                                                                                "classes",
                                                                                "codec",
                                                                                "container",
                                                                                "empty-labels",
                                                                                "file-column",
                                                                                "follow-symlinks",
                                                                                "include",
                                                                                "jpeg-tile",
                                                                                "keep-columns",
                                                                                "label-column",
                                                                                "labels",
                                                                                "mask-column",
                                                                                "max-decode-bytes",
                                                                                "max-seconds-per-image",
                                                                                "order",
                                                                                "pair",
                                                                                "part-bytes",
                                                                                "part-samples",
                                                                                "seed",
                                                                                "sizes",
                                                                                "split",
                                                                                "split-column",
                                                                                "split-folders",
                                                                                "split-group"}));
  EXPECT_EQ(
      unnoticed<PackSparseSpec>(rating_settings()),
      (std::set<std::string>{
          "chunk-rows", "codec", "comment",      "container",  "delimiter",        "format",   "header",
          "id-order",   "item",  "item-columns", "keep-times", "min-item",         "min-user", "order",
          "part-bytes", "quote", "reuse-ids",    "seed",       "split-order",      "test",     "test-users",
          "time",       "user",  "user-columns", "validation", "validation-users", "values"}));
}

}  // namespace
}  // namespace chunkhit
