#include "listing/sample_file.h"

#include <utility>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

[[noreturn]] void fail_range(const SampleContainer& container, const FileRange& range) {
  throw Error(ErrorCode::bad_data, container.file.path() + ": has " +
                                       std::to_string(container.file.byte_count()) +
                                       " bytes, but a sample of " + std::to_string(range.bytes) +
                                       " bytes lies at offset " + std::to_string(range.offset));
}

SampleFile open_range(const SampleList& list, const FileRange& range) {
  SampleFile sample;
  if (range.container == FileRange::kNone) {
    sample.error = "no such file";
    return sample;
  }
  if (range.container >= list.containers.size())
    throw Error(ErrorCode::bad_data, "a sample lies in container " + std::to_string(range.container) +
                                         " of " + std::to_string(list.containers.size()));
  const SampleContainer& container = list.containers[range.container];
  const std::uint64_t all = container.file.byte_count();
  if (range.offset > all || range.bytes > all - range.offset) fail_range(container, range);
  if (range.bytes == 0) sample.error = "is empty";
  sample.bytes = range.bytes;
  sample.stamp = container.stamp;
  sample.container = &container;
  sample.offset = range.offset;
  return sample;
}

/// Calls `read`, and makes what the machine cannot read a MachineError.
template <class Read>
auto read_container(Read read) -> decltype(read()) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::try_again) throw;
    throw MachineError(error.what());
  }
}

/// The bytes are read first: a change that comes meanwhile is noticed.
void read_range(const SampleFile& sample, ByteBuffer& buffer) {
  const SampleContainer& container = *sample.container;
  if (sample.bytes > buffer.capacity()) ByteBuffer().swap(buffer);  // never holds old and new bytes together
  buffer.resize(sample.bytes);
  const FileStamp now = read_container([&] {
    container.file.read_at(sample.offset, buffer);
    return stamp_of(container.file);
  });
  if (now == container.listed) return;
  throw Error(ErrorCode::bad_data,
              container.file.path() + ": changed while it was packed: it had " +
                  std::to_string(container.listed.bytes) + " bytes and has " + std::to_string(now.bytes) +
                  (now.bytes == container.listed.bytes ? ", written at another time" : "") +
                  "; rerun the same command once it stays as it is");
}

}  // namespace

std::string SampleFile::read(ByteBuffer& buffer) const {
  if (container == nullptr) return file.read(buffer);
  read_range(*this, buffer);
  return "";
}

SampleFile open_sample(const RootFolder& root, const SampleList& list, std::size_t index) {
  if (!list.ranges.empty()) return open_range(list, list.ranges[index]);
  SampleFile sample;
  sample.file = root.open(list.file(index));
  sample.error = sample.file.error;
  sample.bytes = sample.file.bytes;
  sample.stamp = sample.file.stamp;
  return sample;
}

FileStamp stamp_sample(const RootFolder& root, const SampleList& list, std::size_t index) {
  return list.ranges.empty() ? root.stamp(list.file(index)) : open_range(list, list.ranges[index]).stamp;
}

SampleContainer open_container(const std::string& path) {
  InputFile file(path);
  const FileStamp now = stamp_of(file);
  return make_container(std::move(file), now);
}

SampleContainer make_container(InputFile file, const FileStamp& source) {
  const FileStamp listed = stamp_of(file);
  return {std::move(file), listed, source};
}

}  // namespace chunkhit
