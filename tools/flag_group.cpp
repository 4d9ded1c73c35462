#include "flag_group.h"

#include <fstream>
#include <istream>
#include <memory>
#include <sstream>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

/// TOML that ends: of a device like /dev/zero no more is read than a recipe can have.
class BoundedToml : public CLI::ConfigTOML {
 public:
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    constexpr std::size_t kMaxRecipeBytes = 1 << 20;
    std::string text(kMaxRecipeBytes + 1, '\0');
    input.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(input.gcount()));
    if (text.size() > kMaxRecipeBytes)
      throw CLI::ConfigError("has more than " + std::to_string(kMaxRecipeBytes) +
                             " bytes, expected a recipe");
    std::istringstream recipe(text);
    return CLI::ConfigTOML::from_config(recipe);
  }
};

}  // namespace

void add_config_flag(CLI::App& app, const std::string& group) {
  app.set_config("--config", "", "Read options from a TOML file, as --save-config writes it")
      ->option_text("FILE")
      ->group(group);
  app.config_formatter(std::make_shared<BoundedToml>());
  app.allow_config_extras(CLI::config_extras_mode::error);
}

void add_dataset_flags(CLI::App& app, std::string& images, std::optional<std::string>& labels,
                       const std::string& group) {
  app.add_option("--images", images, "Image dataset of an external HDF5 file (images)")
      ->option_text("NAME")
      ->group(group);
  // CLI11 takes an empty text for an optional that is not set; here it is "no labels".
  const auto set_labels = [&labels](const std::string& name) { labels = name; };
  app.add_option_function<std::string>(
         "--labels", set_labels, "Label dataset of that file; empty: no labels (labels next to the images)")
      ->option_text("NAME")
      ->group(group);
}

void save_config(const CLI::App& app, const std::string& path) {
  std::ofstream file(path);
  file << app.config_to_str(/*default_also=*/true, /*write_description=*/false);
  if (!file.flush()) throw Error(ErrorCode::cannot_write, "--save-config: cannot write " + path);
}

}  // namespace chunkhit
