// Packs on a server of this process; tests/python/remote_test.py has real servers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/remote/http_response.h"
#include "base/remote/url.h"
#include "cache/disk_cache.h"
#include "chunkhit/image_loader.h"
#include "chunkhit/remote.h"
#include "loaded_batches.h"
#include "range_server.h"
#include "read/image_source.h"

namespace chunkhit {
namespace {

std::string name_of_file(const std::string& path) { return std::filesystem::path(path).filename().string(); }

TEST(RemoteLoader, GivesTheBatchesOfTheLocalPartInEveryOrderAndCache) {
  const TemporaryFolder folder;
  const RangeServer server(folder.path());
  for (const auto& [kind, filter] : kKinds) {
    const std::string path = write_part(folder, kind, filter);
    for (const Shuffle shuffle : {Shuffle::none, Shuffle::window, Shuffle::global})
      for (const Cache cache : {Cache::decoded, Cache::compressed, Cache::none}) {
        const ImageLoaderOptions options{.batch_size = 10,
                                         .shuffle = shuffle,
                                         .seed = 7,
                                         .window_chunks = 3,
                                         .cache = cache,
                                         .threads = 3};
        ImageLoader local(path, options), remote(server.url(name_of_file(path)), options);
        for (const std::uint64_t epoch : {0, 1, 2})
          ASSERT_TRUE(read_epoch(remote, epoch) == read_epoch(local, epoch)) << kind << " " << filter;
      }
  }
}

TEST(RemoteLoader, SurvivesAnswersThatEndEarly) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "photo");
  const RangeServer server(folder.path(), [](std::uint64_t number, std::string response) {
    return number % 3 == 1 ? response.substr(0, response.size() * (number % 7) / 7) : response;
  });
  const ImageLoaderOptions options{
      .batch_size = 10, .shuffle = Shuffle::window, .cache = Cache::none, .threads = 3};
  ImageLoader local(path, options), remote(server.url(name_of_file(path)), options);
  for (const std::uint64_t epoch : {0, 1}) ASSERT_TRUE(read_epoch(remote, epoch) == read_epoch(local, epoch));
}

// Nothing else ends it: requests are tried for a day.
TEST(RemoteLoader, EndsWhileItWaitsForAServer) {
  ::setenv("CHUNKHIT_RETRY_SECONDS", "86400", 1);
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "hdf5", "none");
  RangeServer server(folder.path());
  {
    ImageLoader remote(server.url(name_of_file(path)),
                       {.batch_size = 10, .cache = Cache::none, .threads = 3});
    const std::uint64_t opening = server.request_count();
    server.fall_silent();
    while (server.request_count() == opening) EXPECT_FALSE(remote.wait_for(std::chrono::milliseconds(1)));
  }
  ::unsetenv("CHUNKHIT_RETRY_SECONDS");
}

TEST(RemoteLoader, SharesADiskCacheWithOthers) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "photo");
  const RangeServer server(folder.path());
  const ImageLoaderOptions options{.batch_size = 10,
                                   .shuffle = Shuffle::window,
                                   .window_chunks = 3,
                                   .cache = Cache::none,
                                   .cache_dir = folder.path("cache"),
                                   .cache_disk_bytes = 10 * 4096,
                                   .threads = 2};
  std::vector<std::vector<Seen>> seen(3);
  std::vector<std::thread> loaders;
  for (std::vector<Seen>& batches : seen)
    loaders.emplace_back([&] {
      ImageLoader loader(server.url(name_of_file(path)), options);
      for (const std::uint64_t epoch : {0, 1, 2, 3})
        for (Seen& each : read_epoch(loader, epoch)) batches.push_back(std::move(each));
    });
  for (std::thread& thread : loaders) thread.join();
  expect_known_pixels(seen[0]);
  EXPECT_TRUE(seen[0] == seen[1] && seen[1] == seen[2]);
}

TEST(DiskCache, ALockThatAnotherProcessKeepsIsNotWaitedForBehindAStop) {
  const TemporaryFolder folder;
  const ImageSource source(std::vector{write_part(folder, "shard", "zstd")}, {});
  std::filesystem::create_directory(folder.path("cache"));
  const FileDescriptor lock(::open(folder.path("cache/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  const std::atomic<bool> stop = true;
  const StopScope scope(&stop);
  try {
    const DiskCache cache(source.chunks(), folder.path("cache"), 0);
    ADD_FAILURE() << "the lock was shared";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cache_dir: reading was stopped");
  }
}

HttpResponse response_of(std::initializer_list<const char*> lines) {
  HttpResponse response;
  for (const char* const line : lines) response.add_header(line);
  return response;
}

std::string problem_of(HttpResponse response, std::uint64_t offset,
                       const std::optional<RemoteFileInfo>& known = {}) {
  response.check_range(offset, known);
  return response.problem;
}

TEST(HttpResponse, TakesARangeOnlyWhereItIsTheOneThatWasAskedFor) {
  const auto of = [](const char* range) {
    return response_of({"HTTP/1.1 206 Partial Content\r\n", "etag: \"a\"\r\n", range});
  };
  EXPECT_EQ(problem_of(of("Content-Range: bytes 7-9/100\r\n"), 7), "");
  EXPECT_EQ(problem_of(of("CONTENT-RANGE:  bytes 7-9/100  \r\n"), 7, RemoteFileInfo{100, "\"a\""}), "");
  EXPECT_NE(problem_of(of("Content-Range: bytes 8-9/100\r\n"), 7), "");
  EXPECT_NE(problem_of(of("Content-Range: bytes 7-9/100\r\n"), 7, RemoteFileInfo{101, "\"a\""}), "");
  EXPECT_NE(problem_of(of("Content-Range: bytes 7-9/100\r\n"), 7, RemoteFileInfo{100, "\"b\""}), "");
  for (const char* const damaged :
       {"Content-Range: bytes 7-9/*\r\n", "Content-Range: bytes 7-9\r\n", "Content-Range: lines 7-9/100\r\n",
        "Content-Range: bytes -/100\r\n", "Content-Range: bytes 7-9/99999999999999999999\r\n",
        "Content-Range: bytes +7-9/100\r\n", "Content-Range: \r\n", "Content-Range\r\n", ""})
    EXPECT_NE(problem_of(of(damaged), 7), "") << damaged;
}

TEST(HttpResponse, OfTheLastHopCountsAfterARedirect) {
  const HttpResponse response =
      response_of({"HTTP/1.1 302 Found\r\n", "ETag: \"old\"\r\n", "Retry-After: 9\r\n", "HTTP/1.1 200 OK\r\n",
                   "Content-Length: 12\r\n"});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.etag, "");
  EXPECT_EQ(response.retry_after_seconds, 0);
  EXPECT_EQ(response.total_bytes, 12u);
  EXPECT_EQ(problem_of(response, 0), "");
  EXPECT_NE(problem_of(response, 3), "");
}

TEST(HttpResponse, ShowsWhatAServerSaysWithoutItsControlCharacters) {
  HttpResponse response = response_of({"HTTP/1.1 403 \x1b[31mForbidden\r\n"});
  static_cast<void>(
      response.add_body("<Error><Code>AccessDenied</Code><Message>no\ncan do</Message></Error>"));
  EXPECT_EQ(response.text(), "HTTP 403 \\x1b[31mForbidden (AccessDenied: no\\ncan do)");
}

TEST(Url, OfABucketGoesToItsHostOrBelowTheEndpoint) {
  S3Access access;
  access.region = "eu-west-3";
  EXPECT_EQ(s3_request_url("s3://data/a b/c+d%.h5", access),
            "https://data.s3.eu-west-3.amazonaws.com/a%20b/c%2Bd%25.h5");
  EXPECT_EQ(s3_request_url("s3://data.set/x", access), "https://s3.eu-west-3.amazonaws.com/data.set/x");
  access.endpoint = "http://127.0.0.1:9000";
  EXPECT_EQ(s3_request_url("s3://data/x", access), "http://127.0.0.1:9000/data/x");
  EXPECT_EQ(s3_request_url("s3://data", access), "http://127.0.0.1:9000/data/");
  EXPECT_EQ(escaped_url("https://host/a b%20ü"), "https://host/a%20b%20%C3%BC");
  EXPECT_TRUE(is_url("gopher://x") && is_url("s3://x") && !is_url("C:/x") && !is_url("://x") &&
              !is_url("/a/b://c"));
}

}  // namespace
}  // namespace chunkhit
