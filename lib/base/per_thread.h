// Values that each thread keeps for itself.
#pragma once

#include <pthread.h>

#include <memory>
#include <new>

namespace chunkhit {

/// One T for each thread, made at its first use and freed at the thread's end; lives as long as the process.
/// Unlike thread_local, a lack of memory is std::bad_alloc: the C library ends the process where it lacks the
/// memory to note a thread_local's destructor.
template <class T>
class PerThread {
 public:
  PerThread() : has_key_(pthread_key_create(&key_, [](void* kept) { delete static_cast<T*>(kept); }) == 0) {}

  [[nodiscard]] T& get() {
    if (!has_key_) throw std::bad_alloc();
    if (void* kept = pthread_getspecific(key_)) return *static_cast<T*>(kept);
    auto made = std::make_unique<T>();
    if (pthread_setspecific(key_, made.get()) != 0) throw std::bad_alloc();
    return *made.release();
  }

 private:
  pthread_key_t key_ = 0;
  bool has_key_;
};

}  // namespace chunkhit
