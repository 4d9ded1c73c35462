// The flags of pack-sparse, and the spec and the options that they mean.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "chunkhit/pack.h"
#include "field_flags.h"

namespace chunkhit {

/// What the command line and the recipe say.
struct PackSparseFlags {
  explicit PackSparseFlags(CLI::App& app) : fields(app) {}
  FieldFlags fields;  ///< those of the spec and the options
  std::vector<std::string> inputs;
  std::string preset;
  std::vector<std::string> train_files;
  std::vector<std::string> validation_files;
  std::vector<std::string> test_files;
  std::string progress = "auto";
  std::string save_config;  ///< file for the effective recipe; empty: none
  bool count_items = false;
  bool dry_run = false;
};

/// Adds every flag, in the groups of the help; `flags` must live until the command line is parsed.
void add_pack_sparse_flags(CLI::App& app, PackSparseFlags& flags);

/// Gives what is wanted, a preset where flags say nothing; throws usage naming the flag.
[[nodiscard]] PackSparseSpec pack_sparse_spec(PackSparseFlags& flags);

/// Gives how to run, without the callbacks; throws usage naming the flag.
[[nodiscard]] PackSparseOptions pack_sparse_options(const PackSparseFlags& flags);

}  // namespace chunkhit
