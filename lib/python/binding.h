// What the parts of the Python binding share.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chunkhit/error.h"
#include "chunkhit/image_loader.h"
#include "chunkhit/remote.h"

namespace chunkhit {

namespace py = pybind11;

void bind_images(py::module_& module);
void bind_sparse(py::module_& module);
void bind_datasets(py::module_& module);
void bind_options(py::module_& module);
void bind_packing(py::module_& module);
void bind_writers(py::module_& module);

/// Gives up the GIL as long as it lives. A thread that wants it back while Python exits sleeps instead, as
/// from Python 3.14 on: older ones end the thread by an exception that no destructor may pass on, which
/// aborts.
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;
  ~ReleasedGil();

 private:
  PyThreadState* state_;
};

/// Holds the GIL as long as it lives, for callbacks from threads of the library. Throws try_again while
/// Python exits: memory that it gave is its own again.
class TakenGil {
 public:
  TakenGil();
  TakenGil(const TakenGil&) = delete;
  TakenGil& operator=(const TakenGil&) = delete;
  ~TakenGil();

 private:
  PyGILState_STATE state_;
};

/// What epochs and waiting are checked with for Ctrl-C.
inline constexpr std::chrono::milliseconds kSignalInterval{50};

/// Who uses a loader: one thread takes its batches, any may look at its numbers in between.
class LoaderAccess {
 public:
  /// Alone with the loader as long as the result lives, in the order of asking: who asks while another waits
  /// for a batch is next. To be called without the GIL, which an allocator asks for meanwhile.
  [[nodiscard]] std::unique_lock<std::mutex> enter() {
    const std::lock_guard<std::mutex> first_in_line(door_);
    return std::unique_lock<std::mutex>(loader_);
  }

 private:
  friend class Turn;
  std::mutex door_;
  std::mutex loader_;
  bool is_taken_ = false;
};

/// A thread's turn to take batches, or to add to a writer; under the GIL, which waiting gives up. Throws
/// usage for the second.
class Turn {
 public:
  explicit Turn(LoaderAccess& access) : Turn(access.is_taken_, "loader") {}
  Turn(bool& is_taken, const std::string& what) : is_taken_(is_taken) {
    if (is_taken_)
      throw Error(ErrorCode::usage, "another thread is using this " + what + "; make one for each");
    is_taken_ = true;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { is_taken_ = false; }

 private:
  bool& is_taken_;
};

/// What `use` does with a loader, alone and without the GIL.
template <class Loader, class Use>
auto use_alone(Loader& loader, LoaderAccess& access, const Use& use) {
  const ReleasedGil release;
  const std::unique_lock<std::mutex> alone = access.enter();
  return use(loader);
}

/// Moves a loader to its next batch, to be retained; returns whether there is one. Without the GIL while
/// it waits. Throws what a signal's handler raised.
template <class Loader>
bool take_next(Loader& loader, LoaderAccess& access) {
  while (true) {
    const std::optional<bool> found = use_alone(loader, access, [](Loader& alone) -> std::optional<bool> {
      if (!alone.wait_for(kSignalInterval)) return std::nullopt;
      return alone.next() != nullptr;
    });
    if (found) return *found;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

/// Returns what `use` does, without the GIL, in a thread of its own: it may wait for a server, for whose
/// failures a warning is logged after a while. Throws what a signal's handler raised meanwhile, once the
/// waiting has ended.
template <class Use>
auto run_interruptible(const Use& use) {
  constexpr std::chrono::seconds kQuiet{3};
  std::atomic<bool> stop = false;
  auto running = std::async(std::launch::async, [&] {
    const StopScope scope(&stop);
    return use();
  });
  const auto wait = [&](std::chrono::milliseconds longest) {
    const ReleasedGil release;
    return running.wait_for(longest) == std::future_status::ready;
  };
  try {
    bool has_warned = false;
    const auto begin = std::chrono::steady_clock::now();
    while (!wait(kSignalInterval)) {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (has_warned || std::chrono::steady_clock::now() - begin < kQuiet) continue;
      const std::string trouble = server_trouble();
      has_warned = !trouble.empty();
      if (has_warned)
        py::module_::import("logging").attr("getLogger")("chunkhit.remote").attr("warning")(trouble);
    }
  } catch (...) {
    stop = true;
    while (!wait(kSignalInterval)) {
    }
    throw;
  }
  const ReleasedGil release;
  return running.get();
}

/// Makes a C++ object that opens and reads files.
template <class Made, class... Arguments>
std::unique_ptr<Made> make_without_gil(Arguments&&... arguments) {
  return run_interruptible([&] { return std::make_unique<Made>(std::forward<Arguments>(arguments)...); });
}

/// Ends a C++ object without the GIL: its threads are waited for.
template <class Made>
void end_without_gil(std::unique_ptr<Made>& made) {
  const ReleasedGil release;
  made.reset();
}

/// The owner of memory that arrays look into: it lives as long as any of them.
template <class Batch>
py::capsule owner_of(std::shared_ptr<const Batch> batch) {
  using Owner = std::shared_ptr<const Batch>;
  auto owner = std::make_unique<Owner>(std::move(batch));
  py::capsule capsule(owner.get(), [](void* pointer) { delete static_cast<Owner*>(pointer); });
  static_cast<void>(owner.release());
  return capsule;
}

/// Text that need not be UTF-8: names of files, ids of damaged packs. What is none shows as \xNN.
inline py::str text_of(std::string_view text) {
  PyObject* const made =
      PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "backslashreplace");
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(made);
}

using ArrayShape = std::vector<py::ssize_t>;

inline constexpr int kHalfFloat = 23;  // NumPy's NPY_HALF

/// An array that looks into memory of `owner`.
inline py::array array_view(const py::dtype& type, ArrayShape shape, const void* data,
                            const py::capsule& owner, bool writable = true) {
  py::array array(type, std::move(shape), {}, data, owner);
  if (!writable) py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

template <class Number>
py::array array_view(std::span<const Number> data, ArrayShape shape, const py::capsule& owner,
                     bool writable = true) {
  return array_view(py::dtype::of<Number>(), std::move(shape), data.data(), owner, writable);
}

/// An array that owns its numbers.
template <class Number>
py::array_t<Number> array_of(std::vector<Number>&& numbers) {
  auto held = std::make_unique<std::vector<Number>>(std::move(numbers));
  const py::capsule owner(held.get(),
                          [](void* pointer) { delete static_cast<std::vector<Number>*>(pointer); });
  const std::vector<Number>* const all = held.release();
  return py::array_t<Number>(static_cast<py::ssize_t>(all->size()), all->data(), owner);
}

/// Index numbers, contiguous.
using IndexArray = py::array_t<std::uint64_t, py::array::c_style>;

inline std::span<const std::uint64_t> indices_of(const IndexArray& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

}  // namespace chunkhit
