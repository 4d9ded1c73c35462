#include "chunkhit/image_writer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "chunkhit/dataset.h"
#include "temporary_folder.h"

namespace chunkhit {
namespace {

PackImagesOptions to(const TemporaryFolder& folder) {
  PackImagesOptions options;
  options.output = folder.path() + "/pack";
  return options;
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const std::array<std::uint8_t, 6> kPixels{1, 2, 3, 4, 5, 6};

TEST(ImageWriter, PacksPixelsAndFilesWithTheirNumbers) {
  const TemporaryFolder folder;
  PackImagesSpec spec;
  spec.order = PackOrder::input;
  spec.columns.label_column = {"x", "y"};
  ImageWriter writer(spec, to(folder));
  const std::array<float, 2> first{1, 2}, second{0.5, -1};
  writer.add(PixelsView{kPixels, 1, 2, 3}, std::span<const float>(first), "pixels");
  const std::string file = "P6 2 1 255\nabcdef";
  writer.add(std::span(reinterpret_cast<const std::uint8_t*>(file.data()), file.size()),
             std::span<const float>(second));
  const PackImagesReport report = writer.finish();
  EXPECT_EQ(report.packs.at(0).samples, 2u);
  EXPECT_EQ(report.labels.columns, spec.columns.label_column);
  const ImageDataset pack(folder.path() + "/pack");
  ASSERT_EQ(pack.size(), 2u);
  std::vector<std::uint8_t> pixels(12);
  const std::array<std::uint64_t, 2> samples{0, 1};
  pack.read(samples, pixels);
  EXPECT_EQ(pixels, (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 'a', 'b', 'c', 'd', 'e', 'f'}));
}

TEST(ImageWriter, PixelsOfAnotherCountThanTheirShapeAreAnError) {
  const TemporaryFolder folder;
  ImageWriter writer({}, to(folder));
  EXPECT_EQ(error_of([&] {
              writer.add(PixelsView{kPixels, 2, 2, 3}, 0);
            }),
            "pixels: found 6 bytes, expected those of (2, 2, 3)");
  EXPECT_EQ(error_of([&] {
              writer.add(PixelsView{kPixels, 1, 1, 6}, 0);
            }),
            "pixels: expected (height, width, 1 to 4 channels), found (1, 1, 6)");
  EXPECT_EQ(error_of([&] {
              writer.add(PixelsView{{}, 0, 0, 3}, 0);
            }),
            "pixels: expected (height, width, 1 to 4 channels), found (0, 0, 3)");
}

TEST(ImageWriter, OptionsOfFilesAreErrors) {
  const TemporaryFolder folder;
  const auto error_with = [&](const std::function<void(PackImagesSpec&, PackImagesOptions&)>& change) {
    PackImagesSpec spec;
    PackImagesOptions options = to(folder);
    change(spec, options);
    return error_of([&] { ImageWriter(spec, options); });
  };
  const std::string writer = ": has no meaning for an ImageWriter, which is given its images";
  EXPECT_EQ(error_with([](auto& spec, auto&) { spec.labels = "labels.csv"; }), "`labels`" + writer);
  EXPECT_EQ(error_with([](auto&, auto& options) { options.root = "images"; }), "`root`" + writer);
  EXPECT_EQ(error_with([](auto& spec, auto&) { spec.columns.file_column = "x"; }), "`file_column`" + writer);
  EXPECT_EQ(error_with([](auto& spec, auto&) { spec.folders.include = {"*.jpg"}; }), "`include`" + writer);
  EXPECT_EQ(error_with([](auto&, auto& options) { options.output = ""; }),
            "`output` is required: a folder for the pack");
}

TEST(ImageWriter, IsMovedAndFinishedOnce) {
  const TemporaryFolder folder;
  ImageWriter made({}, to(folder));
  ImageWriter writer = std::move(made);
  writer.add(PixelsView{kPixels, 1, 2, 3}, 4);
  EXPECT_EQ(writer.finish().packs.at(0).samples, 1u);
  EXPECT_EQ(error_of([&] { static_cast<void>(writer.finish()); }), "the writer is finished");
  EXPECT_EQ(error_of([&] {
              writer.add(PixelsView{kPixels, 1, 2, 3}, 4);
            }),
            "the writer is finished: nothing can be added");
}

TEST(ImageWriter, IsDestroyedWithoutAPackOrAFile) {
  const TemporaryFolder folder;
  {
    ImageWriter writer({}, to(folder));
    writer.add(PixelsView{kPixels, 1, 2, 3}, "ant");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace chunkhit
