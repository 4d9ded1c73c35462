// Trains softmax regression on a GPU, from batches in device memory; kernels of one's own, nothing but CUDA.
// Usage: train_cuda PACK [EPOCHS]
// nvcc -std=c++20 -O2 samples/train_cuda.cu -lchunkhit -o train_cuda
#include <chunkhit/cuda.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

namespace {

constexpr float kRate = 0.02F;
constexpr unsigned kThreads = 128;

struct Model {
  float* weights;  // (values + 1, classes); the last row is the bias
  std::size_t value_count;
  std::size_t class_count;
};

unsigned blocks_for(std::size_t items) { return static_cast<unsigned>((items + kThreads - 1) / kThreads); }

/// One thread an image: writes what cross-entropy adds to each score's gradient, and adds up its loss.
__global__ void score(Model model, const float* images, const std::int64_t* labels, std::size_t batch,
                      float* gradients, float* loss) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= batch) return;
  float* const scores = gradients + i * model.class_count;
  float most = -INFINITY, sum = 0;
  for (std::size_t c = 0; c < model.class_count; ++c) {
    float score = model.weights[model.value_count * model.class_count + c];
    for (std::size_t v = 0; v < model.value_count; ++v)
      score += images[i * model.value_count + v] * model.weights[v * model.class_count + c];
    scores[c] = score;
    most = fmaxf(most, score);
  }
  for (std::size_t c = 0; c < model.class_count; ++c) sum += scores[c] = expf(scores[c] - most);
  for (std::size_t c = 0; c < model.class_count; ++c) scores[c] /= sum;
  atomicAdd(loss, -logf(fmaxf(scores[labels[i]], 1e-30F)) / static_cast<float>(batch));
  scores[labels[i]] -= 1;
}

/// One thread a weight: a step of gradient descent.
__global__ void update(Model model, const float* images, const float* gradients, std::size_t batch) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= (model.value_count + 1) * model.class_count) return;
  const std::size_t v = i / model.class_count, c = i % model.class_count;
  float sum = 0;
  for (std::size_t n = 0; n < batch; ++n)
    sum += (v < model.value_count ? images[n * model.value_count + v] : 1) *
           gradients[n * model.class_count + c];
  model.weights[i] -= kRate * sum / static_cast<float>(batch);
}

void check_classes(const chunkhit::PackInfo& info) {
  bool is_numbered = !info.images().classes.empty();
  for (std::size_t i = 0; is_numbered && i < info.images().classes.size(); ++i)
    is_numbered = info.images().classes[i].id == static_cast<std::int64_t>(i);
  if (!is_numbered)
    throw chunkhit::Error(chunkhit::ErrorCode::usage,
                          info.path + ": needs the classes 0, 1, 2 ... as labels");
}

void train(const std::string& path, std::uint64_t epochs) {
  using chunkhit::cuda::check;
  const chunkhit::cuda::Stream stream;
  chunkhit::cuda::DeviceImageLoader loader(
      path, {.batch_size = 100, .shuffle = chunkhit::Shuffle::window, .seed = 7},
      chunkhit::cuda::DeviceDtype::float32, {.stream = stream.get()});
  const chunkhit::PackInfo& info = loader.loader().info();
  check_classes(info);
  const std::size_t value_count = chunkhit::cuda::image_values(loader.batch_shape());
  const std::size_t class_count = info.images().classes.size(),
                    weight_count = (value_count + 1) * class_count;
  chunkhit::cuda::DeviceMemory weights, gradients, loss;
  const Model model{weights.reserve<float>(weight_count), value_count, class_count};
  auto* const scores = gradients.reserve<float>(loader.batch_shape().batch * class_count);
  auto* const loss_sum = loss.reserve<float>(1);
  check(cudaMemsetAsync(model.weights, 0, weight_count * sizeof(float), stream.get()), "cudaMemsetAsync");

  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    check(cudaMemsetAsync(loss_sum, 0, sizeof(float), stream.get()), "cudaMemsetAsync");
    // Nothing here waits for the GPU: the next batch is copied while this one trains.
    for (const chunkhit::cuda::DeviceImageBatch& batch : loader.epoch(epoch)) {
      const auto* const images = static_cast<const float*>(batch.pixels);
      const std::size_t count = batch.shape.batch;
      score<<<blocks_for(count), kThreads, 0, stream.get()>>>(model, images, batch.labels, count, scores,
                                                              loss_sum);
      update<<<blocks_for(weight_count), kThreads, 0, stream.get()>>>(model, images, scores, count);
      check(cudaGetLastError(), "train");
    }
    float sum = 0;
    check(cudaMemcpyAsync(&sum, loss_sum, sizeof(sum), cudaMemcpyDeviceToHost, stream.get()),
          "cudaMemcpyAsync");
    stream.synchronize();
    std::cout << "epoch " << epoch << ": loss " << sum / static_cast<float>(loader.loader().batch_count())
              << std::endl;
  }
  std::cout << loader.loader().stats();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2 && count != 3) {
    std::cerr << "usage: train_cuda PACK [EPOCHS]\n";
    return static_cast<int>(chunkhit::ErrorCode::usage);
  }
  try {
    train(arguments[1], count == 3 ? std::strtoull(arguments[2], nullptr, 10) : std::uint64_t{10});
  } catch (const chunkhit::Error& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(error.code());
  }
  return 0;
}
