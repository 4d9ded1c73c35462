#include "pack/images/image_archives.h"

#include <fcntl.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/aside_name.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/resources.h"
#include "base/spill_file.h"
#include "base/text_stream.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "listing/idx_file.h"
#include "listing/label_rows.h"
#include "listing/root_folder.h"
#include "listing/sample_list.h"
#include "listing/tar_members.h"
#include "listing/tar_samples.h"
#include "pack/disk_space.h"
#include "pack/pack_folder.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSpoolBytes = 1 << 20;
// Tars whose headers are read at once: their groups are held in memory.
constexpr std::size_t kTarsAtOnce = 16;

/// Copies bytes into one file without a name, which lives as long as the containers that are ranges of it.
class ArchiveSpool {
 public:
  /// The file is made in `folder` once it is needed.
  ArchiveSpool(SampleList& list, std::string folder) : list_(list), folder_(std::move(folder)) {}
  /// Begins the copy of an input that needs so many bytes, or at least so many. Throws cannot_write where
  /// they are not free.
  void begin(const std::string& path, std::uint64_t bytes, bool is_minimum);
  /// Appends bytes; returns where they begin. Throws cannot_write.
  std::uint64_t append(Bytes bytes);
  /// Where the next bytes will begin.
  [[nodiscard]] std::uint64_t end() const { return end_; }
  /// Adds the copy to the list as a container; `source` is recorded for its samples.
  void add_container(const std::string& path, const FileStamp& source);
  /// All is copied: from now on a change of the file is an error.
  void finish();

 private:
  void remove_left_overs() const;

  SampleList& list_;
  std::string folder_;
  std::unique_ptr<SpillFile> file_;
  std::shared_ptr<const FileDescriptor> fd_;
  std::uint64_t end_ = 0;
};

void ArchiveSpool::begin(const std::string& path, std::uint64_t bytes, bool is_minimum) {
  if (!file_) {
    remove_left_overs();
    file_ = std::make_unique<SpillFile>(folder_);
    fd_ = std::make_shared<const FileDescriptor>(::open(file_->open_path().c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd_->is_open()) throw_failed_read(folder_, "cannot open the copy of " + path + ": ", errno);
  }
  const std::string error = space_error({bytes, is_minimum}, free_bytes(folder_));
  if (!error.empty()) throw_cannot_write(folder_ + ": the unpacked copy of " + path + " " + error);
}

std::uint64_t ArchiveSpool::append(Bytes bytes) {
  const std::uint64_t at = file_->append(bytes);
  end_ = at + bytes.size();
  return at;
}

void ArchiveSpool::add_container(const std::string& path, const FileStamp& source) {
  list_.containers.push_back({InputFile(path, fd_, end_), {}, source});
}

void ArchiveSpool::finish() {
  for (SampleContainer& container : list_.containers)
    if (container.listed == FileStamp{}) container.listed = stamp_of(container.file);
}

/// Where the file system has no files without a name, a killed run may leave one.
void ArchiveSpool::remove_left_overs() const {
  for (const std::string& name : folder_entries(folder_))
    if (name_written_aside(name) == kSpillName && find_aside_writer(folder_, name) == AsideWriter::is_gone)
      ::unlink((folder_ + "/" + name).c_str());
}

FileStamp stamp_of_input(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) ? stamp_of(InputFile(path)) : FileStamp{};
}

bool is_stopped(const PackImagesOptions& options) { return options.stop != nullptr && *options.stop; }

std::string relative_name(const PackImagesOptions& options, const std::string& path) {
  const auto whole = [](const std::string& at) { return fs::absolute(at).lexically_normal(); };
  return path == "-" ? "stdin" : whole(path).lexically_relative(whole(options.root)).string();
}

/// The keys that "a,b" stands for: no header says which there are.
std::vector<std::string> split_names_of(const std::vector<std::string>& names) {
  std::vector<std::string> keys;
  for (const std::string& name : names)
    for (std::size_t begin = 0, end = 0; end != name.npos; begin = end + 1) {
      end = name.find(',', begin);
      keys.push_back(name.substr(begin, end == name.npos ? end : end - begin));
    }
  return keys;
}

/// Lists the samples of tars.
class TarList {
 public:
  TarList(const ImageRun& run, const TarSource& source)
      : spec_(run.spec),
        options_(run.options),
        paths_(source.paths),
        columns_(LabelColumns{spec_.columns, !spec_.classes.empty()}),
        spool_(list_, existing_folder(run.options.output)) {}

  SampleList list() {
    columns_.label_column = split_names_of(columns_.label_column);
    TarSamples samples(list_, columns_, spec_.folders.include);
    const auto add = [&](const TarInput& input, const auto& groups) { samples.add(input, groups); };
    if (spec_.folders.split_folders.empty()) read("", add);
    for (const std::string& folder : spec_.folders.split_folders) {
      read(folder + "/", add);
      list_.folders.push_back({folder, list_.row_count});
    }
    spool_.finish();
    samples.finish();
    return std::move(list_);
  }

  /// Lists the rows of a CSV, whose files are members of the tars.
  SampleList list_rows() {
    list_ = list_label_csv(spec_.labels, columns_, options_.stop);
    std::unordered_map<std::string, FileRange> ranges;
    read("", [&](const TarInput& input, const std::vector<TarGroup>& groups) {
      for (const TarGroup& group : groups)
        for (const TarImage& image : group.images)
          if (image.error.empty()) ranges.try_emplace(input.name + "/" + image.name, image.range);
    });
    spool_.finish();
    const auto range_of = [&](std::string_view member) {
      const auto found = ranges.find(std::string(member));
      return found != ranges.end() ? found->second : FileRange{0, 0, FileRange::kNone};
    };
    for (std::size_t index = 0; index < list_.size(); ++index) {
      list_.ranges.push_back(range_of(list_.file(index)));
      for (ListedField& field : list_.fields) field.ranges.push_back(range_of(field.files[index]));
    }
    return std::move(list_);
  }

 private:
  /// Calls `take` with each input that is below a folder of the root, and its groups.
  template <class Take>
  void read(const std::string& folder, const Take& take) {
    std::vector<TarInput> inputs;
    for (const std::string& path : paths_)
      if (const std::string name = relative_name(options_, path); name.starts_with(folder))
        inputs.push_back(with_retries([&] { return open(path, name); }));
    if (inputs.empty()) throw_bad_data(options_.root + "/" + folder + ": holds no tar");
    for (std::size_t first = 0; first < inputs.size(); first += kTarsAtOnce)
      read_some(std::span(inputs).subspan(first, std::min(kTarsAtOnce, inputs.size() - first)), take);
  }

  [[nodiscard]] TarInput open(const std::string& path, const std::string& name) {
    const auto container = static_cast<std::uint32_t>(list_.containers.size());
    std::error_code error;
    if (fs::is_regular_file(path, error)) {
      SampleContainer plain = open_container(path);
      if (is_tar(plain.file)) {
        const std::uint64_t bytes = plain.file.byte_count();
        list_.containers.push_back(std::move(plain));
        return {name, container, 0, bytes};
      }
    }
    const std::uint64_t begin = unpack(path);
    return {name, container, begin, spool_.end() - begin};
  }

  /// Unpacks a tar into the spool; returns where it begins.
  std::uint64_t unpack(const std::string& path) {
    const FileStamp source = stamp_of_input(path);
    TextStream stream(path, options_.stop);
    if (is_idx(stream.head())) throw_usage(path + ": is IDX; give its labels with `labels`");
    if (!is_tar(stream.head()))
      throw_bad_data(path +
                     ": found neither a folder nor a tar (plain, gzip, zstd, xz or bzip2), "
                     "expected a folder of images, or archives of them");
    spool_.begin(path, source.bytes, true);
    const std::uint64_t begin = spool_.end();
    ByteBuffer block(kSpoolBytes);
    for (std::size_t count = 1; count > 0 && !is_stopped(options_);) {
      count = stream.read(block);
      spool_.append(Bytes(block).first(count));
    }
    spool_.add_container(path, source);
    return begin;
  }

  /// Reads the headers of several tars at once, because they wait for storage, and takes them in order.
  template <class Take>
  void read_some(std::span<const TarInput> inputs, const Take& take) const {
    std::vector<std::vector<TarGroup>> groups(inputs.size());
    tbb::task_arena arena(static_cast<int>(options_.threads > 0 ? options_.threads : allowed_cpus()));
    arena.execute([&] {
      tbb::parallel_for(std::size_t{0}, inputs.size(), [&](std::size_t at) {
        groups[at] = with_retries(
            [&] { return read_tar(list_.containers[inputs[at].container], inputs[at], columns_); });
      });
    });
    for (std::size_t at = 0; at < inputs.size(); ++at) take(inputs[at], groups[at]);
  }

  const PackImagesSpec& spec_;
  const PackImagesOptions& options_;
  const std::vector<std::string>& paths_;
  LabelColumns columns_;
  SampleList list_;
  ArchiveSpool spool_;
};

/// The header of a PNM file with the pixels of an IDX image: N x W (one row), N x H x W, N x H x W x 3.
std::string pnm_header(const IdxReader& images) {
  const std::vector<std::uint32_t>& shape = images.shape();
  const std::uint32_t channels = shape.size() == 4 ? shape[3] : 1;
  if (images.type() != "uint8") images.fail("holds " + std::string(images.type()) + ", expected uint8");
  if (shape.size() < 2 || (channels != 1 && channels != 3)) {
    std::string text;
    for (const std::uint32_t side : shape) text += (text.empty() ? "" : " x ") + std::to_string(side);
    images.fail("has shape " + text + ", expected images: N x H x W, or N x H x W x 3");
  }
  const std::uint32_t height = shape.size() == 2 ? 1 : shape[1];
  const std::uint32_t width = shape.size() == 2 ? shape[1] : shape[2];
  return pnm_header(SampleShape{height, width, channels});
}

/// The labels of a file with one for each image.
std::vector<std::string> read_idx_labels(const std::string& path, const IdxReader& images) {
  IdxReader file(path);
  if (file.shape().size() != 1)
    file.fail("has " + std::to_string(file.shape().size()) + " dimensions, expected labels in one");
  if (file.shape()[0] != images.shape()[0])
    file.fail("holds " + count_text(file.shape()[0], "label") + ", expected " +
              count_text(images.shape()[0]) + ", one for each image");
  std::vector<std::string> labels;  // grows as they come: two broken headers may agree on their number
  while (labels.size() < file.shape()[0]) labels.push_back(file.read_number());
  file.finish();
  return labels;
}

}  // namespace

SampleList list_tars(const ImageRun& run, const TarSource& source) {
  TarList tars(run, source);
  return source.has_rows ? tars.list_rows() : tars.list();
}

/// Each image becomes a PNM file in the spool.
SampleList list_idx(const ImageRun& run, const std::string& path) {
  const PackImagesSpec& spec = run.spec;
  const PackImagesOptions& options = run.options;
  if (!spec.columns.mask_column.empty()) throw_usage("`mask_column`: is for a CSV or for tars, found IDX");
  if (!spec.columns.keep_columns.empty())
    throw_usage("`keep_columns`: is for a CSV or for .json files in tars, found IDX");
  const FileStamp source = stamp_of_input(path);
  IdxReader images(path, options.stop);
  const std::string header = pnm_header(images);
  const std::uint64_t file_bytes = header.size() + images.item_bytes();
  if (images.item_bytes() > spec.max_decode_bytes)
    images.fail("holds images of " + count_text(images.item_bytes(), "byte") + ", over `max_decode_bytes`");
  const std::vector<std::string> labels = read_idx_labels(spec.labels, images);
  SampleList list;
  list.label_columns = spec.columns.label_column;
  list.labels_from = LabelSource::idx;
  LabelRows rows(list, LabelColumns{spec.columns, !spec.classes.empty()});
  ArchiveSpool spool(list, existing_folder(options.output));
  spool.begin(path, file_bytes * labels.size(), false);
  ByteBuffer file(header.begin(), header.end());
  file.resize(file_bytes);
  for (std::size_t index = 0; index < labels.size() && !is_stopped(options); ++index) {
    images.read(MutableBytes(file).subspan(header.size()));
    const std::string name = relative_name(options, path) + "/" + std::to_string(index);
    for (const std::string& text : {name, labels[index]}) rows.hash().add(text);
    const std::string_view label = labels[index];
    std::string error = rows.take(name, {&label, 1});
    if (error.empty())
      list.ranges.push_back({spool.append(file), file_bytes, 0});
    else
      rows.reject(name, {labels[index]}, std::move(error));
  }
  images.finish();
  spool.add_container(path, source);
  spool.finish();
  rows.finish();
  return list;
}

std::string existing_folder(const std::string& path) {
  fs::path at = fs::absolute(path);
  std::error_code error;
  while (!fs::is_directory(at, error) && at.has_relative_path()) at = at.parent_path();
  return at.string();
}

}  // namespace chunkhit
