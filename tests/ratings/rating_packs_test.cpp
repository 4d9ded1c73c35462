#include "ratings/rating_packs.h"

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "chunkhit/error.h"
#include "small_ratings.h"
#include "temporary_folder.h"

namespace chunkhit {
namespace {

using Numbers = std::vector<std::uint32_t>;

RatingPacks make(const std::vector<Rating>& ratings, const RatingPacksSpec& spec,
                 const ItemChoice& items = {}, const RatingStoreSpec& kept = {.keeps_times = true}) {
  RatingStore store(kept);
  append(store, ratings);
  return make_rating_packs(store, spec, items);
}

TEST(RatingPacks, AreOneWithoutASplit) {
  const std::vector<Rating> ratings{{0, 0, 4}, {0, 1, 2.5F}, {1, 1, 3}, {2, 1, 0}, {3, 2, 5}, {3, 1, 1}};
  const RatingPacks made = make(ratings, {.order = PackOrder::input});
  ASSERT_EQ(made.packs.size(), 1u);
  const PackRows& pack = made.packs[0];
  EXPECT_EQ(pack.name(), "");
  EXPECT_FALSE(pack.has_held_out());
  EXPECT_EQ(Numbers(pack.users().begin(), pack.users().end()), (Numbers{0, 1, 3}));
  EXPECT_EQ(made.columns().items, (Numbers{1, 0, 2}));
  EXPECT_EQ(text_of(fill(pack).x), "0=2.5 1=4 | 0=3 | 0=1 2=5 ");
  EXPECT_EQ(fill(pack).held_out.row_count(), 0u);
  EXPECT_EQ(pack.stats().x.nnz, 5u);
  EXPECT_EQ(pack.stats().x.longest_row, 2u);
  EXPECT_EQ(text_of(made.steps), "input 4x3 6, zeros 3x3 5, duplicates 3x3 5");
  EXPECT_EQ(made.stored.type, ValueType::u8);
  EXPECT_EQ(made.stored.scale, 0.5);
  EXPECT_EQ(made.values.bins.size(), 5u);
}

TEST(RatingPacks, HaveNoValuesWhereAllAreOne) {
  const RatingPacks made = make({{0, 0, 4}, {0, 1, 2}}, {.rules = {.binarize = true}});
  EXPECT_EQ(made.stored.type, ValueType::none);
  EXPECT_TRUE(fill(made.packs[0]).x.values.empty());
}

TEST(RatingPacks, ShuffleRowsBySeed) {
  std::vector<Rating> ratings;
  for (std::uint32_t user = 0; user < 100; ++user) ratings.push_back({user, user});
  const auto users = [&](std::uint64_t seed) {
    const RatingPacks made = make(ratings, {.seed = seed});
    return Numbers(made.packs[0].users().begin(), made.packs[0].users().end());
  };
  EXPECT_EQ(users(1), users(1));
  EXPECT_NE(users(1), users(2));
  Numbers sorted = users(1);
  EXPECT_FALSE(std::is_sorted(sorted.begin(), sorted.end()));
  std::sort(sorted.begin(), sorted.end());
  for (std::uint32_t user = 0; user < 100; ++user) EXPECT_EQ(sorted[user], user);
}

TEST(RatingPacks, TakeTheColumnsOfAnotherPack) {
  const Numbers frozen{7, 2, 0};
  ItemChoice items;
  items.frozen = frozen;
  const RatingPacks made =
      make({{0, 0, 4}, {0, 1, 2}, {1, 1, 2}, {2, 2, 3}}, {.order = PackOrder::input}, items);
  EXPECT_EQ(text_of(fill(made.packs[0]).x), "2=4 | 1=3 ");
  EXPECT_EQ(made.columns().counts, (std::vector<std::uint64_t>{0, 1, 1}));
  EXPECT_EQ(text_of(made.steps), "input 3x3 4, zeros 3x3 4, duplicates 3x3 4, reuse-ids 2x2 2");
}

TEST(RatingPacks, AreRefusedWhenNothingIsLeft) {
  try {
    (void)make({{0, 0, 1}, {1, 0, 2}}, {.rules = {.above = 4.0F}});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    EXPECT_EQ(std::string(error.what()),
              "`above` 4 leaves 0 of 2 ratings (those without values are 1): "
              "no ratings are left for training; input: 2; zeros: 2; duplicates: 2; above: 0");
  }
}

// The vae_cf preset on 12 users and 8 items, worked by hand.
//   users 0..9 rated items 0..4 with 5 and item 5 with 3 (which `above 3.5` drops)
//   user 10 rated items 0..3 with 4: 4 ratings, too few
//   user 11 rated items 0..4 and 6 with 4 and item 7 with 3.5 (which is not above 3.5)
std::vector<Rating> vae_cf_example() {
  std::vector<Rating> ratings;
  for (std::uint32_t user = 0; user < 10; ++user) {
    for (std::uint32_t item = 0; item < 5; ++item) ratings.push_back({user, item, 5});
    ratings.push_back({user, 5, 3});
  }
  for (std::uint32_t item = 0; item < 4; ++item) ratings.push_back({10, item, 4});
  for (const std::uint32_t item : {0u, 1u, 2u, 3u, 4u, 6u}) ratings.push_back({11, item, 4});
  ratings.push_back({11, 7, 3.5F});
  return ratings;
}

/// The seed with which user 11 is in this part.
std::uint64_t seed_with_user_11(const RatingPacksSpec& spec, std::size_t pack) {
  for (std::uint64_t seed = 0;; ++seed) {
    RatingPacksSpec seeded = spec;
    seeded.seed = seed;
    const RatingPacks made = make(vae_cf_example(), seeded);
    const auto users = made.packs[pack].users();
    if (std::find(users.begin(), users.end(), 11u) != users.end()) return seed;
  }
}

RatingPacksSpec small_vae_cf() {
  RatingPacksSpec spec = vae_cf_spec();
  spec.split.validation.count = 2;
  spec.split.test.count = 3;
  return spec;
}

TEST(VaeCfPreset, CountsEachStepAsWorkedByHand) {
  const RatingPacks made = make(vae_cf_example(), small_vae_cf());
  // above 3.5: 10 · 5 + 4 + 6; users with 5: not user 10.
  EXPECT_EQ(
      text_of(made.steps),
      "input 12x8 71, zeros 12x8 71, duplicates 12x8 71, above 12x6 60, binarize 12x6 60, min-user 11x6 56");
  ASSERT_EQ(made.packs.size(), 3u);
  EXPECT_EQ(made.packs[0].name(), "train");
  EXPECT_EQ(made.packs[1].name(), "validation");
  EXPECT_EQ(made.packs[2].name(), "test");
  EXPECT_EQ(made.packs[0].row_count(), 6u);
  EXPECT_EQ(made.packs[1].row_count(), 2u);
  EXPECT_EQ(made.packs[2].row_count(), 3u);
  EXPECT_EQ(made.stored.type, ValueType::none);
}

TEST(VaeCfPreset, DropsItemsThatTrainingHasNotBeforeItFolds) {
  RatingPacksSpec spec = small_vae_cf();
  spec.seed = seed_with_user_11(spec, 2);
  const RatingPacks made = make(vae_cf_example(), spec);
  EXPECT_EQ(made.columns().items, (Numbers{0, 1, 2, 3, 4}));  // not 6: only user 11 has it
  EXPECT_EQ(made.columns().counts, (std::vector<std::uint64_t>{6, 6, 6, 6, 6}));
  EXPECT_EQ(made.packs[2].stats().unseen_ratings, 1u);
  // int(0.2 · 5) = 1 of each test user's five items is held out.
  EXPECT_EQ(made.packs[2].stats().x.nnz, 12u);
  EXPECT_EQ(made.packs[2].stats().held_out.nnz, 3u);
  const FilledPack test = fill(made.packs[2]);
  for (std::size_t row = 0; row < 3; ++row) {
    Numbers items(test.x.indices.begin() + static_cast<std::ptrdiff_t>(row * 4),
                  test.x.indices.begin() + static_cast<std::ptrdiff_t>(row * 4 + 4));
    items.push_back(test.held_out.indices[row]);
    std::sort(items.begin(), items.end());
    EXPECT_EQ(items, (Numbers{0, 1, 2, 3, 4}));
  }
}

TEST(VaeCfPreset, LeavesOutUsersOfWhomNothingIsAskedFor) {
  RatingPacksSpec spec = small_vae_cf();
  spec.rules.min_user = 6;  // user 11 alone …
  spec.rules.above = 2.0F;  // … but for users 0..9, who have 6 with item 5; user 11 has 7
  spec.seed = seed_with_user_11(spec, 0);
  std::vector<Rating> ratings = vae_cf_example();
  // User 12 has six items of which training knows none or four, so it is all given and nothing asked for.
  for (const std::uint32_t item : {0u, 1u, 2u, 3u, 8u, 9u}) ratings.push_back({12, item, 4});
  for (std::uint64_t seed = 0;; ++seed) {
    spec.seed = seed;
    const RatingPacks made = make(ratings, spec);
    const auto users = made.packs[0].users();
    if (std::find(users.begin(), users.end(), 12u) != users.end()) continue;  // in training
    EXPECT_EQ(made.packs[1].stats().users_left_out + made.packs[2].stats().users_left_out, 1u);
    EXPECT_EQ(made.packs[1].row_count() + made.packs[2].row_count(), 4u);
    break;
  }
}

TEST(RatioPacks, GiveTheTrainingRowsBesideWhatIsHeldOut) {
  std::vector<Rating> ratings;
  for (std::uint32_t user = 0; user < 4; ++user)
    for (std::uint32_t item = 0; item < 10; ++item) ratings.push_back({user, item, 2});
  ratings.push_back({4, 0, 2});  // too few to hold any out
  RatingPacksSpec spec{.order = PackOrder::input};
  spec.split.split_by = SplitKind::ratio;
  spec.split.test.share = 0.2;
  const RatingPacks made = make(ratings, spec);
  ASSERT_EQ(made.packs.size(), 2u);
  EXPECT_EQ(made.packs[0].row_count(), 5u);
  EXPECT_EQ(made.packs[1].row_count(), 4u);
  EXPECT_EQ(made.packs[1].stats().x.nnz, 32u);
  EXPECT_EQ(made.packs[1].stats().held_out.nnz, 8u);
  CsrRows train;
  CsrRows none;
  made.packs[0].fill(0, 4, train, none);
  EXPECT_EQ(text_of(fill(made.packs[1]).x), text_of(train));
}

TEST(TimePacks, LeaveOutUsersWhoCameAfterTheCut) {
  // User 0 and 1 before and after time 10, user 2 only after.
  const std::vector<Rating> ratings{{0, 0, 1, 1},  {0, 1, 1, 10}, {1, 1, 1, 2},
                                    {1, 0, 1, 11}, {1, 2, 1, 12}, {2, 0, 1, 13}};
  RatingPacksSpec spec{.order = PackOrder::input};
  spec.split.split_by = SplitKind::time;
  spec.split.before = 10;
  const RatingPacks made = make(ratings, spec);
  ASSERT_EQ(made.packs.size(), 2u);
  EXPECT_EQ(text_of(fill(made.packs[0]).x), "0=1 | 1=1 ");
  EXPECT_EQ(text_of(fill(made.packs[1]).x), "0=1 | 1=1 ");
  EXPECT_EQ(text_of(fill(made.packs[1]).held_out), "1=1 | 0=1 ");
  EXPECT_EQ(made.packs[1].stats().unseen_ratings, 1u);  // item 2
  EXPECT_EQ(made.packs[1].stats().users_left_out, 1u);  // user 2
}

std::vector<Rating> random_ratings() {
  std::mt19937 random(5);
  std::vector<Rating> ratings(60'000);
  for (Rating& rating : ratings) {
    const double popular = static_cast<double>(random() % 1000) / 1000;
    rating = {static_cast<std::uint32_t>(random() % 4000),
              static_cast<std::uint32_t>(popular * popular * 700), static_cast<float>(random() % 11) * 0.5F,
              static_cast<std::int64_t>(random() % 5000)};
  }
  return ratings;
}

/// Everything that packs tell, in blocks of rows.
std::string everything(const RatingPacks& made) {
  std::ostringstream text;
  text << text_of(made.steps) << '\n';
  for (const std::uint32_t item : made.columns().items) text << item << ' ';
  for (const ValueHistogram::Bin& bin : made.values.bins) text << bin.count << ' ';
  for (const PackRows& pack : made.packs) {
    const PackStats& stats = pack.stats();
    text << '\n'
         << pack.name() << ' ' << stats.x.nnz << ' ' << stats.x.longest_row << ' ' << stats.held_out.nnz
         << ' ' << stats.unseen_ratings << ' ' << stats.users_left_out;
    for (const std::uint32_t user : pack.users()) text << ' ' << user;
    for (std::uint64_t first = 0; first < pack.row_count(); first += 300) {
      FilledPack block;
      pack.fill(first, std::min(first + 300, pack.row_count()), block.x, block.held_out);
      text << '\n' << text_of(block.x) << '\n' << text_of(block.held_out) << "\nties";
      for (const std::uint32_t tie : block.x.ties) text << ' ' << tie;
    }
  }
  return text.str();
}

std::vector<RatingPacksSpec> specs_of_every_kind() {
  std::vector<RatingPacksSpec> specs(6);
  for (RatingPacksSpec& spec : specs) {
    spec.rules.duplicates = Duplicates::last;
    spec.rules.min_user = 5;
    spec.rules.min_item = 3;
    spec.split.validation.share = 0.1;
    spec.split.test.share = 0.2;
    spec.seed = 11;
  }
  specs[0].split = {};
  specs[1].split.split_by = SplitKind::users;
  specs[2].split.split_by = SplitKind::ratio;
  specs[3].split = {.split_by = SplitKind::leave_one_out, .validation = {1, 0}, .test = {1, 0}};
  specs[4].split.split_by = SplitKind::time;
  specs[5] = vae_cf_spec();
  specs[5].rules.duplicates = Duplicates::max;
  specs[5].split.validation.count = 300;
  specs[5].split.test.count = 300;
  return specs;
}

TEST(RatingPacks, AreTheSameFromDiskAsFromMemory) {
  const std::vector<Rating> ratings = random_ratings();
  const TemporaryFolder folder;
  for (const RatingPacksSpec& spec : specs_of_every_kind()) {
    const std::string expected = everything(make(ratings, spec));
    for (const std::uint64_t memory : {400'000ull, 1ull}) {
      const RatingStoreSpec kept{.memory_bytes = memory, .folder = folder.path(), .keeps_times = true};
      EXPECT_EQ(everything(make(ratings, spec, {}, kept)), expected);
    }
  }
}

// Days, say: users share them, and have several ratings of one.
TEST(RatingPacks, KeepTheOrderOfEqualTimesOnDiskAsInMemory) {
  std::vector<Rating> ratings = random_ratings();
  for (Rating& rating : ratings) rating.time %= 5;
  const TemporaryFolder folder;
  for (RatingPacksSpec spec : specs_of_every_kind()) {
    spec.keep_times = true;
    const std::string expected = everything(make(ratings, spec));
    EXPECT_NE(expected.find("ties "), std::string::npos);
    const RatingStoreSpec kept{.memory_bytes = 1, .folder = folder.path(), .keeps_times = true};
    EXPECT_EQ(everything(make(ratings, spec, {}, kept)), expected);
  }
}

TEST(RatingPacks, AreTheSameForAnyNumberOfThreads) {
  const std::vector<Rating> ratings = random_ratings();
  for (const RatingPacksSpec& spec : specs_of_every_kind()) {
    std::string expected;
    for (std::size_t threads = 1; threads <= 8; ++threads) {
      const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
      const std::string text = everything(make(ratings, spec));
      if (threads == 1) expected = text;
      EXPECT_EQ(text, expected) << threads;
    }
  }
}

}  // namespace
}  // namespace chunkhit
