// ImageLoader: batches as arrays over the memory of the ring.
#include <pybind11/stl.h>

#include "binding_columns.h"
#include "binding_loader.h"
#include "binding_options.h"

namespace chunkhit {
namespace {

ArrayShape array_shape(const BatchShape& shape) {
  const auto batch = static_cast<py::ssize_t>(shape.batch);
  if (shape.layout == Layout::nhwc) return {batch, shape.height, shape.width, shape.channels};
  return {batch, shape.channels, shape.height, shape.width};
}

/// The values of a batch, or of a field of it, in the span that its type fills. NumPy has no bfloat16: its
/// bits are uint16.
template <class Values>
py::array values_array(Dtype dtype, const Values& from, const ArrayShape& shape, const py::capsule& owner) {
  if (dtype == Dtype::uint8) return array_view(from.pixels(), shape, owner);
  if (dtype == Dtype::float32) return array_view(from.values(), shape, owner);
  if (dtype == Dtype::float16)
    return array_view(py::dtype(kHalfFloat), shape, from.half_values().data(), owner);
  return array_view(from.half_values(), shape, owner);
}

/// The fields beside the images by their names, or None.
py::object fields_dict(const ImageBatch& batch, Dtype dtype, const ArrayShape& images,
                       const py::capsule& owner) {
  if (batch.fields.empty()) return py::none();
  const ArrayShape masks{static_cast<py::ssize_t>(batch.shape.batch), batch.shape.height, batch.shape.width};
  py::dict fields;
  for (const BatchField& field : batch.fields) {
    const bool is_mask = field.role == FieldRole::mask;
    fields[py::str(std::string(field.name))] =
        values_array(is_mask ? Dtype::uint8 : dtype, field, is_mask ? masks : images, owner);
  }
  return fields;
}

/// (images, labels, samples, epoch, index, fields or None, uses), which keep the batch.
py::tuple batch_tuple(const std::shared_ptr<const ImageBatch>& batch, Dtype dtype) {
  const py::capsule owner = owner_of(batch);
  const auto count = static_cast<py::ssize_t>(batch->shape.batch);
  const ArrayShape shape = array_shape(batch->shape);
  py::array images = values_array(dtype, *batch, shape, owner);
  const bool are_numbers = batch->are_numbers();
  const auto columns =
      are_numbers && count != 0 ? static_cast<py::ssize_t>(batch->label_values().size()) / count : 1;
  py::array labels = are_numbers ? array_view(batch->label_values(), {count, columns}, owner)
                                 : array_view(batch->labels(), {count}, owner);
  return py::make_tuple(std::move(images), std::move(labels), array_view(batch->samples, {count}, owner),
                        batch->epoch, batch->index, fields_dict(*batch, dtype, shape, owner),
                        array_view(batch->uses, {count}, owner));
}

class PyImageLoader : public BoundLoader<ImageLoader> {
 public:
  PyImageLoader(const std::vector<std::string>& paths, const py::dict& keywords)
      : PyImageLoader(paths, image_loader_options(keywords)) {}
  py::object next() {
    return next_by([this](const auto& batch) { return batch_tuple(batch, dtype_); });
  }

 private:
  PyImageLoader(const std::vector<std::string>& paths, const ImageLoaderOptions& options)
      : BoundLoader(make_without_gil<ImageLoader>(paths, options)), dtype_(options.dtype) {}

  Dtype dtype_;
};

}  // namespace

void bind_images(py::module_& module) {
  py::class_<PyImageLoader> loader(module, "ImageLoader");
  loader.def(py::init<const std::vector<std::string>&, const py::dict&>(), py::arg("paths"),
             py::arg("options"));
  bind_loader(loader,
              "The next (images, labels, samples, epoch, index, fields, uses), or None at the epoch's end.");
  bind_columns(loader, [](const PyImageLoader& self) -> const ImageLoader& { return self.loader(); });
  loader.def_property_readonly("batch_shape", [](const PyImageLoader& self) {
    return py::tuple(py::cast(array_shape(self.loader().batch_shape())));
  });
}

}  // namespace chunkhit
