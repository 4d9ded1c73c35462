// Ends a reader of libarchive.
#pragma once

#include <archive.h>

namespace chunkhit {

struct FreeArchive {
  void operator()(struct archive* reader) const { archive_read_free(reader); }
};

}  // namespace chunkhit
