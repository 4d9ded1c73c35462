// Rows that were not packed: counted against a limit, and written, as those that were packed with warnings
// are, as a list that is an input again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chunkhit/pack.h"
#include "listing/sample_list.h"
#include "manifest/manifest.h"

namespace chunkhit {

/// Counts rejects over all packs of a run and ends it when there are too many.
class RejectLimit {
 public:
  RejectLimit(const PackImagesOptions& options, std::uint64_t row_count);
  RejectLimit(std::uint64_t allowed, std::uint64_t row_count) : row_count_(row_count), allowed_(allowed) {}
  /// Counts one; throws too_many_rejects when the limit is passed.
  void add(const Reject& reject);
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t allowed() const { return allowed_; }

 private:
  bool fail_on_error_ = false;
  std::uint64_t row_count_;
  std::uint64_t allowed_;
  std::uint64_t count_ = 0;
};

/// The text of rejects.csv and warnings.csv (schemas/manifest.md): row, file, labels, and under
/// `reason_column` the reason; sorted by row.
[[nodiscard]] std::string rejects_csv(std::vector<Reject> rejects, const SampleList& list,
                                      std::string_view reason_column = "reason");

}  // namespace chunkhit
