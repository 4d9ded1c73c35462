// What the parts of the Python binding share.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chunkhit/error.h"
#include "chunkhit/reader.h"

namespace chunkhit {

namespace py = pybind11;

void bind_images(py::module_& module);
void bind_sparse(py::module_& module);
void bind_datasets(py::module_& module);

/// What epochs and waiting are checked with for Ctrl-C.
inline constexpr std::chrono::milliseconds kSignalInterval{50};

/// Lets one thread at a time use a loader; under the GIL, which waiting gives up. Throws usage for the
/// second.
class Turn {
 public:
  explicit Turn(bool& is_taken) : is_taken_(is_taken) {
    if (is_taken) throw Error(ErrorCode::usage, "another thread is using this loader; make one for each");
    is_taken = true;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { is_taken_ = false; }

 private:
  bool& is_taken_;
};

/// The loader's next batch; without the GIL while it waits. Throws what a signal's handler raised.
template <class Batch, class Loader>
const Batch* next_batch(Loader& loader) {
  while (true) {
    {
      const py::gil_scoped_release release;
      if (loader.wait(kSignalInterval)) return loader.next();
    }
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

/// Makes a C++ object without the GIL: files are opened and read.
template <class Made, class... Arguments>
std::unique_ptr<Made> make_without_gil(Arguments&&... arguments) {
  const py::gil_scoped_release release;
  return std::make_unique<Made>(std::forward<Arguments>(arguments)...);
}

/// Ends a C++ object without the GIL: its threads are waited for.
template <class Made>
void end_without_gil(std::unique_ptr<Made>& made) {
  const py::gil_scoped_release release;
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
