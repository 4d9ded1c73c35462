// The loaders of <chunkhit/cuda.h> beside those of the CPU. Usage: loaders_test PACKS, a folder with the
// packs hdf5, shard, numbers, masks-shard, ratings-* and times-* of tests/golden. tests/CMakeLists.txt also
// builds it with a stand-in for CUDA, for the CPU.
#include <chunkhit/cuda.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <type_traits>
#include <vector>

#include "checks.h"

namespace {

using chunkhit::AugmentSpec;
using chunkhit::Dtype;
using chunkhit::ImageLoader;
using chunkhit::ImageLoaderOptions;
using chunkhit::Layout;
using chunkhit::Shuffle;
using chunkhit::SparseFormat;
using chunkhit::SparseLoader;
using chunkhit::SparseLoaderOptions;
namespace cuda = chunkhit::cuda;
using cuda::DeviceDtype;
using gpu_tests::expect;
using gpu_tests::expect_error;
using Bytes = std::vector<std::uint8_t>;

/// Copies to the CPU in a stream's turn: what training would read. Call the stream's synchronize to see it.
void read_later(const void* device, std::size_t bytes, cudaStream_t stream, Bytes& to) {
  to.resize(bytes);
  if (bytes != 0)
    cuda::check(cudaMemcpyAsync(to.data(), device, bytes, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
}

template <class Value>
Bytes bytes_of(std::span<const Value> values) {
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(values.data());
  return {begin, begin + values.size_bytes()};
}

struct ReadBatch {
  std::uint64_t index;
  Bytes pixels, labels, samples, masks;
  bool operator==(const ReadBatch&) const = default;
};

std::size_t value_bytes(DeviceDtype dtype) {
  return dtype == DeviceDtype::uint8 ? 1 : dtype == DeviceDtype::float32 ? 4 : 2;
}

Bytes expected_pixels(const chunkhit::ImageBatch& batch, DeviceDtype dtype) {
  if (dtype == DeviceDtype::uint8) return bytes_of(batch.pixels());
  return dtype == DeviceDtype::float32 ? bytes_of(batch.values()) : bytes_of(batch.half_values());
}

/// The batches that are left of an epoch, as the CPU's loader makes them.
std::vector<ReadBatch> batches_of(ImageLoader& loader, std::uint64_t epoch, DeviceDtype dtype) {
  std::vector<ReadBatch> found;
  for (const chunkhit::ImageBatch& batch : loader.epoch(epoch))
    found.push_back({batch.index, expected_pixels(batch, dtype),
                     batch.are_numbers() ? bytes_of(batch.label_values()) : bytes_of(batch.labels()),
                     bytes_of(batch.samples),
                     batch.fields.empty() ? Bytes() : bytes_of(batch.field("mask").pixels())});
  return found;
}

void read_batch(const cuda::DeviceImageBatch& batch, cudaStream_t stream, ReadBatch& to) {
  to.index = batch.host->index;
  const std::size_t count = batch.shape.batch;
  read_later(batch.pixels, count * cuda::image_values(batch.shape) * value_bytes(batch.dtype), stream,
             to.pixels);
  if (batch.labels != nullptr)
    read_later(batch.labels, count * sizeof(std::int64_t), stream, to.labels);
  else
    read_later(batch.label_values, batch.host->label_values().size_bytes(), stream, to.labels);
  read_later(batch.samples, count * sizeof(std::uint64_t), stream, to.samples);
  if (batch.masks != nullptr)
    read_later(batch.masks, count * batch.shape.height * batch.shape.width, stream, to.masks);
}

/// The same on the device. Nobody waits for the stream before the end: each batch must wait for its turn.
std::vector<ReadBatch> batches_of(cuda::DeviceImageLoader& loader, std::uint64_t epoch,
                                  const cuda::Stream& stream) {
  std::vector<ReadBatch> found(loader.loader().batch_count());
  std::size_t count = 0;
  for (const cuda::DeviceImageBatch& batch : loader.epoch(epoch))
    read_batch(batch, stream.get(), found.at(count++));
  stream.synchronize();
  found.resize(count);
  return found;
}

ImageLoaderOptions cpu_options(ImageLoaderOptions options, DeviceDtype dtype) {
  switch (dtype) {
    case DeviceDtype::uint8:
      break;
    case DeviceDtype::float16:
      options.dtype = Dtype::float16;
      break;
    case DeviceDtype::bfloat16:
      options.dtype = Dtype::bfloat16;
      break;
    case DeviceDtype::float32:
      options.dtype = Dtype::float32;
      break;
  }
  return options;
}

void check_images(const std::string& pack, const ImageLoaderOptions& options, DeviceDtype dtype,
                  std::size_t device_batches, const std::string& what) {
  const cuda::Stream stream;
  ImageLoader here(pack, cpu_options(options, dtype));
  cuda::DeviceImageLoader there(pack, options, dtype, {stream.get(), device_batches});
  expect(there.batch_shape() == here.batch_shape(), what + ": batch_shape");
  for (const std::uint64_t epoch : {0, 5, 1}) {
    const std::vector<ReadBatch> expected = batches_of(here, epoch, dtype);
    expect(!expected.empty() && batches_of(there, epoch, stream) == expected,
           what + ": epoch " + std::to_string(epoch));
    expect(there.next() == nullptr, what + ": null after the end");
    expect(there.loader().stats().corrupt_samples == 0, what + ": corrupt samples");
  }
}

std::vector<AugmentSpec> augments(const chunkhit::ImagesInfo& info) {
  AugmentSpec resized{.flip_horizontal = 0.5};
  resized.resized_crop = {.height = 4, .width = 6};
  AugmentSpec turned{.flip_vertical = 0.5, .quarter_turns = true};
  turned.resized_crop = {.height = 5, .width = 5};
  return {{},
          {.flip_horizontal = 0.5},
          {.crop_height = info.height - 1, .crop_width = info.width - 2},
          {.flip_horizontal = 0.5,
           .crop_height = info.height,
           .crop_width = info.width,
           .random_crop = true,
           .crop_padding = 3},
          {.flip_horizontal = 0.5, .flip_vertical = 0.5},
          {.crop_height = info.height - 2,
           .crop_width = info.height - 2,
           .random_crop = true,
           .crop_padding = 1,
           .flip_vertical = 0.5,
           .quarter_turns = true},
          resized,
          turned};
}

void check_all_images(const std::string& packs) {
  const std::vector<DeviceDtype> dtypes{DeviceDtype::uint8, DeviceDtype::float16, DeviceDtype::bfloat16,
                                        DeviceDtype::float32};
  std::size_t number = 0;
  for (const std::string name : {"hdf5", "shard", "numbers", "masks-shard"})
    for (const AugmentSpec& augment : augments(chunkhit::read_pack_info(packs + "/" + name).images()))
      for (const DeviceDtype dtype : dtypes)
        for (const Layout layout : {Layout::nhwc, Layout::nchw})
          for (const std::uint32_t echo : {1u, 2u}) {
            ImageLoaderOptions options{.batch_size = 3, .shuffle = Shuffle::window, .seed = 7, .echo = echo};
            options.augment = augment;
            options.layout = layout;
            options.prefetch = static_cast<std::uint32_t>(1 + number % 3);
            options.threads = 2;
            options.mask_padding = 200;
            if (dtype != DeviceDtype::uint8) options.normalize = {{0.5f, 0.25f, 0.125f}, {0.3f, 0.7f, 1.1f}};
            check_images(packs + "/" + name, options, dtype, 1 + number % 4,
                         name + " case " + std::to_string(number));
            ++number;
          }
}

/// A sample that comes again in an epoch is flipped and cropped in another way.
void check_repeats(const std::string& packs) {
  ImageLoaderOptions options{.batch_size = 5, .shuffle = Shuffle::window, .seed = 7};
  options.augment = {
      .flip_horizontal = 0.5, .crop_height = 8, .crop_width = 12, .random_crop = true, .crop_padding = 3};
  options.sampler.epoch_samples = 90;
  options.sampler.balanced = true;
  check_images(packs + "/hdf5", options, DeviceDtype::uint8, 2, "balanced classes");
  options.sampler = {};
  options.sampler.subset.samples = {{3, 1, 4, 15, 9, 2, 6}};
  check_images(packs + "/hdf5", options, DeviceDtype::uint8, 2, "a subset");
  options.sampler = {};
  options.mixture.weights = {1};
  check_images(packs + "/hdf5", options, DeviceDtype::uint8, 2, "a mixture");
  options.mixture = {};
  options.augment = {.flip_horizontal = 0.5};
  options.augment.resized_crop = {.height = 4, .width = 6};
  check_images(packs + "/masks-own-sizes", options, DeviceDtype::uint8, 2, "masks of images of own sizes");
}

/// Mean and std that nobody gave: of the pack, or of another one.
void check_statistics(const std::string& packs) {
  ImageLoaderOptions options{.batch_size = 8};
  check_images(packs + "/hdf5", options, DeviceDtype::float32, 2, "own statistics");
  options.normalize_like = packs + "/shard";
  check_images(packs + "/hdf5", options, DeviceDtype::float32, 2, "statistics of another pack");
}

/// After each number of batches another loader resumes with the rest.
void check_states(const std::string& pack) {
  const ImageLoaderOptions options{.batch_size = 5, .shuffle = Shuffle::window, .seed = 3};
  const cuda::Stream stream;
  ImageLoader here(pack, options);
  const std::vector<ReadBatch> all = batches_of(here, 0, DeviceDtype::uint8);
  for (std::size_t used = 0; used < all.size(); ++used) {
    cuda::DeviceImageLoader there(pack, options, DeviceDtype::uint8, {stream.get(), 3});
    for (std::size_t i = 0; i < used; ++i) expect(there.next() != nullptr, "a batch before the state");
    cuda::DeviceImageLoader other(pack, options, DeviceDtype::uint8, {stream.get()});
    other.restore(there.state());
    const std::vector<ReadBatch> rest(all.begin() + static_cast<std::ptrdiff_t>(used), all.end());
    expect(batches_of(other, 0, stream) == rest, "state after " + std::to_string(used) + " batches");
    // The same loader begins another epoch, without the batches that were ahead.
    expect(batches_of(there, 4, stream) == batches_of(here, 4, DeviceDtype::uint8), "epoch 4 after a stop");
  }
}

/// A state names the flip and crop that the device does, as that of the CPU's loader does, which resumes from
/// it.
void check_augmented_states(const std::string& pack) {
  const ImageLoaderOptions options{
      .batch_size = 5,
      .shuffle = Shuffle::window,
      .seed = 3,
      .augment = {.flip_horizontal = 0.5, .crop_height = 3, .crop_width = 2, .random_crop = true}};
  const cuda::Stream stream;
  ImageLoader here(pack, options);
  cuda::DeviceImageLoader there(pack, options, DeviceDtype::uint8, {stream.get()});
  for (int i = 0; i < 2; ++i) expect(there.next() != nullptr && here.next() != nullptr, "a batch");
  expect(there.state() == here.state(), "the state of the CPU's loader");
  ImageLoader resumed(pack, options);
  resumed.restore(there.state());
  cuda::DeviceImageLoader other(pack, options, DeviceDtype::uint8, {stream.get()});
  other.restore(here.state());
  expect(batches_of(other, 0, stream) == batches_of(resumed, 0, DeviceDtype::uint8), "the rest, augmented");
  ImageLoaderOptions changed = options;
  changed.augment.flip_horizontal = 0.25;
  cuda::DeviceImageLoader flips_less(pack, changed, DeviceDtype::uint8, {stream.get()});
  try {
    flips_less.restore(there.state());
    expect(false, "an error for a state of another augmentation");
  } catch (const chunkhit::Error& error) {
    expect(std::string(error.what()).find("augment.flip_horizontal: 0.5, expected 0.25") != std::string::npos,
           error.what());
  }
}

/// Copies a part with one byte of its third chunk changed (schemas/shard.md: chunks begin at multiples of
/// 4,096).
std::string damaged_part(const std::string& packs) {
  constexpr std::streamoff kChanged = 3 * 4096 + 30;
  const std::filesystem::path from = packs + "/shard/part-00000.zst",
                              to = packs + "/damaged-" + std::to_string(::getpid()) + ".zst";
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
  std::fstream file(to, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(kChanged);
  const char changed = static_cast<char>(file.get() ^ 1);
  file.seekp(kChanged);
  file.put(changed);
  return to.string();
}

/// A damaged chunk ends the epoch where the CPU's loader ends it, and not a batch earlier.
void check_damage(const std::string& packs) {
  const std::string part = damaged_part(packs);
  const ImageLoaderOptions options{.batch_size = 2, .shuffle = Shuffle::none};
  std::size_t good = 0;
  ImageLoader here(part, options);
  try {
    while (here.next() != nullptr) ++good;
  } catch (const chunkhit::Error&) {
  }
  const cuda::Stream stream;
  cuda::DeviceImageLoader there(part, options, DeviceDtype::uint8, {stream.get(), 4});
  for (std::size_t i = 0; i < good; ++i) expect(there.next() != nullptr, "a batch before the damage");
  expect(good > 0 && good < there.loader().batch_count(), "damage amid the epoch: " + std::to_string(good));
  for (int i = 0; i < 2; ++i) expect_error("checksum", [&] { static_cast<void>(there.next()); });
  std::filesystem::remove(part);
}

struct ReadRows {
  Bytes cells, held_out, rows;
  bool operator==(const ReadRows&) const = default;
};

template <class Cell>
std::vector<ReadRows> rows_of(SparseLoader& loader, std::uint64_t epoch) {
  std::vector<ReadRows> found;
  const auto cells = [](const chunkhit::SparseMatrix& matrix) {
    if (matrix.row_count() == 0) return Bytes();
    if constexpr (std::is_same_v<Cell, float>)
      return bytes_of(matrix.dense_f32());
    else
      return bytes_of(matrix.dense_f16());
  };
  for (const chunkhit::SparseBatch& batch : loader.epoch(epoch))
    found.push_back({cells(batch), cells(batch.held_out), bytes_of(batch.rows)});
  return found;
}

template <class Cell>
std::vector<ReadRows> rows_of(cuda::DeviceSparseLoader& loader, std::uint64_t epoch,
                              const cuda::Stream& stream) {
  std::vector<ReadRows> found(loader.loader().batch_count());
  std::size_t count = 0;
  const auto cell_bytes = [](const cuda::DeviceMatrix& matrix) {
    return matrix.row_count * matrix.column_count * sizeof(Cell);
  };
  for (const cuda::DeviceSparseBatch& batch : loader.epoch(epoch)) {
    ReadRows& to = found.at(count++);
    read_later(batch.x.cells, cell_bytes(batch.x), stream.get(), to.cells);
    read_later(batch.held_out.cells, cell_bytes(batch.held_out), stream.get(), to.held_out);
    read_later(batch.rows, batch.host->rows.size_bytes(), stream.get(), to.rows);
  }
  stream.synchronize();
  found.resize(count);
  return found;
}

template <class Cell>
void check_dense(const std::string& pack, SparseFormat format) {
  SparseLoaderOptions options{.batch_size = 7, .shuffle = Shuffle::window, .seed = 5, .format = format};
  const cuda::Stream stream;
  for (std::size_t device_batches = 1; device_batches < 4; ++device_batches) {
    options.scale = static_cast<float>(device_batches) / 3;
    SparseLoader here(pack, options);
    cuda::DeviceSparseLoader there(pack, options, {stream.get(), device_batches});
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const std::vector<ReadRows> expected = rows_of<Cell>(here, epoch);
      expect(!expected.empty() && rows_of<Cell>(there, epoch, stream) == expected,
             pack + ": dense cells of " + std::to_string(sizeof(Cell)) + " bytes, epoch " +
                 std::to_string(epoch));
    }
  }
}

/// The arrays of CSR, in one block.
void check_csr(const std::string& pack, bool has_times) {
  const SparseLoaderOptions options{.batch_size = 7, .format = SparseFormat::csr};
  const cuda::Stream stream;
  SparseLoader here(pack, options);
  cuda::DeviceSparseLoader there(pack, options, {stream.get()});
  std::vector<Bytes> found((has_times ? 4 : 3) * there.loader().batch_count()), expected;
  std::size_t count = 0;
  for (const cuda::DeviceSparseBatch& batch : there.epoch(0)) {
    const cuda::DeviceMatrix& x = batch.x;
    read_later(x.indptr, (x.row_count + 1) * sizeof(std::int32_t), stream.get(), found.at(count++));
    read_later(x.indices, x.nnz * sizeof(std::int32_t), stream.get(), found.at(count++));
    read_later(x.values, x.nnz * sizeof(float), stream.get(), found.at(count++));
    expect(x.cells == nullptr, "CSR has no cells");
    expect((x.times != nullptr) == has_times, pack + ": times");
    if (has_times) read_later(x.times, x.nnz * sizeof(std::int64_t), stream.get(), found.at(count++));
  }
  for (const chunkhit::SparseBatch& batch : here.epoch(0)) {
    expected.push_back(bytes_of(batch.csr().indptr));
    expected.push_back(bytes_of(batch.csr().indices));
    expected.push_back(bytes_of(batch.csr().values));
    if (has_times) expected.push_back(bytes_of(batch.csr().times));
  }
  stream.synchronize();
  expect(!expected.empty() && found == expected, pack + ": CSR");
}

void check_messages(const std::string& packs) {
  const auto open = [&](const ImageLoaderOptions& options, DeviceDtype dtype = DeviceDtype::float32) {
    cuda::DeviceImageLoader loader(packs + "/hdf5", options, dtype);
  };
  const auto open_augmented = [&](const AugmentSpec& augment) {
    ImageLoaderOptions options;
    options.augment = augment;
    open(options);
  };
  expect_error("dtype: batches on the device", [&] { open({.dtype = Dtype::float32}); });
  expect_error("mean goes with std", [&] { open({.normalize = {{0.5f, 0.5f, 0.5f}, {}}}); });
  expect_error("a value for each channel", [&] { open({.normalize = {{0.5f}, {0.5f}}}); });
  expect_error("std: must not be 0", [&] { open({.normalize = {{0, 0, 0}, {1, 0, 1}}}); });
  expect_error("is above 1", [&] { open({.normalize = {{9, 9, 9}, {1, 1, 1}}}); });
  expect_error("for dtype float32", [&] { open({.normalize = {{0, 0, 0}, {1, 1, 1}}}, DeviceDtype::uint8); });
  expect_error("flip_horizontal: must be", [&] { open_augmented({.flip_horizontal = 2}); });
  expect_error("flip_vertical: must be", [&] { open_augmented({.flip_vertical = -1}); });
  expect_error("quarter_turns: needs square", [&] { open_augmented({.quarter_turns = true}); });
  expect_error("goes with crop_width", [&] { open_augmented({.crop_height = 2}); });
  expect_error("random_crop: needs", [&] { open_augmented({.random_crop = true}); });
  expect_error("crop_padding: needs", [&] { open_augmented({.crop_padding = 1}); });
  expect_error("crop_width: is more", [&] { open_augmented({.crop_height = 1, .crop_width = 9999}); });
  expect_error("device_batches", [&] {
    cuda::DeviceSparseLoader loader(packs + "/ratings-shard/train", {}, {nullptr, 0});
  });
  expect_error("dense_u8 is not made on a device", [&] {
    cuda::DeviceSparseLoader loader(packs + "/ratings-shard/train", {.format = SparseFormat::dense_u8});
  });
  expect_error("dense_f16 holds numbers up to 65504", [&] {
    cuda::DeviceSparseLoader loader(packs + "/ratings-shard/train",
                                    {.format = SparseFormat::dense_f16, .scale = 1e6f});
    static_cast<void>(loader.next());
  });
}

#ifndef __CUDACC__
/// Memory that was wanting for a batch does not lose it.
void check_out_of_memory(const std::string& packs) {
  const std::string pack = packs + "/ratings-shard/train";
  const SparseLoaderOptions options{.batch_size = 3};
  const cuda::Stream stream;
  SparseLoader here(pack, options);
  const std::vector<ReadRows> expected = rows_of<float>(here, 0);
  cuda::DeviceSparseLoader there(pack, options, {stream.get(), 3});
  stand_in::fails_next_malloc = true;
  expect_error("cudaMalloc: out of memory", [&] { static_cast<void>(there.next()); });
  const cuda::DeviceSparseBatch* const first = there.next();
  expect(first != nullptr && bytes_of(first->host->rows) == expected[0].rows, "the batch that had no memory");
}
#endif

void run_all(const std::string& packs) {
  check_all_images(packs);
  check_repeats(packs);
  check_statistics(packs);
  check_states(packs + "/hdf5");
  check_augmented_states(packs + "/hdf5");
  check_damage(packs);
  for (const std::string name : {"/ratings-shard", "/ratings-hdf5", "/times-shard", "/times-hdf5"})
    for (const std::string part : {"/train", "/test"}) {
      check_dense<float>(packs + name + part, SparseFormat::dense_f32);
      check_dense<__half>(packs + name + part, SparseFormat::dense_f16);
      check_csr(packs + name + part, name.starts_with("/times"));
    }
  check_messages(packs);
#ifndef __CUDACC__
  check_out_of_memory(packs);
#endif
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: loaders_test PACKS\n");
    return 2;
  }
  if (!gpu_tests::has_gpu()) return 0;
  try {
    run_all(arguments[1]);
  } catch (const std::exception& error) {
    expect(false, error.what());
  }
  return gpu_tests::report("loaders");
}
