#include "store/hdf5/csr.h"

#include <cstring>
#include <utility>

#include "base/message.h"
#include "base/serving_child.h"
#include "chunkhit/error.h"
#include "store/hdf5/csr_arrays.h"
#include "store/hdf5/isolated.h"

namespace chunkhit {
namespace {

/// Of the library itself, whatever the limit is.
constexpr std::uint64_t kChildBytes = std::uint64_t{16} << 20;

enum class CsrArray : std::uint8_t { indptr, indices, values };

/// What the parent asks the child for: the next numbers of an array.
struct CsrQuestion {
  CsrArray array = CsrArray::indptr;
  std::uint64_t count = 0;
};

template <class Stream, class Facts>
void exchange_facts(Stream& stream, Facts& facts) {
  stream(facts.place, facts.storage, facts.row_count, facts.column_count, facts.entry_count,
         facts.row_names.text, facts.row_names.ends, facts.column_names.text, facts.column_names.ends,
         facts.notices);
}

template <class Number>
MutableBytes bytes_of(std::span<Number> numbers) {
  return {reinterpret_cast<std::uint8_t*>(numbers.data()), numbers.size_bytes()};
}

void answer_numbers(Hdf5CsrArrays& arrays, const CsrQuestion& question, ChildLine& line) {
  if (question.array == CsrArray::values) {
    std::vector<float> values(question.count);
    arrays.read_values(values);
    line.answer(bytes_of(std::span(values)));
    RoundedValues rounded = arrays.rounded();
    return line.answer(bytes_of(std::span(&rounded, 1)));
  }
  std::vector<std::int64_t> numbers(question.count);
  if (question.array == CsrArray::indptr)
    arrays.read_indptr(numbers);
  else
    arrays.read_indices(numbers);
  line.answer(bytes_of(std::span(numbers)));
}

/// The child's work: facts first, then numbers as they are asked for.
void serve_arrays(const std::string& path, const std::string& place, std::uint64_t memory_bytes,
                  ChildLine& line) {
  Hdf5CsrArrays arrays(path, place, memory_bytes);
  MessageWriter facts;
  exchange_facts(facts, arrays.facts());
  line.answer(facts.bytes());
  ByteBuffer asked;
  while (line.receive(asked)) {
    CsrQuestion question;
    MessageReader message(asked);
    message(question);
    answer_numbers(arrays, question, line);
  }
}

/// A damaged file may claim sizes that only the library sees.
ChildOptions limited_child(const std::string& path, std::uint64_t memory_bytes) {
  ChildOptions options = hdf5_child({path});
  if (memory_bytes < UINT64_MAX) options.max_memory_bytes = memory_bytes + kChildBytes;
  return options;
}

}  // namespace

struct Hdf5Csr::State {
  State(const std::string& csr_path, const std::string& place, std::uint64_t memory_bytes)
      : path(csr_path),
        child([&](ChildLine& line) { serve_arrays(csr_path, place, memory_bytes, line); },
              limited_child(csr_path, memory_bytes)) {
    const ByteBuffer answer = child.receive(path);
    MessageReader message(answer);
    exchange_facts(message, facts);
  }

  template <class Number>
  void read(CsrArray array, std::span<Number> numbers) {
    MessageWriter question;
    question(CsrQuestion{array, numbers.size()});
    child.ask(question.bytes());
    receive(bytes_of(numbers));
  }

  /// Receives an answer of as many bytes as there is room for.
  void receive(MutableBytes room) {
    const ByteBuffer bytes = child.receive(path);
    if (bytes.size() != room.size()) throw Error(ErrorCode::bad_data, path + ": reading it failed");
    if (!bytes.empty()) std::memcpy(room.data(), bytes.data(), bytes.size());
  }

  std::string path;
  ServingChild child;
  CsrFacts facts;
  RoundedValues rounded;
};

Hdf5Csr::Hdf5Csr(const std::string& path, const std::string& place, std::uint64_t memory_bytes)
    : state_(std::make_unique<State>(path, place, memory_bytes)) {}

Hdf5Csr::~Hdf5Csr() = default;

const CsrFacts& Hdf5Csr::facts() const { return state_->facts; }

Names Hdf5Csr::take_row_names() { return std::move(state_->facts.row_names); }

Names Hdf5Csr::take_column_names() { return std::move(state_->facts.column_names); }

void Hdf5Csr::read_indptr(std::span<std::int64_t> numbers) { state_->read(CsrArray::indptr, numbers); }

void Hdf5Csr::read_indices(std::span<std::int64_t> numbers) { state_->read(CsrArray::indices, numbers); }

void Hdf5Csr::read_values(std::span<float> numbers) {
  state_->read(CsrArray::values, numbers);
  state_->receive(bytes_of(std::span(&state_->rounded, 1)));
}

const RoundedValues& Hdf5Csr::rounded() const { return state_->rounded; }

}  // namespace chunkhit
