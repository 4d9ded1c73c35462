// Times of work on a stream, for the figures.
#pragma once

#include <chunkhit/cuda_memory.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace gpu_tests {

/// Event with a time.
class TimedEvent {
 public:
  TimedEvent() { chunkhit::cuda::check(cudaEventCreate(&event_), "cudaEventCreate"); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  ~TimedEvent() { static_cast<void>(cudaEventDestroy(event_)); }
  [[nodiscard]] cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// The median of 20 runs after 3 others, microseconds.
template <class Work>
double median_microseconds(cudaStream_t stream, const Work& work) {
  constexpr int kRuns = 20, kWarmUps = 3;
  const TimedEvent begin, end;
  std::vector<double> times;
  for (int run = -kWarmUps; run < kRuns; ++run) {
    chunkhit::cuda::check(cudaEventRecord(begin.get(), stream), "cudaEventRecord");
    work();
    chunkhit::cuda::check(cudaEventRecord(end.get(), stream), "cudaEventRecord");
    chunkhit::cuda::check(cudaEventSynchronize(end.get()), "cudaEventSynchronize");
    float milliseconds = 0;
    chunkhit::cuda::check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()),
                          "cudaEventElapsedTime");
    if (run >= 0) times.push_back(milliseconds * 1e3);
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

inline void print_gpu() {
  cudaDeviceProp properties{};
  chunkhit::cuda::check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  std::printf("\n%s, %d multiprocessors\n\n", properties.name, properties.multiProcessorCount);
}

}  // namespace gpu_tests
