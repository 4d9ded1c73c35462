#include "store/hdf5/image_part.h"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/hash.h"
#include "base/throw_error.h"
#include "chunkhit/error.h"
#include "store/hdf5/attributes.h"
#include "store/hdf5/dataset.h"
#include "store/hdf5/external.h"
#include "store/hdf5/external_check.h"
#include "store/hdf5/handle.h"
#include "store/hdf5/index.h"
#include "store/hdf5/numbers.h"
#include "store/hdf5/output.h"
#include "store/hdf5/sample_dataset.h"
#include "store/part.h"
#include "store/part_index.h"
#include "store/part_rules.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

void write_list(const Hdf5Check& check, hid_t file, const char* name, const std::vector<std::string>& list) {
  if (!list.empty()) write_text_column(check, file, name, names_of(list));
}

std::string column_path(const SampleColumn& column) {
  return std::string(kKeptColumnsName) + "/" + column.name;
}

/// Writes each column as a dataset of its own.
void write_kept_columns(const Hdf5Check& check, hid_t file, const std::vector<SampleColumn>& columns) {
  if (columns.empty()) return;
  const Hdf5Handle group(
      check(H5Gcreate2(file, kKeptColumnsName, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "create /columns"),
      H5Gclose);
  for (const SampleColumn& column : columns) {
    const std::string path = column_path(column);
    const std::array<hsize_t, 1> count{column.size()};
    if (const auto* const integers = std::get_if<std::vector<std::int64_t>>(&column.values))
      write_column(check, file, path.c_str(), count, *integers);
    else if (const auto* const numbers = std::get_if<std::vector<double>>(&column.values))
      write_column(check, file, path.c_str(), count, *numbers);
    else
      write_text_column(check, file, path.c_str(), std::get<TextList>(column.values));
  }
}

SampleColumn read_kept_column(const Hdf5Check& check, hid_t file, const SampleColumn& like) {
  SampleColumn column = empty_column({like.name, like.type()});
  const std::string path = column_path(like);
  if (like.type() == ColumnType::int64)
    column.values = read_column<std::int64_t>(check, open_column(check, file, path));
  else if (like.type() == ColumnType::float64)
    column.values = read_column<double>(check, open_column(check, file, path));
  else
    column.values = read_text_column(check, file, path);
  return column;
}

/// Writes the attributes of the root, and those of `images` that are known before the samples.
void write_part_attributes(const Hdf5Check& check, hid_t file, hid_t images, const PartSpec& spec) {
  const auto layout = name_of(spec.images().sample.layout);
  write_text_attribute(check, images, "layout", layout);
  if (spec.cache_advice.rdcc_nbytes != 0) {
    write_attribute(check, images, "suggested_rdcc_nbytes", spec.cache_advice.rdcc_nbytes);
    write_attribute(check, images, "suggested_rdcc_nslots", spec.cache_advice.rdcc_nslots);
    write_attribute(check, images, "suggested_rdcc_w0", spec.cache_advice.rdcc_w0);
  }
  write_attribute(check, file, kFormatAttribute, std::uint64_t{hdf5_format(spec.hashes_samples)});
  write_text_attribute(check, file, "pack_id", hash_text(spec.pack_id));
  write_attribute(check, file, "part_index", std::uint64_t{spec.part_index});
  write_text_attribute(check, file, "filter", spec.codec);
}

/// Writes labels, rows, files and names, and the statistics of the pixels.
void write_sample_columns(const Hdf5Check& check, hid_t file, hid_t images, const PartSpec& spec,
                          const PartSamples& samples) {
  const hsize_t count = samples.rows.size();
  if (samples.labels.values.empty())
    write_column(check, file, kLabelsName, std::array{count}, samples.labels.ids);
  else
    write_column(check, file, kLabelsName, std::array{count, hsize_t{spec.label_columns.size()}},
                 samples.labels.values);
  write_column(check, file, kRowsName, std::array{count}, samples.rows);
  write_text_column(check, file, kFilesName, samples.files);
  write_list(check, file, kClassesName, spec.images().classes);
  write_list(check, file, kColumnsName, spec.label_columns);
  write_kept_columns(check, file, samples.columns);
  if (!samples.mean.empty()) write_attribute(check, images, "mean", samples.mean);
  if (!samples.std.empty()) write_attribute(check, images, "std", samples.std);
}

/// Whether two labels have the same bits: NaN are missing ones.
bool is_same_number(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// Compares what other programs read of these with what was to be written; refuses what differs.
void check_sample_columns(const Hdf5Check& check, hid_t file, hid_t images, const PartSpec& spec,
                          const PartSamples& samples) {
  const auto require = [&](bool is_whole, const char* name) {
    if (!is_whole) check.refuse(std::string("/") + name + " was not written whole");
  };
  const auto holds = [&](const char* name, const TextList& names) {
    const TextList found = read_text_column(check, file, name);
    return found.text == names.text && found.ends == names.ends;
  };
  const Hdf5Column labels = open_column(check, file, kLabelsName);
  require(samples.labels.values.empty()
              ? read_column<std::int64_t>(check, labels) == samples.labels.ids
              : std::ranges::equal(read_column<float>(check, labels), samples.labels.values, is_same_number),
          kLabelsName);
  require(read_column<std::uint64_t>(check, open_column(check, file, kRowsName)) == samples.rows, kRowsName);
  require(holds(kFilesName, samples.files), kFilesName);
  require(spec.images().classes.empty() || holds(kClassesName, names_of(spec.images().classes)),
          kClassesName);
  require(spec.label_columns.empty() || holds(kColumnsName, names_of(spec.label_columns)), kColumnsName);
  for (const SampleColumn& column : samples.columns)
    require(are_equal(read_kept_column(check, file, column), column), kKeptColumnsName);
  require(read_attribute<double>(check, images, "mean") == samples.mean &&
              read_attribute<double>(check, images, "std") == samples.std,
          kImagesName);
}

/// Runs a step; prefixes the messages of its errors by the path.
template <class Step>
auto with_path(const std::string& path, Step step) {
  try {
    return step();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;
    throw Error(error.code(), path + ": " + error.what());
  }
}

/// Throws bad_data unless the chunks are at ascending offsets without overlap.
void check_order(const std::vector<StoredChunk>& chunks) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (chunks[i].offset < end)
      throw_bad_data("chunk " + std::to_string(i) + " begins at byte " + std::to_string(chunks[i].offset) +
                     ", expected at least " + std::to_string(end));
    end = chunks[i].offset + chunks[i].stored_bytes;
  }
}

PartContents decode_index(IndexCursor& index, const Hdf5Trailer& trailer) {
  PartSpecBytes spec{};
  std::ranges::copy(index.take(spec.size(), 1), spec.begin());
  PartContents contents;
  contents.spec = decode_part_spec(trailer.kind, spec);
  contents.spec.hashes_samples = trailer.version == hdf5_format(true);
  check_part_spec(contents.spec, container("hdf5"));
  contents.spec.payload().decode_index(index, {}, contents);
  contents.samples.sizes.framed = false;
  check_part_contents(contents, container("hdf5"), trailer.hdf5_bytes);
  check_order(contents.chunks);
  contents.trailer = trailer;
  return contents;
}

/// Reads our index behind the HDF5 end of the file; nullopt if another program made or changed the file.
std::optional<PartContents> read_own_contents(const InputFile& input) {
  const std::optional<Hdf5Trailer> trailer = read_hdf5_trailer(input);
  if (!trailer) return std::nullopt;
  if (trailer->kind == SampleKind::matrices)
    throw_bad_data(input.path() + ": holds matrices, expected images");
  return with_path(input.path(), [&] {
    return decode_file_index({input, trailer->hdf5_bytes, trailer->index_bytes}, trailer->index_xxh3,
                             [&](IndexCursor& index) { return decode_index(index, *trailer); });
  });
}

/// Rejects a user block, because addresses would then count from its end.
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

/// Rejects images of their own sizes whose index another program removed: chunks and hashes are only there.
void refuse_sized_images(const Hdf5Source& source) {
  const Hdf5Check& check = source.check();
  const hid_t file = source.file();
  if (attribute_count(check, file, kFormatAttribute) != 0 && !has_object(check, file, kImagesName) &&
      has_object(check, file, kDataName))
    check.refuse(
        "images of their own sizes without the index behind their HDF5 end of file: another program changed "
        "it, or it was cut off");
}

/// Reads an external file through the HDF5 library.
PartContents read_external_contents(const InputFile& input, const Hdf5Names& names) {
  check_external_file(input.path(), {.names = names});
  const Hdf5Session session;
  Hdf5Source source(input);
  refuse_user_block(source);
  if (names.images == kImagesName) refuse_sized_images(source);
  refuse_damaged_index(source, input, kFormatAttribute);
  PartContents contents = read_external_file(source, input, names);
  with_path(input.path(), [&] { check_external_contents(contents, container("hdf5"), input.byte_count()); });
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
    throw_bad_data(
        path + ": has no index behind its HDF5 end of file: another program changed it, or it was cut off");
  return std::make_unique<ChunkReader>(std::move(input), std::move(*contents));
}

std::unique_ptr<ChunkReader> open_single_hdf5(const std::string& path, const Hdf5Names& wanted) {
  InputFile input(path);
  Hdf5Names names{without_root(wanted.images), wanted.labels};
  if (names.labels) names.labels = without_root(*names.labels);
  const Hdf5Names own_names;
  std::optional<PartContents> contents;
  if (names.images == own_names.images) contents = read_own_contents(input);
  if (!contents) {
    contents = read_external_contents(input, names);
  } else if (names.labels.value_or("labels") != "labels") {
    if (contents->spec.holds_own_sizes() || !contents->spec.images().sample.pairs.empty())
      throw_usage(path + ": images of their own sizes, or with masks or views, have their own labels only");
    PartContents external = read_external_contents(input, names);
    contents->samples.labels = std::move(external.samples.labels);
    contents->spec.label_columns = std::move(external.spec.label_columns);
    contents->spec.images().classes = std::move(external.spec.images().classes);
  }
  return std::make_unique<ChunkReader>(std::move(input), std::move(*contents));
}

namespace {

constexpr std::uint64_t kMinMetadataBlockBytes = 16 << 10;
constexpr std::uint64_t kMaxMetadataBlockBytes = 1 << 20;

/// Looks up every chunk in HDF5's own index, through which other programs read the file.
void check_library_index(const Hdf5Check& check, hid_t images, const std::vector<StoredChunk>& chunks) {
  for (const StoredChunk& chunk : chunks) {
    const std::array<hsize_t, 4> at{chunk.first_sample, 0, 0, 0};
    hsize_t found = 0;
    check(H5Dget_chunk_storage_size(images, at.data(), &found), "look up a chunk");
    if (found != chunk.stored_bytes) check.refuse("a chunk was not written whole");
  }
}

/// Writes chunks, and the index behind the HDF5 end of the file.
class ImagesWriter final : public ChunkWriter {
 public:
  ImagesWriter(const std::string& path, const PartSpec& spec)
      : spec_(spec),
        output_(path, hdf5_metadata_block_bytes(spec.chunk_samples * spec.images().sample.byte_count())),
        samples_(create_samples(output_.check(), output_.file(), spec_)) {
    if (spec_.images().sample.pairs.empty())
      write_part_attributes(output_.check(), output_.file(), samples_.get(), spec_);
  }

  /// Writes a chunk where it belongs, while other parts use the library.
  void append(const EncodedChunk& chunk) override {
    const std::uint64_t offset = add_chunk(chunk);
    output_.pending().write_at(offset, chunk.stored);
    chunks_.push_back({.offset = offset,
                       .stored_bytes = chunk.stored.size(),
                       .raw_bytes = chunk.raw_bytes,
                       .first_sample = sample_count_,
                       .sample_count = chunk.sample_count,
                       .xxh3 = chunk.xxh3,
                       .filtered = chunk.filtered,
                       .sample_hashes = chunk.sample_hashes});
    sample_count_ += chunk.sample_count;
  }

  CompletePart complete(PartSamples samples) override {
    finish_hdf5(samples);
    const PartSpecBytes spec = encode_part_spec(spec_);
    ByteBuffer index = spec_.payload().encode_index(spec_, chunks_, std::move(samples));
    index.insert(index.begin(), spec.begin(), spec.end());
    PendingFile& pending = output_.pending();
    append_hdf5_index(pending, hdf5_format(spec_.hashes_samples), spec_.payload().kind(), chunks_, index);
    index = ByteBuffer();  // frees memory: it is read back
    const PartReport report = check_written_part(pending, open_hdf5_part, chunks_);
    pending.flush();
    return {report, std::move(pending)};
  }

 private:
  std::uint64_t add_chunk(const EncodedChunk& chunk) {
    const Hdf5Session session;
    const std::vector<hsize_t> extent =
        sample_dimensions(spec_.images().sample, sample_count_ + chunk.sample_count);
    const std::array<hsize_t, 4> at{sample_count_, 0, 0, 0};
    const std::uint32_t mask = chunk.filtered || spec_.codec == "none" ? 0 : 1;
    output_.check()(H5Dset_extent(samples_.get(), extent.data()), "make room for samples");
    return output_.add_chunk(samples_.get(), at, mask, chunk.stored);
  }

  /// Writes what the HDF5 library writes, and reads it again.
  void finish_hdf5(const PartSamples& samples) {
    const Hdf5Session session;
    Hdf5Handle view;
    if (!spec_.images().sample.pairs.empty()) {
      view = create_views(output_.check(), output_.file(), spec_.images().sample, sample_count_);
      write_part_attributes(output_.check(), output_.file(), view.get(), spec_);
    }
    write_sample_columns(output_.check(), output_.file(),
                         (!spec_.images().sample.pairs.empty() ? view : samples_).get(), spec_, samples);
    output_.check()(view.close(), "close /images");
    output_.check()(samples_.close(), "close the samples");
    output_.close();
    check_hdf5_file(samples);
  }

  void check_hdf5_file(const PartSamples& samples) {
    const Hdf5Check& check = output_.check();
    const Hdf5Handle file = open_hdf5_file(check, output_.pending().aside_path());
    const Hdf5Handle images = open_dataset(check, file.get(), kImagesName);
    if (!spec_.images().sample.pairs.empty())
      check_library_index(check, open_dataset(check, file.get(), kSamplesName).get(), chunks_);
    else
      check_library_index(check, images.get(), chunks_);
    check_sample_columns(check, file.get(), images.get(), spec_, samples);
  }

  PartSpec spec_;
  Hdf5Output output_;
  Hdf5Handle samples_;
  std::vector<StoredChunk> chunks_;
  std::uint64_t sample_count_ = 0;
};

}  // namespace

std::uint64_t hdf5_metadata_block_bytes(std::uint64_t chunk_bytes) {
  return std::clamp(std::bit_ceil(std::min(chunk_bytes, kMaxMetadataBlockBytes)), kMinMetadataBlockBytes,
                    kMaxMetadataBlockBytes);
}

std::unique_ptr<ChunkWriter> create_hdf5_part(const std::string& path, const PartSpec& spec) {
  leave_files_alone_at_exit();
  const Hdf5Session session;
  check_part_spec(spec, container("hdf5"));
  if (spec.holds_own_sizes()) throw_bad_data("images of their own sizes are written as shards only");
  return std::make_unique<ImagesWriter>(path, spec);
}

}  // namespace chunkhit
