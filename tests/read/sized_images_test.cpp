// Images of their own sizes: loader and dataset beside decoding, turning and resizing one by one.
#include "read/sized_images.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "augment/random_crop.h"
#include "base/file.h"
#include "changed_reads.h"
#include "chunkhit/dataset.h"
#include "chunkhit/error.h"
#include "chunkhit/image_loader.h"
#include "chunkhit/verify.h"
#include "decode/formats.h"
#include "support/sized_parts.h"
#include "support/temporary_folder.h"
#include "transform/orientation.h"

namespace chunkhit {
namespace {

const std::vector<SizedImage>& images() {
  static const std::vector<SizedImage> all = sized_images(40);
  return all;
}

/// The upright pixels of an image, decoded whole.
Image upright(const SizedImage& image) {
  Image stored;
  if (image.kind == PayloadKind::jpeg) {
    DecodeMonitor monitor({});
    open_jpeg(image.payload, monitor)->decode({1, {0, 0, image.width, image.height}, 3}, stored);
  } else {
    stored.reshape(image.width, image.height, 3);
    std::ranges::copy(image.payload, stored.pixels.begin());
  }
  Image turned;
  turn_upright(stored.view(), image.orientation, turned);
  return turned;
}

struct Part {
  TemporaryFolder folder;
  std::string path = folder.path("part-00000.zst");
  Part() { write_sized_part(path, images(), 6); }
};

AugmentSpec training() {
  AugmentSpec augment{.flip_horizontal = 0.5};
  augment.resized_crop.height = 24;
  augment.resized_crop.width = 32;
  return augment;
}

ByteBuffer expected_sample(const SizedImage& image, const AugmentSpec& augment, const SampleUse& use) {
  const Image whole = upright(image);
  const auto [box, request] = ResizedCrop(augment)(whole.height, whole.width, use);
  const Rect region = source_region(request);
  ByteBuffer out(std::size_t{request.window.width} * request.window.height * 3);
  const ImageView view = whole.view();
  Resampler().resample(request,
                       {view.row(box.y + region.y) + std::size_t{box.x + region.x} * 3, region.width,
                        region.height, 3, view.row_bytes},
                       out.data(), std::size_t{request.window.width} * 3);
  return out;
}

void compare_epoch(ImageLoader& loader, const AugmentSpec& augment, std::uint64_t seed) {
  const std::size_t bytes =
      std::size_t{loader.batch_shape().height} * loader.batch_shape().width * loader.batch_shape().channels;
  std::vector<std::uint64_t> seen;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch)
    for (const ImageBatch& batch : loader.epoch(epoch))
      for (std::size_t i = 0; i < batch.samples.size(); ++i) {
        const std::uint64_t sample = batch.samples[i];
        seen.push_back(sample);
        ASSERT_TRUE(std::ranges::equal(batch.pixels().subspan(i * bytes, bytes),
                                       expected_sample(images()[sample], augment, {seed, epoch, sample, 0})))
            << "epoch " << epoch << " sample " << sample;
        ASSERT_EQ(batch.labels()[i], static_cast<std::int64_t>(sample % 2));
      }
  EXPECT_EQ(seen.size(), 2 * images().size());
}

TEST(SizedImages, AreCroppedAndResizedAsWholeOnesInEveryOrderAndCache) {
  const Part part;
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::window, Shuffle::global})
    for (const Cache cache : {Cache::decoded, Cache::compressed, Cache::none})
      for (const std::uint32_t threads : {1u, 3u}) {
        // One slice with each thread on a batch of its own, or three slices of a batch.
        ImageLoader loader(part.path, {.batch_size = threads == 1 ? 7u : 40u,
                                       .shuffle = shuffle,
                                       .seed = 5,
                                       .window_chunks = 2,
                                       .augment = training(),
                                       .cache = cache,
                                       .threads = threads});
        compare_epoch(loader, training(), 5);
      }
}

/// Threads share a batch of many slices, so that it needs no memory for a batch each.
TEST(SizedImages, NeedAsManyBatchesInMemoryAsAreMadeAhead) {
  const Part part;
  const auto batches_of = [&](std::uint64_t batch_size, std::uint32_t threads) {
    int allocations = 0;
    const ImageLoader loader(part.path,
                             {.batch_size = batch_size,
                              .augment = training(),
                              .threads = threads,
                              .prefetch = 2,
                              .allocator = {[&](std::size_t bytes) {
                                              ++allocations;
                                              return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
                                            },
                                            [](void* memory, std::size_t) { std::free(memory); }}});
    return allocations;
  };
  EXPECT_EQ(batches_of(40, 6), 3);
  EXPECT_EQ(batches_of(40, 9), 4);
  EXPECT_EQ(batches_of(16, 9), 10);
}

TEST(SizedImages, AreCroppedForEvaluation) {
  const Part part;
  AugmentSpec augment;
  augment.resize_short = 40;
  augment.crop_height = 32;
  augment.crop_width = 36;
  ImageLoader loader(part.path, {.batch_size = 9, .augment = augment});
  EXPECT_EQ(loader.batch_shape(), (BatchShape{9, 32, 36, 3, Layout::nhwc}));
  compare_epoch(loader, augment, 0);
}

TEST(SizedImages, BecomeNormalizedPlanes) {
  const Part part;
  ImageLoader loader(part.path, {.batch_size = 40,
                                 .augment = training(),
                                 .dtype = Dtype::float32,
                                 .normalize = {{0.5f, 0.25f, 0}, {1, 0.5f, 0.25f}},
                                 .layout = Layout::nchw});
  for (const ImageBatch& batch : loader.epoch(0)) {
    ASSERT_EQ(batch.values().size(), std::size_t{40} * 3 * 24 * 32);
    for (std::size_t sample = 0; sample < 40; ++sample) {
      const ByteBuffer expected = expected_sample(images()[sample], training(), {0, 0, sample, 0});
      for (std::size_t pixel = 0; pixel < std::size_t{24} * 32; ++pixel)
        ASSERT_EQ(batch.values()[(sample * 3 + 1) * 24 * 32 + pixel],
                  (static_cast<float>(expected[pixel * 3 + 1]) / 255.0f - 0.25f) / 0.5f);
    }
  }
}

TEST(SizedImages, NeedAnAugmentationThatGivesOneShape) {
  const Part part;
  const auto error_of = [&](const AugmentSpec& augment) {
    try {
      const ImageLoader loader(part.path, {.augment = augment});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      return std::string(error.what());
    }
    return std::string("opened");
  };
  EXPECT_EQ(error_of({}).substr(0, 62), "augment: the images have sizes of their own: give resized_crop");
  AugmentSpec augment;
  augment.crop_height = augment.crop_width = 20;
  EXPECT_EQ(error_of(augment).substr(0, 28), "augment: the images have siz");
  augment.resize_short = 19;
  EXPECT_EQ(error_of(augment), "opened") << "zeros surround the image";
  augment.random_crop = true;
  EXPECT_EQ(error_of(augment),
            "augment.resize_short: 19 pixels, expected at least the larger side of the random crop");
  augment.resize_short = 20;
  EXPECT_EQ(error_of(augment), "opened");
}

/// With tiles that write_tiled_jpeg did not write, too: each row of MCUs is one.
TEST(SizedImages, MayBeJpegFilesAsTheyCame) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part-00000.zst");
  std::vector<SizedImage> files = sized_images(40);
  for (std::size_t i = 0; i < files.size(); i += 2) {
    const std::vector<std::uint8_t> file =
        write_jpeg(make_image(files[i].width, files[i].height, 3, i), {.progressive = i % 8 == 2,
                                                                       .arithmetic = i % 8 == 6,
                                                                       .restart_rows = i % 8 == 4 ? 1u : 0u,
                                                                       .exif_orientation = 5});
    files[i].payload.assign(file.begin(), file.end());
  }
  write_sized_part(path, files, 6);
  EXPECT_TRUE(verify_pack(path, {}).problems.empty());
  SizedImageDecoder decoder;
  for (const SizedImage& file : files) {
    ByteBuffer frame;
    append_raw_frame(file.payload, frame);
    const StoredImage stored{frame,       static_cast<std::uint32_t>(file.payload.size()),
                             file.height, file.width,
                             file.kind,   file.orientation};
    const Image whole = upright(file);
    for (std::uint32_t i = 1; i < 8; ++i) {
      const Rect region{whole.width * i / 10, whole.height * (8 - i) / 10, whole.width / 5 + i / 2,
                        whole.height / 8 + i};
      const ImageView part = decoder.decode(stored, region, 3);
      for (std::uint32_t y = 0; y < region.height; ++y)
        ASSERT_TRUE(std::equal(part.row(y), part.row(y) + std::size_t{region.width} * 3,
                               whole.row(region.y + y) + std::size_t{region.x} * 3));
    }
  }
}

TEST(SizedImages, AreReadWholeAtTheirShapesByADataset) {
  const Part part;
  const ImageDataset dataset(part.path);
  EXPECT_TRUE(dataset.info().images().own_sizes);
  const std::vector<std::uint64_t> samples{39, 0, 6, 6, 13};
  ByteBuffer expected;
  for (const std::uint64_t sample : samples) {
    const Image whole = upright(images()[sample]);
    EXPECT_EQ(dataset.sample_shape(sample), (BatchShape{1, whole.height, whole.width, 3, Layout::nhwc}));
    expected.insert(expected.end(), whole.pixels.begin(), whole.pixels.end());
  }
  ByteBuffer out(expected.size());
  dataset.read(samples, out);
  EXPECT_TRUE(out == expected);
  EXPECT_THROW(dataset.read(samples, MutableBytes(out).first(out.size() - 1)), Error);
  EXPECT_THROW(static_cast<void>(dataset.sample_shape(40)), Error);
}

TEST(SizedImages, AreVerifiedAndTold) {
  const Part part;
  EXPECT_TRUE(verify_pack(part.path, {}).problems.empty());
  const PackInfo info = read_pack_info(part.path);
  std::uint64_t bytes = 0;
  for (const SizedImage& image : images()) bytes += std::uint64_t{image.height} * image.width * 3;
  EXPECT_EQ(info.raw_bytes, bytes);
  EXPECT_EQ(info.images().height, 0u);
  EXPECT_EQ(info.images().channels, 3u);
}

TEST(SizedImages, WhoseBytesAreDamagedAreToldOrSkipped) {
  const Part part;
  ByteBuffer bytes = read_file(part.path, 1 << 30);
  const std::unique_ptr<ChunkReader> reader = open_part(part.path);
  bytes[reader->chunks()[2].offset + 40] ^= 1;
  std::ofstream(part.path, std::ios::binary) << as_text(bytes);
  EXPECT_FALSE(verify_pack(part.path, {}).problems.empty());
  ImageLoader failing(part.path, {.batch_size = 7, .augment = training()});
  EXPECT_THROW(
      {
        for (const ImageBatch& batch : failing.epoch(0)) static_cast<void>(batch);
      },
      Error);
  ImageLoader skipping(part.path, {.batch_size = 7, .augment = training(), .on_corrupt = OnCorrupt::skip});
  std::size_t seen = 0;
  for (const ImageBatch& batch : skipping.epoch(0)) seen += batch.samples.size();
  EXPECT_EQ(seen, images().size() - reader->chunks()[2].sample_count);
  EXPECT_EQ(skipping.stats().corrupt_chunks, 1u);
}

// In order global they are read one by one, and each payload has a hash.
TEST(SizedImages, OfWhichStorageGivesAnotherByteAreNamedOrSkippedAlone) {
  const Part part;
  const std::unique_ptr<ChunkReader> reader = open_part(part.path);
  const StoredChunk& chunk = reader->chunks()[2];
  const std::uint64_t first_bytes = reader->samples().sizes.stored_bytes(chunk.first_sample);
  ImageLoaderOptions options{
      .batch_size = 7, .shuffle = Shuffle::global, .augment = training(), .cache = Cache::none, .threads = 2};
  const auto seen_by = [&](ImageLoader& loader, std::uint64_t epoch) {
    std::size_t samples = 0;
    for (const ImageBatch& batch : loader.epoch(epoch)) samples += batch.samples.size();
    return samples;
  };
  ImageLoader loader(part.path, options);
  options.on_corrupt = OnCorrupt::skip;
  ImageLoader skips(part.path, options);
  EXPECT_EQ(seen_by(loader, 0), images().size());
  const ChangedReads changed(chunk.offset + first_bytes + 40);
  try {
    static_cast<void>(seen_by(loader, 1));  // some of it may have been read ahead
    static_cast<void>(seen_by(loader, 2));
    ADD_FAILURE() << "it was read";
  } catch (const Error& error) {
    const std::string expected = ": sample " + std::to_string(chunk.first_sample + 1) + ": checksum ";
    EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
  }
  EXPECT_EQ(seen_by(skips, 0), images().size() - 1);
  EXPECT_EQ(skips.stats().corrupt_chunks, 1u);
  EXPECT_EQ(skips.stats().chunk_fetches, 0u);
}

/// Nothing but the frame of the sample says so where hashes are not compared.
TEST(SizedFrames, ThatAreDamagedAreToldOrSkipped) {
  const Part part;
  ByteBuffer bytes = read_file(part.path, 1 << 30);
  const StoredChunk chunk = open_part(part.path)->chunks()[1];
  ASSERT_EQ(chunk.first_sample, 6u);
  ASSERT_GT(images()[6].payload.size(), 131'072u);
  bytes[chunk.offset + 13] ^= 1;
  std::ofstream(part.path, std::ios::binary) << as_text(bytes);
  const auto load = [&](OnCorrupt on_corrupt) {
    ImageLoader loader(part.path, {.batch_size = 40,
                                   .augment = training(),
                                   .check_hashes = CheckHashes::never,
                                   .on_corrupt = on_corrupt});
    for (const ImageBatch& batch : loader.epoch(0)) return batch.samples.size();
    return std::size_t{0};
  };
  EXPECT_EQ(load(OnCorrupt::skip), images().size() - 1);
  try {
    static_cast<void>(load(OnCorrupt::fail));
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, part.path.size() + 11), part.path + ": sample 6:");
  }
}

TEST(SizedImages, ThatAreTooLongOnceResizedAreNamedWhenTheyAreOpened) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part-00000.zst");
  std::vector<SizedImage> images = sized_images(3);
  images[1] = {ByteBuffer(2 * 10000 * 3), 2, 10000, PayloadKind::raw, 1};
  write_sized_part(path, images, 6);
  AugmentSpec augment;
  augment.resize_short = 256;
  augment.crop_height = augment.crop_width = 224;
  try {
    const ImageLoader loader(path, {.augment = augment});
    FAIL() << "it was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    EXPECT_EQ(std::string(error.what()).substr(path.size(), 34), ": sample 1: 10000 x 2 pixels: augm");
  }
}

/// Payloads with right hashes, one that has no end, one of another size.
TEST(SizedImages, ThatCannotBeDecodedAreNamed) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part-00000.zst");
  std::vector<SizedImage> broken = sized_images(12);
  broken[4].payload.resize(broken[4].payload.size() * 2 / 3);
  broken[8].height += 1;
  write_sized_part(path, broken, 6);
  EXPECT_FALSE(verify_pack(path, {}).problems.empty());
  try {
    ImageLoader loader(path, {.batch_size = 6, .augment = training()});
    for (const ImageBatch& batch : loader.epoch(0)) static_cast<void>(batch);
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    EXPECT_EQ(std::string(error.what()).substr(path.size()),
              ": sample 4: truncated: the data ends near row 64 of 98");
  }
  ImageLoader skipping(path, {.batch_size = 12, .augment = training(), .on_corrupt = OnCorrupt::skip});
  for (const ImageBatch& batch : skipping.epoch(0)) EXPECT_EQ(batch.samples.size(), 10u);
}

/// Whatever slice of a batch fails first, the caller has the error of the first damaged image.
TEST(SizedImages, OfWhichSeveralAreDamagedAreNamedInTheirOrder) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part-00000.zst");
  std::vector<SizedImage> broken = sized_images(64);
  for (const std::size_t at : {20, 40, 60}) broken[at].height += 1;
  write_sized_part(path, broken, 6);
  for (int round = 0; round < 20; ++round) {
    ImageLoader loader(path, {.batch_size = 64, .augment = training(), .threads = 4});
    try {
      static_cast<void>(loader.next());
      FAIL() << "it was read";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).substr(path.size(), 12), ": sample 20:");
    }
  }
  ImageLoader skipping(
      path, {.batch_size = 64, .augment = training(), .threads = 4, .on_corrupt = OnCorrupt::skip});
  const ImageBatch* const batch = skipping.next();
  ASSERT_NE(batch, nullptr);
  std::vector<std::uint64_t> expected;
  for (std::uint64_t sample = 0; sample < 64; ++sample)
    if (sample != 20 && sample != 40 && sample != 60) expected.push_back(sample);
  EXPECT_TRUE(std::ranges::equal(batch->samples, expected));
  EXPECT_EQ(batch->pixels().size(), expected.size() * 24 * 32 * 3);
  EXPECT_EQ(skipping.stats().corrupt_samples, 3u);
}

/// What decoding needs on all threads comes before what is kept.
TEST(SizedImages, NeedMemoryForDecodingOnAllThreads) {
  const Part part;
  const auto error_of = [&](Cache cache, std::uint64_t cache_bytes, std::uint32_t threads) {
    try {
      const ImageLoader loader(
          part.path, {.augment = training(), .cache = cache, .cache_bytes = cache_bytes, .threads = threads});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      return std::string(error.what());
    }
    return std::string("opened");
  };
  EXPECT_EQ(error_of(Cache::none, 2 << 20, 1), "opened");
  EXPECT_EQ(error_of(Cache::none, 2 << 20, 8).substr(0, 67),
            "`cache_bytes`: decoding the largest images on all threads needs 6.1");
  EXPECT_EQ(
      error_of(Cache::compressed, 2 << 20, 1),
      "`cache_bytes`: cache compressed needs 2.7 MB, 2.1 MB are given: give more, or take `cache` none");
  EXPECT_EQ(error_of(Cache::decoded, 3 << 20, 1),
            "`cache_bytes`: cache decoded needs 4.1 MB, 3.1 MB are given: give more, or take `cache` "
            "automatic, which "
            "keeps the pixels of as many images as fit");
}

}  // namespace
}  // namespace chunkhit
