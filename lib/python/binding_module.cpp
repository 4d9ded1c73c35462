// chunkhit._chunkhit: the public headers for Python; the package around it gives them their Python form.
#include <pybind11/stl.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/words.h"
#include "binding.h"
#include "chunkhit/pack_info.h"
#include "chunkhit/verify.h"
#include "chunkhit/version.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

const char* code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::too_many_rejects:
      return "too_many_rejects";
    case ErrorCode::usage:
      return "usage";
    case ErrorCode::bad_data:
      return "bad_data";
    case ErrorCode::cannot_write:
      return "cannot_write";
    case ErrorCode::try_again:
      break;
  }
  return "try_again";
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the form that pybind11 asks for
void translate_error(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const py::object type = py::module_::import("chunkhit._error").attr("Error");
    const py::object raised = type(text_of(error.what()), code_name(error.code()));
    PyErr_SetObject(type.ptr(), raised.ptr());
  } catch (const py::cast_error&) {
    const py::object type = py::module_::import("chunkhit._error").attr("ArgumentError");
    const py::object raised =
        type("an argument is of another type than expected, or a text with a surrogate alone");
    PyErr_SetObject(type.ptr(), raised.ptr());
  }
}

std::string stats_text(const LoaderStats& stats) {
  std::ostringstream text;
  text << stats;
  return text.str();
}

std::string mixing_text(const MixingInfo& mixing) {
  std::ostringstream text;
  text << "MixingInfo(chunks=" << mixing.chunks << ", chunks_in_window=" << mixing.chunks_in_window
       << ", samples_in_window=" << mixing.samples_in_window
       << ", same_chunk_neighbors=" << mixing.same_chunk_neighbors
       << ", epoch_samples=" << mixing.epoch_samples << ", distinct_samples=" << mixing.distinct_samples
       << ", chunk_visits=" << mixing.chunk_visits << ", samples_per_visit=" << mixing.samples_per_visit
       << ")";
  return text.str();
}

void bind_stats(py::module_& module) {
  py::class_<LoaderStats>(module, "LoaderStats", "Who waited for whom; times in seconds.")
      .def_readwrite("seconds", &LoaderStats::seconds)
      .def_readwrite("wait_seconds", &LoaderStats::wait_seconds)
      .def_readwrite("step_seconds", &LoaderStats::step_seconds)
      .def_readonly("fetch_seconds", &LoaderStats::fetch_seconds)
      .def_readonly("decode_seconds", &LoaderStats::decode_seconds)
      .def_readonly("assemble_seconds", &LoaderStats::assemble_seconds)
      .def_readonly("idle_seconds", &LoaderStats::idle_seconds)
      .def_readwrite("transform_seconds", &LoaderStats::transform_seconds)
      .def_readwrite("transform_wait_seconds", &LoaderStats::transform_wait_seconds)
      .def_readonly("batches", &LoaderStats::batches)
      .def_readonly("samples", &LoaderStats::samples)
      .def_readonly("batch_bytes", &LoaderStats::batch_bytes)
      .def_readonly("stored_bytes", &LoaderStats::stored_bytes)
      .def_readonly("chunk_hits", &LoaderStats::chunk_hits)
      .def_readonly("chunk_misses", &LoaderStats::chunk_misses)
      .def_readonly("chunk_fetches", &LoaderStats::chunk_fetches)
      .def_readonly("shared_chunks", &LoaderStats::shared_chunks)
      .def_readonly("corrupt_chunks", &LoaderStats::corrupt_chunks)
      .def_readonly("corrupt_samples", &LoaderStats::corrupt_samples)
      .def_readonly("retained_batches", &LoaderStats::retained_batches)
      .def_readonly("remote_bytes", &LoaderStats::remote_bytes)
      .def_readonly("disk_chunks", &LoaderStats::disk_chunks)
      .def_readonly("decoded_images", &LoaderStats::decoded_images)
      .def_readonly("threads", &LoaderStats::threads)
      .def_readonly("prefetch", &LoaderStats::prefetch)
      .def_readwrite("transform_ahead", &LoaderStats::transform_ahead)
      .def_readonly("tuning", &LoaderStats::tuning)
      .def_readonly("has_settled", &LoaderStats::has_settled)
      .def_readwrite("notices", &LoaderStats::notices)
      .def_property_readonly("cache", [](const LoaderStats& stats) { return name_of(stats.cache); })
      .def_property_readonly("wait_fraction", &LoaderStats::wait_fraction)
      .def("since", &LoaderStats::since, py::arg("earlier"))
      .def("verdict", &LoaderStats::verdict)
      .def("__str__", &stats_text)
      .def("__repr__", &stats_text);
  py::class_<MixingInfo>(module, "MixingInfo", "How well an order mixes samples, and what a sampler costs.")
      .def_readonly("chunks", &MixingInfo::chunks)
      .def_readonly("chunks_in_window", &MixingInfo::chunks_in_window)
      .def_readonly("samples_in_window", &MixingInfo::samples_in_window)
      .def_readonly("same_chunk_neighbors", &MixingInfo::same_chunk_neighbors)
      .def_readonly("epoch_samples", &MixingInfo::epoch_samples)
      .def_readonly("distinct_samples", &MixingInfo::distinct_samples)
      .def_readonly("chunk_visits", &MixingInfo::chunk_visits)
      .def_readonly("samples_per_visit", &MixingInfo::samples_per_visit)
      .def("__repr__", &mixing_text);
}

/// Returns whether Python ends the threads that take the GIL.
bool is_exiting() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

/// Takes the GIL by `take`. Python before 3.14 ends a thread that does so while it exits by unwinding its
/// stack, which nothing may stop: within the handler the thread is not ended yet.
template <class Take>
auto take_gil(const Take& take) {
  try {
    return take();
  } catch (...) {
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

}  // namespace

ReleasedGil::~ReleasedGil() {
  take_gil([this] { PyEval_RestoreThread(state_); });
}

TakenGil::TakenGil() {
  if (Py_IsInitialized() == 0 || is_exiting()) throw Error(ErrorCode::try_again, "Python ends");
  state_ = take_gil([] { return PyGILState_Ensure(); });
}

TakenGil::~TakenGil() { PyGILState_Release(state_); }

namespace {

/// pybind11 before 2.12 reads NumPy 2's types as NumPy 1 lays them out, and says nothing.
void check_numpy() {
#if PYBIND11_VERSION_HEX < 0x020c0000
  const py::dict loaded = py::module_::import("sys").attr("modules");
  if (!loaded.contains("numpy")) return;
  const std::string found = py::str(py::getattr(loaded["numpy"], "__version__", py::str("")));
  if (std::strtol(found.c_str(), nullptr, 10) < 2) return;
  const std::string built_with =
      std::to_string(PYBIND11_VERSION_MAJOR) + "." + std::to_string(PYBIND11_VERSION_MINOR);
  throw py::import_error("found NumPy " + found + " and chunkhit built with pybind11 " + built_with +
                         ", expected NumPy 1, or a build with pybind11 2.12 or newer");
#endif
}

}  // namespace

PYBIND11_MODULE(_chunkhit, module) {
  check_numpy();
  check_version();
  module.attr("__version__") = version();
  py::register_exception_translator(translate_error);
  bind_stats(module);
  bind_images(module);
  bind_sparse(module);
  bind_datasets(module);
  bind_options(module);
  bind_packing(module);
  bind_writers(module);
  module.def("may_be_ids", may_be_ids);
  module.def("did_you_mean", [](const std::string& given, const std::vector<std::string>& valid) {
    return did_you_mean(given, valid);
  });
  module.def(
      "pack_info_json",
      [](const std::string& path, const std::string& images, const std::optional<std::string>& labels) {
        return run_interruptible([&] { return pack_info_json(read_pack_info(path, {images, labels})); });
      },
      py::arg("path"), py::arg("images"), py::arg("labels"));
  module.def(
      "read_pack_file",
      [](const std::string& folder, const std::string& name) {
        return py::bytes(run_interruptible([&] { return read_pack_file(folder, name); }));
      },
      py::arg("folder"), py::arg("name"));
  module.def(
      "packs_of",
      [](const std::string& path) {
        const std::vector<std::string> packs = run_interruptible([&] { return packs_of(path); });
        return std::vector<py::bytes>(packs.begin(), packs.end());
      },
      py::arg("path"));
  module.def(
      "missing_packs",
      [](const std::string& path) {
        std::vector<std::pair<py::bytes, std::string>> reports;
        for (const auto& [pack, problem] : run_interruptible([&] { return missing_packs(path); })) {
          VerifyReport report;
          report.problems.push_back(problem);
          reports.emplace_back(pack, verify_report_json(report));
        }
        return reports;
      },
      py::arg("path"));
  module.def(
      "verify_pack_json",
      [](const std::string& path, bool quick, std::uint32_t threads, const std::string& images,
         const std::optional<std::string>& labels) {
        return run_interruptible([&] {
          return verify_report_json(verify_pack(
              path, {.quick = quick, .threads = threads, .names = {images, labels}, .on_part = {}}));
        });
      },
      py::arg("path"), py::arg("quick"), py::arg("threads"), py::arg("images"), py::arg("labels"));
}

}  // namespace chunkhit
