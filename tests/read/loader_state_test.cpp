// States that fit are taken, and all others are refused with the field's name.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "chunkhit/image_loader.h"
#include "loaded_batches.h"

namespace chunkhit {
namespace {

const ImageLoaderOptions kStateOptions{.batch_size = 8,
                                       .shuffle = Shuffle::window,
                                       .seed = 9,
                                       .window_chunks = 3,
                                       .augment = {.flip_horizontal = 0.5},
                                       .threads = 2};

/// The state after some batches of epoch 3.
std::string state_after(const std::string& path, const ImageLoaderOptions& options, int batches) {
  ImageLoader loader(path, options);
  static_cast<void>(loader.epoch(3));
  for (int i = 0; i < batches; ++i) EXPECT_NE(loader.next(), nullptr);
  return loader.state();
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in " << text;
  return text.replace(at, from.size(), to);
}

/// What restoring throws; empty where it does not.
std::string refusal(ImageLoader& loader, const std::string& state) {
  try {
    loader.restore(state);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "";
}

TEST(LoaderState, IsRefusedWhereAFieldWasChanged) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  ImageLoader loader(path, kStateOptions);
  const std::string state = state_after(path, kStateOptions, 2);
  ASSERT_EQ(refusal(loader, state), "");
  const std::vector<std::pair<std::pair<std::string, std::string>, std::string>> changes{
      {{"\"batches\":2", "\"batches\":-2"}, "batches: found -2"},
      {{"\"batches\":2", "\"batches\":2.5"}, "batches: found 2.5"},
      {{"\"batches\":2", "\"batches\":14"}, "batches: 14, expected at most 13"},
      {{"\"batches\":2", "\"batches\":18446744073709551615"}, "batches: 18446744073709551615"},
      {{"\"batches\":2", "\"batches\":1"}, "positions: 16, expected 8"},
      {{"\"positions\":16", "\"positions\":17"}, "positions: 17, expected 16"},
      {{",\"positions\":16", ""}, "positions: is missing, expected 16"},
      {{"\"first_position\":0", "\"first_position\":104"}, "first_position: 104, expected at most 103"},
      {{"\"first_position\":0", "\"first_position\":null"}, "first_position: found null"},
      {{"\"batch_size\":8", "\"batch_size\":0"}, "batch_size: found 0"},
      {{"\"batch_size\":8", "\"batch_size\":4294967296"}, "batch_size: found 4294967296"},
      {{"\"world_size\":1", "\"world_size\":0"}, "world_size: found 0"},
      {{"\"echo\":1", "\"echo\":\"1\""}, "echo: found \"1\""},
      {{"\"echo\":1", "\"echo\":1,\"streams\":0"}, "streams: found 0"},
      {{"\"echo\":1", "\"echo\":1,\"streams\":2"}, "stream_unit"},
      {{"\"echo\":1", "\"echo\":1,\"stream_unit\":2"}, "stream_unit: no such field"},
      {{"\"echo\":1", "\"echo\":1,\"streams\":2,\"stream_unit\":0"}, "stream_unit: 0, expected at least 1"},
      {{"\"echo\":1", "\"echo\":1,\"streams\":65537,\"stream_unit\":1"},
       "streams: 65537, expected at most 65536"},
      {{"\"window_chunks\":3", "\"window_chunks\":4"}, "window_chunks: 4, expected 3"},
      {{"\"shuffle\":\"window\"", "\"shuffle\":\"none\""}, "shuffle: none, expected window"},
      {{"\"rank_remainder\":\"pad\"", "\"rank_remainder\":\"even\""}, "rank_remainder: found \"even\""},
      {{"\"drop_last\":false", "\"drop_last\":0"}, "drop_last: found 0"},
      {{"\"epoch\":3", "\"epoch\":[3]"}, "epoch: found [3]"},
      {{"\"epoch\":3", "\"epoch\":3,\"epoch\":4"}, "epoch: is repeated"},
      {{"\"epoch\":3", "\"epoch\":3,\"eboch\":4"}, "eboch: no such field"},
      {{"\"flip_horizontal\":0.5", "\"flip_horizontal\":true"}, "augment.flip_horizontal: found true"},
      {{"\"crop_width\":0.0", "\"crop_depth\":0.0"}, "augment.crop_depth: 0, expected nothing"},
      {{"\"source\":\"", "\"source\":\"x"}, "source: found \"x"}};
  for (const auto& [change, words] : changes) {
    const std::string changed = with(state, change.first, change.second);
    EXPECT_NE(refusal(loader, changed).find(words), std::string::npos)
        << changed << " gave " << refusal(loader, changed);
  }
}

TEST(LoaderState, IsRefusedWithAnotherAugment) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  ImageLoaderOptions other = kStateOptions;
  other.augment.flip_horizontal = 0.25;
  ImageLoader loader(path, other);
  EXPECT_EQ(refusal(loader, state_after(path, kStateOptions, 2)),
            "loader state: augment.flip_horizontal: 0.5, expected 0.25");
}

TEST(LoaderState, InAnEchoedBlockNamesWhatDiffers) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  ImageLoaderOptions options = kStateOptions;
  options.echo = 2;
  const std::string state = state_after(path, options, 1);
  options.batch_size = 4;
  ImageLoader loader(path, options);
  EXPECT_NE(refusal(loader, state).find("batch_size: 8, expected 4 in the midst of a block"),
            std::string::npos);
}

TEST(LoaderState, WithBatchesLeftIsNotDroppedByAnotherEpoch) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  ImageLoader whole(path, kStateOptions), loader(path, kStateOptions);
  const std::vector<Seen> all = read_epoch(whole, 3);
  loader.restore(state_after(path, kStateOptions, 5));
  for (const std::uint64_t epoch : {2, 4}) try {
      static_cast<void>(loader.epoch(epoch));
      ADD_FAILURE() << "the position was dropped";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("stands in epoch 3, of which 8 batches are left"),
                std::string::npos)
          << error.what();
    }
  EXPECT_EQ(read_epoch(loader, 3), std::vector<Seen>(all.begin() + 5, all.end()));
}

TEST(LoaderState, OfAnEpochThatIsOverLetsAnyEpochBegin) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  ImageLoader whole(path, kStateOptions), loader(path, kStateOptions);
  const std::vector<Seen> all = read_epoch(whole, 4);
  loader.restore(state_after(path, kStateOptions, 13));
  EXPECT_EQ(read_epoch(loader, 4), all);
  loader.restore(whole.state());
  EXPECT_EQ(read_epoch(loader, 4), all);
}

}  // namespace
}  // namespace chunkhit
