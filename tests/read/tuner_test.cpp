#include "read/tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "read/batch_pipeline.h"
#include "support/depth.h"

namespace chunkhit {
namespace {

/// A training loop: threads make batches in the slots of a ring, a caller uses one after the other.
struct Loop {
  std::function<double(std::uint64_t batch)> step_seconds = [](std::uint64_t) { return 0.01; };
  double make_seconds = 0.01;  // of a thread for a batch
  double cpus = 1e9;           // that share the making
  double noise = 0;            // of both times, as the deviation of a logarithm
  std::uint64_t seed = 1;
};

struct Pace {
  double seconds = 0;
  std::uint64_t samples = 0;
  [[nodiscard]] double rate() const { return static_cast<double>(samples) / seconds; }
};

class Simulation {
 public:
  explicit Simulation(Loop loop, const TunerSetting& setting)
      : loop_(std::move(loop)), random_(loop_.seed), setting_(setting), free_at_(setting.threads, 0) {}

  /// Uses the next batch; returns its times.
  BatchTimes next() {
    const std::size_t slots = ring_size(setting_.threads, setting_.prefetch, 1);
    BatchTimes times{.samples = 64};
    while (ready_at_.size() <= used_) times.idle_seconds += make_one(slots);
    for (int ahead = 0; ahead < 8 && can_make(slots); ++ahead) times.idle_seconds += make_one(slots);
    times.wait_seconds = std::max(0.0, ready_at_[used_] - now_);
    times.step_seconds = loop_.step_seconds(used_) * noise();
    now_ += times.wait_seconds + times.step_seconds;
    given_back_at_.push_back(now_);
    ++used_;
    return times;
  }

  void use(const TunerSetting& setting) {
    setting_ = setting;
    std::sort(free_at_.begin(), free_at_.end());
    free_at_.resize(setting.threads, now_);
  }

  [[nodiscard]] double now() const { return now_; }

 private:
  double noise() {
    if (loop_.noise == 0) return 1;
    return std::lognormal_distribution<double>(-loop_.noise * loop_.noise / 2, loop_.noise)(random_);
  }
  /// Whether a slot for one more batch was free before the caller comes back.
  [[nodiscard]] bool can_make(std::size_t slots) const {
    return ready_at_.size() < slots || ready_at_.size() - slots < given_back_at_.size();
  }
  /// Makes one more batch; returns how long its thread was idle before.
  double make_one(std::size_t slots) {
    const std::uint64_t number = ready_at_.size();
    const double has_slot =
        number < slots ? 0 : given_back_at_[std::min<std::uint64_t>(number - slots, used_ - 1)];
    const auto thread = std::min_element(free_at_.begin(), free_at_.end());
    const double begin = std::max(*thread, has_slot);
    const double idle = begin - *thread;
    const double crowd = std::max(1.0, static_cast<double>(setting_.threads) / loop_.cpus);
    *thread = begin + loop_.make_seconds * crowd * noise();
    ready_at_.push_back(*thread);
    return idle;
  }

  Loop loop_;
  std::mt19937_64 random_;
  TunerSetting setting_;
  std::vector<double> free_at_;        // of each thread
  std::vector<double> ready_at_;       // of each batch
  std::vector<double> given_back_at_;  // of each batch
  std::uint64_t used_ = 0;
  double now_ = 0;
};

constexpr TunerSpec kSpec{.first = {2, 4}, .min = {1, 4}, .max = {16, 64}, .cpus = 2};

/// A simulated loop with a tuner.
class TunedLoop {
 public:
  explicit TunedLoop(const Loop& loop, const TunerSpec& spec = kSpec)
      : simulation_(loop, spec.first), tuner_(spec), setting_(spec.first) {}

  Pace run(std::uint64_t batches) {
    Pace pace;
    const double begin = simulation_.now();
    for (std::uint64_t i = 0; i < batches; ++i) {
      const BatchTimes times = simulation_.next();
      pace.samples += times.samples;
      const TunerSetting wanted = tuner_.add(times);
      if (wanted != setting_) {
        ++changes_;
        simulation_.use(wanted);
        setting_ = wanted;
      }
      if (tuner_.is_settled() && settled_after_ == 0) {
        settled_after_ = i + 1;
        settled_seconds_ = simulation_.now();
      }
    }
    pace.seconds = simulation_.now() - begin;
    return pace;
  }
  [[nodiscard]] const Tuner& tuner() const { return tuner_; }
  [[nodiscard]] TunerSetting setting() const { return setting_; }
  [[nodiscard]] std::uint64_t changes() const { return changes_; }
  [[nodiscard]] bool settled_in_time() const {
    return settled_after_ != 0 && (settled_after_ <= 200 || settled_seconds_ <= 20);
  }
  [[nodiscard]] std::string log() const {
    std::string text;
    for (const std::string& each : tuner_.log()) text += each + "\n";
    return text;
  }

 private:
  Simulation simulation_;
  Tuner tuner_;
  TunerSetting setting_;
  std::uint64_t changes_ = 0;
  std::uint64_t settled_after_ = 0;
  double settled_seconds_ = 0;
};

Pace fixed_pace(const Loop& loop, const TunerSetting& setting, std::uint64_t batches) {
  Simulation simulation(loop, setting);
  Pace pace;
  for (std::uint64_t i = 0; i < batches; ++i) pace.samples += simulation.next().samples;
  pace.seconds = simulation.now();
  return pace;
}

/// The samples per second of the best fixed setting.
double best_fixed_rate(const Loop& loop, std::uint64_t batches) {
  double best = 0;
  for (const std::uint32_t threads : {1, 2, 3, 4, 6, 8, 12, 16})
    for (const std::uint32_t prefetch : {1, 4, 16, 64})
      best = std::max(best, fixed_pace(loop, {threads, prefetch}, batches).rate());
  return best;
}

constexpr std::uint64_t kSettled = 3000;  // batches, after which all of these loops are settled

TEST(Tuner, AddsThreadsAboveTheCpusWhereTheyWaitForStorage) {
  const Loop loop{.step_seconds = [](std::uint64_t) { return 0.005; }, .make_seconds = 0.04};
  TunedLoop tuned(loop);
  static_cast<void>(tuned.run(kSettled));
  EXPECT_TRUE(tuned.settled_in_time()) << tuned.log();
  EXPECT_GE(tuned.run(kSettled).rate(), 0.95 * best_fixed_rate(loop, kSettled)) << tuned.log();
  EXPECT_GE(tuned.setting().threads, 8u);
  EXPECT_LE(tuned.setting().threads, 13u) << tuned.log();
}

TEST(Tuner, RemovesThreadsThatTrainingDoesNotNeed) {
  const Loop loop{.step_seconds = [](std::uint64_t) { return 0.02; }, .make_seconds = 0.005};
  TunedLoop tuned(loop, {.first = {8, 4}, .min = {1, 4}, .max = {32, 64}, .cpus = 8});
  static_cast<void>(tuned.run(kSettled));
  EXPECT_TRUE(tuned.settled_in_time()) << tuned.log();
  EXPECT_EQ(tuned.setting(), (TunerSetting{1, 4})) << tuned.log();
}

TEST(Tuner, KeepsThreadsThatComputeAtTheCpus) {
  const Loop loop{.step_seconds = [](std::uint64_t) { return 0.001; }, .make_seconds = 0.01, .cpus = 2};
  TunedLoop tuned(loop);
  static_cast<void>(tuned.run(kSettled));
  EXPECT_TRUE(tuned.settled_in_time()) << tuned.log();
  EXPECT_EQ(tuned.setting().threads, 2u) << tuned.log();
}

TEST(Tuner, PreparesMoreBatchesWhereStepsAreUneven) {
  // A step of 100 ms every 32 batches, for a checkpoint say, in which batches for the short ones are made.
  const Loop loop{.step_seconds = [](std::uint64_t batch) { return batch % 32 == 0 ? 0.1 : 0.001; },
                  .make_seconds = 0.004};
  TunedLoop tuned(loop, {.first = {1, 4}, .min = {1, 4}, .max = {1, 64}, .cpus = 1});
  static_cast<void>(tuned.run(kSettled));
  EXPECT_TRUE(tuned.settled_in_time()) << tuned.log();
  EXPECT_GE(tuned.setting().prefetch, 16u) << tuned.log();
  EXPECT_GE(tuned.run(kSettled).rate(), 0.95 * fixed_pace(loop, {1, 64}, kSettled).rate()) << tuned.log();
}

TEST(Tuner, ComesNearTheBestFixedSettingInLoopsOfAllKinds) {
  std::mt19937_64 random(5);
  const auto between = [&random](double least, double most) {
    return std::exp(std::uniform_real_distribution<double>(std::log(least), std::log(most))(random));
  };
  std::size_t near = 0;
  const std::size_t loops = 60 / sweep_stride(3);
  for (std::size_t i = 0; i < loops; ++i) {
    const double step = between(0.0005, 0.2);
    const Loop loop{.step_seconds = [step](std::uint64_t) { return step; },
                    .make_seconds = step * between(0.1, 20),
                    .cpus = i % 2 == 0 ? 2 : 1e9,
                    .noise = i % 3 == 0 ? 0.3 : 0.05,
                    .seed = i};
    TunedLoop tuned(loop);
    static_cast<void>(tuned.run(300 + static_cast<std::uint64_t>(25 / (step + loop.make_seconds / 16))));
    if (tuned.run(kSettled).rate() >= 0.95 * best_fixed_rate(loop, kSettled)) ++near;
  }
  EXPECT_GE(near, loops - 3 / sweep_stride(3));
}

TEST(Tuner, KeepsThreadsThatFullRingsMadeLookSpare) {
  // One thread would fall behind so slowly that the batches that are ready hide it for 50 batches.
  const Loop loop{.step_seconds = [](std::uint64_t) { return 0.02; }, .make_seconds = 0.022};
  TunedLoop tuned(loop);
  static_cast<void>(tuned.run(kSettled));
  EXPECT_EQ(tuned.setting().threads, 2u) << tuned.log();
}

TEST(Tuner, SettlesWithin200BatchesOfSlowSteps) {
  const Loop loop{.step_seconds = [](std::uint64_t) { return 0.5; }, .make_seconds = 4};
  TunedLoop tuned(loop);
  static_cast<void>(tuned.run(200));
  EXPECT_TRUE(tuned.tuner().is_settled()) << tuned.log();
  EXPECT_GE(tuned.setting().threads, 6u) << tuned.log();
}

TEST(Tuner, DoesNotOscillateUnderNoise) {
  for (const double noise : {0.1, 0.5, 1.0})
    for (std::uint64_t seed = 1; seed <= 10; seed += sweep_stride(3)) {
      const Loop loop{.step_seconds = [](std::uint64_t) { return 0.004; },
                      .make_seconds = 0.01,
                      .cpus = 2,
                      .noise = noise,
                      .seed = seed};
      TunedLoop tuned(loop);
      static_cast<void>(tuned.run(2 * kSettled));
      EXPECT_TRUE(tuned.settled_in_time()) << tuned.log();
      const std::uint64_t before = tuned.changes();
      const Pace pace = tuned.run(30000);
      const std::string which = "noise " + std::to_string(noise) + ", seed " + std::to_string(seed) + "\n";
      EXPECT_LE(tuned.changes() - before, 12u) << which << tuned.log();  // as one climb may take
      if (noise < 1) {
        EXPECT_GE(pace.rate(), 0.95 * fixed_pace(loop, {2, 64}, 30000).rate()) << which << tuned.log();
      }
    }
}

TEST(Tuner, ClimbsAgainWhenStepsBecomeShorter) {
  const Loop loop{.step_seconds = [](std::uint64_t batch) { return batch < 5000 ? 0.05 : 0.005; },
                  .make_seconds = 0.02};
  TunedLoop tuned(loop);
  static_cast<void>(tuned.run(5000));
  EXPECT_EQ(tuned.setting().threads, 1u) << tuned.log();
  static_cast<void>(tuned.run(kSettled));
  EXPECT_TRUE(tuned.tuner().is_settled());
  EXPECT_GE(tuned.setting().threads, 4u) << tuned.log();
  EXPECT_NE(tuned.log().find("tuning again"), std::string::npos) << tuned.log();
}

TEST(Tuner, GivesThreadsBackWhenStepsBecomeLonger) {
  const Loop loop{.step_seconds = [](std::uint64_t batch) { return batch < 5000 ? 0.005 : 0.05; },
                  .make_seconds = 0.02};
  TunedLoop tuned(loop);
  static_cast<void>(tuned.run(5000));
  EXPECT_GE(tuned.setting().threads, 4u) << tuned.log();
  static_cast<void>(tuned.run(kSettled));
  EXPECT_EQ(tuned.setting().threads, 1u) << tuned.log();
}

TEST(Tuner, ClimbsAgainMoreAndMoreRarelyWhereStepsComeAndGo) {
  // Every 3 s the step is 4 times as long, which no setting fits.
  const Loop loop{.step_seconds = [](std::uint64_t batch) { return batch / 300 % 2 == 0 ? 0.004 : 0.016; },
                  .make_seconds = 0.012};
  TunedLoop tuned(loop);
  static_cast<void>(tuned.run(20000));
  const std::uint64_t before = tuned.changes();
  static_cast<void>(tuned.run(40000));
  EXPECT_LE(tuned.changes() - before, 40u) << tuned.log();
}

TEST(Tuner, TriesNoMoreThanWhatTheSystemGives) {
  const Loop loop{.step_seconds = [](std::uint64_t) { return 0.005; }, .make_seconds = 0.04};
  Simulation simulation(loop, kSpec.first);
  Tuner tuner(kSpec);
  TunerSetting setting = kSpec.first;
  for (std::uint64_t i = 0; i < kSettled; ++i) {
    TunerSetting wanted = tuner.add(simulation.next());
    if (wanted.threads > 4) wanted = tuner.refuse("threads: the system does not start 6");
    if (wanted != setting) simulation.use(wanted);
    setting = wanted;
    ASSERT_LE(setting.threads, 4u);
  }
  EXPECT_TRUE(tuner.is_settled());
  EXPECT_EQ(setting.threads, 4u);
}

TEST(Tuner, SaysWhatItTriedAndWhy) {
  const Loop loop{.step_seconds = [](std::uint64_t) { return 0.03; }, .make_seconds = 0.04};
  TunedLoop tuned(loop, {.first = {1, 4}, .min = {1, 4}, .max = {2, 4}, .cpus = 2});
  static_cast<void>(tuned.run(kSettled));
  ASSERT_EQ(tuned.tuner().log().size(), 2u) << tuned.log();
  EXPECT_EQ(
      tuned.tuner().log().front(),
      "batch 88: waited 18.2 %, threads busy: threads 1 to 2: waited 0.0 %, 1.22 times the speed: kept");
  EXPECT_EQ(tuned.tuner().log().back(), "batch 88: settled on threads 2, prefetch 4 after 1 trial");
}

}  // namespace
}  // namespace chunkhit
