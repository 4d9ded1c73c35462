#include "flag_group.h"

#include <fstream>

#include "chunkhit/error.h"

namespace chunkhit {

void add_dataset_flags(CLI::App& app, std::string& images, std::string& labels, const std::string& group) {
  const auto add = [&](const std::string& flag, std::string& name, const std::string& words) {
    app.add_option(flag, name, words)->option_text("NAME")->group(group);
  };
  add("--images", images, "Dataset of an HDF5 file of others (images)");
  add("--labels", labels, "Its labels; it may lack them (labels)");
}

void save_config(const CLI::App& app, const std::string& path) {
  std::ofstream file(path);
  file << app.config_to_str(/*default_also=*/true, /*write_description=*/false);
  if (!file.flush()) throw Error(ErrorCode::cannot_write, "--save-config: cannot write " + path);
}

}  // namespace chunkhit
