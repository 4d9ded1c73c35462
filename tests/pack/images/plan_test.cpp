#include "manifest/plan.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "chunkhit/error.h"
#include "pack/images/pack_spec.h"
#include "pack/images/pack_task.h"
#include "pack/images/plan_rows.h"
#include "pack/output_pack.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

constexpr SampleShape kShape{8, 9, 3, Layout::nhwc};

RecordedSpec recorded(const PackImagesSpec& spec) {
  return recorded_spec(spec, plan_pack(spec, kShape, 1000), "", {});
}

/// Specs that differ from the default in each choice that a sample's bytes depend on.
std::vector<PackImagesSpec> many_specs() {
  std::vector<PackImagesSpec> specs(13);
  specs[0].transform = {.resize = Resize::exact, .resize_width = 30, .resize_height = 20};
  specs[1].transform = {
      .resize = Resize::short_side, .resize_width = 256, .crop_width = 224, .crop_height = 200};
  specs[2].transform = {.resize = Resize::short_side, .resize_width = 65535, .resample = Filter::nearest};
  specs[3].transform = {
      .resize = Resize::fit, .resize_width = 9, .resize_height = 8, .pad_color = {1, 0, 255}};
  specs[4].transform.channels = Channels::rgba;
  specs[5].transform.decode = JpegDecode::fast;
  specs[6].transform.layout = Layout::nchw;
  specs[7].exif = ExifUse::ignore;
  specs[8].check = DecodeCheck::region;
  specs[8].scale_from = {100, 4095};
  specs[9].accept_warnings = specs[9].follow_symlinks = true;
  specs[10].max_seconds_per_image = 0;
  specs[10].max_decode_bytes = std::numeric_limits<std::int64_t>::max();
  specs[11].container = "shard";
  specs[11].codec = "zstd:7";
  specs[12].chunk_samples = 17;
  specs[12].part_bytes = 1 << 20;
  return specs;
}

TEST(SpecOf, GivesTheSpecOfEveryRecordedEntry) {
  for (const PackImagesSpec& spec : many_specs())
    EXPECT_EQ(recorded(spec_of(recorded(spec))), recorded(spec));
}

TEST(RecordedSpec, NamesTheSourceOfLabelsAndMasks) {
  PackImagesSpec spec;
  SampleList list;
  const auto entries = [&](LabelSource source, bool has_masks) {
    list.labels_from = source;
    list.fields.clear();
    if (has_masks) list.fields.push_back({{"mask", FieldRole::mask}, {}, {}, {}});
    const RecordedSpec found = recorded_spec(spec, plan_pack(spec, kShape, 1000), "", list);
    return std::vector{found.get("labels"), found.get("pair"),
                       found.has("include") ? found.get("include") : "no"};
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(entries(LabelSource::folders, false), (Texts{"folders", "", "none"}));
  EXPECT_EQ(entries(LabelSource::members, true), (Texts{"members", "members", "none"}));
  EXPECT_EQ(entries(LabelSource::writer, true), (Texts{"writer", "writer", "no"}));
  spec.pair = {"masks"};
  EXPECT_EQ(entries(LabelSource::folders, false), (Texts{"folders", "folder", "none"}));
  spec.labels = "list.csv";
  EXPECT_EQ(entries(LabelSource::csv, true), (Texts{"csv", "folder", "no"}));
  spec.pair = {};
  EXPECT_EQ(entries(LabelSource::csv, true), (Texts{"csv", "members", "no"}));
  EXPECT_EQ(entries(LabelSource::idx, false), (Texts{"idx", "", "no"}));
  list.labels_from = LabelSource::writer;
  list.fields = {{{"mask", FieldRole::mask}, {}, {}, {}}, {{"depth", FieldRole::view}, {}, {}, {}}};
  EXPECT_EQ(recorded_spec(spec, plan_pack(spec, kShape, 1000), "", list).get("pair"),
            "mask=writer:mask,depth=writer:view");
}

// run.json names it; packing worked and ended with an error there.
TEST(AbsoluteRoot, IsEmptyWhereTheSystemDoesNotSayIt) {
  const TemporaryFolder folder;
  EXPECT_EQ(absolute_root(folder.path("..") + "/..").front(), '/');
  EXPECT_EQ(absolute_root(folder.path("none")), "");
}

TEST(SpecOf, RefusesValuesThatNoSpecHas) {
  const RecordedSpec good = recorded(many_specs()[3]);
  for (const SpecEntry& bad :
       {SpecEntry{"resample", "sinc"}, SpecEntry{"crop", "0x9"}, SpecEntry{"fit", "9x8x7"},
        SpecEntry{"fit", "4294967296x1"}, SpecEntry{"pad-color", "0,0,256"},
        SpecEntry{"max-decode-bytes", "-1"}, SpecEntry{"max-decode-bytes", "0"}, SpecEntry{"codec", "lzma"},
        SpecEntry{"container", "tar"}, SpecEntry{"accept-warnings", "yes"}, SpecEntry{"part-bytes", ""}}) {
    RecordedSpec spec = good;
    for (SpecEntry& entry : spec)
      if (entry.name == bad.name) entry = bad;
    EXPECT_THROW(static_cast<void>(spec_of(spec)), Error) << bad.name;
  }
  EXPECT_THROW(static_cast<void>(spec_of({good.begin(), good.begin() + 5})), Error);
}

PackPlan plan_of(const SampleList& list, std::uint64_t parts) {
  PackPlan plan;
  plan.rows = list.row_count;
  plan.sample = kShape;
  plan.class_labels = list.label_kind == LabelKind::class_id;
  plan.label_columns = list.label_columns;
  plan.classes = list.classes;
  plan.packs = {{"", 1, {}, list.size(), parts}};
  return plan;
}

TEST(PlanRows, GivesNamesLabelsAndRejectsBack) {
  const TemporaryFolder folder;
  SampleList list;
  list.label_kind = LabelKind::numbers;
  list.label_columns = {"x", "y"};
  list.row_count = 9;
  list.values = {0.1f, -0.0f, 1e-45f, 3.4028235e38f, 16777216, -1};
  list.rows = {7, 0, 3};
  for (const char* name : {"a, \"b\"\r\n.jpg", "ü.png", "plain"}) list.files.add(name);
  const std::vector<Reject> rejects{{2, "bad\xff", {"", "q\"uote"}, "label is missing, it seems"},
                                    {8, "", {}, "no file name"}};
  PackPlan plan = plan_of(list, 2);
  PlanRowsWriter writer(folder.path());
  writer.add_parts(list, std::vector<std::uint32_t>{2, 0, 1}, 2);
  writer.add_rejects(rejects);
  plan.rows_file = writer.publish();

  const PlanRows rows(folder.path(), plan);
  const SampleList first = rows.part(0);
  ASSERT_EQ(first.size(), 2);
  EXPECT_EQ(first.file(0), "plain");
  EXPECT_EQ(first.file(1), "a, \"b\"\r\n.jpg");
  EXPECT_EQ(first.rows, (std::vector<std::uint32_t>{3, 7}));
  EXPECT_EQ(first.values, (std::vector<float>{16777216, -1, 0.1f, -0.0f}));
  EXPECT_EQ(rows.part(1).values, (std::vector<float>{1e-45f, 3.4028235e38f}));
  const std::vector<Reject> found = rows.rejects(0);
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].file, "bad\\xff");
  EXPECT_EQ(found[0].labels, rejects[0].labels);
  EXPECT_EQ(found[0].reason, rejects[0].reason);
  EXPECT_EQ(found[1].row, 8);
  EXPECT_TRUE(found[1].labels.empty());
}

TEST(PlanRows, RefusesClassesAndRowsThatThePlanHasNot) {
  const TemporaryFolder folder;
  SampleList list;
  list.label_columns = {"label"};
  list.classes = {"ant"};
  list.row_count = 2;
  list.class_ids = {0, 1};
  list.rows = {0, 2};
  list.files.add("a");
  list.files.add("b");
  for (const std::uint32_t index : {0u, 1u}) {
    PackPlan plan = plan_of(list, 1);
    PlanRowsWriter writer(folder.path());
    writer.add_parts(list, std::vector<std::uint32_t>{index}, 7);
    writer.add_rejects({});
    plan.rows_file = writer.publish();
    const PlanRows rows(folder.path(), plan);
    EXPECT_TRUE(rows.rejects(0).empty());
    if (index == 0)
      EXPECT_EQ(rows.part(0).size(), 1);
    else
      EXPECT_THROW(static_cast<void>(rows.part(0)), Error);
  }
}

TEST(PlanJson, GivesEveryFieldBack) {
  SampleList list;
  list.label_columns = {"label"};
  list.row_count = 1500;
  PackPlan plan = plan_of(list, 4);
  plan.packs = {{"train", 7, recorded({}), 1000, 3}, {"val", 8, recorded({}), 400, 1}};
  plan.tool = "pack-images 9";
  plan.libraries = {{"zstd", "1"}};
  plan.root = "/data";
  plan.tasks = 4;
  plan.max_rejected = 5;
  plan.first_file = "a.jpg";
  plan.first_file_bytes = 99;
  plan.file_column = "file";
  plan.classes = {"ant", "bee"};
  const PackPlan read = parse_plan(plan_text(plan), "plan.json");
  EXPECT_EQ(plan_text(read), plan_text(plan));
  EXPECT_EQ(read.parts(), 4);
  plan.tasks = 5;
  EXPECT_THROW(static_cast<void>(parse_plan(plan_text(plan), "plan.json")), Error);
  plan.tasks = 1;
  plan.packs[1].samples = 501;
  EXPECT_THROW(static_cast<void>(parse_plan(plan_text(plan), "plan.json")), Error);
}

}  // namespace
}  // namespace chunkhit
