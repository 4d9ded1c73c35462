#include "ratings/rating_intake.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "chunkhit/error.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

using Rows = std::vector<std::string>;

/// What came out of a run: "user item value time" by their numbers, and all that was counted.
struct Intake {
  Rows rows;
  Rows user_ids;
  Rows item_ids;
  RatingInput total;
  std::vector<RatingInput> inputs;
  std::map<std::string, std::uint64_t> bad_kinds;
  Rows bad_lines;
  std::string error;
  bool interrupted = false;
};

RatingSink sink_into(Rows& rows) {
  return [&rows](auto users, auto items, auto values, auto times) {
    for (std::size_t at = 0; at < users.size(); ++at)
      rows.push_back(std::to_string(users[at]) + " " + std::to_string(items[at]) +
                     (values.empty() ? "" : " " + std::to_string(values[at])) +
                     (times.empty() ? "" : " " + std::to_string(times[at])));
  };
}

Intake run(const Rows& paths, const IntakeOptions& options, const RatingTableSpec& spec = {}) {
  Intake result;
  RatingIntake intake(spec, options, sink_into(result.rows));
  try {
    for (const std::string& path : paths) {
      TextStream stream(path);
      const TextHead head{as_text(stream.head()), true, spec.comment};
      intake.read_text(stream, detect_rating_format(head, path));
    }
    intake.finish();
  } catch (const Error& error) {
    result.error = error.what();
  }
  for (std::uint32_t id = 0; id < intake.users().size(); ++id)
    result.user_ids.push_back(intake.users().text(id));
  for (std::uint32_t id = 0; id < intake.items().size(); ++id)
    result.item_ids.push_back(intake.items().text(id));
  result.total = intake.stats().total();
  result.inputs = intake.stats().inputs();
  result.bad_kinds = intake.stats().bad_kinds();
  for (const InputBadLine& bad : intake.stats().first_bad_lines())
    result.bad_lines.push_back(bad_line_text(bad).substr(bad.input.rfind('/') + 1));
  result.interrupted = intake.interrupted();
  return result;
}

IntakeOptions skipping(std::size_t block_bytes = 64, std::uint32_t threads = 2) {
  IntakeOptions options;
  options.threads = threads;
  options.block_bytes = block_bytes;
  options.limit = {OnError::skip, {1}};
  return options;
}

void expect_equal(const Intake& one, const Intake& other) {
  EXPECT_EQ(one.rows, other.rows);
  EXPECT_EQ(one.user_ids, other.user_ids);
  EXPECT_EQ(one.item_ids, other.item_ids);
  EXPECT_EQ(one.bad_kinds, other.bad_kinds);
  EXPECT_EQ(one.bad_lines, other.bad_lines);
  EXPECT_EQ(one.error, other.error);
  EXPECT_EQ(one.total.lines, other.total.lines);
  EXPECT_EQ(one.total.bad_lines, other.total.bad_lines);
  EXPECT_EQ(one.total.header_lines, other.total.header_lines);
  ASSERT_EQ(one.inputs.size(), other.inputs.size());
  for (std::size_t at = 0; at < one.inputs.size(); ++at)
    EXPECT_EQ(one.inputs[at].xxh3, other.inputs[at].xxh3);
}

TEST(RatingIntake, NumbersUsersAndItemsByFirstAppearance) {
  const TemporaryFolder folder;
  const Intake intake =
      run({folder.write("r.csv", "userId,movieId,rating\n50,7,3.5\n60,8,4\n50,8,1\n")}, skipping());
  EXPECT_EQ(intake.rows, (Rows{"0 0 3.500000", "1 1 4.000000", "0 1 1.000000"}));
  EXPECT_EQ(intake.user_ids, (Rows{"50", "60"}));
  EXPECT_EQ(intake.item_ids, (Rows{"7", "8"}));
  EXPECT_EQ(intake.total.lines, 4u);
  EXPECT_EQ(intake.total.header_lines, 1u);
  EXPECT_EQ(intake.total.ratings, 3u);
}

TEST(RatingIntake, SharesOneNumberingAmongInputs) {
  const TemporaryFolder folder;
  const Intake intake = run({folder.write("ua.base", "1\t10\t3\t5\n2\t20\t4\t6\n"),
                             folder.write("ua.test", "2\t10\t5\t7\n3\t30\t1\t8\n")},
                            skipping());
  EXPECT_EQ(intake.rows, (Rows{"0 0 3.000000 5", "1 1 4.000000 6", "1 0 5.000000 7", "2 2 1.000000 8"}));
  ASSERT_EQ(intake.inputs.size(), 2u);
  EXPECT_EQ(intake.inputs[1].ratings, 2u);
  EXPECT_EQ(intake.inputs[1].xxh3, hash_file(folder.path("ua.test")));
}

/// Ratings with a bad line, a repeated header or an id of text here and there.
std::string mixed_ratings(int lines) {
  std::mt19937 random(5);
  std::string text = "user,item,rating,timestamp\n";
  for (int line = 0; line < lines; ++line) {
    const std::uint32_t kind = random() % 50;
    if (kind == 0) text += "user,item,rating,timestamp\r\n";
    if (kind == 1) text += "1,2,bad,4\n";
    if (kind == 2) text += "1,,3,4\n";
    if (kind == 3) text += "\n";
    const bool as_text = line > lines / 2 && kind > 45;
    text += (as_text ? "u" : "") + std::to_string(random() % 90) + ',' + std::to_string(random() % 300) +
            ',' + std::to_string(random() % 10) + ".5," + std::to_string(random()) + '\n';
  }
  return text;
}

TEST(RatingIntake, GivesTheSameForAnyThreadsAndBlocks) {
  const TemporaryFolder folder;
  const Rows paths{folder.write("a.csv", mixed_ratings(3000)), folder.write("b.csv", mixed_ratings(200))};
  const Intake whole = run(paths, skipping(1 << 20, 1));
  ASSERT_EQ(whole.error, "");
  EXPECT_EQ(whole.rows.size(), 3200u);
  EXPECT_GT(whole.total.bad_lines, 60u);
  EXPECT_GT(whole.total.header_lines, 40u);
  for (std::uint32_t threads = 1; threads <= 8; ++threads)
    for (const std::size_t block_bytes : {50u, 777u, 20'000u})
      expect_equal(run(paths, skipping(block_bytes, threads)), whole);
}

TEST(RatingIntake, FailsAtTheFirstBadLineForAnyThreads) {
  const TemporaryFolder folder;
  const Rows paths{folder.write("a.csv", mixed_ratings(1000))};
  const Intake skipped = run(paths, skipping());
  for (std::uint32_t threads = 1; threads <= 8; ++threads) {
    IntakeOptions options = skipping(50, threads);
    options.limit = {};
    EXPECT_EQ(run(paths, options).error,
              folder.path(skipped.bad_lines[0]) + "; `on_error` skip leaves such lines out");
  }
}

TEST(RatingIntake, CountsBadLinesAgainstTheLimit) {
  const TemporaryFolder folder;
  const Rows paths{folder.write("r.csv", "user,item,rating\n1,2,3\n1,2,x\n1,2,y\n1,2\n")};
  IntakeOptions options = skipping(10);
  options.limit.max_errors.count = 2;
  EXPECT_EQ(run(paths, options).error, "more than 2 bad lines, which `max_errors` allows; the last: " +
                                           paths[0] + ":5:4: line: expected at least 3 columns, found 2");
  options.limit.max_errors.count = 3;
  EXPECT_EQ(run(paths, options).error, "");
  options.limit = {OnError::skip, {0.5}};
  EXPECT_EQ(run(paths, options).error, "3 bad lines of 5, `max_errors` allows 2; the first: " + paths[0] +
                                           ":3:5: value: expected a number, found \"x\"");
  options.limit.max_errors.share = 0.6;
  const Intake intake = run(paths, options);
  EXPECT_EQ(intake.error, "");
  EXPECT_EQ(intake.bad_kinds.at("value: expected a number"), 2u);
}

TEST(RatingIntake, CarriesNetflixItemsFromBlockToBlock) {
  const TemporaryFolder folder;
  std::string text;
  Rows expected;
  for (int item = 1; item < 9; ++item) {
    text += std::to_string(item) + ":\n";
    for (int user = 0; user < item * 3; ++user) {
      text += std::to_string(user) + ",4,2005-09-06\n";
      expected.push_back(std::to_string(user) + " " + std::to_string(item - 1) + " 4.000000 1125964800");
    }
  }
  const Rows paths{folder.write("combined_data_1.txt", text)};
  for (const std::size_t block_bytes : {1u, 30u, 200u, 100'000u})
    EXPECT_EQ(run(paths, skipping(block_bytes)).rows, expected) << block_bytes;
  EXPECT_NE(run({folder.write("none.txt", "1:\n1,2,2005-09-06\n"), folder.write("next.txt", "1:\n1,2,x\n")},
                IntakeOptions{})
                .error,
            "");
}

TEST(RatingIntake, ReadsUserItemLines) {
  const TemporaryFolder folder;
  const Intake intake = run({folder.write("train.txt", "0 5 6\n1\n2 5\n")}, skipping(3));
  EXPECT_EQ(intake.rows, (Rows{"0 0", "0 1", "1 0"}));
  EXPECT_EQ(intake.user_ids, (Rows{"0", "2"}));
  EXPECT_EQ(intake.total.lines, 3u);
}

TEST(RatingIntake, NeverCutsAQuotedField) {
  const TemporaryFolder folder;
  RatingTableSpec spec;
  spec.quote = TextQuoting::double_quote;
  const Rows paths{folder.write("q.csv", "user,item\n\"a\nb\",1\n\"c\"\"d\",2\n\"a\nb\",2\n")};
  for (std::size_t block_bytes = 1; block_bytes < 40; ++block_bytes) {
    const Intake intake = run(paths, skipping(block_bytes), spec);
    EXPECT_EQ(intake.rows, (Rows{"0 0", "1 1", "0 1"}));
    EXPECT_EQ(intake.user_ids, (Rows{"a\nb", "c\"d"}));
    EXPECT_EQ(intake.total.lines, 6u);
  }
}

TEST(RatingIntake, RefusesALineThatIsTooLongWhateverErrorsAreAllowed) {
  const TemporaryFolder folder;
  const Rows paths{folder.write("r.csv", "1,2,3\n4,5," + std::string(2 << 20, '6') + "\n7,8,9\n")};
  for (const std::size_t block_bytes : {100'000u, 8u << 20})
    EXPECT_EQ(run(paths, skipping(block_bytes)).error,
              paths[0] + ":2:1: line: expected at most 1 MiB, found more");
}

TEST(RatingIntake, ThrowsWhatTheSinkThrows) {
  const TemporaryFolder folder;
  TextStream stream(folder.write("a.csv", mixed_ratings(2000)));
  int calls = 0;
  RatingIntake intake({}, skipping(100, 4), [&](auto...) {
    if (++calls == 5) throw Error(ErrorCode::cannot_write, "full");
  });
  EXPECT_THROW(intake.read_text(stream, RatingFormat::text), Error);
  EXPECT_EQ(calls, 5);
}

TEST(RatingIntake, StopsWhenAsked) {
  const TemporaryFolder folder;
  const std::atomic<bool> stop{true};
  IntakeOptions options = skipping();
  options.stop = &stop;
  const Intake intake = run({folder.write("a.csv", "1,2,3\n")}, options);
  EXPECT_TRUE(intake.interrupted);
  EXPECT_TRUE(intake.rows.empty());
}

TEST(RatingIntake, TellsHowFarItIs) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.csv", mixed_ratings(500));
  std::vector<std::uint64_t> done;
  IntakeOptions options = skipping(1000, 4);
  options.on_progress = [&](const IntakeProgress& progress) {
    done.push_back(progress.bytes_done);
    EXPECT_EQ(progress.bytes_total, std::filesystem::file_size(path));
  };
  (void)run({path}, options);
  EXPECT_GT(done.size(), 5u);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), std::filesystem::file_size(path));
}

}  // namespace
}  // namespace chunkhit
