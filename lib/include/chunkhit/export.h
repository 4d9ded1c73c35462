// Marks what the shared library exports.
#pragma once

#define CHUNKHIT_API __attribute__((visibility("default")))
