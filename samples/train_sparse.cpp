// Trains a linear autoencoder on a pack of ratings and tells how many held-out items of users that it has
// never seen are among the 20 that it would show them (recall@20), beside what is popular with everybody.
// Usage: train_sparse TRAIN_PACK TEST_PACK [FACTORS [EPOCHS]]
#include <chunkhit/sparse_loader.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kShown = 20;
constexpr std::size_t kDefaultFactors = 32;
constexpr std::uint64_t kDefaultEpochs = 3;

/// Rates all items for a user as the user's ratings times V Vᵀ, V having one row an item and few orthonormal
/// columns. That is the best autoencoder without non-linear layers; its V spans the matrix's strongest
/// directions, which each epoch's V ← orthonormal(Xᵀ X V) comes nearer to (subspace iteration).
class LinearAutoencoder {
 public:
  LinearAutoencoder(std::size_t item_count, std::size_t factors)
      : items_(item_count), factors_(factors), v_(item_count * factors), next_(v_.size()), code_(factors) {
    std::uint64_t state = 1;
    for (float& weight : v_) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      weight = static_cast<float>(state >> 40) / static_cast<float>(1 << 24) - 0.5F;
    }
    orthonormalize();
  }

  /// Adds a batch's part of Xᵀ X V.
  void train(const chunkhit::CsrBatch& rows) {
    for (std::size_t row = 0; row + 1 < rows.indptr.size(); ++row) {
      encode(rows, row);
      for (auto at = begin_of(rows, row); at < begin_of(rows, row + 1); ++at) {
        float* const target = &next_[static_cast<std::size_t>(rows.indices[at]) * factors_];
        for (std::size_t f = 0; f < factors_; ++f) target[f] += rows.values[at] * code_[f];
      }
    }
  }

  void end_epoch() {
    v_.swap(next_);
    std::fill(next_.begin(), next_.end(), 0.0F);
    orthonormalize();
  }

  /// Rates all items for a row.
  void rate(const chunkhit::CsrBatch& rows, std::size_t row, std::vector<float>& scores) {
    encode(rows, row);
    for (std::size_t item = 0; item < items_; ++item)
      scores[item] = std::inner_product(code_.begin(), code_.end(), &v_[item * factors_], 0.0F);
  }

 private:
  static std::size_t begin_of(const chunkhit::CsrBatch& rows, std::size_t row) {
    return static_cast<std::size_t>(rows.indptr[row]);
  }

  void encode(const chunkhit::CsrBatch& rows, std::size_t row) {
    std::fill(code_.begin(), code_.end(), 0.0F);
    for (auto at = begin_of(rows, row); at < begin_of(rows, row + 1); ++at) {
      const float* const weights = &v_[static_cast<std::size_t>(rows.indices[at]) * factors_];
      for (std::size_t f = 0; f < factors_; ++f) code_[f] += rows.values[at] * weights[f];
    }
  }

  // Gram and Schmidt, column by column.
  void orthonormalize() {
    for (std::size_t f = 0; f < factors_; ++f) {
      for (std::size_t before = 0; before < f; ++before) {
        const double shared = dot(f, before);
        for (std::size_t i = 0; i < items_; ++i)
          v_[i * factors_ + f] -= static_cast<float>(shared) * v_[i * factors_ + before];
      }
      const double length = std::sqrt(dot(f, f));
      for (std::size_t i = 0; i < items_; ++i)
        v_[i * factors_ + f] /= static_cast<float>(std::max(length, 1e-20));
    }
  }

  [[nodiscard]] double dot(std::size_t a, std::size_t b) const {
    double sum = 0;
    for (std::size_t i = 0; i < items_; ++i)
      sum += double{v_[i * factors_ + a]} * double{v_[i * factors_ + b]};
    return sum;
  }

  std::size_t items_;
  std::size_t factors_;
  std::vector<float> v_;     // (item, factor)
  std::vector<float> next_;  // the epoch's Xᵀ X V so far
  std::vector<float> code_;  // of a row
};

std::span<const std::int32_t> items_of(const chunkhit::CsrBatch& rows, std::size_t row) {
  const auto begin = static_cast<std::size_t>(rows.indptr[row]);
  return rows.indices.subspan(begin, static_cast<std::size_t>(rows.indptr[row + 1]) - begin);
}

/// The share of a row's held-out items, or of the 20 that are shown where it has more, that are shown.
double recall(std::vector<float> scores, std::span<const std::int32_t> known,
              std::span<const std::int32_t> held_out) {
  for (const std::int32_t item : known) scores[static_cast<std::size_t>(item)] = -INFINITY;
  std::vector<std::int32_t> best(scores.size());
  std::iota(best.begin(), best.end(), 0);
  const std::size_t shown = std::min(kShown, best.size());
  std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(shown), best.end(),
                    [&](std::int32_t a, std::int32_t b) {
                      return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
                    });
  const auto hits =
      std::count_if(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(shown),
                    [&](auto item) { return std::binary_search(held_out.begin(), held_out.end(), item); });
  return static_cast<double>(hits) / static_cast<double>(std::min(kShown, held_out.size()));
}

struct Recall {
  double autoencoder = 0;
  double popularity = 0;
};

Recall test_on(chunkhit::SparseLoader& test, LinearAutoencoder& model, const std::vector<float>& popularity) {
  Recall sum;
  std::vector<float> scores(popularity.size());
  for (const chunkhit::SparseBatch& batch : test.epoch(0))
    for (std::size_t row = 0; row < batch.row_count(); ++row) {
      const auto known = items_of(batch.csr(), row);
      const auto held_out = items_of(batch.held_out.csr(), row);
      model.rate(batch.csr(), row, scores);
      sum.autoencoder += recall(scores, known, held_out);
      sum.popularity += recall(popularity, known, held_out);
    }
  const auto rows = static_cast<double>(test.size());
  return {sum.autoencoder / rows, sum.popularity / rows};
}

void train_sparse(const std::string& train_path, const std::string& test_path, std::size_t factors,
                  std::uint64_t epochs) {
  const auto format = chunkhit::SparseFormat::csr;
  const auto normalize = chunkhit::RowNorm::l2;
  chunkhit::SparseLoader loader(
      train_path, {.shuffle = chunkhit::Shuffle::global, .format = format, .normalize = normalize});
  chunkhit::SparseLoader test(test_path, {.format = format, .normalize = normalize});
  if (!test.has_held_out() || test.column_count() != loader.column_count())
    throw chunkhit::Error(chunkhit::ErrorCode::usage,
                          test_path + ": expected held-out ratings of the same items; pack with --split-by");
  const std::vector<float> popularity(loader.item_counts().begin(), loader.item_counts().end());
  LinearAutoencoder model(loader.column_count(), std::min<std::size_t>(factors, loader.column_count()));
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    for (const chunkhit::SparseBatch& batch : loader.epoch(epoch)) model.train(batch.csr());
    model.end_epoch();
  }
  const Recall found = test_on(test, model, popularity);
  std::cout << "recall@20 on " << test.size() << " held-out users: " << found.autoencoder
            << ", of the most popular items: " << found.popularity << "\n"
            << loader.stats();
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3 || count > 5) {
    std::cerr << "usage: train_sparse TRAIN_PACK TEST_PACK [FACTORS [EPOCHS]]\n";
    return static_cast<int>(chunkhit::ErrorCode::usage);
  }
  std::cout << std::fixed << std::setprecision(3);
  try {
    train_sparse(arguments[1], arguments[2],
                 count > 3 ? std::strtoull(arguments[3], nullptr, 10) : kDefaultFactors,
                 count > 4 ? std::strtoull(arguments[4], nullptr, 10) : kDefaultEpochs);
  } catch (const chunkhit::Error& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(error.code());
  }
  return 0;
}
