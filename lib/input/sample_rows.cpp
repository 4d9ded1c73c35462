#include "input/sample_rows.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "chunkhit/error.h"

namespace chunkhit {

void write_rows(SampleList& list) {
  if (!list.rows.empty()) return;
  list.rows.resize(list.size());
  std::iota(list.rows.begin(), list.rows.end(), 0u);
}

void SampleRows::add(std::string_view file) {
  if (list_.row_count == std::numeric_limits<std::uint32_t>::max())
    throw Error(ErrorCode::bad_data, "more than 4294967295 rows");
  if (list_.row_count != list_.size()) {
    write_rows(list_);
    list_.rows.push_back(static_cast<std::uint32_t>(list_.row_count));
  }
  list_.text += file;
  list_.name_ends.push_back(list_.text.size());
  ++list_.row_count;
}

void SampleRows::reject(std::string_view file, std::vector<std::string> labels, std::string reason) {
  list_.rejects.push_back({list_.row_count, std::string(file), std::move(labels), std::move(reason)});
  ++list_.row_count;
}

void TextHash::add(std::string_view text) {
  append_little<std::uint64_t>(buffer_, text.size());
  const Bytes bytes = as_bytes(text);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= kBufferBytes) flush();
}

std::uint64_t TextHash::value() {
  flush();
  return stream_.value();
}

void TextHash::flush() {
  stream_.update(buffer_);
  buffer_.clear();
}

void notice_repeated_files(SampleList& list) {
  std::vector<std::uint64_t> hashes(list.size());
  for (std::size_t index = 0; index < hashes.size(); ++index)
    hashes[index] = xxh3(as_bytes(list.file(index)));
  std::sort(hashes.begin(), hashes.end());
  const auto different = std::unique(hashes.begin(), hashes.end()) - hashes.begin();
  const std::size_t repeated = hashes.size() - static_cast<std::size_t>(different);
  if (repeated > 0)
    list.notices.push_back(std::to_string(repeated) + " of " + std::to_string(list.size()) +
                           " rows name a file that another row names too");
}

}  // namespace chunkhit
