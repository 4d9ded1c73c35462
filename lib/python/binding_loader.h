// What the bindings of both loaders share: locking, and the methods that Python calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "binding.h"
#include "chunkhit/loader.h"

namespace chunkhit {

/// A loader, used by one thread at a time.
template <class Loader>
class BoundLoader {
 public:
  BoundLoader(const BoundLoader&) = delete;
  BoundLoader& operator=(const BoundLoader&) = delete;
  // NOLINTNEXTLINE(bugprone-exception-escape): giving the GIL up does not throw
  ~BoundLoader() { end_without_gil(loader_); }

  void begin(std::uint64_t epoch) {
    const Turn turn(access_);
    use([epoch](Loader& loader) { static_cast<void>(loader.epoch(epoch)); });
  }
  void restore(const std::string& state) {
    const Turn turn(access_);
    use([&state](Loader& loader) { loader.restore(state); });
  }
  [[nodiscard]] std::string state() {
    return use([](const Loader& loader) { return loader.state(); });
  }
  [[nodiscard]] LoaderStats stats() {
    return use([](const Loader& loader) { return loader.stats(); });
  }
  void reset_stats() {
    use([](Loader& loader) { loader.reset_stats(); });
  }
  /// For what never changes.
  [[nodiscard]] const Loader& loader() const { return *loader_; }

 protected:
  explicit BoundLoader(std::unique_ptr<Loader> loader) : loader_(std::move(loader)) {}
  /// What `make` makes of the next batch, or None at the epoch's end.
  template <class Make>
  py::object next_by(const Make& make) {
    const Turn turn(access_);
    return take_next(*loader_, access_) ? py::object(make(loader_->retain())) : py::none();
  }

 private:
  template <class Use>
  auto use(const Use& use) {
    return use_alone(*loader_, access_, use);
  }

  std::unique_ptr<Loader> loader_;
  LoaderAccess access_;
};

/// Binds what all have; `next_text` says what `next` gives.
template <class Class>
void bind_loader(Class& bound, const char* next_text) {
  using Self = typename Class::type;
  bound.def("begin", &Self::begin, py::arg("epoch"))
      .def("next", &Self::next, next_text)
      .def("restore", &Self::restore, py::arg("state"))
      .def("state", &Self::state)
      .def("stats", &Self::stats)
      .def("reset_stats", &Self::reset_stats)
      .def("mixing", [](const Self& self) { return self.loader().mixing(); })
      .def("info_json", [](const Self& self) { return pack_info_json(self.loader().info()); })
      .def_property_readonly("size", [](const Self& self) { return self.loader().size(); })
      .def_property_readonly("epoch_samples", [](const Self& self) { return self.loader().epoch_samples(); })
      .def_property_readonly("batch_count", [](const Self& self) { return self.loader().batch_count(); });
}

}  // namespace chunkhit
