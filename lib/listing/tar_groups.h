// Members of a tar by their keys, with the labels and columns beside the images. What a tar may look like is
// in schemas/tar-input.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "listing/kept_columns.h"
#include "listing/sample_list.h"

namespace chunkhit {

/// A path as WebDataset divides it: all up to the first dot of the last name, and what is behind that dot.
struct SplitName {
  std::string_view key;
  std::string extension;  ///< in lower case
};

/// Divides a path so.
[[nodiscard]] SplitName split_name(std::string_view path);

/// Whether an image, or what is converted to one, has such a name.
[[nodiscard]] bool has_image_extension(const std::string& path);

/// The labels of a sample as texts, one per column, or why there are none: then `error` is not empty.
struct LabelTexts {
  std::vector<std::string> labels;
  std::string error;
};

/// The values of a sample's columns, or why there are none: then `error` is not empty.
struct ColumnTexts {
  std::vector<KeptValue> values;
  std::vector<std::string> keys;  ///< of the object, the first few, where it lacks one that is wanted
  std::vector<bool> lacks;        ///< by column; empty where it lacks none
  std::string error;
};

/// How the labels in a .json are read.
struct JsonLabelRules {
  std::string_view separator{};      ///< between the names of a list; empty: a list is no label
  bool has_missing_numbers = false;  ///< a key that is absent or null is an empty text
};

/// Takes the texts and numbers that a JSON object has under `keys`.
[[nodiscard]] LabelTexts json_labels(std::string_view text, std::span<const std::string> keys,
                                     const JsonLabelRules& rules = {});

/// Takes the texts, numbers and truth values ("true", "false") that a JSON object has under `keys`. A key
/// that it lacks, or that is null, is a missing value.
[[nodiscard]] ColumnTexts json_columns(std::string_view text, std::span<const std::string> keys);

/// Where a tar lies, and what its samples are named.
struct TarInput {
  std::string name;             ///< begins the names of its samples: "shards/000.tar"
  std::uint32_t container = 0;  ///< of the list
  std::uint64_t begin = 0;      ///< of the tar in its container
  std::uint64_t bytes = 0;
};

/// A member that may be an image, or why it can be none.
struct TarImage {
  std::string name;
  FileRange range;
  std::string error;
};

/// The members of a key: all of a folder whose names are the same up to their first dot.
struct TarGroup {
  std::string key;
  std::vector<TarImage> images;
  std::string label_from;  ///< "cls", "json"; empty: there is no label
  LabelTexts label;
  ColumnTexts kept;             ///< without values where there is no .json
  bool has_class_name = false;  ///< looked at of the first .json beside a .cls: it names the class
};

/// Reads the headers of a tar, and the labels and kept columns in it, whose names are keys of a .json. Throws
/// as TarReader.
[[nodiscard]] std::vector<TarGroup> read_tar(const SampleContainer& container, const TarInput& input,
                                             const LabelColumns& columns);

}  // namespace chunkhit
