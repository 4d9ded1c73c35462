#include "read/pack_info.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include "base/aside_name.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/throw_error.h"
#include "chunk/chunk_plan.h"
#include "chunk/row_block.h"
#include "chunkhit/error.h"
#include "manifest/manifest.h"
#include "manifest/part_match.h"
#include "manifest/split_packs.h"
#include "transform/orientation.h"

namespace chunkhit {
namespace {

void set_shape(ImagesInfo& info, const SampleShape& sample) {
  info.own_sizes = sample.height == 0;
  info.height = sample.height;
  info.width = sample.width;
  info.channels = sample.channels;
  info.layout = sample.layout;
  info.fields = sample.pairs;
}

/// Predicts how well the chunks fit HDF5's chunk cache, by default and with the advised settings.
void set_caches(const PackInfo& info, ImagesInfo& images) {
  if (!container(info.container).is_read_by_library || images.own_sizes || info.parts.empty()) return;
  ChunkPlan plan;
  plan.chunk_samples = images.chunk_samples;
  plan.chunk_bytes = images.chunk_bytes;
  plan.compressed = info.codec != "none";
  const std::uint64_t chunks = info.parts[0].chunks;
  images.default_cache = predict_cache(plan, chunks, kDefaultCache);
  images.advised_cache = predict_cache(plan, chunks, advise_cache(plan, chunks));
}

/// Counts by a map, because ids of external files can be sparse or negative.
std::vector<PackClass> count_classes(const ImageSamples& part, const std::vector<std::int64_t>& ids) {
  std::map<std::int64_t, std::uint64_t> counts;
  for (const std::int64_t id : ids) ++counts[id];
  std::vector<PackClass> classes;
  for (const auto& [id, samples] : counts) {
    const bool named = id >= 0 && static_cast<std::uint64_t>(id) < part.classes.size();
    classes.push_back({id, named ? part.classes[static_cast<std::size_t>(id)] : "", samples});
  }
  return classes;
}

/// Adds the labels of a part to the counts by column; false where one is neither 0 nor 1.
bool add_labels(const ChunkReader& part, std::vector<std::uint64_t>& counts) {
  const std::vector<float>& values = part.samples().labels.values;
  // A file may have other columns than the manifest or the parts before it.
  if (!counts.empty() && counts.size() != part.spec().label_columns.size()) return false;
  counts.resize(part.spec().label_columns.size());
  if (values.empty() || counts.empty()) return part.samples().rows.empty();
  for (std::size_t first = 0; first + counts.size() <= values.size(); first += counts.size()) {
    const float* const label = values.data() + first;
    unsigned others = 0;  // without a branch a number takes a third of a nanosecond
    for (std::size_t column = 0; column < counts.size(); ++column) {
      others |= static_cast<unsigned>(label[column] != 0) & static_cast<unsigned>(label[column] != 1);
      counts[column] += label[column] == 1 ? 1 : 0;
    }
    if (others != 0) return false;
  }
  return true;
}

void check_part_sizes(const std::string& folder, PackInfo& info) {
  for (const PackPart& part : info.parts) check_size(folder + "/" + part.file, part.bytes, info.problems);
}

/// Returns the size as CSR in memory: u64 row pointers, u32 columns, f32 values.
std::uint64_t csr_bytes(std::uint64_t rows, const std::vector<PackMatrix>& matrices) {
  std::uint64_t bytes = 0;
  for (const PackMatrix& matrix : matrices) bytes += rows * 8 + matrix.nnz * 8;
  return bytes;
}

/// Counts the entries of a part by decoding all its row blocks: a part records no totals.
std::vector<PackMatrix> count_entries(const ChunkReader& part) {
  const MatrixShape& shape = part.spec().rows().matrix;
  std::vector<PackMatrix> matrices{{"X", 0, 0}, {"held_out", 0, 0}};
  matrices.resize(shape.matrix_count);
  ByteBuffer stored, block;
  for (std::size_t chunk = 0; chunk < part.chunks().size(); ++chunk) {
    part.fetch(chunk, stored);
    block.resize(part.chunks()[chunk].raw_bytes);
    decode_chunk(part, chunk, stored, block);
    const RowBlockHeader header = decode_row_block_header(block, shape);
    for (std::size_t matrix = 0; matrix < matrices.size(); ++matrix) {
      matrices[matrix].nnz += header.matrices[matrix].nnz;
      matrices[matrix].longest_row =
          std::max(matrices[matrix].longest_row, header.matrices[matrix].longest_row);
    }
  }
  return matrices;
}

void set_entries(const ChunkReader& part, PackInfo& info) {
  auto& matrix = std::get<MatrixInfo>(info.contents);
  matrix.matrices = count_entries(part);
  info.raw_bytes = csr_bytes(info.samples, matrix.matrices);
}

/// Clears the chunk counts: the row chunks of an HDF5 matrix are made while reading and are not in the file.
void set_hdf5_file(const ChunkReader& part, PackInfo& info) {
  std::get<MatrixInfo>(info.contents).chunk_rows = 0;
  info.stored_bytes = InputFile(part.path()).byte_count();
  info.parts[0].chunks = 0;
  info.parts[0].bytes = info.stored_bytes;
}

/// Describes a pack; nullopt if the source is a single part.
std::optional<PackInfo> pack_info(const PackSource& source) {
  if (source.matrix) return manifest_info(source.folder, *source.matrix);
  if (source.manifest) return manifest_info(source.folder, *source.manifest);
  return std::nullopt;
}

}  // namespace

std::vector<std::uint64_t> count_labels(std::span<const std::unique_ptr<ChunkReader>> parts) {
  std::vector<std::uint64_t> counts;
  for (const auto& part : parts)
    if (!add_labels(*part, counts)) return {};
  return counts;
}

PackInfo single_part_info(const std::string& path, const Hdf5Names& names) {
  if (names != Hdf5Names{}) return part_info(*open_part(path, names));
  const Container& kind = container_of(path);
  const bool holds_matrices = kind.holds_matrices(path);
  const std::unique_ptr<ChunkReader> part = holds_matrices ? open_matrix_part(path) : open_part(path);
  PackInfo info = part_info(*part);
  try {
    if (holds_matrices && kind.holds_row_blocks) set_entries(*part, info);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    info.problems.emplace_back(error.what());
  }
  return info;
}

namespace {

std::vector<std::pair<std::string, std::string>> pairs_of(const RecordedSpec& spec) {
  std::vector<std::pair<std::string, std::string>> pairs;
  pairs.reserve(spec.size());
  for (const SpecEntry& entry : spec) pairs.emplace_back(entry.name, entry.value);
  return pairs;
}

std::vector<MergedPack> merged_packs(const std::string& folder, const PackManifest& manifest) {
  std::vector<MergedPack> packs;
  if (!manifest.is_merged) return packs;
  const std::vector<std::string> roots = roots_of(folder, manifest);
  for (const SourcePack& source : manifest.sources)
    packs.push_back({.pack_id = hash_text(source.pack_id),
                     .tool = source.tool,
                     .root = roots[packs.size()],
                     .spec = pairs_of(source.spec),
                     .input_xxh3 = hash_text(source.input_xxh3),
                     .rows = source.rows,
                     .codec = source.codec,
                     .chunk_samples = source.chunk_samples});
  for (const PartRecord& part : manifest.parts) {
    packs[part.source].samples += part.samples;
    ++packs[part.source].parts;
  }
  return packs;
}

/// Fills what the manifests of images and matrices have in common.
template <class Manifest>
PackInfo common_info(const std::string& folder, const Manifest& manifest) {
  PackInfo info;
  info.path = folder;
  info.container = manifest.container;
  info.codec = manifest.codec;
  info.label_columns = manifest.label_columns;
  for (const PartRecord& part : manifest.parts) {
    info.stored_bytes += part.stored_bytes;
    info.parts.push_back(part);
  }
  info.spec = pairs_of(manifest.spec);
  info.sources = merged_packs(folder, manifest);
  info.tool = manifest.tool;
  info.pack_id = hash_text(manifest.pack_id);
  info.input_xxh3 = hash_text(manifest.input_xxh3);
  return info;
}

ImagesInfo part_images(const ChunkReader& part) {
  ImagesInfo images;
  images.label_kind = part.samples().labels.values.empty() ? LabelKind::class_id : LabelKind::numbers;
  if (images.label_kind == LabelKind::class_id || !add_labels(part, images.label_counts))
    images.label_counts.clear();
  images.columns = column_types(part.samples().columns);
  images.classes = count_classes(part.spec().images(), part.samples().labels.ids);
  images.mean = part.samples().mean;
  images.std = part.samples().std;
  images.chunk_samples = part.spec().chunk_samples;
  images.chunk_bytes = images.chunk_samples * part.spec().images().sample.byte_count();
  set_shape(images, part.spec().images().sample);
  return images;
}

}  // namespace

PackInfo manifest_info(const std::string& folder, const Manifest& manifest) {
  PackInfo info = common_info(folder, manifest);
  info.samples = manifest.samples;
  info.raw_bytes = manifest.raw_bytes;
  ImagesInfo images;
  set_shape(images, manifest.sample);
  images.rows = manifest.rows;
  images.rejected = manifest.rejected;
  images.warned = manifest.warned;
  images.label_kind = manifest.class_labels ? LabelKind::class_id : LabelKind::numbers;
  images.columns = manifest.columns;
  images.classes = manifest.classes;
  images.mean = manifest.mean;
  images.std = manifest.std;
  images.inputs = manifest.inputs;
  images.normalize = manifest.normalize;
  images.chunk_samples = manifest.chunk_samples;
  images.chunk_bytes = manifest.chunk_bytes;
  set_caches(info, images);
  info.contents = std::move(images);
  return info;
}

PackInfo manifest_info(const std::string& folder, const MatrixManifest& manifest) {
  PackInfo info = common_info(folder, manifest);
  info.samples = manifest.rows;
  info.raw_bytes = csr_bytes(manifest.rows, manifest.matrices);
  MatrixInfo matrix{.columns = manifest.columns,
                    .matrices = manifest.matrices,
                    .values = {manifest.value_type, manifest.scale},
                    .split_name = manifest.spec.get("split-name"),
                    .chunk_rows = manifest.chunk_rows,
                    .stats = manifest.stats,
                    .item_columns = manifest.item_columns,
                    .user_columns = manifest.user_columns,
                    .times = manifest.times,
                    .has_repeats = manifest.has_repeats};
  std::uint64_t kept = 0;
  for (const PackMatrix& each : matrix.matrices)  // X is of training, but of users that are held out
    if (each.name == "held_out" || manifest.spec.get("split-by").starts_with("users")) kept += each.nnz;
  if (matrix.split_name != "train" && !matrix.split_name.empty())
    matrix.lost = lost_ratings_text(matrix.split_name, matrix.stats, kept);
  info.contents = std::move(matrix);
  return info;
}

PackInfo part_info(const ChunkReader& part) {
  PackInfo info;
  info.path = part.path();
  info.single_part = true;
  const Container& kind = container_of(part.path());
  info.container = kind.name;
  info.codec = part.spec().codec;
  info.label_columns = part.spec().label_columns;
  for (const StoredChunk& chunk : part.chunks()) {
    info.stored_bytes += chunk.stored_bytes;
    info.samples += chunk.sample_count;
  }
  info.parts.push_back({.file = std::filesystem::path(part.path()).filename().string(),
                        .bytes = part.byte_count(),
                        .samples = info.samples,
                        .chunks = part.chunks().size(),
                        .stored_bytes = info.stored_bytes});
  info.pack_id = hash_text(part.spec().pack_id);
  info.external = part.spec().pack_id == 0 && !part.has_hashes();
  if (!part.spec().holds_rows()) {
    info.raw_bytes = info.samples * part.spec().images().sample.byte_count();
    const ImageSizes& sizes = part.samples().sizes;
    for (std::size_t i = 0; i < sizes.heights.size(); ++i)
      info.raw_bytes +=
          std::uint64_t{sizes.heights[i]} * sizes.widths[i] * part.spec().images().sample.values();
    info.contents = part_images(part);
    return info;
  }
  const MatrixShape& shape = part.spec().rows().matrix;
  MatrixInfo matrix{.columns = shape.column_count,
                    .matrices = {},
                    .values = {shape.value_type, shape.scale},
                    .split_name = {},
                    .chunk_rows = part.spec().chunk_samples,
                    .stats = RatingStats{},
                    .times = shape.has_times ? std::string(kUnknownTimes) : "",
                    .has_repeats = shape.has_repeats};
  info.contents = std::move(matrix);
  if (!kind.holds_row_blocks) {
    set_entries(part, info);
    set_hdf5_file(part, info);
  }
  return info;
}

PackInfo source_info(const PackSource& source, const ChunkSet& chunks) {
  std::optional<PackInfo> info = pack_info(source);
  return info ? *std::move(info) : part_info(*chunks.parts().front());
}

namespace {

Spread spread_of(std::vector<std::uint32_t> numbers) {
  if (numbers.empty()) return {};
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>((numbers.size() - 1) / 2);
  std::ranges::nth_element(numbers, middle);
  const auto [min, max] = std::ranges::minmax(numbers);
  return {min, *middle, max};
}

/// Calls `use` with each part of a pack, whose index alone is read; damaged parts are problems.
template <class Use>
void visit_parts(const std::filesystem::path& folder, PackInfo& info, const Use& use) {
  for (const PackPart& listed : info.parts) {
    try {
      use(*open_part(folder / listed.file));
    } catch (const Error& error) {
      info.problems.emplace_back(error.what());
    }
  }
}

/// Reads the sizes of all images.
OwnSizesInfo read_sizes(const std::filesystem::path& folder, PackInfo& info) {
  OwnSizesInfo sizes;
  std::vector<std::uint32_t> heights, widths, bytes;
  visit_parts(folder, info, [&](const ChunkReader& part) {
    const ImageSizes& own = part.samples().sizes;
    for (std::size_t i = 0; i < own.heights.size(); ++i) {
      const bool is_turned = swaps_sides(own.orientations[i]);
      heights.push_back(is_turned ? own.widths[i] : own.heights[i]);
      widths.push_back(is_turned ? own.heights[i] : own.widths[i]);
      ++*std::array{&sizes.jpeg, &sizes.raw, &sizes.zstd, &sizes.photo}.at(own.kinds[i] - 1u);
    }
    bytes.insert(bytes.end(), own.payload_bytes.begin(), own.payload_bytes.end());
  });
  sizes.height = spread_of(std::move(heights));
  sizes.width = spread_of(std::move(widths));
  sizes.stored_bytes = spread_of(std::move(bytes));
  return sizes;
}

std::vector<std::uint64_t> read_label_counts(const std::filesystem::path& folder, PackInfo& info) {
  std::vector<std::uint64_t> counts;
  bool are_sets = true;
  visit_parts(folder, info,
              [&](const ChunkReader& part) { are_sets = are_sets && add_labels(part, counts); });
  are_sets = are_sets && counts.size() == info.label_columns.size();
  return are_sets && info.problems.empty() ? counts : std::vector<std::uint64_t>();
}

}  // namespace

const ImagesInfo& PackInfo::images() const {
  if (is_matrix()) throw_usage(path + ": holds rows of a matrix, expected images");
  return std::get<ImagesInfo>(contents);
}

const MatrixInfo& PackInfo::matrix() const {
  if (!is_matrix()) throw_usage(path + ": holds images, expected rows of a matrix");
  return std::get<MatrixInfo>(contents);
}

PackInfo read_pack_info(const std::string& path, const Hdf5Names& names) {
  const PackSource source = open_source(path);
  check_names({&source, 1}, names);
  std::optional<PackInfo> listed = pack_info(source);
  if (listed) check_part_sizes(source.folder, *listed);
  PackInfo info = listed ? *std::move(listed) : single_part_info(source.part, names);
  if (auto* const images = std::get_if<ImagesInfo>(&info.contents)) {
    if (info.single_part) set_caches(info, *images);
    const std::filesystem::path folder =
        info.single_part ? std::filesystem::path(source.part).parent_path().string() : source.folder;
    if (images->own_sizes && info.problems.empty()) images->sizes = read_sizes(folder, info);
    if (images->label_kind == LabelKind::numbers && !info.single_part && info.problems.empty())
      images->label_counts = read_label_counts(folder, info);
  }
  return info;
}

std::string read_pack_file(const std::string& folder, const std::string& name) {
  return std::string(as_text(read_file(folder + "/" + name, kMaxManifestBytes)));
}

namespace {

std::string time_text(std::time_t time) {
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

bool is_part_record(const std::string& name) { return name.starts_with("part-") && name.ends_with(".json"); }

/// Adds a finished part. One with a damaged record counts as unfinished: the next run packs it again.
void add_part(const std::string& path, UnfinishedPack& pack) {
  try {
    const PartRecord part = parse_part_manifest(as_text(read_file(path, kMaxManifestBytes)), path).part;
    ++pack.parts;
    pack.rows += part.rows;
    pack.samples += part.samples;
    pack.rejected += part.rejects.size();
    pack.warned += part.warnings.size();
    pack.bytes += part.bytes;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
  }
}

}  // namespace

/// Reads only the parts' records and names of temporary files, so it can run beside the packing command.
std::optional<UnfinishedPack> read_unfinished_pack(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error) || fs::exists(fs::path(path) / kManifestName, error))
    return std::nullopt;
  UnfinishedPack pack;
  pack.path = path;
  std::time_t last_write = 0;
  for (const auto& entry : FolderEntries(path)) {
    const std::string name = entry.path().filename().string();
    struct stat status {};
    if (::lstat(entry.path().c_str(), &status) == 0 && S_ISREG(status.st_mode))
      last_write = std::max(last_write, status.st_mtime);
    if (is_part_record(name)) add_part(entry.path().string(), pack);
    if (name == kRejectsName) pack.has_rejects = true;
    if (!name_written_aside(name).empty()) pack.begun.push_back(begun_text(path, name));
  }
  if (pack.parts == 0 && pack.begun.empty() && !pack.has_rejects) return std::nullopt;
  std::ranges::sort(pack.begun);
  pack.last_write = time_text(last_write);
  return pack;
}

}  // namespace chunkhit
