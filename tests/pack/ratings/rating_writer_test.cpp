#include "chunkhit/rating_writer.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "chunkhit/dataset.h"
#include "temporary_folder.h"

namespace chunkhit {
namespace {

PackSparseOptions to(const TemporaryFolder& folder) {
  PackSparseOptions options;
  options.output = folder.path() + "/pack";
  return options;
}

const std::vector<std::int64_t> kUsers{5, 5, 6};
const std::vector<std::int64_t> kItems{1, 2, 2};
const std::vector<float> kValues{3, 1, 2};

TEST(RatingWriter, CooAndCsrBlocksMakeOnePack) {
  const TemporaryFolder folder;
  RatingWriter writer({}, to(folder));
  writer.add(RatingEntries{std::span(kUsers), std::span(kItems), std::span(kValues)});
  const std::vector<std::string_view> users{"7", "eight"};
  const std::vector<std::uint64_t> indptr{0, 2, 3};
  const std::vector<double> values{1, 2, 3};
  writer.add(CsrEntries{std::span(users), indptr, std::span(kItems), std::span(values)});
  const PackSparseReport report = writer.finish();
  ASSERT_EQ(report.packs.size(), 1u);
  EXPECT_EQ(report.packs[0].rows, 4u);
  EXPECT_EQ(report.packs[0].columns, 2u);
  EXPECT_EQ(report.packs[0].matrices[0].nnz, 6u);
  const SparseDataset pack(folder.path() + "/pack");
  EXPECT_TRUE(pack.row_of("eight"));
  EXPECT_TRUE(pack.row_of("5"));
}

TEST(RatingWriter, IsDestroyedWithoutAPack) {
  const TemporaryFolder folder;
  {
    RatingWriter writer({}, to(folder));
    writer.add(RatingEntries{std::span(kUsers), std::span(kItems)});
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/pack"));
}

TEST(RatingWriter, ReportsThatItWasStopped) {
  const TemporaryFolder folder;
  std::atomic<bool> stop{true};
  PackSparseOptions options = to(folder);
  options.stop = &stop;
  RatingWriter writer({}, options);
  writer.add(RatingEntries{std::span(kUsers), std::span(kItems)});
  EXPECT_TRUE(writer.finish().interrupted);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/pack/manifest.json"));
}

TEST(RatingWriter, OptionsOfFilesAreErrors) {
  const TemporaryFolder folder;
  const auto error_with = [&](const std::function<void(PackSparseSpec&, PackSparseOptions&)>& change) {
    PackSparseSpec spec;
    PackSparseOptions options = to(folder);
    change(spec, options);
    try {
      RatingWriter(spec, options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string writer = ": has no meaning for a RatingWriter, which reads no files";
  EXPECT_EQ(error_with([](auto&, auto& options) { options.inputs = {"a.csv"}; }), "`inputs`" + writer);
  EXPECT_EQ(error_with([](auto& spec, auto&) { spec.input.format = "npz"; }), "`format`" + writer);
  EXPECT_EQ(error_with([](auto& spec, auto&) { spec.input.table.delimiter = ","; }), "`delimiter`" + writer);
  EXPECT_EQ(error_with([](auto& spec, auto&) { spec.packs.split.split_by = SplitKind::given; }),
            "`split_by` given" + writer);
}

TEST(RatingWriter, RowsThatDoNotFitTogetherAreAnError) {
  const TemporaryFolder folder;
  RatingWriter writer({}, to(folder));
  const auto error_of = [&](const std::vector<std::uint64_t>& indptr) -> std::string {
    try {
      writer.add(CsrEntries{std::span(kUsers), indptr, std::span(kItems)});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of({0, 1, 3}), "indptr: found 3 numbers, expected 4, one more than users");
  EXPECT_EQ(error_of({0, 2, 1, 3}), "indptr: expected numbers that begin with 0 and do not descend");
  EXPECT_EQ(error_of({0, 1, 2, 2}), "items: found 3, expected 2, one for each entry");
  EXPECT_EQ(error_of({0, 1, 2, 3}), "");
}

}  // namespace
}  // namespace chunkhit
