// What a loader gave, and parts to read.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "chunkhit/error.h"
#include "chunkhit/image_loader.h"
#include "known_parts.h"
#include "temporary_folder.h"

namespace chunkhit {
inline constexpr std::uint64_t kSamples = 103;
inline const SampleShape kShape{6, 5, 3, Layout::nhwc};

/// Writes a part of kSamples samples in chunks of four.
inline std::string write_part(const TemporaryFolder& folder, const std::string& name,
                              const std::string& filter, std::uint64_t samples = kSamples,
                              std::size_t label_columns = 1) {
  const Container& kind = container(name);
  const std::string path =
      folder.path("part" + filter + std::to_string(samples) + std::string(kind.extension));
  write_known_part(kind, path, known_spec(kShape, filter, label_columns), samples);
  return path;
}

/// What a batch held, by value.
struct Seen {
  std::vector<std::uint64_t> samples;
  std::vector<std::uint8_t> pixels;
  std::vector<std::int64_t> labels;
  bool operator==(const Seen&) const = default;
};

inline Seen seen(const ImageBatch& batch) {
  return {{batch.samples.begin(), batch.samples.end()},
          {batch.pixels().begin(), batch.pixels().end()},
          batch.are_numbers() ? std::vector<std::int64_t>()
                              : std::vector<std::int64_t>(batch.labels().begin(), batch.labels().end())};
}

inline std::vector<Seen> read_epoch(ImageLoader& loader, std::uint64_t epoch) {
  std::vector<Seen> batches;
  for (const ImageBatch& batch : loader.epoch(epoch)) batches.push_back(seen(batch));
  return batches;
}

inline std::vector<std::uint64_t> samples_of(const std::vector<Seen>& batches) {
  std::vector<std::uint64_t> samples;
  for (const Seen& batch : batches) samples.insert(samples.end(), batch.samples.begin(), batch.samples.end());
  return samples;
}

inline std::vector<std::uint64_t> all_samples() {
  std::vector<std::uint64_t> samples(kSamples);
  for (std::uint64_t i = 0; i < kSamples; ++i) samples[i] = i;
  return samples;
}

inline void expect_known_pixels(const std::vector<Seen>& batches) {
  for (const Seen& batch : batches)
    for (std::size_t i = 0; i < batch.samples.size(); ++i) {
      const ByteBuffer expected = known_samples(kShape, batch.samples[i], 1);
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(),
                             batch.pixels.begin() + static_cast<std::ptrdiff_t>(i * kShape.byte_count())))
          << "sample " << batch.samples[i];
      ASSERT_EQ(batch.labels[i], static_cast<std::int64_t>(batch.samples[i] % 3));
    }
}

/// Reads epochs, of which each pixel must be right; returns the code of the error that ends them, or 0.
inline int epochs_end(ImageLoader& loader, std::uint64_t first, std::uint64_t end) {
  try {
    for (std::uint64_t epoch = first; epoch < end; ++epoch) expect_known_pixels(read_epoch(loader, epoch));
  } catch (const Error& error) {
    return static_cast<int>(error.code());
  }
  return 0;
}

/// Containers and filters.
inline const std::vector<std::pair<std::string, std::string>> kKinds{{"hdf5", "none"},  {"hdf5", "deflate"},
                                                                     {"hdf5", "zstd"},  {"shard", "photo"},
                                                                     {"shard", "zstd"}, {"shard", "none"}};

}  // namespace chunkhit
