// ArrowSchema, ArrowArray and ArrowArrayStream of the Arrow C data and stream interfaces, as the
// specification lays them out: https://arrow.apache.org/docs/format/CDataInterface.html
#pragma once

#include <cstdint>

extern "C" {

/// Type of a column, or of a table, whose columns are its children.
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

/// Values of a column, or of a batch of a table.
struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;  // -1: unknown
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

/// Batches of a table, one after the other.
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

}  // extern "C"
