// A stand-in for CUDA's runtime on the CPU, as far as <chunkhit/cuda.h> and its tests use it. Memory of the
// device is the CPU's. Work of a stream runs late: when somebody waits for it, or earlier, at random, by the
// environment variable STAND_IN_SEED. So work that lacks an event to wait for runs at the wrong time sooner
// or later. For one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#define __global__

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaHostAllocPortable = 1;

struct dim3 {
  dim3() = default;
  explicit dim3(unsigned count) : x(count) {}
  unsigned x = 1;
};
inline dim3 gridDim, blockDim, blockIdx, threadIdx;

struct StandInStream {
  std::deque<std::function<bool()>> work;  // each returns whether it could run yet
};
struct StandInEvent {
  std::uint64_t recorded = 0, done = 0;
};
using cudaStream_t = StandInStream*;
using cudaEvent_t = StandInEvent*;
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  cudaStream_t stream = nullptr;
};

namespace stand_in {

inline StandInStream default_stream;
inline std::vector<StandInStream*> streams{&default_stream};
inline bool fails_next_malloc = false;

inline std::uint64_t seed() {
  const char* const text = std::getenv("STAND_IN_SEED");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}
inline std::mt19937_64 random_numbers{seed()};

/// Runs up to `count` pieces of a stream's work; returns whether any ran.
inline bool run(StandInStream& stream, std::size_t count) {
  bool ran = false;
  for (; count > 0 && !stream.work.empty() && stream.work.front()(); --count) {
    stream.work.pop_front();
    ran = true;
  }
  return ran;
}

inline void run_some() {
  if (seed() == 0) return;
  for (int i = 0; i < 2; ++i) run(*streams[random_numbers() % streams.size()], random_numbers() % 6);
}

/// Runs this stream, and others as far as it waits for them, until `done`.
template <class Done>
void run_until(StandInStream* stream, const Done& done) {
  while (!done()) {
    bool ran = stream != nullptr && run(*stream, 1);
    for (std::size_t i = 0; !ran && i < streams.size(); ++i) ran = run(*streams[i], 1);
    if (ran) continue;
    std::fprintf(stderr, "stand-in: waits for work that nobody has\n");
    std::abort();
  }
}

inline cudaError_t add(cudaStream_t stream, std::function<bool()> work) {
  (stream == nullptr ? default_stream : *stream).work.push_back(std::move(work));
  run_some();
  return cudaSuccess;
}

inline void run_all() {
  for (StandInStream* stream : streams) run_until(stream, [=] { return stream->work.empty(); });
}

}  // namespace stand_in

inline const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "no error";
}
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

template <class Pointer>
cudaError_t cudaMalloc(Pointer** memory, std::size_t bytes) {
  if (std::exchange(stand_in::fails_next_malloc, false)) return cudaErrorMemoryAllocation;
  *memory = static_cast<Pointer*>(std::malloc(bytes));
  std::memset(*memory, 0xa5, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* memory) {
  if (memory != nullptr) stand_in::run_all();
  std::free(memory);
  return cudaSuccess;
}
inline cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  return cudaSuccess;
}
inline cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                                   cudaStream_t stream) {
  return stand_in::add(stream, [=] {
    std::memcpy(to, from, bytes);
    return true;
  });
}
inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return stand_in::add(stream, [=] {
    std::memset(to, value, bytes);
    return true;
  });
}

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new StandInStream;
  stand_in::streams.push_back(*stream);
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  StandInStream* const found = stream == nullptr ? &stand_in::default_stream : stream;
  stand_in::run_until(found, [=] { return found->work.empty(); });
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  cudaStreamSynchronize(stream);
  std::erase(stand_in::streams, stream);
  delete stream;
  return cudaSuccess;
}

inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new StandInEvent;
  return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  stand_in::run_until(nullptr, [=, target = event->recorded] { return event->done >= target; });
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  stand_in::run_all();
  delete event;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return stand_in::add(stream, [=, target = ++event->recorded] {
    event->done = target;
    return true;
  });
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return stand_in::add(stream, [=, target = event->recorded] { return event->done >= target; });
}

/// Runs a kernel thread by thread, in the stream's turn.
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  const std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
  return stand_in::add(config->stream, [kernel, values, config = *config] {
    gridDim = config.gridDim;
    blockDim = config.blockDim;
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
      for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) std::apply(kernel, values);
    return true;
  });
}
