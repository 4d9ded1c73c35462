// libcurl, loaded when the first URL is opened: it brings some 30 libraries along, which would cost every
// command and every training process 6 ms at its start.
#pragma once

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

namespace chunkhit {

/// The functions of libcurl that we use, under their names without "curl_".
struct CurlFunctions {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_reset) easy_reset;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_multi_init) multi_init;
  decltype(&::curl_multi_cleanup) multi_cleanup;
  decltype(&::curl_multi_setopt) multi_setopt;
  decltype(&::curl_multi_add_handle) multi_add_handle;
  decltype(&::curl_multi_remove_handle) multi_remove_handle;
  decltype(&::curl_multi_socket_action) multi_socket_action;
  decltype(&::curl_multi_info_read) multi_info_read;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
};

/// Loads libcurl at the first call; throws try_again where it is not installed.
[[nodiscard]] const CurlFunctions& curl();

/// Sets what all requests have in common.
void set_common_options(CURL* handle, double connect_seconds);

/// Returns whether another try may end otherwise.
[[nodiscard]] bool is_transient(CURLcode result);

}  // namespace chunkhit
