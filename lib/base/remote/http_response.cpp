#include "base/remote/http_response.h"

#include <algorithm>

#include "base/text.h"
#include "base/words.h"

namespace chunkhit {
namespace {

constexpr const char* kReplaced =
    ": it was replaced since it was opened: open the pack again; a new loader takes the state of this one";
constexpr std::size_t kMaxBodyBytes = 2048;
constexpr std::size_t kMaxShownBytes = 200;

std::string_view without_spaces(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

/// Reads a number that must fill the text.
std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  return parse_all(text, number) ? std::optional(number) : std::nullopt;
}

/// The text of an XML element; empty where there is none.
std::string element_of(std::string_view xml, const std::string& name) {
  const std::size_t begin = xml.find("<" + name + ">");
  if (begin == std::string_view::npos) return {};
  xml.remove_prefix(begin + name.size() + 2);
  return std::string(xml.substr(0, std::min(xml.find('<'), kMaxShownBytes)));
}

}  // namespace

void HttpResponse::add_header(std::string_view line) {
  if (line.starts_with("HTTP/")) {
    *this = {};
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view rest = without_spaces(line.substr(space));
    const std::string_view digits = rest.substr(0, 3);
    status = static_cast<int>(number_of(digits).value_or(0));
    status_text = without_spaces(rest.substr(digits.size()));
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view name = line.substr(0, colon), value = without_spaces(line.substr(colon + 1));
  if (lower(name) == "etag") etag = value;
  if (lower(name) == "content-range") take_range(value);
  if (lower(name) == "retry-after") retry_after_seconds = static_cast<double>(number_of(value).value_or(0));
  if (lower(name) == "content-length" && status == 200) {
    const std::optional<std::uint64_t> bytes = number_of(value);
    first_byte = 0;
    total_bytes = bytes.value_or(0);
    knows_total_ = bytes.has_value();
  }
}

/// Reads "bytes 0-99/1234", or "bytes */1234" of a range that the file does not have.
void HttpResponse::take_range(std::string_view value) {
  constexpr std::string_view kUnit = "bytes ";
  if (!value.starts_with(kUnit)) return;
  value.remove_prefix(kUnit.size());
  const std::size_t slash = value.find('/');
  if (slash == std::string_view::npos) return;
  const std::optional<std::uint64_t> total = number_of(value.substr(slash + 1));
  if (!total) return;
  total_bytes = *total;
  knows_total_ = true;
  first_byte = number_of(value.substr(0, std::min(value.find('-'), slash)));
}

bool HttpResponse::add_body(std::string_view text) {
  body += text.substr(0, kMaxBodyBytes - body.size());
  return body.size() < kMaxBodyBytes;
}

void HttpResponse::check_range(std::uint64_t offset, const std::optional<RemoteFileInfo>& known) {
  if (!knows_total_)
    problem = "has no size: found neither Content-Range nor Content-Length in the server's answer";
  else if (status == 200 && offset > 0)
    problem = "the server answers with the whole file, expected bytes from " + std::to_string(offset) +
              " on: it does not support range requests";
  else if (first_byte != offset)
    problem = "the server answers with bytes from " + std::to_string(first_byte.value_or(0)) +
              " on, expected " + std::to_string(offset);
  else if (known && known->bytes != total_bytes)
    problem =
        "has " + std::to_string(total_bytes) + " bytes, expected " + std::to_string(known->bytes) + kReplaced;
  else if (known && known->etag != etag)
    problem = "has ETag " + printable_text(etag) + ", expected " + printable_text(known->etag) + kReplaced;
}

bool HttpResponse::is_transient() const {
  constexpr int kRequestTimeout = 408, kTooEarly = 425, kTooManyRequests = 429;
  // S3 reports some passing states as 400.
  if (status == 400) return element_of(body, "Code") == "RequestTimeout";
  return status == kRequestTimeout || status == kTooEarly || status == kTooManyRequests ||
         (status >= 500 && status != 501 && status != 505);
}

ErrorCode HttpResponse::error_code() const {
  return status == 401 || status == 403 || status == 407 || status == 400 || status == 301
             ? ErrorCode::usage
             : ErrorCode::bad_data;
}

std::string HttpResponse::text() const {
  std::string text = "HTTP " + std::to_string(status);
  if (!status_text.empty()) text += " " + printable_text(status_text.substr(0, kMaxShownBytes));
  const std::string code = element_of(body, "Code"), message = element_of(body, "Message");
  if (!code.empty())
    text += " (" + printable_text(code) + (message.empty() ? "" : ": " + printable_text(message)) + ")";
  return text;
}

std::string HttpResponse::advice(bool is_s3) const {
  if (is_s3 && ((status >= 300 && status < 400) || status == 400))
    return ": set AWS_REGION to the bucket's region, or AWS_ENDPOINT_URL_S3 to its server";
  if (is_s3 && (status == 401 || status == 403))
    return ": set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, to keys that may read it";
  if (status == 401 || status == 403) return ": write user and password to ~/.netrc";
  return "";
}

}  // namespace chunkhit
