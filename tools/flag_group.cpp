#include "flag_group.h"

#include <fstream>

#include "chunkhit/error.h"

namespace chunkhit {

void save_config(const CLI::App& app, const std::string& path) {
  std::ofstream file(path);
  file << app.config_to_str(/*default_also=*/true, /*write_description=*/false);
  if (!file.flush()) throw Error(ErrorCode::cannot_write, "--save-config: cannot write " + path);
}

}  // namespace chunkhit
