#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chunkhit/error.h"
#include "store/contents_message.h"
#include "store/hdf5_external.h"
#include "store/hdf5_images.h"
#include "store/hdf5_index.h"
#include "store/hdf5_isolated.h"
#include "store/hdf5_part.h"
#include "store/hdf5_source.h"
#include "store/part_index.h"
#include "store/part_rules.h"

namespace chunkhit {
namespace {

/// Puts the path before what a step says.
template <class Step>
auto with_path(const std::string& path, Step step) {
  try {
    return step();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;
    throw Error(error.code(), path + ": " + error.what());
  }
}

/// Chunks lie in the HDF5 file, one behind the other.
void check_order(const std::vector<StoredChunk>& chunks) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (chunks[i].offset < end)
      throw Error(ErrorCode::bad_data, "chunk " + std::to_string(i) + " begins at byte " +
                                           std::to_string(chunks[i].offset) + ", expected at least " +
                                           std::to_string(end));
    end = chunks[i].offset + chunks[i].stored_bytes;
  }
}

PartContents decode_index(Bytes index, const Hdf5Trailer& trailer) {
  PartSpecBytes spec{};
  if (index.size() < spec.size())
    throw Error(ErrorCode::bad_data, "index: " + std::to_string(index.size()) + " bytes, expected at least " +
                                         std::to_string(spec.size()));
  std::copy_n(index.begin(), spec.size(), spec.begin());
  PartContents contents;
  contents.spec = decode_part_spec(spec);
  decode_part_index(index.subspan(spec.size()), contents);
  check_part_contents(contents, container("hdf5"), trailer.hdf5_bytes);
  check_order(contents.chunks);
  contents.trailer = trailer;
  return contents;
}

/// Reads what lies behind the HDF5 end of a part of ours; nothing where another program made or changed the
/// file.
std::optional<PartContents> read_own_contents(const InputFile& input) {
  const std::optional<Hdf5Trailer> trailer = read_hdf5_trailer(input);
  if (!trailer) return std::nullopt;
  if (trailer->kind != SampleKind::images)
    throw Error(ErrorCode::bad_data, input.path() + ": holds matrices, expected images");
  const ByteBuffer index = read_hdf5_index(input, *trailer);
  return with_path(input.path(), [&] { return decode_index(index, *trailer); });
}

/// With one, addresses count from its end.
void refuse_user_block(const Hdf5Source& source) {
  const Hdf5Check& check = source.check();
  const Hdf5Handle creation(check(H5Fget_create_plist(source.file()), "ask how it was created"), H5Pclose);
  hsize_t user_block = 0;
  check(H5Pget_userblock(creation.get(), &user_block), "ask for the user block");
  if (user_block != 0) check.refuse("has a user block");
}

/// Takes a path from the root with or without the root's own slash.
std::string without_root(const std::string& name) {
  return name.substr(std::min(name.find_first_not_of('/'), name.size()));
}

/// Reads an external file through the HDF5 library.
PartContents read_external_contents(const InputFile& input, const Hdf5Names& names) {
  const QuietHdf5 quiet;
  Hdf5Source source(Hdf5Check(ErrorCode::bad_data, input.path()), input);
  refuse_user_block(source);
  refuse_damaged_index(source, input, kFormatAttribute);
  PartContents contents = read_external_file(source, names);
  with_path(input.path(), [&] { check_external_contents(contents, container("hdf5"), input.byte_count()); });
  return contents;
}

PartContents read_isolated_contents(const InputFile& input, const Hdf5Names& names) {
  PartContents contents;
  read_isolated(
      {input.path()}, [&](std::size_t) { return encode_contents(read_external_contents(input, names)); },
      [&](std::size_t, Bytes message) { contents = decode_contents(message); });
  return contents;
}

}  // namespace

bool is_hdf5_part(Bytes first_bytes) {
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  return first_bytes.size() >= kSignature.size() &&
         as_text(first_bytes.first(kSignature.size())) == kSignature;
}

std::unique_ptr<ChunkReader> open_hdf5_part(const std::string& path) {
  InputFile input(path);
  std::optional<PartContents> contents = read_own_contents(input);
  if (!contents)
    throw Error(ErrorCode::bad_data, path +
                                         ": has no index behind its HDF5 end of file: another program "
                                         "changed it, or it was cut off");
  return std::make_unique<ChunkReader>(std::move(input), std::move(*contents));
}

std::unique_ptr<ChunkReader> open_lone_hdf5(const std::string& path, const Hdf5Names& wanted) {
  InputFile input(path);
  Hdf5Names names{without_root(wanted.images), wanted.labels};
  if (names.labels) names.labels = without_root(*names.labels);
  const Hdf5Names own_names;
  std::optional<PartContents> contents;
  if (names.images == own_names.images) contents = read_own_contents(input);
  if (!contents) {
    contents = read_isolated_contents(input, names);
  } else if (names.labels.value_or("labels") != "labels") {
    PartContents external = read_isolated_contents(input, names);
    contents->samples.labels = std::move(external.samples.labels);
    contents->spec.label_columns = std::move(external.spec.label_columns);
    contents->spec.classes = std::move(external.spec.classes);
  }
  return std::make_unique<ChunkReader>(std::move(input), std::move(*contents));
}

}  // namespace chunkhit
