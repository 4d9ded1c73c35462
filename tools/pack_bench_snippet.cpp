#include <array>
#include <cstdio>

#include "pack_bench_flags.h"
#include "pack_bench_report.h"

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

}  // namespace

std::string loader_snippet(const std::vector<std::string>& paths, const ImageLoaderOptions& options) {
  const ImageLoaderOptions defaults;
  const std::string scope = "chunkhit::";
  // In the order of their declaration, as C++ wants it.
  Fields fields;
  fields.add(true, "batch_size", std::to_string(options.batch_size));
  fields.add(true, "shuffle", scope + "Shuffle::" + name_of(kShuffleNames, options.shuffle));
  fields.add(options.seed != defaults.seed, "seed", std::to_string(options.seed) + "u");
  fields.add(options.shuffle == Shuffle::window, "window_chunks", std::to_string(options.window_chunks));
  fields.add(options.echo != defaults.echo, "echo", std::to_string(options.echo));
  fields.add(options.augment != defaults.augment, "augment",
             "{.flip_horizontal = " + share_text(options.augment.flip_horizontal) + "}");
  fields.add(options.as != defaults.as, "as", scope + "PixelType::" + name_of(kPixelTypeNames, options.as));
  if (options.layout) fields.add(true, "layout", scope + "Layout::" + name_of(kLayoutNames, *options.layout));
  fields.add(true, "residency", scope + "Residency::" + name_of(kResidencyNames, options.residency));
  fields.add(options.memory_bytes != 0, "memory_bytes", std::to_string(options.memory_bytes));
  fields.add(true, "threads", std::to_string(options.threads));
  fields.add(true, "prefetch", std::to_string(options.prefetch));
  return scope + "ImageLoader loader(\n    " + source_text(paths) + ",\n    {" + fields.text() + "});\n";
}

}  // namespace chunkhit
