// The extension that a table of files leaves out: ids as file names. And the files below a folder.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "listing/root_folder.h"
#include "listing/sample_list.h"

namespace chunkhit {

/// Extensions of masks, in the order in which they are looked for: of files without loss, which the decoder
/// does not scale.
inline constexpr std::array<std::string_view, 14> kMaskExtensions{".png", ".npy", ".bmp",  ".gif", ".PNG",
                                                                  ".NPY", ".BMP", ".GIF",  ".tif", ".tiff",
                                                                  ".pgm", ".TIF", ".TIFF", ".PGM"};

/// The files below a folder; none where it cannot be walked: opening them says why.
[[nodiscard]] std::optional<FolderTree> walk_folder(const std::string& folder, bool follow_symlinks);

/// The path without its folders.
[[nodiscard]] std::string_view file_name(std::string_view path);

/// The path without the extension of its file name.
[[nodiscard]] std::string_view without_extension(std::string_view path);

/// Appends an extension to all files of the list, with a notice, where none of them exists as it is written
/// and all files below `root` that have their names and an extension have the same one. Throws bad_data
/// where these have several, and where none is there but files of their names lie in folders below `root`.
/// `table`: the list's name in messages.
void append_extension(SampleList& list, const std::string& root, const std::string& table,
                      bool follow_symlinks);
/// The same for the files of a field that the list names, below their folder; of masks, images beside them
/// do not count.
void append_field_extension(SampleList& list, ListedField& field, const std::string& folder,
                            const std::string& table, bool follow_symlinks);

}  // namespace chunkhit
