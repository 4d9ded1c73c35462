// The flags of pack-sparse, and the spec and the options that they mean.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "chunkhit/pack.h"

namespace chunkhit {

/// What the command line and the recipe say: text where a flag needs a second look, else the value itself.
struct PackSparseFlags {
  PackSparseSpec spec;        ///< flags that need no second look are already in it
  PackSparseOptions options;  ///< the same
  std::string preset;
  std::string format = "auto";
  std::string header = "auto";
  std::string quote = "auto";
  std::string values = "auto";
  bool transpose = false;
  std::string shared_rows = "error";
  std::string encoding = "utf-8";
  std::string duplicates = "error";
  std::string zeros = "drop";
  std::string above;
  bool binarize = false;
  std::string min_user = "0";
  std::string min_item = "0";
  std::string split_by = "none";
  std::string validation = "0";
  std::string test = "0";
  std::string fold_in = "0.8";
  std::string split_order = "auto";
  std::string before;
  std::vector<std::string> train_files;
  std::vector<std::string> validation_files;
  std::vector<std::string> test_files;
  std::string id_order = "popularity";
  std::string order = "shuffle";
  std::string seed = "0";
  std::string table_header = "auto";
  std::string table_quote = "auto";
  std::string chunk_rows = "auto";
  std::string part_bytes = "1G";
  std::string on_error = "fail";
  std::string max_errors = "1%";
  std::string threads = "all";
  std::string memory = "2G";
  std::string progress = "auto";
  std::string save_config;  ///< file for the effective recipe; empty: none
  bool count_items = false;
  bool dry_run = false;
};

/// Adds every flag, in the groups of the help; `flags` must live until the command line is parsed.
void add_pack_sparse_flags(CLI::App& app, PackSparseFlags& flags);

/// Sets the flags of a preset that were not given, once the command line is parsed.
void apply_preset(CLI::App& app, const PackSparseFlags& flags);

/// Gives what is wanted; throws usage naming the flag.
[[nodiscard]] PackSparseSpec pack_sparse_spec(const PackSparseFlags& flags);

/// Gives how to run, without the callbacks; throws usage naming the flag.
[[nodiscard]] PackSparseOptions pack_sparse_options(const PackSparseFlags& flags);

}  // namespace chunkhit
