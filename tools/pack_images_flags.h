// The flags of pack-images, and the spec and the options that they mean.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "chunkhit/pack.h"

namespace chunkhit {

/// What the command line and the recipe say: text where a flag needs a second look, else the value itself.
struct PackImagesFlags {
  PackImagesSpec spec;        ///< flags that need no second look are already in it
  PackImagesOptions options;  ///< the same
  std::string delimiter;
  std::string exif = "apply";
  std::string decode = "exact";
  std::string check = "whole";
  std::string max_seconds_per_image = "10";
  std::string max_pixels = "256M";
  std::string max_input_bytes = "256M";
  std::string max_decode_bytes = "1G";
  std::string resize;
  std::string resize_long;
  std::string fit;
  std::string pad_color = "black";
  std::string background;
  std::string resample = "bilinear";
  std::string crop;
  std::string channels = "rgb";
  std::string sizes = "fixed";
  std::string max_side;
  std::string short_side;
  std::string store = "jpeg";
  std::string others = "lossless";
  std::string quality = "90";
  std::string jpeg_tile = "4";
  std::string part_samples = "auto";
  std::string layout = "nhwc";
  std::string container = "auto";
  std::string chunk_samples = "auto";
  std::string chunk_bytes = "auto";
  std::string part_bytes = "1G";
  std::string order = "shuffle";
  std::string seed = "0";
  std::string split;
  std::string classes_extra = "error";
  std::string label_type = "auto";
  std::string on_error = "skip";
  std::string max_errors = "1%";
  std::string threads = "all";
  std::string memory = "2G";
  std::string progress = "auto";
  std::string save_config;  ///< file for the effective recipe; empty: none
  std::string on_io_error = "retry";
  std::string plan;  ///< number of tasks
  bool dry_run = false;
};

/// Adds every flag, in the groups of the help; `flags` must live until the command line is parsed.
void add_pack_images_flags(CLI::App& app, PackImagesFlags& flags);

/// Gives what is wanted; throws usage naming the flag.
[[nodiscard]] PackImagesSpec pack_images_spec(const PackImagesFlags& flags);

/// Gives how to run, without the callbacks; throws usage naming the flag.
[[nodiscard]] PackImagesOptions pack_images_options(const PackImagesFlags& flags);

}  // namespace chunkhit
