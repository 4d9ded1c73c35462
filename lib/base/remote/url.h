// URLs of files on servers, https://, http:// and s3://, and the keys and endpoint for S3.
#pragma once

#include <string>
#include <string_view>

namespace chunkhit {

/// Returns whether a path is a URL, whatever its scheme.
[[nodiscard]] bool is_url(std::string_view path);

/// Throws usage for a URL that cannot be read: of another scheme, without a host, or with a user, a query or
/// a fragment, which may hold secrets and do not name a file.
void check_url(const std::string& url);

/// Access to an S3 bucket, from the environment and the profile files of the AWS tools.
struct S3Access {
  std::string key_id;  ///< empty: requests are not signed
  std::string secret;
  std::string session_token;  ///< empty where there is none
  std::string region;         ///< "us-east-1" where nothing says another one
  std::string endpoint;       ///< "http://127.0.0.1:9000"; empty: AWS
};

/// Reads the access again, so that renewed credentials are used: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
/// AWS_SESSION_TOKEN, AWS_REGION or AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, and of the
/// profile AWS_PROFILE what AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE say. Throws usage for a profile
/// that is not there, or a key without its secret.
[[nodiscard]] S3Access read_s3_access();

/// The URL that a request for an s3:// URL goes to: of the bucket as host, or below the endpoint.
[[nodiscard]] std::string s3_request_url(const std::string& url, const S3Access& access);

/// Escapes what may not stand in a URL; what is escaped already stays.
[[nodiscard]] std::string escaped_url(std::string_view url);

}  // namespace chunkhit
