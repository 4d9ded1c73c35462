#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "chunkhit/dataset.h"
#include "chunkhit/image_loader.h"
#include "loaded_batches.h"

namespace chunkhit {
namespace {

using Names = std::vector<std::string>;

/// Writes a part of ten samples whose ids count up by its classes: 0, 1, …, 0, 1, …; without classes by two.
std::string write_classes(const TemporaryFolder& folder, const std::string& name, const Names& classes,
                          const std::string& kind = "shard", std::uint64_t pack_id = 1) {
  PartSpec spec = known_spec(kShape, "none");
  spec.images().classes = classes;
  spec.pack_id = pack_id;
  const std::string path = folder.path(name + std::string(container(kind).extension));
  const std::unique_ptr<ChunkWriter> writer = container(kind).create(path, spec);
  for (std::uint64_t first = 0; first < 10; first += spec.chunk_samples)
    append_known_chunk(*writer, container(kind), spec, first, std::min<std::uint64_t>(4, 10 - first));
  PartSamples samples = known_part_samples(spec, 10);
  const std::uint64_t count = classes.empty() ? 2 : classes.size();
  for (std::uint64_t s = 0; s < 10; ++s) samples.labels.ids[s] = static_cast<std::int64_t>(s % count);
  writer->finish(samples);
  return path;
}

/// The labels of all samples by name, in the order of the sources.
Names names_of_labels(ImageLoader& loader) {
  Names names;
  for (const ImageBatch& batch : loader.epoch(0))
    for (const std::int64_t id : batch.labels())
      names.push_back(loader.info().images().classes.at(static_cast<std::size_t>(id)).name);
  return names;
}

std::string error_of(const std::vector<std::string>& paths) {
  try {
    const ImageLoader loader(paths);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    return error.what();
  }
  return "none";
}

TEST(JoinedClasses, GiveAClassOneIdWhateverItsIdInEachPack) {
  const TemporaryFolder folder;
  for (const std::string kind : {"shard", "hdf5"}) {
    const std::string first = write_classes(folder, "first", {"cat", "dog"}, kind);
    const std::string second = write_classes(folder, "second", {"dog", "eel"}, "shard", 2);
    ImageLoader loader({first, second}, {.batch_size = 7});
    const Names names = names_of_labels(loader);
    ASSERT_EQ(names.size(), 20u);
    for (std::size_t s = 0; s < 10; ++s) {
      EXPECT_EQ(names[s], s % 2 == 0 ? "cat" : "dog") << kind << " " << s;
      EXPECT_EQ(names[10 + s], s % 2 == 0 ? "dog" : "eel") << kind << " " << s;
    }
    ASSERT_EQ(loader.info().images().classes.size(), 3u);
    for (std::int64_t id = 0; id < 3; ++id) EXPECT_EQ(loader.info().images().classes[id].id, id);
    EXPECT_EQ(loader.info().images().classes[1].samples, 10u);  // five of each
    EXPECT_EQ(loader.info().images().classes[2].samples, 5u);
    const ImageDataset dataset({first, second});
    EXPECT_EQ(dataset.label(0), 0);
    EXPECT_EQ(dataset.label(10), 1);
    EXPECT_EQ(dataset.label(11), 2);
    EXPECT_EQ(dataset.info().images().classes[2].name, "eel");
  }
}

TEST(JoinedClasses, KeepTheIdsOfTheFirstAndAppendTheOthersInOrder) {
  const TemporaryFolder folder;
  ImageLoader loader({write_classes(folder, "a", {"eel", "ant"}, "shard", 1),
                      write_classes(folder, "b", {"bee", "ant", "cat"}, "shard", 2),
                      write_classes(folder, "c", {"dog", "cat", "eel"}, "shard", 3)});
  Names names;
  for (const PackClass& each : loader.info().images().classes) names.push_back(each.name);
  EXPECT_EQ(names, (Names{"eel", "ant", "bee", "cat", "dog"}));
}

TEST(JoinedClasses, AreTheSameIdsWhereNoSourceHasNames) {
  const TemporaryFolder folder;
  ImageLoader loader({write_classes(folder, "a", {}, "shard", 1), write_classes(folder, "b", {}, "hdf5", 2)});
  for (const ImageBatch& batch : loader.epoch(0))
    for (std::size_t i = 0; i < batch.labels().size(); ++i) EXPECT_EQ(batch.labels()[i], i % 10 % 2);
  ASSERT_EQ(loader.info().images().classes.size(), 2u);
  EXPECT_EQ(loader.info().images().classes[1].samples, 10u);
}

TEST(JoinedClasses, FailWhereOnlyOneSideHasNames) {
  const TemporaryFolder folder;
  const std::string named = write_classes(folder, "named", {"cat", "dog"});
  const std::string unnamed = write_classes(folder, "unnamed", {}, "shard", 2);
  for (const auto& paths : {std::vector{named, unnamed}, std::vector{unnamed, named}}) {
    const std::string error = error_of(paths);
    EXPECT_NE(error.find(named), std::string::npos) << error;
    EXPECT_NE(error.find(unnamed + ": has class ids without names"), std::string::npos) << error;
  }
}

TEST(JoinedClasses, AreTheSameAfterARestore) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths{write_classes(folder, "first", {"cat", "dog"}),
                                       write_classes(folder, "second", {"dog", "eel"}, "shard", 2)};
  const ImageLoaderOptions options{.batch_size = 4, .shuffle = Shuffle::global, .seed = 5};
  ImageLoader loader(paths, options);
  static_cast<void>(loader.next());
  ImageLoader resumed(paths, options);
  resumed.restore(loader.state());
  while (const ImageBatch* const batch = loader.next()) {
    const ImageBatch* const same = resumed.next();
    ASSERT_NE(same, nullptr);
    EXPECT_EQ(seen(*batch), seen(*same));
  }
}

}  // namespace
}  // namespace chunkhit
