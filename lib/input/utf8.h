// Whether bytes are UTF-8 text.
#pragma once

#include <string>
#include <string_view>

namespace chunkhit {

/// Returns whether text is valid UTF-8 (RFC 3629: shortest forms, no surrogates, up to U+10FFFF).
[[nodiscard]] bool is_utf8(std::string_view text);

/// Writes NUL and every byte that is no part of a UTF-8 character as "\xNN"; the rest stays as it is.
[[nodiscard]] std::string escape_bytes(std::string_view text);

}  // namespace chunkhit
