#include "read/source_ids.h"

#include <bit>
#include <cstddef>

#include "base/hash.h"
#include "base/integer_id.h"
#include "base/memory.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

// Of a slot: more rows than can be, beside enough of a hash that other ids are rarely compared.
constexpr std::uint64_t kIndexMask = (std::uint64_t{1} << 40) - 1;

bool has_ids(const ChunkReader& part, IdAxis axis) {
  if (axis == IdAxis::column) return !part.spec().classes.empty();
  return part.samples().files.count() != 0 || part.samples().rows.empty();
}

std::string path_without_ids(const ChunkSet& chunks, IdAxis axis) {
  for (const auto& part : chunks.parts())
    if (!has_ids(*part, axis)) return part->path();
  return {};
}

std::optional<std::vector<std::int64_t>> integers_of(const SourceIds& ids) {
  std::vector<std::int64_t> integers(ids.size());
  for (std::uint64_t i = 0; i < ids.size(); ++i)
    if (!parse_integer_id(ids[i], integers[i])) return std::nullopt;
  return integers;
}

}  // namespace

SourceIds::SourceIds(const ChunkSet& chunks, IdAxis axis)
    : chunks_(chunks),
      axis_(axis),
      size_(axis == IdAxis::row ? chunks.sample_count() : chunks.matrix()->column_count),
      path_without_ids_(path_without_ids(chunks, axis)) {}

std::string_view SourceIds::operator[](std::uint64_t index) const {
  if (axis_ == IdAxis::column) {
    const std::vector<std::string>& ids = chunks_.parts().front()->spec().classes;
    return ids.empty() ? std::string_view() : ids[index];
  }
  const ChunkSet::SamplePlace place = chunks_.find_sample(index);
  const Names& ids = chunks_.parts()[place.part]->samples().files;
  return ids.count() == 0 ? std::string_view() : ids[place.sample];
}

void SourceIds::require_ids() const {
  if (path_without_ids_.empty()) return;
  const bool are_rows = axis_ == IdAxis::row;
  throw Error(ErrorCode::usage, path_without_ids_ + ": its " + (are_rows ? "rows" : "columns") +
                                    " have no ids: use their numbers, 0 to " + std::to_string(size_ - 1));
}

SparseIds SourceIds::all() const {
  require_ids();
  if (std::optional<std::vector<std::int64_t>> integers = integers_of(*this))
    return {.integers = *std::move(integers), .texts = {}};
  SparseIds ids;
  ids.texts.reserve(size_);
  for (std::uint64_t i = 0; i < size_; ++i) ids.texts.push_back((*this)[i]);
  return ids;
}

std::vector<std::uint64_t> SourceIds::make_slots() const {
  std::vector<std::uint64_t> slots(std::bit_ceil(size_ + size_ / 3 + 1));
  const std::uint64_t mask = slots.size() - 1;
  for (std::uint64_t i = 0; i < size_; ++i) {
    const std::string_view id = (*this)[i];
    const std::uint64_t hash = xxh3(as_bytes(id));
    const auto is_known = [&](std::uint64_t slot) {
      return ((slot ^ hash) & ~kIndexMask) == 0 && (*this)[(slot & kIndexMask) - 1] == id;
    };
    std::uint64_t at = hash & mask;
    while (slots[at] != 0 && !is_known(slots[at])) at = (at + 1) & mask;
    if (slots[at] == 0) slots[at] = (hash & ~kIndexMask) | (i + 1);
  }
  return slots;
}

std::optional<std::uint64_t> SourceIds::find(std::string_view id) const {
  require_ids();
  std::call_once(slots_made_, [&] {
    slots_ = with_memory("finding ids needs more memory than can be had", [&] { return make_slots(); });
  });
  const std::uint64_t mask = slots_.size() - 1;
  const std::uint64_t hash = xxh3(as_bytes(id));
  for (std::uint64_t at = hash & mask; slots_[at] != 0; at = (at + 1) & mask) {
    const std::uint64_t index = (slots_[at] & kIndexMask) - 1;
    if (((slots_[at] ^ hash) & ~kIndexMask) == 0 && (*this)[index] == id) return index;
  }
  return std::nullopt;
}

}  // namespace chunkhit
