#include "pack/images/rejects.h"

#include <algorithm>

#include "base/csv_reader.h"
#include "base/text.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

void append_field(std::string& line, const std::string& field) {
  line += ',';
  append_csv_field(line, escape_bytes(field));
}

std::uint64_t allowed_rejects(const PackImagesOptions& options, std::uint64_t row_count) {
  if (options.on_error == OnError::fail) return 0;
  if (options.max_errors.count > 0) return options.max_errors.count;
  const auto share = static_cast<std::uint64_t>(options.max_errors.share * static_cast<double>(row_count));
  // One broken file must not end the run of a short list, unless it is all that there is.
  const std::uint64_t min_allowed = options.max_errors.share > 0 && row_count > 1 ? 1 : 0;
  return std::max(min_allowed, share);
}

}  // namespace

RejectLimit::RejectLimit(const PackImagesOptions& options, std::uint64_t row_count)
    : fail_on_error_(options.on_error == OnError::fail),
      row_count_(row_count),
      allowed_(allowed_rejects(options, row_count)) {}

void RejectLimit::add(const Reject& reject) {
  if (++count_ <= allowed_) return;
  const std::string last = reject.file + ": " + reject.reason;
  if (fail_on_error_) throw Error(ErrorCode::too_many_rejects, last + " (`on_error` fail)");
  throw Error(ErrorCode::too_many_rejects, "rejected " + std::to_string(count_) + " of " +
                                               std::to_string(row_count_) + " rows, `max_errors` allows " +
                                               std::to_string(allowed_) +
                                               " (1.0: all, and rejects.csv lists them); the last: " + last);
}

std::string rejects_csv(std::vector<Reject> rejects, const SampleList& list, std::string_view reason_column) {
  std::sort(rejects.begin(), rejects.end(), [](const auto& a, const auto& b) { return a.row < b.row; });
  std::string text = "row";
  append_field(text, list.file_column);
  const std::vector<std::string> labels = list.label_headers();
  for (const std::string& column : labels) append_field(text, column);
  for (const SampleColumn& column : list.columns) append_field(text, column.name);
  const std::size_t label_count = labels.size() + list.columns.size();
  text.append(",").append(reason_column).append("\n");
  for (const Reject& reject : rejects) {
    text += std::to_string(reject.row);
    append_field(text, harmless_path(reject.file));
    for (std::size_t column = 0; column < label_count; ++column)
      append_field(text, column < reject.labels.size() ? reject.labels[column] : "");
    append_field(text, reject.reason);
    text += '\n';
  }
  return text;
}

}  // namespace chunkhit
