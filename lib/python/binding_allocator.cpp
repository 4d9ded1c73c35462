#include <memory>
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
  ~PythonMemory() {
    const auto forget = [&] {
      held_.reset();
      make_ = py::object();
    };
    try {
      const TakenGil gil;
      forget();
    } catch (const Error&) {
      static_cast<void>(make_.release());
      static_cast<void>(held_.release());
    }
  }

  void* take(std::size_t bytes) {
    const TakenGil gil;
    const py::buffer buffer = make_(bytes);
    py::buffer_info info = buffer.request(true);
    if (static_cast<std::size_t>(info.size * info.itemsize) < bytes)
      throw Error(ErrorCode::usage, "allocator: gave a buffer of " +
                                        std::to_string(info.size * info.itemsize) + " bytes, expected " +
                                        std::to_string(bytes));
    void* const memory = info.ptr;
    held_->emplace(memory, std::move(info));
    return memory;
  }

  void give_back(void* memory) {
    try {
      const TakenGil gil;
      held_->erase(memory);
    } catch (const Error&) {
      return;  // stays with Python, which ends
    }
  }

 private:
  py::object make_;
  using Held = std::unordered_map<void*, py::buffer_info>;
  std::unique_ptr<Held> held_ = std::make_unique<Held>();
};

}  // namespace

BatchAllocator batch_allocator(const py::object& make) {
  if (make.is_none()) return {};
  const auto memory = std::make_shared<PythonMemory>(make);
  return {[memory](std::size_t bytes) { return memory->take(bytes); },
          [memory](void* taken, std::size_t) { memory->give_back(taken); }};
}

}  // namespace chunkhit
