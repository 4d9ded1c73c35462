#include "base/serving_child.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/message.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

std::string error_of(const std::function<void(ChildLine&)>& serve, ErrorCode expected = ErrorCode::bad_data,
                     std::uint32_t max_seconds = 0) {
  ServingChild child(serve, {.max_seconds = max_seconds});
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
  EXPECT_EQ(error_of([](ChildLine&) { throw Error(ErrorCode::usage, "no such layer"); }, ErrorCode::usage),
            "no such layer");
  EXPECT_THROW(error_of([](ChildLine&) { throw std::bad_alloc(); }), std::bad_alloc);
}

TEST(ServingChild, TellsThatTheChildCrashed) {
  EXPECT_EQ(error_of([](ChildLine&) {
              ::signal(SIGSEGV, SIG_DFL);
              ::raise(SIGSEGV);
            }),
            "a.h5: reading it crashed (Segmentation fault): its structure is damaged");
  EXPECT_EQ(error_of([](ChildLine&) { ::_exit(3); }), "a.h5: reading it failed");
}

TEST(ServingChild, BlamesNoFileForWhatKilledTheChild) {
  EXPECT_EQ(error_of([](ChildLine&) { ::raise(SIGKILL); }, ErrorCode::try_again),
            "a.h5: the process that read it was killed (Killed), perhaps for lack of memory");
  EXPECT_EQ(
      error_of([](ChildLine&) { ::raise(SIGXCPU); }, ErrorCode::try_again),
      "a.h5: the process that read it was killed (CPU time limit exceeded), perhaps for lack of memory");
}

TEST(ServingChild, LeavesItsParentsSignalsToItsParent) {
  ServingChild child([](ChildLine& line) {
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) ::raise(number);
    line.answer({});
  });
  EXPECT_TRUE(child.receive("a.h5").empty());
}

// A process that another thread forked has the child's end of the line, too.
pid_t stranger = -1;

pid_t fork_beside_a_stranger() {
  stranger = ::fork();
  if (stranger == 0) {
    ::alarm(30);
    while (true) ::pause();
  }
  return ::fork();
}

TEST(ServingChild, SeesItsEndWhileAStrangerHoldsTheLine) {
  ServingChild child(
      [](ChildLine& line) {
        line.answer(ByteBuffer(1 << 20, std::uint8_t{6}));
        ::_exit(3);
      },
      {.fork = fork_beside_a_stranger});
  EXPECT_TRUE(child.receive("a.h5") == ByteBuffer(1 << 20, std::uint8_t{6}));
  child.ask(ByteBuffer(1 << 22));
  EXPECT_THROW(static_cast<void>(child.receive("a.h5")), Error);
  EXPECT_THROW(static_cast<void>(child.receive("a.h5")), Error);
  ::kill(stranger, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(stranger, &status, 0), stranger);
  EXPECT_EQ(WTERMSIG(status), SIGKILL) << "it had ended before";
}

/// Sends the child more seconds on the wall than it may take, while it waits for its parent.
void let_time_pass(pid_t child) {
  for (int i = 0; i < 500; ++i) {
    ::kill(child, SIGALRM);
    ::usleep(100);
  }
}

TEST(ServingChild, TakesNoTimeWhileItWaitsForItsParent) {
  ServingChild child(
      [](ChildLine& line) {
        const pid_t self = ::getpid();
        line.answer({reinterpret_cast<const std::uint8_t*>(&self), sizeof self});
        ByteBuffer question;
        if (line.receive(question)) line.answer(ByteBuffer(1 << 22));  // more than a line holds
      },
      {.max_seconds = 1});
  pid_t process = -1;
  const ByteBuffer told = child.receive("a.h5");
  ASSERT_EQ(told.size(), sizeof process);
  std::memcpy(&process, told.data(), sizeof process);
  let_time_pass(process);
  child.ask({});
  let_time_pass(process);
  EXPECT_EQ(child.receive("a.h5").size(), std::size_t{1} << 22);
}

TEST(ServingChild, RefusesMessagesThatNoChildSends) {
  for (const std::uint64_t bytes : {UINT64_MAX, UINT64_MAX / 4}) {
    ServingChild child([&](ChildLine&) {
      ByteBuffer heading(24, std::uint8_t{0});  // of an answer, to what is a line among the descriptors
      store_little<std::uint64_t>(heading.data() + 16, bytes);
      for (int end = 3; end < 64; ++end) ::send(end, heading.data(), heading.size(), MSG_NOSIGNAL);
    });
    EXPECT_THROW(static_cast<void>(child.receive("a.h5")), Error) << bytes;
  }
}

/// Gives what a pipe's writers wrote until they ended, at most a byte; none where one of them lives on.
std::optional<std::string> what_came(int end) {
  pollfd waited{end, POLLIN, 0};
  char byte = 0;
  if (::poll(&waited, 1, 30'000) <= 0) return std::nullopt;
  return std::string(&byte, static_cast<std::size_t>(::read(end, &byte, 1)));
}

TEST(ServingChild, IsKilledWhateverItIsAt) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const FileDescriptor read_end(pipe_ends[0]);
  FileDescriptor write_end(pipe_ends[1]);
  {
    ServingChild child([&](ChildLine&) {
      ::sleep(20);
      static_cast<void>(!::write(write_end.get(), "x", 1));
    });
    ::close(write_end.release());
  }
  EXPECT_EQ(what_came(read_end.get()), "");
}

TEST(ServingChild, EndsSoonAfterItsParentWasKilled) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const FileDescriptor read_end(pipe_ends[0]);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ServingChild child([](ChildLine&) {
      while (true) ::usleep(10'000);
    });
    ::raise(SIGKILL);
  }
  ::close(pipe_ends[1]);
  ::waitpid(parent, nullptr, 0);
  EXPECT_EQ(what_came(read_end.get()), "");
}

TEST(ServingChild, EndsAChildThatDoesNotComeOn) {
  const auto hang = [](ChildLine&) {
    volatile bool goes_on = true;
    while (goes_on) continue;
  };
  EXPECT_EQ(error_of(hang, ErrorCode::bad_data, 1),
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
