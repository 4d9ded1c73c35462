// Sums over all chunks of a part, made on several threads.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "chunkhit/error.h"
#include "read/worker_threads.h"
#include "store/part.h"

namespace chunkhit {

/// Fetches and decodes every chunk, shows it to `look` and adds up what that learns (`Sums` has add). Chunks
/// that are damaged, or that `look` throws bad_data for, are appended to `problems` in their order. Throws
/// try_again and std::bad_alloc as reading does: nothing is known of the part then.
template <class Sums>
[[nodiscard]] Sums sum_over_chunks(
    const ChunkReader& part, std::uint32_t threads, std::vector<std::string>& problems,
    const std::function<void(std::size_t index, Bytes raw, Sums& sums)>& look) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr stopped_by;  // what says nothing of the part
  std::mutex mutex;
  Sums total;
  std::set<std::pair<std::size_t, std::string>> found;
  const auto add_error = [&](std::size_t index, std::string text) {
    const std::lock_guard lock(mutex);
    found.emplace(index, std::move(text));
  };
  const auto stop = [&] {
    const std::lock_guard lock(mutex);
    stopped_by = std::current_exception();
    next = part.chunks().size();
  };
  run_on_threads(threads, [&] {
    ByteBuffer stored;
    ByteBuffer raw;
    Sums sums;
    for (std::size_t index = next++; index < part.chunks().size(); index = next++) {
      try {
        part.fetch(index, stored);
        raw.resize(part.chunks()[index].raw_bytes);
        decode_chunk(part, index, stored, raw);
        look(index, raw, sums);
      } catch (const Error& error) {
        if (error.code() == ErrorCode::try_again) stop();
        add_error(index, error.what());
      } catch (const std::bad_alloc&) {
        stop();
      }
    }
    const std::lock_guard lock(mutex);
    total.add(sums);
  });
  if (stopped_by) std::rethrow_exception(stopped_by);
  for (const auto& [index, text] : found) problems.push_back(text);
  return total;
}

}  // namespace chunkhit
