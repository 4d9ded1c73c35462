#include "base/serving_child.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/message.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

std::string fault_of(const std::function<void(ChildLine&)>& serve, ErrorCode expected = ErrorCode::bad_data,
                     std::uint32_t most_seconds = 0) {
  ServingChild child(serve, {.most_seconds = most_seconds});
  try {
    static_cast<void>(child.receive("a.h5"));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), expected);
    return error.what();
  }
  return "";
}

TEST(ServingChild, AnswersQuestionsOfAnySize) {
  ServingChild child([](ChildLine& line) {
    ByteBuffer bytes;
    while (line.receive(bytes)) {
      for (std::uint8_t& byte : bytes) ++byte;
      line.answer(bytes);
    }
  });
  for (const std::size_t size : {0, 1, 1 << 20}) {
    child.ask(ByteBuffer(size, std::uint8_t{4}));
    EXPECT_TRUE(child.receive("a.h5") == ByteBuffer(size, std::uint8_t{5})) << size;
  }
}

TEST(ServingChild, TellsWhatTheChildThrew) {
  EXPECT_EQ(fault_of([](ChildLine&) { throw Error(ErrorCode::usage, "no such layer"); }, ErrorCode::usage),
            "no such layer");
  EXPECT_THROW(fault_of([](ChildLine&) { throw std::bad_alloc(); }), std::bad_alloc);
}

TEST(ServingChild, TellsThatTheChildCrashed) {
  EXPECT_EQ(fault_of([](ChildLine&) { ::raise(SIGKILL); }),
            "a.h5: reading it crashed (Killed): its structure is damaged");
  EXPECT_EQ(fault_of([](ChildLine&) { ::_exit(3); }), "a.h5: reading it failed: its structure is damaged");
}

TEST(ServingChild, EndsAChildThatDoesNotComeOn) {
  const auto hang = [](ChildLine&) {
    volatile bool goes_on = true;
    while (goes_on) continue;
  };
  EXPECT_EQ(fault_of(hang, ErrorCode::bad_data, 1),
            "a.h5: reading it did not come on for 1 seconds: its structure is damaged");
}

TEST(ServingChild, EndsWhenNobodyAsksAnyMore) {
  std::optional<ServingChild> first, second;
  const auto wait = [](ChildLine& line) {
    ByteBuffer question;
    while (line.receive(question)) continue;
  };
  first.emplace(wait);
  second.emplace(wait);  // has a copy of the first one's line
  first.reset();
  second.reset();
}

TEST(Message, GivesBackWhatWasWritten) {
  MessageWriter writer;
  const std::vector<std::string> names{"a", "", "ítem"};
  const std::optional<double> none, some = 0.5;
  writer(std::uint8_t{7}, names, std::vector<std::int64_t>{-1, 2}, none, some, std::string("end"));
  MessageReader reader(writer.bytes());
  std::uint8_t number = 0;
  std::vector<std::string> found_names;
  std::vector<std::int64_t> numbers;
  std::optional<double> found_none = 3, found_some;
  std::string text;
  reader(number, found_names, numbers, found_none, found_some, text);
  EXPECT_EQ(number, 7);
  EXPECT_EQ(found_names, names);
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{-1, 2}));
  EXPECT_EQ(found_none, none);
  EXPECT_EQ(found_some, some);
  EXPECT_EQ(text, "end");
  EXPECT_THROW(reader(number), Error);
}

TEST(Message, RefusesListsLongerThanItself) {
  MessageWriter writer;
  writer(UINT64_MAX / 8);
  std::vector<std::uint64_t> numbers;
  MessageReader reader(writer.bytes());
  EXPECT_THROW(reader(numbers), Error);
}

}  // namespace
}  // namespace chunkhit
