// ImageLoader: batches as arrays over the memory of the ring.
#include <pybind11/stl.h>

#include "binding_columns.h"
#include "binding_options.h"

namespace chunkhit {
namespace {

ArrayShape array_shape(const BatchShape& shape) {
  const auto batch = static_cast<py::ssize_t>(shape.batch);
  if (shape.layout == Layout::nhwc) return {batch, shape.height, shape.width, shape.channels};
  return {batch, shape.channels, shape.height, shape.width};
}

/// (images, labels, samples, epoch, index), which keep the batch.
py::tuple batch_tuple(const std::shared_ptr<const ImageBatch>& batch, Dtype dtype) {
  const py::capsule owner = owner_of(batch);
  const auto count = static_cast<py::ssize_t>(batch->shape.batch);
  const ArrayShape shape = array_shape(batch->shape);
  py::array images = dtype == Dtype::uint8 ? array_view(batch->pixels, shape, owner)
                                           : array_view(batch->values, shape, owner);
  const auto columns = count == 0 ? 0 : static_cast<py::ssize_t>(batch->label_values.size()) / count;
  py::array labels = columns == 0 ? array_view(batch->labels, {count}, owner)
                                  : array_view(batch->label_values, {count, columns}, owner);
  return py::make_tuple(std::move(images), std::move(labels), array_view(batch->samples, {count}, owner),
                        batch->epoch, batch->index);
}

class PyImageLoader {
  template <class Use>
  auto use(const Use& use) {
    return use_alone(*loader_, access_, use);
  }

 public:
  PyImageLoader(const std::vector<std::string>& paths, const py::dict& keywords)
      : PyImageLoader(paths, image_loader_options(keywords)) {}
  PyImageLoader(const PyImageLoader&) = delete;
  PyImageLoader& operator=(const PyImageLoader&) = delete;
  // NOLINTNEXTLINE(bugprone-exception-escape): giving the GIL up does not throw
  ~PyImageLoader() { end_without_gil(loader_); }

  void begin(std::uint64_t epoch) {
    const Turn turn(access_);
    use([epoch](ImageLoader& loader) { static_cast<void>(loader.epoch(epoch)); });
  }

  py::object next() {
    const Turn turn(access_);
    if (!take_next(*loader_, access_)) return py::none();
    return batch_tuple(loader_->retain(), dtype_);
  }

  void restore(const std::string& state) {
    const Turn turn(access_);
    use([&state](ImageLoader& loader) { loader.restore(state); });
  }

  [[nodiscard]] ArrayShape shape() const { return array_shape(loader_->batch_shape()); }
  /// For what never changes.
  [[nodiscard]] const ImageLoader& loader() const { return *loader_; }
  [[nodiscard]] std::string state() {
    return use([](const ImageLoader& loader) { return loader.state(); });
  }
  [[nodiscard]] LoaderStats stats() {
    return use([](const ImageLoader& loader) { return loader.stats(); });
  }
  void reset_stats() {
    use([](ImageLoader& loader) { loader.reset_stats(); });
  }

 private:
  PyImageLoader(const std::vector<std::string>& paths, const ImageLoaderOptions& options)
      : dtype_(options.dtype), loader_(make_without_gil<ImageLoader>(paths, options)) {}

  Dtype dtype_;
  std::unique_ptr<ImageLoader> loader_;
  LoaderAccess access_;
};

}  // namespace

void bind_images(py::module_& module) {
  py::class_<PyImageLoader> loader(module, "ImageLoader");
  bind_columns(loader, [](const PyImageLoader& self) -> const ImageLoader& { return self.loader(); });
  loader
      .def(py::init<const std::vector<std::string>&, const py::dict&>(), py::arg("paths"), py::arg("options"))
      .def("begin", &PyImageLoader::begin, py::arg("epoch"))
      .def("next", &PyImageLoader::next,
           "The next (images, labels, samples, epoch, index), or None at the epoch's end.")
      .def("restore", &PyImageLoader::restore, py::arg("state"))
      .def("state", &PyImageLoader::state)
      .def("stats", &PyImageLoader::stats)
      .def("reset_stats", &PyImageLoader::reset_stats)
      .def("mixing", [](const PyImageLoader& self) { return self.loader().mixing(); })
      .def("info_json", [](const PyImageLoader& self) { return pack_info_json(self.loader().info()); })
      .def_property_readonly("size", [](const PyImageLoader& self) { return self.loader().size(); })
      .def_property_readonly("epoch_samples",
                             [](const PyImageLoader& self) { return self.loader().epoch_samples(); })
      .def_property_readonly("batch_count",
                             [](const PyImageLoader& self) { return self.loader().batch_count(); })
      .def_property_readonly("batch_shape",
                             [](const PyImageLoader& self) { return py::tuple(py::cast(self.shape())); });
}

}  // namespace chunkhit
