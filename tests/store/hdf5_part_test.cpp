#include "store/hdf5_part.h"

#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "chunkhit/error.h"
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

std::string fault_of_opening(const std::string& path) {
  try {
    static_cast<void>(open_hdf5_parts({path}, {}));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// A part of 10 samples.
struct WrittenPart {
  TemporaryFolder folder;
  std::string path = folder.path("part.h5");
  PartSpec spec;
  explicit WrittenPart(const std::string& filter) : spec(known_spec({20, 17, 3, Layout::nhwc}, filter)) {
    write_known_part(container("hdf5"), path, spec, kSamples);
  }
};

TEST(Hdf5Part, KnowsTheAddressesOfManySmallChunks) {
  const TemporaryFolder folder;
  PartSpec spec = known_spec({2, 2, 1, Layout::nhwc}, "none");
  constexpr std::uint64_t kMany = 3000;
  write_known_part(container("hdf5"), folder.path("part.h5"), spec, kMany);
  EXPECT_EQ(read_known_part(folder.path("part.h5"), spec, kMany), ReadOutcome::right);
}

TEST(Hdf5Part, IsReadAfterH5repackMovedItsChunks) {
  for (const char* filter : {"none", "deflate"}) {
    const WrittenPart part(filter);
    const std::string moved = part.folder.path("moved.h5");
    ASSERT_EQ(std::system(("h5repack " + part.path + " " + moved).c_str()), 0);
    EXPECT_NE(open_part(moved)->chunks()[0].offset, open_part(part.path)->chunks()[0].offset);
    EXPECT_TRUE(open_part(moved)->has_hashes());
    EXPECT_EQ(read_known_part(moved, part.spec, kSamples), ReadOutcome::right) << filter;
  }
}

TEST(Hdf5Part, IsRefusedAfterItsChunksWereFilteredAnew) {
  const WrittenPart part("none");
  const std::string packed = part.folder.path("packed.h5");
  ASSERT_EQ(std::system(("h5repack -f images:GZIP=6 " + part.path + " " + packed).c_str()), 0);
  EXPECT_EQ(fault_of_opening(packed),
            packed + ": /images has filter deflate, expected none: filtered anew, or damaged");
}

TEST(Hdf5Part, BecomesAnOrdinaryFileWithoutItsChunkTable) {
  const WrittenPart part("deflate");
  change_with_hdf5(part.path, [](hid_t file) {
    ASSERT_GE(H5Ldelete(file, "_chunks", H5P_DEFAULT), 0);
    ASSERT_GE(H5Adelete(file, "chunkhit_format"), 0);
    for (const char* name : {"rows", "files", "classes", "label_columns"})
      ASSERT_GE(H5Ldelete(file, name, H5P_DEFAULT), 0);
  });
  const std::unique_ptr<ChunkReader> reader = open_part(part.path);
  EXPECT_FALSE(reader->has_hashes());
  EXPECT_EQ(reader->samples().rows.back(), kSamples - 1);
  EXPECT_EQ(reader->samples().labels.ids[4], 1);
  for (std::size_t i = 0; i < reader->chunks().size(); ++i) {
    const StoredChunk& chunk = reader->chunks()[i];
    ByteBuffer stored;
    ByteBuffer raw(chunk.raw_bytes);
    reader->fetch(i, stored);
    decode_chunk(*reader, i, stored, raw);
    const ByteBuffer expected = known_samples(part.spec.sample, chunk.first_sample, chunk.sample_count);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), raw.begin())) << i;
  }
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
  ByteBuffer found(reader->spec().sample.byte_count());
  InputFile(raw.path).read_at(reader->raw_offset(1), found);
  EXPECT_EQ(found, known_samples(raw.spec.sample, reader->chunks()[1].first_sample, 1));
}

TEST(Hdf5Part, IsRefusedWithoutItsChunkTableOrItsFormat) {
  const WrittenPart table_gone("none");
  change_with_hdf5(table_gone.path,
                   [](hid_t file) { ASSERT_GE(H5Ldelete(file, "_chunks", H5P_DEFAULT), 0); });
  EXPECT_NE(fault_of_opening(table_gone.path), "");
  const WrittenPart format_gone("none");
  change_with_hdf5(format_gone.path, [](hid_t file) { ASSERT_GE(H5Adelete(file, "chunkhit_format"), 0); });
  EXPECT_NE(fault_of_opening(format_gone.path).find("format missing"), std::string::npos);
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
    EXPECT_EQ(fault_of_opening(part.path).find("1 chunks, expected 2") != std::string::npos,
              fill_time == H5D_FILL_TIME_NEVER);
  }
}

TEST(Hdf5Part, NoticesAChangedLabel) {
  const WrittenPart part("none");
  change_with_hdf5(part.path, [](hid_t file) {
    const std::array<std::int64_t, kSamples> labels{};
    const hid_t dataset = H5Dopen2(file, "labels", H5P_DEFAULT);
    ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, labels.data()), 0);
    H5Dclose(dataset);
  });
  EXPECT_NE(fault_of_opening(part.path).find("index: checksum "), std::string::npos);
}

TEST(Hdf5Part, FollowsNoLinksToOtherFiles) {
  const WrittenPart part("none");
  const std::string links = part.folder.path("links.h5");
  const hid_t file = H5Fcreate(links.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external(part.path.c_str(), "/images", file, "images", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_EQ(fault_of_opening(links), links + ": /images is a link to elsewhere");
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
  EXPECT_EQ(fault_of_opening(path), path + ": /images lies in another file");
}

/// Writes a large part in a child process that may not make files larger than `most_bytes`; returns its exit
/// code.
int write_with_limit(const std::string& path, rlim_t most_bytes) {
  const pid_t child = ::fork();
  if (child == 0) {
    const struct rlimit limit { most_bytes, most_bytes };
    ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int code = 0;
    try {
      write_known_part(container("hdf5"), path, known_spec({64, 64, 3, Layout::nhwc}, "none"), 100);
    } catch (const Error& error) {
      const bool says_why = std::string(error.what()).find("File too large") != std::string::npos;
      code = says_why ? static_cast<int>(error.code()) : 1;
    }
    std::exit(code);  // with all that the libraries do at the end of a process
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(Hdf5Part, IsNotThereWhereTheFileBecameTooLarge) {
  const TemporaryFolder folder;
  for (rlim_t most_bytes = 1000; most_bytes < 1'228'800; most_bytes += 100'000) {
    ASSERT_EQ(write_with_limit(folder.path("part.h5"), most_bytes), 73) << most_bytes;
    ASSERT_TRUE(std::filesystem::is_empty(folder.path())) << most_bytes;
  }
  EXPECT_EQ(write_with_limit(folder.path("part.h5"), 64 << 20), 0);
}

}  // namespace
}  // namespace chunkhit
