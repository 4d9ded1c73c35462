// Reads any HDF5 file as the library does, for a script to compare: hdf5_probe FILE IMAGES LABELS OUT writes
// the samples' bytes to OUT.samples and the labels' (int64 or float32) to OUT.labels, and prints what the
// file is in one line of JSON; or says on the standard error stream why not, and ends with 65. With "-" for
// OUT it only opens.
#include <sys/mman.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include "chunkhit/error.h"
#include "store/part.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

/// Reads a raw chunk the way a caller without copies does.
ByteBuffer map_chunk(const ChunkReader& part, std::size_t index) {
  const std::uint64_t end = part.chunks()[index].offset + part.chunks()[index].raw_bytes;
  void* const mapped = ::mmap(nullptr, end, PROT_READ, MAP_PRIVATE, part.file().duplicate().get(), 0);
  if (mapped == MAP_FAILED) throw Error(ErrorCode::bad_data, part.location(index) + ": cannot be mapped");
  const Bytes bytes(static_cast<const std::uint8_t*>(mapped), end);
  const Bytes chunk = bytes.subspan(part.chunks()[index].offset);
  ByteBuffer samples(chunk.begin(), chunk.end());
  ::munmap(mapped, end);
  return samples;
}

ByteBuffer decode(const ChunkReader& part, std::size_t index) {
  ByteBuffer stored;
  part.fetch(index, stored);
  ByteBuffer raw(part.chunks()[index].raw_bytes);
  decode_chunk(part, index, stored, raw);
  return raw;
}

void write_samples(const ChunkReader& part, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  for (std::size_t i = 0; i < part.chunks().size(); ++i) {
    const ByteBuffer raw = decode(part, i);
    if (part.stored_raw(i) && map_chunk(part, i) != raw)
      throw Error(ErrorCode::bad_data, part.location(i) + ": mapped bytes differ");
    const std::uint64_t bytes = part.chunks()[i].sample_count * part.spec().images().sample.byte_count();
    out << as_text(Bytes(raw).first(bytes));
  }
}

template <class Number>
void write_numbers(const std::vector<Number>& numbers, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(numbers.data()),
            static_cast<std::streamsize>(numbers.size() * sizeof(Number)));
}

void print_facts(const ChunkReader& part, double seconds) {
  std::size_t raw_chunks = 0;
  for (std::size_t i = 0; i < part.chunks().size(); ++i) raw_chunks += part.stored_raw(i) ? 1 : 0;
  const PartSpec& spec = part.spec();
  std::printf(
      "{\"height\": %u, \"width\": %u, \"channels\": %u, \"layout\": \"%s\", \"filter\": \"%s\", "
      "\"samples\": %zu, "
      "\"chunks\": %zu, \"chunk_samples\": %zu, \"raw_chunks\": %zu, \"class_labels\": %s, \"columns\": %zu, "
      "\"open_seconds\": %.6f}\n",
      spec.images().sample.height, spec.images().sample.width, spec.images().sample.channels,
      name_of(spec.images().sample.layout).c_str(), spec.codec.c_str(), part.samples().rows.size(),
      part.chunks().size(), static_cast<std::size_t>(spec.chunk_samples), raw_chunks,
      part.samples().labels.values.empty() ? "true" : "false", spec.label_columns.size(), seconds);
}

void probe(const std::string& path, const Hdf5Names& names, const std::string& out) {
  const auto begin = std::chrono::steady_clock::now();
  const std::unique_ptr<ChunkReader> part = open_part(path, names);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  print_facts(*part, seconds.count());
  if (out == "-") return;
  write_samples(*part, out + ".samples");
  const Labels& labels = part->samples().labels;
  if (labels.values.empty())
    write_numbers(labels.ids, out + ".labels");
  else
    write_numbers(labels.values, out + ".labels");
}

}  // namespace
}  // namespace chunkhit

int main(int count, char** arguments) {
  if (count != 5) return 2;
  try {
    chunkhit::Hdf5Names names{.images = arguments[2], .labels = arguments[3]};
    if (names.labels == "beside") names.labels.reset();
    chunkhit::probe(arguments[1], names, arguments[4]);
  } catch (const chunkhit::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
