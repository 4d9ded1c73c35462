// Memory layout of a sample.
#pragma once

namespace chunkhit {

/// Pixels after pixels (height, width, channel) or planes after planes (channel, height, width).
enum class Layout { nhwc, nchw };

}  // namespace chunkhit
