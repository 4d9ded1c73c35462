#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <variant>

#include "pack_bench_report.h"
#include "types/sample_shape.h"

namespace chunkhit {
namespace {

/// Spells text as a literal of C++.
std::string literal(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    std::array<char, 8> octal{};
    std::snprintf(octal.data(), octal.size(), "\\%03o", static_cast<unsigned char>(c));
    quoted += static_cast<unsigned char>(c) < ' ' ? octal.data() : std::string(1, c);
  }
  return quoted + '"';
}

std::string source_text(const std::vector<std::string>& paths) {
  if (paths.size() == 1) return literal(paths.front());
  std::string list;
  for (const std::string& path : paths) list += (list.empty() ? "" : ", ") + literal(path);
  return "std::vector<std::string>{" + list + "}";
}

/// The fields of an aggregate that do not have their defaults.
class Fields {
 public:
  void add(bool is_set, const char* name, const std::string& value) {
    if (is_set) text_ += (text_.empty() ? "." : ",\n     .") + std::string(name) + " = " + value;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string share_text(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.17g", share);
  return text.data();
}

constexpr const char* kScope = "chunkhit::";

/// Spells an enumerator as C++ does.
template <class Enum, std::size_t kCount>
std::string enumerator(const char* type, const std::array<std::string_view, kCount>& names, Enum value) {
  std::string name = name_of(names, value);
  std::replace(name.begin(), name.end(), '-', '_');
  return std::string(kScope) + type + "::" + name;
}

void add_form(const ImageForm& form, Fields& fields) {
  const ImageForm defaults;
  fields.add(form.flip_horizontal != defaults.flip_horizontal, "augment",
             "{.flip_horizontal = " + share_text(form.flip_horizontal) + "}");
  fields.add(form.as != defaults.as, "as", enumerator("PixelType", kPixelTypeNames, form.as));
  if (form.layout) fields.add(true, "layout", enumerator("Layout", kLayoutNames, *form.layout));
}

void add_form(const MatrixForm& form, Fields& fields) {
  const MatrixForm defaults;
  fields.add(form.as != defaults.as, "as", enumerator("SparseAs", kSparseAsNames, form.as));
  fields.add(form.binarize, "binarize", "true");
  fields.add(form.normalize != defaults.normalize, "normalize",
             enumerator("RowNorm", kRowNormNames, form.normalize));
}

void add_datasets(const ImageForm& form, Fields& fields) {
  const ImageForm defaults;
  fields.add(form.images != defaults.images, "images", literal(form.images));
  fields.add(form.labels != defaults.labels, "labels", literal(form.labels));
}

void add_datasets(const MatrixForm&, Fields&) {}

}  // namespace

std::string loader_snippet(const BenchSpec& spec, const LoaderSetting& loader) {
  const LoaderSetting defaults;
  // In the order of their declaration, as C++ wants it.
  Fields fields;
  fields.add(true, "batch_size", std::to_string(loader.batch_size));
  fields.add(true, "shuffle", enumerator("Shuffle", kShuffleNames, loader.shuffle));
  fields.add(loader.seed != defaults.seed, "seed", std::to_string(loader.seed) + "u");
  fields.add(loader.shuffle == Shuffle::window, "window_chunks", std::to_string(loader.window_chunks));
  fields.add(loader.echo != defaults.echo, "echo", std::to_string(loader.echo));
  std::visit([&fields](const auto& form) { add_form(form, fields); }, spec.form);
  fields.add(true, "residency", enumerator("Residency", kResidencyNames, loader.residency));
  fields.add(loader.memory_bytes != 0, "memory_bytes", std::to_string(loader.memory_bytes));
  fields.add(true, "threads", std::to_string(loader.threads));
  fields.add(true, "prefetch", std::to_string(loader.prefetch));
  std::visit([&fields](const auto& form) { add_datasets(form, fields); }, spec.form);
  const char* type = spec.is_of_matrices() ? "SparseLoader" : "ImageLoader";
  return std::string(kScope) + type + " loader(\n    " + source_text(spec.paths) + ",\n    {" +
         fields.text() + "});\n";
}

}  // namespace chunkhit
