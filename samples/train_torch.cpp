// A training loop of libtorch over a pack: softmax regression on the GPU where there is one.
// Usage: train_torch PACK [EPOCHS]
#include <chunkhit/reader.h>
#include <torch/torch.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

namespace {

/// Lends the batch's pixels to libtorch, (batch, channels, height, width) uint8: until the next batch.
torch::Tensor pixels_of(const chunkhit::ImageBatch& batch) {
  const chunkhit::BatchShape& shape = batch.shape;
  return torch::from_blob(const_cast<std::uint8_t*>(batch.pixels.data()),
                          {static_cast<std::int64_t>(shape.batch), shape.channels, shape.height, shape.width},
                          torch::kUInt8);
}

torch::Tensor labels_of(const chunkhit::ImageBatch& batch) {
  return torch::from_blob(const_cast<std::int64_t*>(batch.labels.data()),
                          {static_cast<std::int64_t>(batch.labels.size())}, torch::kInt64);
}

void train(const std::string& path, std::uint64_t epochs) {
  const torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  chunkhit::ImageLoader loader(
      path,
      {.batch_size = 100, .shuffle = chunkhit::Shuffle::window, .seed = 7, .layout = chunkhit::Layout::nchw});
  const chunkhit::PackInfo& info = loader.info();
  const auto class_count = static_cast<std::int64_t>(info.classes.size());
  torch::nn::Sequential model(torch::nn::Flatten(),
                              torch::nn::Linear(info.height * info.width * info.channels, class_count));
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));

  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    torch::Tensor loss;
    for (const chunkhit::ImageBatch& batch : loader.epoch(epoch)) {
      // Bytes go to the device, floats are made there: a quarter of the traffic.
      const torch::Tensor pixels = pixels_of(batch).to(device).to(torch::kFloat32).div_(255);
      loss = torch::nn::functional::cross_entropy(model->forward(pixels), labels_of(batch).to(device));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }
    std::cout << "epoch " << epoch << ": loss " << loss.item<float>() << std::endl;
  }
  std::cout << loader.stats();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2 && count != 3) {
    std::cerr << "usage: train_torch PACK [EPOCHS]\n";
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
