// Names of classes that are different bytes, and the same to a reader.
#pragma once

#include <string>
#include <string_view>

#include "listing/sample_list.h"

namespace chunkhit {

/// A name in lower case, without blanks around it and accents on Latin letters, so that the Unicode forms NFC
/// and NFD of a name are equal.
[[nodiscard]] std::string folded_name(std::string_view name);

/// What two names have in common that are one in other Unicode forms, NFC and NFD: the letters without their
/// accents, which are counted. Empty for ASCII.
[[nodiscard]] std::string form_key(std::string_view name);

/// Adds a notice of classes, or of the columns of their labels, that are equal but for case, blanks around
/// them, accents or Unicode form.
void notice_like_names(SampleList& list);

}  // namespace chunkhit
