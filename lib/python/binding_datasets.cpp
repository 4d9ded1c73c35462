// ImageDataset and SparseDataset: samples and rows by their numbers.
#include <pybind11/stl.h>

#include "binding_columns.h"
#include "binding_ids.h"
#include "binding_options.h"

namespace chunkhit {
namespace {

/// How much is read before signals are looked at.
constexpr std::size_t kPieceBytes = std::size_t{32} << 20;

py::array empty_images(const BatchShape& shape, std::size_t count) {
  const auto batch = static_cast<py::ssize_t>(count);
  if (shape.layout == Layout::nhwc)
    return py::array_t<std::uint8_t>(ArrayShape{batch, shape.height, shape.width, shape.channels});
  return py::array_t<std::uint8_t>(ArrayShape{batch, shape.channels, shape.height, shape.width});
}

/// A dataset that knows whether a server may be waited for.
template <class Dataset>
struct Opened : Dataset {
  template <class Options>
  Opened(const std::vector<std::string>& paths, const Options& options)
      : Dataset(paths, options), is_remote(std::ranges::any_of(paths, [](const std::string& path) {
          return path.find("://") != std::string::npos;
        })) {}
  bool is_remote;
};

using Images = Opened<ImageDataset>;
using Matrix = Opened<SparseDataset>;

/// Reads without the GIL, and looks for signals; in a thread of its own only where a server may be waited
/// for.
template <class Dataset, class Read>
void read_interruptible(const Dataset& dataset, const Read& read) {
  if (dataset.is_remote) return run_interruptible(read);
  {
    const ReleasedGil release;
    read();
  }
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

/// uint8 (height, width, channels), or as stored.
py::array read_image(const Images& dataset, std::uint64_t sample) {
  const BatchShape shape = dataset.sample_shape(sample);
  const bool is_nhwc = shape.layout == Layout::nhwc;
  py::array_t<std::uint8_t> image(is_nhwc ? ArrayShape{shape.height, shape.width, shape.channels}
                                          : ArrayShape{shape.channels, shape.height, shape.width});
  std::uint8_t* const pixels = image.mutable_data();
  const auto bytes = static_cast<std::size_t>(image.size());
  read_interruptible(dataset, [&] { dataset.read({&sample, 1}, {pixels, bytes}); });
  return image;
}

/// uint8 (height, width).
py::array read_mask(const Images& dataset, const std::string& name, std::uint64_t sample) {
  const BatchShape shape = dataset.sample_shape(sample);
  py::array_t<std::uint8_t> mask(ArrayShape{shape.height, shape.width});
  std::uint8_t* const out = mask.mutable_data();
  const auto bytes = static_cast<std::size_t>(mask.size());
  read_interruptible(dataset, [&] { dataset.read_field(name, {&sample, 1}, {out, bytes}); });
  return mask;
}

/// Of each sample, where images have their own sizes.
template <class Read>
py::list read_each(const Images& dataset, const IndexArray& samples, const Read& read) {
  py::list found;
  for (const std::uint64_t sample : indices_of(samples)) found.append(read(dataset, sample));
  return found;
}

/// (image, label), of which the label is an int or float32 (columns,).
py::tuple read_sample(const Images& dataset, std::uint64_t sample) {
  py::array image = read_image(dataset, sample);
  const std::span<const float> values = dataset.label_values(sample);
  if (values.empty()) return py::make_tuple(image, dataset.label(sample));
  return py::make_tuple(image, array_of(std::vector<float>(values.begin(), values.end())));
}

/// uint8 (n, ...), as stored.
py::object read_images(const Images& dataset, const IndexArray& samples) {
  const BatchShape shape = dataset.sample_shape();
  if (dataset.info().images().own_sizes) return read_each(dataset, samples, read_image);
  const std::size_t bytes = std::size_t{shape.height} * shape.width * shape.channels;
  const std::span<const std::uint64_t> all = indices_of(samples);
  py::array images = empty_images(shape, all.size());
  auto* const pixels = static_cast<std::uint8_t*>(images.mutable_data());
  const std::size_t step = std::max<std::size_t>(1, kPieceBytes / bytes);
  for (std::size_t begin = 0; begin < all.size(); begin += step) {
    const std::span<const std::uint64_t> piece = all.subspan(begin, std::min(step, all.size() - begin));
    read_interruptible(dataset, [&] { dataset.read(piece, {pixels + begin * bytes, piece.size() * bytes}); });
  }
  return images;
}

/// Masks are uint8 (n, height, width), or a list of (height, width) of images of their own sizes. Views are
/// as the images.
py::object read_field(const Images& dataset, const std::string& name, const IndexArray& samples) {
  const std::span<const std::uint64_t> all = indices_of(samples);
  const ImagesInfo& info = dataset.info().images();
  if (info.own_sizes)
    return read_each(dataset, samples, [&](const Images& images, std::uint64_t sample) {
      return read_mask(images, name, sample);
    });
  const BatchShape shape = dataset.sample_shape();
  const auto field = std::ranges::find(info.fields, name, &SampleField::name);
  const bool is_view = field != info.fields.end() && field->role == FieldRole::view;
  py::array found = is_view ? empty_images(shape, all.size())
                            : py::array_t<std::uint8_t>(ArrayShape{static_cast<py::ssize_t>(all.size()),
                                                                   shape.height, shape.width});
  auto* const out = static_cast<std::uint8_t*>(found.mutable_data());
  const auto bytes = static_cast<std::size_t>(found.size());
  read_interruptible(dataset, [&] { dataset.read_field(name, all, {out, bytes}); });
  return found;
}

/// int64 (n,), or float32 (n, columns).
py::array read_labels(const Images& dataset, const IndexArray& samples) {
  const std::span<const std::uint64_t> all = indices_of(samples);
  const std::size_t columns = dataset.size() == 0 ? 0 : dataset.label_values(0).size();
  if (columns == 0) {
    std::vector<std::int64_t> labels;
    labels.reserve(all.size());
    for (const std::uint64_t sample : all) labels.push_back(dataset.label(sample));
    return array_of(std::move(labels));
  }
  std::vector<float> labels;
  labels.reserve(all.size() * columns);
  for (const std::uint64_t sample : all) {
    const std::span<const float> values = dataset.label_values(sample);
    labels.insert(labels.end(), values.begin(), values.end());
  }
  return array_of(std::move(labels))
      .reshape({static_cast<py::ssize_t>(all.size()), static_cast<py::ssize_t>(columns)});
}

/// (JPEG, orientation as EXIF numbers it) of a sample that is stored as JPEG; else None.
py::object read_jpeg(const Images& dataset, std::uint64_t sample) {
  StoredJpeg jpeg;
  read_interruptible(dataset, [&] { jpeg = dataset.stored_jpeg(sample); });
  if (jpeg.bytes.empty()) return py::none();
  return py::make_tuple(py::bytes(reinterpret_cast<const char*>(jpeg.bytes.data()), jpeg.bytes.size()),
                        jpeg.orientation);
}

/// float32 (n, columns), or None where the source has no labels.
py::object read_row_labels(const Matrix& dataset, const IndexArray& rows) {
  const std::span<const std::uint64_t> all = indices_of(rows);
  const std::size_t columns = dataset.labels(0).size();
  if (columns == 0) return py::none();
  std::vector<float> labels;
  labels.reserve(all.size() * columns);
  for (const std::uint64_t row : all) {
    const std::span<const float> values = dataset.labels(row);
    labels.insert(labels.end(), values.begin(), values.end());
  }
  return array_of(std::move(labels))
      .reshape({static_cast<py::ssize_t>(all.size()), static_cast<py::ssize_t>(columns)});
}

/// (indptr, indices, values): int64, int32, float32.
py::tuple read_rows(const Matrix& dataset, const IndexArray& rows, bool held_out) {
  SparseRows found;
  {
    const std::span<const std::uint64_t> all = indices_of(rows);
    read_interruptible(dataset,
                       [&] { found = dataset.read(all, held_out ? MatrixName::held_out : MatrixName::x); });
  }
  const bool has_times = !dataset.info().matrix().times.empty();
  return py::make_tuple(array_of(std::move(found.indptr)), array_of(std::move(found.indices)),
                        array_of(std::move(found.values)),
                        has_times ? py::object(array_of(std::move(found.times))) : py::none());
}

}  // namespace

void bind_datasets(py::module_& module) {
  py::class_<Images> images(module, "ImageDataset");
  bind_columns(images, [](const Images& self) -> const ImageDataset& { return self; });
  images
      .def(py::init([](const std::vector<std::string>& paths, const py::dict& keywords) {
             return make_without_gil<Images>(paths, options_of<ImageDatasetOptions>(keywords));
           }),
           py::arg("paths"), py::arg("options"))
      .def("read", &read_images, py::arg("samples"))
      .def("sample", &read_sample, py::arg("sample"))
      .def("field", &read_field, py::arg("name"), py::arg("samples"))
      .def("labels", &read_labels, py::arg("samples"))
      .def("stored_jpeg", &read_jpeg, py::arg("sample"))
      .def("info_json", [](const Images& self) { return pack_info_json(self.info()); })
      .def_property_readonly("size", &Images::size);
  py::class_<Matrix> sparse(module, "SparseDataset");
  bind_ids(sparse, [](const Matrix& self) -> const Matrix& { return self; });
  sparse
      .def(py::init([](const std::vector<std::string>& paths, const py::dict& keywords) {
             return make_without_gil<Matrix>(paths, options_of<SparseDatasetOptions>(keywords));
           }),
           py::arg("paths"), py::arg("options"))
      .def("read", &read_rows, py::arg("rows"), py::arg("held_out"))
      .def("labels", &read_row_labels, py::arg("rows"))
      .def("info_json", [](const Matrix& self) { return pack_info_json(self.info()); })
      .def_property_readonly("size", &Matrix::size)
      .def_property_readonly("column_count", &Matrix::column_count)
      .def_property_readonly("has_held_out", &Matrix::has_held_out);
}

}  // namespace chunkhit
