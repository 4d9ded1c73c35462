// Whether bytes are UTF-8 text.
#pragma once

#include <string_view>

namespace chunkhit {

/// Tells whether text is valid UTF-8 (RFC 3629: shortest forms, no surrogates, up to U+10FFFF).
[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace chunkhit
