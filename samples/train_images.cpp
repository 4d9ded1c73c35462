// Trains softmax regression on a pack of images and tells how many images of another it names rightly.
// Usage: train_images TRAIN_PACK TEST_PACK [EPOCHS]
#include <chunkhit/image_loader.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kBatchSize = 100;
constexpr float kRate = 0.02F;

/// The classes' scores are linear in the pixels: weights (pixel, class), and one more row for the bias.
class SoftmaxRegression {
 public:
  SoftmaxRegression(std::size_t pixel_count, std::size_t class_count)
      : pixel_count_(pixel_count),
        class_count_(class_count),
        weights_((pixel_count + 1) * class_count),
        gradient_(weights_.size()),
        scores_(class_count) {}

  /// One step of gradient descent; gives the mean cross-entropy before it.
  double train(const chunkhit::ImageBatch& batch) {
    std::fill(gradient_.begin(), gradient_.end(), 0.0F);
    double loss = 0;
    for (std::size_t i = 0; i < batch.shape.batch; ++i) {
      const float* const pixels = batch.values().data() + i * pixel_count_;
      const auto label = static_cast<std::size_t>(batch.labels()[i]);
      score(pixels);
      to_shares();
      loss -= std::log(std::max(scores_[label], 1e-30F));
      scores_[label] -= 1;
      add_gradient(pixels);
    }
    const float step = kRate / static_cast<float>(batch.shape.batch);
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] -= step * gradient_[i];
    return loss / static_cast<double>(batch.shape.batch);
  }

  [[nodiscard]] std::uint64_t count_right(const chunkhit::ImageBatch& batch) {
    std::uint64_t right = 0;
    for (std::size_t i = 0; i < batch.shape.batch; ++i) {
      score(batch.values().data() + i * pixel_count_);
      const auto best = std::max_element(scores_.begin(), scores_.end()) - scores_.begin();
      right += best == batch.labels()[i] ? 1 : 0;
    }
    return right;
  }

 private:
  void score(const float* pixels) {
    const float* row = weights_.data();
    std::copy_n(row + pixel_count_ * class_count_, class_count_, scores_.begin());
    for (std::size_t pixel = 0; pixel < pixel_count_; ++pixel, row += class_count_)
      for (std::size_t c = 0; c < class_count_; ++c) scores_[c] += pixels[pixel] * row[c];
  }

  void to_shares() {
    const float most = *std::max_element(scores_.begin(), scores_.end());
    float sum = 0;
    for (float& score : scores_) sum += score = std::exp(score - most);
    for (float& score : scores_) score /= sum;
  }

  void add_gradient(const float* pixels) {
    float* row = gradient_.data();
    for (std::size_t pixel = 0; pixel < pixel_count_; ++pixel, row += class_count_)
      for (std::size_t c = 0; c < class_count_; ++c) row[c] += pixels[pixel] * scores_[c];
    for (std::size_t c = 0; c < class_count_; ++c) row[c] += scores_[c];
  }

  std::size_t pixel_count_;
  std::size_t class_count_;
  std::vector<float> weights_;
  std::vector<float> gradient_;
  std::vector<float> scores_;
};

/// What both packs are normalized with: a model knows only the training set.
chunkhit::NormalizeSpec statistics_of(const chunkhit::PackInfo& info) {
  const chunkhit::ImagesInfo& images = info.images();
  return {{images.mean.begin(), images.mean.end()}, {images.std.begin(), images.std.end()}};
}

/// Each pack numbers its classes by itself: the numbers of two packs agree where the names do.
void check_classes(const chunkhit::PackInfo& train, const chunkhit::PackInfo& test) {
  bool same =
      !train.images().classes.empty() && train.images().classes.size() == test.images().classes.size();
  for (std::size_t i = 0; same && i < train.images().classes.size(); ++i)
    same = train.images().classes[i].id == static_cast<std::int64_t>(i) &&
           test.images().classes[i].id == static_cast<std::int64_t>(i) &&
           train.images().classes[i].name == test.images().classes[i].name;
  if (!same) throw chunkhit::Error(chunkhit::ErrorCode::usage, "the packs need the same classes 0, 1, 2 …");
  if (train.images().height != test.images().height || train.images().width != test.images().width ||
      train.images().channels != test.images().channels)
    throw chunkhit::Error(chunkhit::ErrorCode::usage, "the packs need samples of one shape");
}

double accuracy(SoftmaxRegression& model, chunkhit::ImageLoader& test) {
  std::uint64_t right = 0;
  for (const chunkhit::ImageBatch& batch : test.epoch(0)) right += model.count_right(batch);
  return static_cast<double>(right) / static_cast<double>(test.size());
}

void train_images(const std::string& train_path, const std::string& test_path, std::uint64_t epochs) {
  const chunkhit::PackInfo info = chunkhit::read_pack_info(train_path);
  check_classes(info, chunkhit::read_pack_info(test_path));
  const chunkhit::NormalizeSpec normalize = statistics_of(info);
  // Images that may be mirrored would also have .augment = {.flip_horizontal = 0.5}.
  chunkhit::ImageLoader loader(train_path, {.batch_size = kBatchSize,
                                            .shuffle = chunkhit::Shuffle::window,
                                            .seed = 7,
                                            .dtype = chunkhit::Dtype::float32,
                                            .normalize = normalize});
  chunkhit::ImageLoader test(test_path, {.dtype = chunkhit::Dtype::float32, .normalize = normalize});
  SoftmaxRegression model(std::size_t{info.images().height} * info.images().width * info.images().channels,
                          info.images().classes.size());

  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    double loss = 0;
    for (const chunkhit::ImageBatch& batch : loader.epoch(epoch)) loss += model.train(batch);
    std::cout << "epoch " << epoch << ": loss " << loss / static_cast<double>(loader.batch_count())
              << std::endl;
  }
  std::cout << "test accuracy " << 100 * accuracy(model, test) << " %\n" << loader.stats();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3 && count != 4) {
    std::cerr << "usage: train_images TRAIN_PACK TEST_PACK [EPOCHS]\n";
    return static_cast<int>(chunkhit::ErrorCode::usage);
  }
  std::cout << std::fixed << std::setprecision(3);
  try {
    train_images(arguments[1], arguments[2],
                 count == 4 ? std::strtoull(arguments[3], nullptr, 10) : std::uint64_t{10});
  } catch (const chunkhit::Error& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(error.code());
  }
  return 0;
}
