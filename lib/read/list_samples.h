// The samples of packs of images as a label CSV. Layout: schemas/label-csv.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace chunkhit {

/// What a list of samples does not say.
struct ListedSamples {
  std::uint64_t samples = 0;
  std::uint64_t rejected = 0;      ///< rows of the input that are no samples
  bool are_names_numbers = false;  ///< classes have names, and all are integers
  std::string root{};              ///< all files are below it, where the list names them by their whole paths
  bool are_roots_unknown = false;  ///< of packs that were merged: files may be below different folders
};

/// Gives the samples of a pack, of all packs of a split, or of a single part, a few lines at a time: a table
/// of file, labels and row in the order of the rows, with the packs' own names of columns and classes. Files
/// are named as in the pack; where those of a merged pack are below several folders, by their whole paths.
/// Throws bad_data for a damaged pack, for packs of ratings, and for external files.
ListedSamples list_samples(const std::string& path, const std::function<void(std::string_view)>& write);

}  // namespace chunkhit
