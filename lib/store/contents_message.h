// What a part's file says, as a message between processes.
#pragma once

#include "base/bytes.h"
#include "store/part.h"

namespace chunkhit {

/// Writes all of the contents, as base/message.h has them.
[[nodiscard]] ByteBuffer encode_contents(const PartContents& contents);

/// Reads what `encode_contents` wrote; throws bad_data when it ends early.
[[nodiscard]] PartContents decode_contents(Bytes message);

}  // namespace chunkhit
