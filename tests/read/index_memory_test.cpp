// Opening a shard of matrices keeps to cache_bytes, however well its ids and its index are compressed.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "chunk/row_block.h"
#include "chunkhit/dataset.h"
#include "chunkhit/loader.h"
#include "codec/chunk_codec.h"
#include "store/part.h"
#include "temporary_folder.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kMany = 2'000'000;
constexpr std::uint64_t kMebibyte = 1 << 20;

/// What a shard has so many of, and what they are like.
struct IdsCase {
  const char* name;
  std::uint64_t rows;
  std::uint64_t items;
  std::function<std::string(std::uint64_t)> id;
  bool has_labels = false;  ///< another one in each row
};

const std::vector<IdsCase>& ids_cases() {
  static const std::vector<IdsCase> kCases{
      {"labels", kMany, 1, [](std::uint64_t i) { return std::to_string(i); }, true},
      {"long integers", kMany, 1, [](std::uint64_t) { return std::string("-9223372036854775808"); }},
      {"items", 1, kMany, [](std::uint64_t i) { return std::to_string(i); }},
      {"long items", 1, kMany,
       [](std::uint64_t i) { return std::to_string(INT64_MIN + static_cast<std::int64_t>(i * 7919)); }},
      {"items' names", 1, kMany / 4,
       [](std::uint64_t i) { return std::string(50, 'x') + std::to_string(i); }}};
  return kCases;
}

/// Rows without ratings, so that ids and the index are all that is large.
void write_ids(const std::string& path, const IdsCase& each) {
  PartSpec spec;
  spec.samples.emplace<RowBlocks>().matrix = MatrixShape{.column_count = each.items, .matrix_count = 1};
  spec.codec = "zstd";
  spec.chunk_samples = 2000;
  for (std::uint64_t item = 0; item < each.items; ++item) spec.rows().item_ids.push_back(each.id(item));
  const std::unique_ptr<ChunkWriter> writer = container("shard").create(path, spec);
  for (std::uint64_t first = 0; first < each.rows; first += spec.chunk_samples) {
    const std::uint64_t count = std::min(spec.chunk_samples, each.rows - first);
    CsrRows rows;
    rows.indptr.assign(count + 1, 0);
    ByteBuffer raw;
    ByteBuffer stored;
    const CsrView view = rows.view();
    encode_row_block({&view, 1}, spec.rows().matrix, first, raw);
    const ChunkCodec& codec = chunk_codec("zstd");
    codec.encode(raw, {}, codec.default_level, false, stored);
    writer->append({Bytes(stored), raw.size(), count, xxh3(stored), true});
  }
  PartSamples samples;
  for (std::uint64_t row = 0; row < each.rows; ++row) {
    samples.rows.push_back(each.has_labels ? row : 0);
    samples.labels.ids.push_back(each.has_labels ? static_cast<std::int64_t>(row) : -1);
    samples.row_ids.add(each.id(row));
  }
  static_cast<void>(writer->finish(samples));
}

struct ChildReport {
  int exit_code = 0;
  std::uint64_t peak_bytes = 0;
};

/// Runs work in a child process, whose memory nobody used before.
ChildReport run_in_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  EXPECT_TRUE(WIFEXITED(status));
  return {WEXITSTATUS(status), static_cast<std::uint64_t>(usage.ru_maxrss) << 10};
}

constexpr int kOpened = 0;
constexpr int kNeedsMore = 3;

template <class Open>
int exit_code_of(const Open& open) {
  try {
    open();
    return kOpened;
  } catch (const Error& error) {
    return error.code() == ErrorCode::usage ? kNeedsMore : 1;
  }
}

/// Gives more and more memory until a shard opens; never must more be taken than is given.
template <class Open>
void expect_within_what_is_given(const std::string& name, const Open& open) {
  const std::uint64_t base = run_in_child([] { return 0; }).peak_bytes;
  for (std::uint64_t given = 64 * kMebibyte; given < 1024 * kMebibyte; given += given / 8) {
    const ChildReport report = run_in_child([&] { return exit_code_of([&] { open(given); }); });
    EXPECT_LE(report.peak_bytes, base + given + 8 * kMebibyte) << name << " with " << given;
    if (report.exit_code == kOpened) return;
    ASSERT_EQ(report.exit_code, kNeedsMore) << name;
  }
  ADD_FAILURE() << name << " never opened";
}

TEST(IndexMemory, OfASmallShardThatTookGigabytesStaysWithinWhatIsGiven) {
  const TemporaryFolder folder;
  for (const IdsCase& each : ids_cases()) {
    const std::string path = folder.path("part.zst");
    ASSERT_EQ(run_in_child([&] { return exit_code_of([&] { write_ids(path, each); }); }).exit_code, 0)
        << each.name;
    expect_within_what_is_given(each.name, [&](std::uint64_t given) {
      static_cast<void>(SparseDataset(path, {.cache = Cache::none, .cache_bytes = given}).size());
    });
  }
}

/// Leaves a process so many more addresses than it has now.
void limit_addresses(std::uint64_t more) {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0;
  statm >> pages;
  const rlim_t limit = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + more;
  const rlimit addresses{limit, limit};
  if (::setrlimit(RLIMIT_AS, &addresses) != 0) ::_exit(1);
}

TEST(IndexMemory, OfALoneShardWasWithoutALimitForPackInfo) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part.zst");
  const IdsCase& integers = ids_cases()[1];
  ASSERT_EQ(run_in_child([&] { return exit_code_of([&] { write_ids(path, integers); }); }).exit_code, 0);
  const ChildReport report = run_in_child([&] {
    limit_addresses(240 * kMebibyte);  // half of it is less than the shard needs, all of it is enough
    try {
      static_cast<void>(read_pack_info(path));
      return kOpened;
    } catch (const Error& error) {
      return error.code() == ErrorCode::try_again ? kNeedsMore : 1;
    }
  });
  EXPECT_EQ(report.exit_code, kNeedsMore);
  EXPECT_EQ(
      run_in_child([&] { return exit_code_of([&] { static_cast<void>(read_pack_info(path)); }); }).exit_code,
      kOpened);
}

}  // namespace
}  // namespace chunkhit
