#include "pack/images/input_stamps.h"

#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "listing/sample_list.h"

namespace chunkhit {
namespace {

constexpr std::string_view kMagic = "chunkhit inputs\n";
constexpr std::size_t kHeaderBytes = kMagic.size() + 24;
constexpr std::size_t kRowBytes = 16;
constexpr std::size_t kHashBytes = 8;
constexpr std::size_t kWriteBytes = 64 << 10;

void append_number(ByteBuffer& bytes, std::uint64_t number) {
  bytes.resize(bytes.size() + sizeof number);
  store_little(bytes.data() + bytes.size() - sizeof number, number);
}

ByteBuffer encode_header(const StampedPart& part, std::uint64_t row_count) {
  ByteBuffer bytes(kMagic.begin(), kMagic.end());
  for (const std::uint64_t number : {part.pack_id, part.part_index, row_count}) append_number(bytes, number);
  return bytes;
}

bool is_changed(const InputFolders& folders, const SampleList& list, std::size_t index,
                const FileStamp& before) {
  return with_retries([&] {
    // What could not be opened was stamped with zeros, though it may have had a size.
    if (before == FileStamp{}) return before != open_sample(folders.images, list, index).stamp;
    return before != joined_stamps(stamp_sample(folders.images, list, index), folders, list, index);
  });
}

}  // namespace

PendingFile write_stamps(const std::string& path, const StampedPart& part,
                         std::span<const FileStamp> stamps) {
  PendingFile file(path);
  Xxh3Stream hash;
  ByteBuffer bytes = encode_header(part, stamps.size());
  const auto write = [&] {
    hash.update(bytes);
    file.append(bytes);
    bytes.clear();
  };
  for (const FileStamp& stamp : stamps) {
    append_number(bytes, stamp.bytes);
    append_number(bytes, static_cast<std::uint64_t>(stamp.mtime_ns));
    if (bytes.size() >= kWriteBytes) write();
  }
  write();
  append_number(bytes, hash.value());
  file.append(bytes);
  file.flush();
  return file;
}

std::optional<std::vector<FileStamp>> read_stamps(const std::string& path, const StampedPart& part,
                                                  std::size_t row_count) {
  std::error_code error;
  const std::size_t expected = kHeaderBytes + row_count * kRowBytes + kHashBytes;
  if (std::filesystem::file_size(path, error) != expected || error) return std::nullopt;
  try {
    const ByteBuffer bytes = read_file(path, expected);
    const ByteBuffer header = encode_header(part, row_count);
    const std::size_t hashed = bytes.size() - kHashBytes;
    if (bytes.size() != expected || !std::equal(header.begin(), header.end(), bytes.begin()) ||
        load_little<std::uint64_t>(bytes.data() + hashed) != xxh3(Bytes(bytes).first(hashed)))
      return std::nullopt;
    std::vector<FileStamp> stamps(row_count);
    const std::uint8_t* at = bytes.data() + kHeaderBytes;
    for (FileStamp& stamp : stamps) {
      stamp = {load_little<std::uint64_t>(at), load_little<std::int64_t>(at + 8)};
      at += kRowBytes;
    }
    return stamps;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<std::uint32_t> find_changed(const InputFolders& folders, const SampleList& list,
                                        std::span<const std::uint32_t> indices,
                                        std::span<const FileStamp> stamps) {
  std::vector<char> changed(indices.size());
  tbb::parallel_for(std::size_t{0}, indices.size(), [&](std::size_t row) {
    changed[row] = is_changed(folders, list, indices[row], stamps[row]) ? 1 : 0;
  });
  std::vector<std::uint32_t> found;
  for (std::size_t row = 0; row < indices.size(); ++row)
    if (changed[row] != 0) found.push_back(indices[row]);
  return found;
}

std::string changed_text(const std::vector<std::string>& files, std::uint64_t part_count,
                         bool may_be_folders) {
  constexpr std::size_t kNamedFiles = 3;
  std::string text = count_text(files.size(), "image") + (may_be_folders ? " or files beside them" : "") +
                     " changed since packed (";
  for (std::size_t index = 0; index < std::min(files.size(), kNamedFiles); ++index)
    text.append(index == 0 ? "" : ", ").append(files[index]);
  text += files.size() > kNamedFiles ? ", …)" : ")";
  if (may_be_folders) text += ", or other folders of `pair` were given";
  return text + ": " + count_text(part_count, "part") + " packed again (`trust_inputs` does not compare)";
}

}  // namespace chunkhit
