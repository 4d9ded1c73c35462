#include "base/remote/url.h"

#include <ini.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "base/throw_error.h"
#include "base/words.h"

namespace chunkhit {
namespace {

constexpr std::array<std::string_view, 3> kSchemes{"https://", "http://", "s3://"};
constexpr std::string_view kDefaultRegion = "us-east-1";
constexpr int kMaxLine = 64 << 10;  // bytes

std::string_view scheme_of(std::string_view url) {
  for (const std::string_view scheme : kSchemes)
    if (url.starts_with(scheme)) return scheme;
  return {};
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The first variable that is set to something.
std::string first_variable(const char* name, const char* other) {
  const std::string value = variable(name);
  return value.empty() ? variable(other) : value;
}

using Settings = std::map<std::string, std::string>;

struct WantedSection {
  std::string name;
  Settings settings;
};

int take_setting(void* wanted, const char* section, const char* name, const char* value) {
  auto& found = *static_cast<WantedSection*>(wanted);
  if (found.name == section && value != nullptr) found.settings[name] = value;
  return 1;
}

/// Reads a section of a profile file; empty where there is no such file.
Settings read_section(const std::string& path, const std::string& section) {
  WantedSection wanted{section, {}};
  // The library cuts longer lines, such as session tokens, unless it may allocate memory for them.
  static const bool takes_long_lines = [] {
    ini_use_stack = false;
    ini_allow_realloc = true;
    ini_max_line = kMaxLine;
    return true;
  }();
  static_cast<void>(takes_long_lines);
  ini_parse(path.c_str(), take_setting, &wanted);
  return wanted.settings;
}

std::string profile_path(const char* name, const char* default_name) {
  const std::string path = variable(name);
  return path.empty() ? variable("HOME") + "/.aws/" + default_name : path;
}

void set_where_empty(std::string& field, const std::string& value) {
  if (field.empty()) field = value;
}

/// A hexadecimal escape of a byte.
void append_escaped(std::string& text, unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  text += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
}

bool is_letter_or_digit(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9');
}

bool is_unreserved(char letter) {
  return is_letter_or_digit(letter) || std::string_view("-._~/").find(letter) != std::string_view::npos;
}

/// The begin of a URL without its scheme.
std::string_view host_and_port(std::string_view rest) { return rest.substr(0, rest.find('/')); }

/// Whether what stands for a port may be the begin of a password with a slash: it is no number, or an @ comes
/// later and what stands for a host has no dot, as a user's name has none.
bool has_odd_port(std::string_view rest) {
  const std::string_view host = host_and_port(rest);
  const std::size_t colon = host.rfind(':');
  if (colon == std::string_view::npos || host.ends_with(']')) return false;
  if (!std::ranges::all_of(host.substr(colon + 1), [](char c) { return c >= '0' && c <= '9'; })) return true;
  const std::string_view name = host.substr(0, colon);
  return rest.find('@') != std::string_view::npos && name.find('.') == std::string_view::npos &&
         name != "localhost";
}

}  // namespace

bool is_url(std::string_view path) {
  const std::size_t end = path.find("://");
  if (end == std::string_view::npos || end == 0) return false;
  return std::ranges::all_of(path.substr(0, end), [](char letter) {
    return is_letter_or_digit(letter) || letter == '+' || letter == '-' || letter == '.';
  });
}

void check_url(const std::string& url) {
  const std::string_view scheme = scheme_of(url);
  // A message must not hold a password or a token.
  const auto refuse = [&](const std::string& what) {
    const std::size_t begin = url.find("://") + 3;
    const std::string rest = url.substr(begin);
    const std::string_view host = has_odd_port(rest) ? std::string_view(rest) : host_and_port(rest);
    const std::string shown = url.substr(0, begin) + rest.substr(host.rfind('@') + 1);
    throw_usage(printable_text(shown.substr(0, shown.find_first_of("?#"))) + ": " + what);
  };
  if (scheme.empty()) refuse("URL of an unknown scheme, expected https://, http:// or s3://");
  const std::string_view rest = std::string_view(url).substr(scheme.size());
  if (rest.empty() || rest.front() == '/')
    refuse("URL without a host, expected " + std::string(scheme) + "HOST/…");
  const bool has_user = host_and_port(rest).find('@') != std::string_view::npos ||
                        (has_odd_port(rest) && rest.find('@') != std::string_view::npos);
  if (scheme == "s3://") {
    if (has_user) refuse("a URL with keys; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE");
    return;
  }
  if (has_user) refuse("a URL with a user or password; write them to ~/.netrc");
  if (rest.find_first_of("?#") != std::string_view::npos)
    refuse("a URL with a query or fragment, expected the address of a folder or file");
}

S3Access read_s3_access() {
  S3Access access{.key_id = variable("AWS_ACCESS_KEY_ID"),
                  .secret = variable("AWS_SECRET_ACCESS_KEY"),
                  .session_token = variable("AWS_SESSION_TOKEN"),
                  .region = first_variable("AWS_REGION", "AWS_DEFAULT_REGION"),
                  .endpoint = first_variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")};
  const std::string named = variable("AWS_PROFILE");
  const std::string profile = named.empty() ? "default" : named;
  const Settings config = read_section(profile_path("AWS_CONFIG_FILE", "config"),
                                       profile == "default" ? profile : "profile " + profile);
  const Settings credentials =
      read_section(profile_path("AWS_SHARED_CREDENTIALS_FILE", "credentials"), profile);
  const auto setting = [](const Settings& settings, const char* name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::string() : found->second;
  };
  set_where_empty(access.region, setting(config, "region"));
  set_where_empty(access.region, std::string(kDefaultRegion));
  set_where_empty(access.endpoint, setting(config, "endpoint_url"));
  while (access.endpoint.ends_with('/')) access.endpoint.pop_back();
  // Key, secret and token belong together: all of them are from one place.
  for (const Settings& settings : {credentials, config}) {
    if (!access.key_id.empty()) break;
    access.key_id = setting(settings, "aws_access_key_id");
    access.secret = setting(settings, "aws_secret_access_key");
    access.session_token = setting(settings, "aws_session_token");
  }
  if (!access.key_id.empty() && access.secret.empty())
    throw_usage("found a key id without its secret: set AWS_SECRET_ACCESS_KEY, too");
  if (access.key_id.empty() && !named.empty() && config.empty() && credentials.empty())
    throw_usage("AWS_PROFILE: no profile \"" + printable_text(named) + "\" in " +
                profile_path("AWS_SHARED_CREDENTIALS_FILE", "credentials") + " or " +
                profile_path("AWS_CONFIG_FILE", "config"));
  return access;
}

std::string s3_request_url(const std::string& url, const S3Access& access) {
  const std::string_view rest = std::string_view(url).substr(std::string_view("s3://").size());
  const std::size_t slash = rest.find('/');
  const std::string bucket(rest.substr(0, slash));
  std::string key = "/";
  for (const char letter : slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1)) {
    if (is_unreserved(letter))
      key += letter;
    else
      append_escaped(key, static_cast<unsigned char>(letter));
  }
  if (!access.endpoint.empty()) return access.endpoint + "/" + bucket + key;
  const std::string host = "s3." + access.region + ".amazonaws.com";
  // Certificates cover one name before the service's: a bucket with dots goes into the path.
  if (bucket.find('.') != std::string::npos) return "https://" + host + "/" + bucket + key;
  return "https://" + bucket + "." + host + key;
}

std::string escaped_url(std::string_view url) {
  std::string escaped;
  for (const char letter : url) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool stays =
        byte > 0x20 && byte < 0x7f && std::string_view("\"<>\\^`{|}").find(letter) == std::string_view::npos;
    if (stays)
      escaped += letter;
    else
      append_escaped(escaped, byte);
  }
  return escaped;
}

}  // namespace chunkhit
