// The batches of an epoch as a range.
#pragma once

#include <cstddef>
#include <iterator>

namespace chunkhit {

/// A range over the batches that are left of a loader's epoch; to be iterated once.
template <class Loader, class Batch>
class EpochRange {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = const Batch*;
    using reference = const Batch&;
    Iterator() = default;
    explicit Iterator(Loader& loader) : loader_(&loader), batch_(loader.next()) {}
    const Batch& operator*() const { return *batch_; }
    const Batch* operator->() const { return batch_; }
    Iterator& operator++() {
      batch_ = loader_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return batch_ == nullptr; }

   private:
    Loader* loader_ = nullptr;
    const Batch* batch_ = nullptr;
  };

  explicit EpochRange(Loader& loader) : loader_(&loader) {}
  [[nodiscard]] Iterator begin() const { return Iterator(*loader_); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  Loader* loader_;
};

}  // namespace chunkhit
