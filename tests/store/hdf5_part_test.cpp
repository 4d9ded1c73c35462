#include <fcntl.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/hash.h"
#include "chunkhit/error.h"
#include "store/hdf5/image_part.h"
#include "store/hdf5/index.h"
#include "support/known_part_check.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kSamples = 10;

/// Changes a file through the HDF5 library itself.
template <class Change>
void change_with_hdf5(const std::string& path, Change change) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  change(file);
  H5Fclose(file);
}

std::string error_of(const std::function<void()>& step) {
  try {
    step();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string error_of_opening(const std::string& path) {
  return error_of([&] { static_cast<void>(open_part(path)); });
}

/// A part of 10 samples.
struct WrittenPart {
  TemporaryFolder folder;
  std::string path = folder.path("part.h5");
  PartSpec spec;
  explicit WrittenPart(const std::string& filter) : spec(known_spec({20, 17, 3, Layout::nhwc}, filter)) {
    write_known_part(container("hdf5"), path, spec, kSamples);
  }
  [[nodiscard]] std::string bytes() const { return std::string(as_text(read_file(path, 1 << 30))); }
  void replace(const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }
};

/// A part whose index and trailer a test changes, with hashes that are right.
struct ForgedPart : WrittenPart {
  std::string whole = bytes();
  std::size_t trailer_at = whole.size() - kHdf5TrailerBytes;
  std::size_t index_at = number(24);
  ForgedPart() : WrittenPart("none") {}
  [[nodiscard]] std::uint64_t number(std::size_t at) const {
    return load_little<std::uint64_t>(as_bytes(whole).data() + trailer_at + at);
  }
  /// Sets a number of the trailer, or with `at` behind it of the index; gives the error of opening.
  std::string error_with(std::size_t at, std::uint64_t value) const {
    std::string changed = whole;
    auto* const data = reinterpret_cast<std::uint8_t*>(changed.data());
    const bool in_trailer = at < kHdf5TrailerBytes;
    store_little(data + (in_trailer ? trailer_at + at : index_at + at - kHdf5TrailerBytes), value);
    const Bytes all = as_bytes(changed);
    if (!in_trailer) store_little(data + trailer_at + 40, xxh3(all.subspan(index_at, trailer_at - index_at)));
    store_little(data + trailer_at + 56, xxh3(all.subspan(trailer_at, 56)));
    replace(changed);
    return error_of_opening(path);
  }
};

TEST(Hdf5Part, KnowsTheAddressesOfManySmallChunks) {
  const TemporaryFolder folder;
  PartSpec spec = known_spec({2, 2, 1, Layout::nhwc}, "none");
  constexpr std::uint64_t kMany = 3000;
  write_known_part(container("hdf5"), folder.path("part.h5"), spec, kMany);
  EXPECT_EQ(read_known_part(folder.path("part.h5"), spec, kMany), ReadOutcome::right);
}

TEST(Hdf5Part, IsAnExternalFileOnceH5repackWroteIt) {
  for (const char* filter : {"none", "deflate"})
    for (const char* options : {"", "-f images:GZIP=6 ", "-l images:CONTI "}) {
      const WrittenPart part(filter);
      const std::string moved = part.folder.path("moved.h5");
      ASSERT_EQ(std::system(("h5repack " + (options + part.path) + " " + moved).c_str()), 0);
      EXPECT_FALSE(open_part(moved)->has_hashes());
      EXPECT_EQ(read_known_part(moved, part.spec, kSamples), ReadOutcome::right) << filter << options;
      EXPECT_EQ(
          error_of([&] { static_cast<void>(container("hdf5").open(moved)); }),
          moved +
              ": has no index behind its HDF5 end of file: another program changed it, or it was cut off");
    }
}

TEST(Hdf5Part, IsAnExternalFileOnceAProgramOpenedItForWriting) {
  const WrittenPart part("deflate");
  change_with_hdf5(part.path, [](hid_t) {});
  EXPECT_FALSE(open_part(part.path)->has_hashes());
  EXPECT_EQ(read_known_part(part.path, part.spec, kSamples), ReadOutcome::right);
}

TEST(Hdf5Part, IsAnExternalFileWithoutItsColumns) {
  const WrittenPart part("deflate");
  change_with_hdf5(part.path, [](hid_t file) {
    for (const char* name : {"rows", "files", "classes", "label_columns"})
      ASSERT_GE(H5Ldelete(file, name, H5P_DEFAULT), 0);
  });
  const std::unique_ptr<ChunkReader> reader = open_part(part.path);
  EXPECT_FALSE(reader->has_hashes());
  EXPECT_EQ(reader->samples().rows.back(), kSamples - 1);
  EXPECT_EQ(reader->samples().labels.ids[4], 1);
}

TEST(Hdf5Part, IsAnExternalFileWhereItsEndAddressMoved) {
  const WrittenPart part("none");
  std::string bytes = part.bytes();
  const std::uint64_t moved_end = bytes.size();
  std::memcpy(bytes.data() + 40, &moved_end, sizeof moved_end);
  part.replace(bytes);
  EXPECT_FALSE(open_part(part.path)->has_hashes());
  EXPECT_EQ(read_known_part(part.path, part.spec, kSamples), ReadOutcome::right);
}

TEST(Hdf5Part, IsDamagedWhereOtherBytesLieBehindItsHdf5End) {
  const WrittenPart part("none");
  const std::string whole = part.bytes();
  const std::size_t end = load_little<std::uint64_t>(as_bytes(whole).data() + 40);
  for (const std::string& bytes : {whole + "x", whole.substr(0, whole.size() - 1), whole.substr(0, end + 1),
                                   whole.substr(0, end) + std::string(whole.size() - end, '\0')}) {
    part.replace(bytes);
    EXPECT_EQ(error_of_opening(part.path).find(part.path + ": the index behind its HDF5 end is damaged"), 0u);
  }
  part.replace(whole.substr(0, end));
  EXPECT_EQ(read_known_part(part.path, part.spec, kSamples), ReadOutcome::right);
}

TEST(Hdf5Part, GivesTheLabelsThatAnotherProgramChanged) {
  const WrittenPart part("none");
  change_with_hdf5(part.path, [](hid_t file) {
    const std::array<std::int64_t, kSamples> labels{};
    const hid_t dataset = H5Dopen2(file, "labels", H5P_DEFAULT);
    ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, labels.data()), 0);
    H5Dclose(dataset);
  });
  EXPECT_EQ(open_part(part.path)->samples().labels.ids, std::vector<std::int64_t>(kSamples));
}

TEST(Hdf5Part, IsReadWithoutTheHdf5Library) {
  const WrittenPart part("deflate");
  std::string bytes = part.bytes();
  std::size_t at = 48;  // behind the superblock's end address
  const std::vector<StoredChunk> chunks = open_part(part.path)->chunks();
  for (const StoredChunk& chunk : chunks) {
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(at),
              bytes.begin() + static_cast<std::ptrdiff_t>(chunk.offset), 'x');
    at = chunk.offset + chunk.stored_bytes;
  }
  part.replace(bytes);
  EXPECT_EQ(read_known_part(part.path, part.spec, kSamples), ReadOutcome::right);
  EXPECT_EQ(error_of([&] { open_part(part.path)->check_hdf5_bytes(); }).find(part.path + ": HDF5 metadata: "),
            0u);
}

TEST(Hdf5Part, IsRejectedWithADamagedTrailer) {
  const WrittenPart part("none");
  const std::string whole = part.bytes();
  for (std::size_t at = 0; at < kHdf5TrailerBytes; ++at) {
    std::string bytes = whole;
    char& byte = bytes[bytes.size() - kHdf5TrailerBytes + at];
    byte = static_cast<char>(byte ^ 1 << at % 8);
    part.replace(bytes);
    const std::string reason = at < 16 ? ": the index behind its HDF5 end is damaged" : ": trailer: ";
    EXPECT_EQ(error_of_opening(part.path).find(part.path + reason), 0u) << at;
  }
}

TEST(Hdf5Part, NamesWhatIsWrongWithItsTrailer) {
  const ForgedPart part;
  EXPECT_EQ(part.error_with(16, 4 | std::uint64_t{1} << 32),
            part.path + ": trailer: version 4, this reader knows versions 2 and 3");
  EXPECT_EQ(part.error_with(16, 3 | std::uint64_t{2} << 32),
            part.path + ": trailer: version 3 of kind 2, expected 1 (images)");
  EXPECT_EQ(
      part.error_with(16, 2 | std::uint64_t{9} << 32),
      part.path + ": trailer: kind 9, expected 1 (images), 2 (matrices) or 3 (images of their own sizes)");
  for (const std::uint64_t number : {std::uint64_t{0}, part.index_at + 1, UINT64_MAX, UINT64_MAX - 63}) {
    EXPECT_NE(part.error_with(24, number).find("trailer: an HDF5 file of "), std::string::npos) << number;
    EXPECT_NE(part.error_with(32, number).find("trailer: an HDF5 file of "), std::string::npos) << number;
  }
}

TEST(Hdf5Part, ChecksEveryNumberOfItsIndex) {
  const ForgedPart part;
  constexpr std::size_t kIndex = kHdf5TrailerBytes;
  constexpr std::size_t kFirstNumber = 12;  // of the spec: its layout
  for (std::size_t at = kFirstNumber; at < 56 + 72 + 3 * 56; at += 4)
    for (const std::uint64_t number : {std::uint64_t{0x7fffffff}, UINT64_MAX, std::uint64_t{1} << 62}) {
      const bool is_hash =
          at >= 128 && ((at - 128) % 56 == 36 || (at - 128) % 56 == 40 || (at - 128) % 56 == 44);
      const bool is_filter = at >= 32 && at < 48;
      EXPECT_TRUE(is_hash || is_filter || !part.error_with(kIndex + at, number).empty())
          << at << " " << number;
    }
}

TEST(Hdf5Part, RejectsHashesOfSamplesThatTheChunkDoesNotHave) {
  const ForgedPart part;
  const std::size_t chunks = (kSamples - 1) / kKnownChunkSamples + 1;
  const std::size_t first_hash = 56 + 72 + 56 * chunks + 2 * 8 * kSamples;  // behind labels and rows
  EXPECT_NE(
      part.error_with(kHdf5TrailerBytes + first_hash, 1).find("chunk 0: checksum of its samples' hashes"),
      std::string::npos);
  EXPECT_NE(part.error_with(16, 2 | std::uint64_t{1} << 32), "") << "they are not in version 2";
}

TEST(Hdf5Part, RejectsChunksThatOverlap) {
  const ForgedPart part;
  const std::uint64_t first = open_part(part.path)->chunks()[0].offset;
  constexpr std::size_t kSecondChunkAt = 56 + 72 + 56;
  EXPECT_NE(part.error_with(kHdf5TrailerBytes + kSecondChunkAt, first + 1).find("chunk 1 begins at byte "),
            std::string::npos);
}

TEST(Hdf5Part, IsReadWithOtherLabelsWhereTheyAreNamed) {
  const WrittenPart part("none");
  const std::unique_ptr<ChunkReader> reader = open_part(part.path, {.labels = "/rows"});
  EXPECT_TRUE(reader->has_hashes());
  EXPECT_EQ(reader->samples().labels.ids.back(), static_cast<std::int64_t>(reader->samples().rows.back()));
  EXPECT_EQ(open_part(part.path, {.labels = ""})->samples().labels.ids.back(), -1);
}

TEST(Hdf5Part, TellsWhichChunksLieInTheFileAsTheyAre) {
  const WrittenPart raw("none");
  const std::unique_ptr<ChunkReader> reader = open_part(raw.path);
  ASSERT_TRUE(reader->stored_raw(1));
  ByteBuffer found(reader->spec().images().sample.byte_count());
  InputFile(raw.path).read_at(reader->chunks()[1].offset, found);
  EXPECT_EQ(found, known_samples(raw.spec.images().sample, reader->chunks()[1].first_sample, 1));
}

/// Replaces the labels by as many in chunks of 5, of which the second was never written.
void write_half_of_the_labels(hid_t file, H5D_fill_time_t fill_time) {
  const hsize_t count = kSamples, chunk = 5, first = 0;
  const std::array<std::int64_t, 5> labels{0, 1, 2, 0, 1};
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 1, &chunk);
  H5Pset_fill_time(list, fill_time);
  ASSERT_GE(H5Ldelete(file, "labels", H5P_DEFAULT), 0);
  const hid_t space = H5Screate_simple(1, &count, nullptr);
  const hid_t dataset = H5Dcreate2(file, "labels", H5T_NATIVE_INT64, space, H5P_DEFAULT, list, H5P_DEFAULT);
  ASSERT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &first, sizeof labels, labels.data()), 0);
  H5Dclose(dataset);
  H5Sclose(space);
  H5Pclose(list);
}

TEST(Hdf5Part, IsRefusedWhereAChunkOfAListIsMissingAndHasNoFillValue) {
  for (const H5D_fill_time_t fill_time : {H5D_FILL_TIME_NEVER, H5D_FILL_TIME_IFSET}) {
    const WrittenPart part("none");
    change_with_hdf5(part.path, [&](hid_t file) { write_half_of_the_labels(file, fill_time); });
    EXPECT_EQ(error_of_opening(part.path).find("1 chunks, expected 2") != std::string::npos,
              fill_time == H5D_FILL_TIME_NEVER);
  }
}

TEST(Hdf5Part, FollowsNoLinksToOtherFiles) {
  const WrittenPart part("none");
  const std::string links = part.folder.path("links.h5");
  const hid_t file = H5Fcreate(links.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external(part.path.c_str(), "/images", file, "images", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_EQ(error_of_opening(links), links + ": /images is a link to elsewhere");
}

TEST(Hdf5Part, ReadsNoBytesOfOtherFiles) {
  const TemporaryFolder folder;
  const std::string path = folder.path("outside.h5");
  const std::string secret = folder.write("secret", "a text that nobody shall read");
  const std::array<hsize_t, 4> dimensions{1, 2, 2, 3};
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(4, dimensions.data(), nullptr);
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(list, secret.c_str(), 0, 12);
  H5Dclose(H5Dcreate2(file, "images", H5T_NATIVE_UINT8, space, H5P_DEFAULT, list, H5P_DEFAULT));
  H5Fclose(file);
  EXPECT_EQ(error_of_opening(path), path + ": /images lies in another file");
}

/// Writes a large part in a child process that may not make files larger than `max_bytes`; returns its exit
/// code.
int write_with_limit(const std::string& path, rlim_t max_bytes) {
  const pid_t child = ::fork();
  if (child == 0) {
    // The limit is for the log of the tests, too, where LeakSanitizer hangs that cannot write its report.
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    const struct rlimit limit { max_bytes, max_bytes };
    ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int code = 0;
    try {
      write_known_part(container("hdf5"), path, known_spec({64, 64, 3, Layout::nhwc}, "none"), 100);
    } catch (const Error& error) {
      const bool says_why = std::string(error.what()).find("File too large") != std::string::npos;
      code = says_why ? static_cast<int>(error.code()) : 1;
    }
#ifdef __SANITIZE_ADDRESS__
    ::_exit(code);  // objects of the parent's threads, which this process has not, would be leaks
#endif
    std::exit(code);  // with all that the libraries do at the end of a process
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(Hdf5Part, IsNotThereWhereTheFileBecameTooLarge) {
  const TemporaryFolder folder;
  for (rlim_t max_bytes = 1000; max_bytes < 1'228'800; max_bytes += 100'000) {
    ASSERT_EQ(write_with_limit(folder.path("part.h5"), max_bytes), 73) << max_bytes;
    ASSERT_TRUE(std::filesystem::is_empty(folder.path())) << max_bytes;
  }
  EXPECT_EQ(write_with_limit(folder.path("part.h5"), 64 << 20), 0);
  const auto bytes = static_cast<rlim_t>(std::filesystem::file_size(folder.path("part.h5")));
  std::filesystem::remove(folder.path("part.h5"));
  for (const rlim_t missing : {1, 64, 65, 2000}) {
    ASSERT_EQ(write_with_limit(folder.path("part.h5"), bytes - missing), 73) << missing;
    ASSERT_TRUE(std::filesystem::is_empty(folder.path())) << missing;
  }
}

}  // namespace
}  // namespace chunkhit
