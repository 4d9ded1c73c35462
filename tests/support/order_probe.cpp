// Tells orders that another program asks for. Reads lines of numbers from stdin and answers each with one
// line:
//   permutation COUNT KEY INDEX...                                   the positions of the indices
//   order SHUFFLE(0 none, 1 window, 2 global) SEED WINDOW_CHUNKS EPOCH STREAMS UNIT SAMPLES_OF_CHUNK...
//                                                                    the sample at each position, in the
//                                                                    source's order
//   sampled SHUFFLE SEED WINDOW_CHUNKS EPOCH STREAMS UNIT KIND(0 subset, 1 draws with, 2 without replacement)
//   SAMPLES_OF_EPOCH
//     CHUNKS SAMPLES_OF_CHUNK... (SAMPLE_OF_SUBSET... or WEIGHT...)
//                                                                    the sample at each position and its
//                                                                    repeat
//   mixed SHUFFLE SEED WINDOW_CHUNKS EPOCH STREAMS UNIT SHARES(0 batch, 1 epoch) SAMPLES_OF_EPOCH SOURCES
//     (WEIGHT CHUNKS SAMPLES_OF_CHUNK...)...                         the sample at each position and its
//     repeat
//   batches SAMPLES BATCH RANK RANKS PAD(0, 1) DROP_LAST(0, 1) ECHO SEED EPOCH FIRST_PLACE IN_STREAMS(0, 1)
//                                                                    the positions, batches divided by "|"
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "batch/epoch_batches.h"
#include "batch/epoch_order.h"
#include "batch/loader_order.h"

namespace {

using namespace chunkhit;

std::uint64_t next_number(std::istream& line) {
  std::uint64_t number = 0;
  line >> number;
  return number;
}

void answer_permutation(std::istream& line) {
  const std::uint64_t count = next_number(line);
  const Permutation permutation(count, next_number(line));
  for (std::uint64_t index = 0; line >> index;) std::cout << permutation(index) << ' ';
}

/// An order, and one of its epochs.
struct EpochRequest {
  explicit EpochRequest(std::istream& line) {
    spec.shuffle = static_cast<Shuffle>(next_number(line));
    spec.seed = next_number(line);
    spec.window_chunks = static_cast<std::uint32_t>(next_number(line));
    epoch = next_number(line);
    streams.all.count = streams.count = next_number(line);
    streams.all.unit = next_number(line);
  }
  OrderSpec spec;
  std::uint64_t epoch = 0;
  RankStreams streams;
};

void write_samples(const EpochRequest& request, const ChunkGrid& grid, const SamplingSpec& sampling,
                   bool with_repeats = true) {
  const LoaderOrder order(grid, request.spec, sampling);
  const auto of_epoch = order.epoch(request.epoch, request.streams);
  PositionOrder::Window window;
  for (std::uint64_t position = 0; position < order.position_count(); ++position) {
    const DrawnSample found = (*of_epoch)(position, window);
    std::cout << grid.first_sample(found.chunk) + found.in_chunk << ' ';
    if (with_repeats) std::cout << found.repeat << ' ';
  }
}

void answer_order(std::istream& line) {
  const EpochRequest request(line);
  std::vector<std::uint64_t> counts;
  for (std::uint64_t count = 0; line >> count;) counts.push_back(count);
  write_samples(request, ChunkGrid(counts), {}, false);
}

void answer_mixed(std::istream& line) {
  const EpochRequest request(line);
  MixtureShape shape{.sources = {},
                     .shares = static_cast<MixtureShares>(next_number(line)),
                     .epoch_samples = next_number(line)};
  shape.sources.resize(next_number(line));
  std::vector<std::uint64_t> counts;
  for (MixtureShape::Source& source : shape.sources) {
    line >> source.weight;
    source.first_chunk = counts.size();
    source.chunk_count = next_number(line);
    for (std::uint64_t chunk = 0; chunk < source.chunk_count; ++chunk) counts.push_back(next_number(line));
  }
  write_samples(request, ChunkGrid(counts), {.mixture = shape});
}

void answer_sampled(std::istream& line) {
  const EpochRequest request(line);
  const std::uint64_t kind = next_number(line);
  DrawSpec draws{.draws = kind != 0, .replacement = kind != 2, .epoch_samples = next_number(line)};
  std::vector<std::uint64_t> counts(next_number(line));
  for (std::uint64_t& count : counts) count = next_number(line);
  std::string word;
  if (kind == 0) draws.subset.emplace();
  while (line >> word)
    kind == 0 ? draws.subset->push_back(std::stoull(word)) : draws.weights.push_back(std::stod(word));
  write_samples(request, ChunkGrid(counts), {.draws = draws});
}

void answer_batches(std::istream& line) {
  const std::uint64_t sample_count = next_number(line);
  BatchSpec spec;
  spec.batch_size = next_number(line);
  spec.rank = static_cast<std::uint32_t>(next_number(line));
  spec.world_size = static_cast<std::uint32_t>(next_number(line));
  spec.rank_remainder = next_number(line) != 0 ? RankRemainder::pad : RankRemainder::drop;
  spec.drop_last = next_number(line) != 0;
  spec.echo = static_cast<std::uint32_t>(next_number(line));
  const std::uint64_t seed = next_number(line);
  const std::uint64_t epoch = next_number(line);
  const std::uint64_t first_position = next_number(line);
  const EpochBatches batches(sample_count, spec, seed, epoch, first_position, nullptr,
                             next_number(line) != 0);
  for (std::uint64_t index = 0; index < batches.batch_count(); ++index) {
    const EpochBatches::Batch batch = batches.batch(index);
    for (std::uint64_t i = 0; i < batch.size; ++i) std::cout << batches.position(batch, i) << ' ';
    std::cout << "| ";
  }
}

}  // namespace

int main() {
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    std::string kind;
    line >> kind;
    if (kind == "permutation")
      answer_permutation(line);
    else if (kind == "order")
      answer_order(line);
    else if (kind == "sampled")
      answer_sampled(line);
    else if (kind == "mixed")
      answer_mixed(line);
    else if (kind == "batches")
      answer_batches(line);
    else
      return 2;
    std::cout << '\n';
  }
  return std::cout.flush() ? 0 : 1;
}
