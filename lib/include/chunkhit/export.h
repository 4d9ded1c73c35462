// Marks what the shared library exports, and what of that it keeps to itself.
#pragma once

#define CHUNKHIT_API __attribute__((visibility("default")))
#define CHUNKHIT_HIDDEN __attribute__((visibility("hidden")))
