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

/// Spells text as a literal, the same in C++ and Python.
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

/// A list of literals without its brackets.
std::string joined_literals(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + literal(text);
  return list;
}

/// One option of a loader, as each language spells its value.
struct Option {
  std::string name;
  std::string cpp;
  std::string python;
};

/// The options that do not have their defaults, in the order of their declaration, as C++ wants it.
class Options {
 public:
  void add(bool is_set, const char* name, const std::string& cpp, const std::string& python) {
    if (is_set) options_.push_back({name, cpp, python});
  }
  /// A value that both languages spell alike.
  void add(bool is_set, const char* name, const std::string& value) { add(is_set, name, value, value); }
  [[nodiscard]] auto begin() const { return options_.begin(); }
  [[nodiscard]] auto end() const { return options_.end(); }

 private:
  std::vector<Option> options_;
};

std::string share_text(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.17g", share);
  return text.data();
}

constexpr const char* kScope = "chunkhit::";

/// Adds an enumerator: `Type::name` in C++, `"name"` in Python.
template <class Enum, std::size_t kCount>
void add_enumerator(bool is_set, const char* name, const char* type,
                    const std::array<std::string_view, kCount>& names, Enum value, Options& options) {
  std::string word = name_of(names, value);
  std::replace(word.begin(), word.end(), '-', '_');
  options.add(is_set, name, std::string(kScope) + type + "::" + word, literal(word));
}

void add_form(const ImageForm& form, Options& options) {
  const ImageForm defaults;
  const std::string share = share_text(form.flip_horizontal);
  options.add(form.flip_horizontal != defaults.flip_horizontal, "augment",
              "{.flip_horizontal = " + share + "}", "dict(flip_horizontal=" + share + ")");
  add_enumerator(form.dtype != defaults.dtype, "dtype", "Dtype", kDtypeNames, form.dtype, options);
  if (form.layout) add_enumerator(true, "layout", "Layout", kLayoutNames, *form.layout, options);
}

void add_form(const MatrixForm& form, Options& options) {
  const MatrixForm defaults;
  add_enumerator(form.format != defaults.format, "format", "SparseFormat", kSparseFormatNames, form.format,
                 options);
  options.add(form.binarize, "binarize", "true", "True");
  add_enumerator(form.normalize != defaults.normalize, "normalize", "RowNorm", kRowNormNames, form.normalize,
                 options);
}

void add_datasets(const ImageForm& form, Options& options) {
  const ImageForm defaults;
  options.add(form.images != defaults.images, "images", literal(form.images));
  options.add(form.labels.has_value(), "labels", literal(form.labels.value_or("")));
}

void add_datasets(const MatrixForm&, Options&) {}

Options loader_options(const BenchSpec& spec, const LoaderSetting& loader) {
  const LoaderSetting defaults;
  Options options;
  options.add(true, "batch_size", std::to_string(loader.batch_size));
  add_enumerator(true, "shuffle", "Shuffle", kShuffleNames, loader.shuffle, options);
  const std::string seed = std::to_string(loader.seed);
  options.add(loader.seed != defaults.seed, "seed", seed + "u", seed);
  options.add(loader.shuffle == Shuffle::window, "window_chunks", std::to_string(loader.window_chunks));
  options.add(loader.echo != defaults.echo, "echo", std::to_string(loader.echo));
  std::visit([&options](const auto& form) { add_form(form, options); }, spec.form);
  add_enumerator(true, "cache", "Cache", kCacheNames, loader.cache, options);
  options.add(loader.cache_bytes != 0, "cache_bytes", std::to_string(loader.cache_bytes));
  options.add(true, "threads", std::to_string(loader.threads));
  options.add(true, "prefetch", std::to_string(loader.prefetch));
  std::visit([&options](const auto& form) { add_datasets(form, options); }, spec.form);
  return options;
}

}  // namespace

LoaderSnippet loader_snippet(const BenchSpec& spec, const LoaderSetting& loader) {
  const std::string type = spec.is_of_matrices() ? "SparseLoader" : "ImageLoader";
  const std::string list = joined_literals(spec.paths);
  const bool is_one = spec.paths.size() == 1;
  LoaderSnippet snippet;
  for (const Option& option : loader_options(spec, loader)) {
    snippet.cpp += (snippet.cpp.empty() ? "." : ",\n     .") + option.name + " = " + option.cpp;
    snippet.python += ",\n    " + option.name + "=" + option.python;
  }
  snippet.cpp = kScope + type + " loader(\n    " +
                (is_one ? list : "std::vector<std::string>{" + list + "}") + ",\n    {" + snippet.cpp +
                "});\n";
  snippet.python =
      "loader = chunkhit." + type + "(\n    " + (is_one ? list : "[" + list + "]") + snippet.python + ")\n";
  return snippet;
}

}  // namespace chunkhit
