#include <unordered_map>

#include "binding_options.h"

namespace chunkhit {
namespace {

/// The buffers that Python gave, by the address of their memory.
class PythonMemory {
 public:
  explicit PythonMemory(py::object make) : make_(std::move(make)) {}
  PythonMemory(const PythonMemory&) = delete;
  PythonMemory& operator=(const PythonMemory&) = delete;
  // NOLINTNEXTLINE(bugprone-exception-escape): taking the GIL does not throw
  ~PythonMemory() {
    const py::gil_scoped_acquire acquire;
    held_.clear();
    make_ = py::object();
  }

  void* take(std::size_t bytes) {
    const py::gil_scoped_acquire acquire;
    const py::buffer buffer = make_(bytes);
    py::buffer_info info = buffer.request(true);
    if (static_cast<std::size_t>(info.size * info.itemsize) < bytes)
      throw Error(ErrorCode::usage, "allocator: gave a buffer of " +
                                        std::to_string(info.size * info.itemsize) + " bytes, expected " +
                                        std::to_string(bytes));
    void* const memory = info.ptr;
    held_.emplace(memory, std::move(info));
    return memory;
  }

  void give_back(void* memory) {
    const py::gil_scoped_acquire acquire;
    held_.erase(memory);
  }

 private:
  py::object make_;
  std::unordered_map<void*, py::buffer_info> held_;
};

}  // namespace

BatchAllocator batch_allocator(const py::object& make) {
  if (make.is_none()) return {};
  const auto memory = std::make_shared<PythonMemory>(make);
  return {[memory](std::size_t bytes) { return memory->take(bytes); },
          [memory](void* taken, std::size_t) { memory->give_back(taken); }};
}

}  // namespace chunkhit
