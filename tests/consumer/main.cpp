// A stranger's program: nothing but the installed package and a compiler. Usage: stranger PACK SAMPLES
// MATRIX_PACK ROWS
#include <chunkhit/dataset.h>
#include <chunkhit/image_loader.h>
#include <chunkhit/sparse_loader.h>
#include <chunkhit/version.h>

#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

namespace {

/// Whether two epochs of batches hold each sample once, with pixels and labels.
bool reads(const std::string& pack, std::uint64_t samples) {
  chunkhit::ImageLoader loader(pack, {.batch_size = 4,
                                      .shuffle = chunkhit::Shuffle::window,
                                      .seed = 7,
                                      .augment = {.flip_horizontal = 0.5}});
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    std::uint64_t seen = 0;
    std::uint64_t sum = 0;
    for (const chunkhit::ImageBatch& batch : loader.epoch(epoch)) {
      seen += batch.labels().size();
      for (const std::uint64_t sample : batch.samples) sum += sample;
      if (batch.pixels().size() != batch.shape.batch * batch.shape.height * batch.shape.width * 3)
        return false;
    }
    if (seen != samples || sum != samples * (samples - 1) / 2) return false;
  }
  std::cout << loader.stats();
  return chunkhit::ImageDataset(pack).size() == samples;
}

/// Whether an epoch holds each row once, with as many entries dense as in CSR and in the dataset, and
/// negatives are none of them.
bool reads_ratings(const std::string& pack, std::uint64_t rows) {
  chunkhit::SparseLoader dense(pack, {.batch_size = 2, .shuffle = chunkhit::Shuffle::global, .seed = 7});
  chunkhit::SparseLoader sparse(pack, {.batch_size = 2,
                                       .shuffle = chunkhit::Shuffle::global,
                                       .seed = 7,
                                       .format = chunkhit::SparseFormat::csr});
  const chunkhit::SparseDataset dataset(pack);
  const chunkhit::PopularitySampler sampler(dense.item_counts());
  std::uint64_t seen = 0;
  for (const chunkhit::SparseBatch& batch : dense.epoch(0)) {
    const chunkhit::SparseBatch* const same = sparse.next();
    if (same == nullptr) return false;
    std::size_t cells = 0;
    for (const float cell : batch.dense_f32()) cells += cell != 0 ? 1 : 0;
    const chunkhit::SparseRows copied =
        dataset.read(std::vector<std::uint64_t>(batch.rows.begin(), batch.rows.end()));
    if (cells != same->csr().indices.size() || cells != copied.indices.size()) return false;
    std::vector<std::int32_t> negatives(3);
    const auto first_row = same->csr().indices.first(static_cast<std::size_t>(same->csr().indptr[1]));
    sampler.draw(first_row, 7, seen, negatives);
    for (const std::int32_t own : first_row)
      for (const std::int32_t negative : negatives)
        if (own == negative) return false;
    seen += batch.rows.size();
  }
  std::cout << dense.row_id(0) << " " << dense.column_id(0) << "\n";
  return seen == rows && dataset.size() == rows;
}

bool knows_its_version() {
  chunkhit::check_version();
  try {
    chunkhit::check_version(0, 1, 9);
  } catch (const chunkhit::Error& error) {
    std::cout << error.what() << "\n";
    return error.code() == chunkhit::ErrorCode::usage;
  }
  return false;
}

bool refuses_what_is_not_there() {
  try {
    const chunkhit::ImageLoader loader("/nonexistent/pack");
  } catch (const chunkhit::Error& error) {
    std::cout << chunkhit::version() << ": " << error.what() << "\n";
    return error.code() == chunkhit::ErrorCode::bad_data;
  }
  return false;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) return 2;
  return reads(arguments[1], std::stoull(arguments[2])) &&
                 reads_ratings(arguments[3], std::stoull(arguments[4])) && knows_its_version() &&
                 refuses_what_is_not_there()
             ? 0
             : 1;
}
