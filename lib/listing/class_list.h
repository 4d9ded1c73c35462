// The classes that a list's samples are numbered by.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "listing/sample_list.h"

namespace chunkhit {

/// Reads the names of classes from text, one a line; throws bad_data, with `path`, for a name that is listed
/// twice or is not UTF-8, and for a text without names.
[[nodiscard]] std::vector<std::string> parse_class_names(std::string_view text, const std::string& path);

/// Adds a notice where all classes have numbers as names and ids do not follow these: "10" comes before "9".
void notice_text_order(SampleList& list);

/// Gives classes the ids of `known`, a name's position in it. Other names follow in their order where
/// `append`, else throws bad_data naming the first one and a file of it. Throws usage where labels are
/// numbers.
void renumber_classes(SampleList& list, std::vector<std::string> known, bool append);

}  // namespace chunkhit
