#include "read/isolated.h"

#include "base/memory.h"
#include "base/message.h"
#include "base/serving_child.h"
#include "store/hdf5/isolated.h"

namespace chunkhit {

std::vector<std::string> check_isolated(const std::string& name,
                                        const std::function<std::vector<std::string>()>& check) {
  std::vector<std::string> problems;
  try {
    ServingChild child(
        [&](ChildLine& line) {
          MessageWriter message;
          message(check());
          line.answer(message.bytes());
        },
        {.fork = fork_outside_hdf5, .max_seconds = 0});
    const ByteBuffer answer = child.receive(name);
    MessageReader message(answer);
    message(problems);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;
    problems.emplace_back(error.what());
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::try_again, name + ": " + memory_limit_text());
  }
  return problems;
}

}  // namespace chunkhit
