// What pack-bench times: a loader of images or of rows of matrices, its setting, and how it is run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "chunkhit/image_loader.h"
#include "chunkhit/loader.h"
#include "chunkhit/sparse_loader.h"
#include "types/enum_names.h"

namespace chunkhit {

/// The options that both loaders have; they are named and mean the same.
struct LoaderSetting {
  std::size_t batch_size = 0;  ///< 0 until it is known which loader it is
  Shuffle shuffle = Shuffle::none;
  std::uint32_t window_chunks = 64;
  Cache cache = Cache::automatic;
  std::uint64_t cache_bytes = 0;
  std::string cache_dir = {};
  std::uint32_t threads = 0;
  std::uint32_t prefetch = 4;
};

/// Options of an ImageLoader alone.
struct ImageForm {
  AugmentSpec augment;
  Dtype dtype = Dtype::uint8;
  std::optional<Layout> layout;  ///< as stored where it is not set
  std::string images = ImageLoaderOptions().images;
  std::optional<std::string> labels;  ///< next to the images where it is not set
};

/// Options of a SparseLoader alone.
struct MatrixForm {
  SparseFormat format = SparseFormat::dense_f32;
};

/// What is timed. The form says which loader it is.
struct BenchSpec {
  std::vector<std::string> paths;
  LoaderSetting loader;
  std::variant<ImageForm, MatrixForm> form;
  std::uint32_t epochs = 2;  ///< the first checks hashes and fills the memory, the next shows the pace
  double step_seconds = 0;   ///< of a simulated training step, in which the CPU sleeps
  bool cold = false;         ///< before each epoch, drop the files from the page cache and reopen them
  [[nodiscard]] bool is_of_matrices() const { return std::holds_alternative<MatrixForm>(form); }
};

}  // namespace chunkhit
