// A training loop of libtorch over a pack: softmax regression on the GPU where there is one.
// Usage: train_torch PACK [EPOCHS]      (built where libtorch is installed, Debian's libtorch-dev say)
#include <chunkhit/image_loader.h>
#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

namespace {

/// Lends the batch's pixels to libtorch, (batch, channels, height, width) uint8: until the next batch.
torch::Tensor pixels_of(const chunkhit::ImageBatch& batch) {
  const chunkhit::BatchShape& shape = batch.shape;
  return torch::from_blob(const_cast<std::uint8_t*>(batch.pixels().data()),
                          {static_cast<std::int64_t>(shape.batch), shape.channels, shape.height, shape.width},
                          torch::kUInt8);
}

torch::Tensor labels_of(const chunkhit::ImageBatch& batch) {
  return torch::from_blob(const_cast<std::int64_t*>(batch.labels().data()),
                          {static_cast<std::int64_t>(batch.labels().size())}, torch::kInt64);
}

/// The model's scores are numbered as the classes are.
void check_classes(const chunkhit::PackInfo& info) {
  bool numbered = !info.images().classes.empty();
  for (std::size_t i = 0; numbered && i < info.images().classes.size(); ++i)
    numbered = info.images().classes[i].id == static_cast<std::int64_t>(i);
  if (!numbered)
    throw chunkhit::Error(chunkhit::ErrorCode::usage, info.path + ": needs the classes 0, 1, 2 … as labels");
}

void train(const std::string& path, std::uint64_t epochs) {
  const torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  chunkhit::ImageLoader loader(
      path,
      {.batch_size = 100, .shuffle = chunkhit::Shuffle::window, .seed = 7, .layout = chunkhit::Layout::nchw});
  const chunkhit::PackInfo& info = loader.info();
  check_classes(info);
  const auto class_count = static_cast<std::int64_t>(info.images().classes.size());
  const std::int64_t value_count =
      std::int64_t{info.images().height} * info.images().width * info.images().channels;
  torch::nn::Sequential model(torch::nn::Flatten(), torch::nn::Linear(value_count, class_count));
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));

  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    torch::Tensor loss_sum = torch::zeros({}, device);
    for (const chunkhit::ImageBatch& batch : loader.epoch(epoch)) {
      // Bytes go to the device, floats are made there: a quarter of the traffic.
      const torch::Tensor pixels = pixels_of(batch).to(device).to(torch::kFloat32).div_(255);
      const torch::Tensor loss =
          torch::nn::functional::cross_entropy(model->forward(pixels), labels_of(batch).to(device));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      loss_sum += loss.detach();  // stays there: to fetch it would make every step wait for the device
    }
    std::cout << "epoch " << epoch << ": loss "
              << loss_sum.item<double>() / static_cast<double>(loader.batch_count()) << std::endl;
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
