// Rows as a decoded row block has them, from lists.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "batch/sparse_values.h"

namespace chunkhit {

/// Owns the bytes of a row with columns of type Id and values of type Value.
template <class Id, class Value>
class RowBytes {
 public:
  RowBytes(const std::vector<Id>& ids, const std::vector<Value>& values, std::vector<std::int64_t> times = {})
      : ids_(ids.size() * sizeof(Id)),
        values_(values.size() * sizeof(Value)),
        times_(std::move(times)),
        nnz_(ids.size()) {
    if (!ids.empty()) std::memcpy(ids_.data(), ids.data(), ids_.size());
    if (!values.empty()) std::memcpy(values_.data(), values.data(), values_.size());
  }
  [[nodiscard]] StoredRow row() const {
    return {ids_.data(), values_.empty() ? nullptr : values_.data(), nnz_, times_.data()};
  }

 private:
  std::vector<std::uint8_t> ids_;
  std::vector<std::uint8_t> values_;
  std::vector<std::int64_t> times_;
  std::size_t nnz_;
};

}  // namespace chunkhit
