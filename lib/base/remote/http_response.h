// What the head of an HTTP response says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/remote/http_client.h"
#include "chunkhit/error.h"

namespace chunkhit {

/// A response while it arrives.
struct HttpResponse {
  int status = 0;  ///< 0: no response
  std::string status_text;
  std::string etag;
  std::optional<std::uint64_t> first_byte;  ///< of the range that the server sends
  std::uint64_t total_bytes = 0;            ///< of the file
  double retry_after_seconds = 0;
  std::string body;     ///< begin of the text of a failure
  std::string problem;  ///< why its bytes cannot be used

  /// Takes a line of the head; a status line begins another response, as after a redirect.
  void add_header(std::string_view line);
  /// Takes text of a failure; returns whether more is of use.
  [[nodiscard]] bool add_body(std::string_view text);
  [[nodiscard]] bool is_success() const { return status == 200 || status == 206; }
  [[nodiscard]] bool is_failure() const { return status >= 300; }
  /// A range of an empty file cannot be satisfied, or gives no bytes.
  [[nodiscard]] bool is_empty_file() const {
    return (status == 416 || is_success()) && total_bytes == 0 && knows_total_;
  }
  /// Sets `problem` unless the bytes are those from `offset` on of a file that is as it was known.
  void check_range(std::uint64_t offset, const std::optional<RemoteFileInfo>& known);
  /// Whether another try may end otherwise.
  [[nodiscard]] bool is_transient() const;
  [[nodiscard]] ErrorCode error_code() const;
  /// "HTTP 403 Forbidden (AccessDenied: …)"
  [[nodiscard]] std::string text() const;
  /// What the user can do, beginning with ": "; or nothing.
  [[nodiscard]] std::string advice(bool is_s3) const;

 private:
  void take_range(std::string_view value);
  bool knows_total_ = false;
};

}  // namespace chunkhit
