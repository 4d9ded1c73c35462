// The extension that a table of files leaves out: ids as file names.
#pragma once

#include <string>

#include "listing/sample_list.h"

namespace chunkhit {

/// Appends an extension to all files of the list, with a notice, where none of them exists as it is written
/// and all files below `root` that have their names and an extension have the same one. Throws bad_data
/// where these have several. `table`: the list's name in messages. A root that cannot be walked changes
/// nothing: opening the files says why.
void append_extension(SampleList& list, const std::string& root, const std::string& table,
                      bool follow_symlinks);

}  // namespace chunkhit
