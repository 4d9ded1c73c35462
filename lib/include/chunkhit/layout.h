// How the bytes of a sample lie.
#pragma once

namespace chunkhit {

/// Pixels after pixels (height, width, channel) or planes after planes (channel, height, width).
enum class Layout { nhwc, nchw };

}  // namespace chunkhit
