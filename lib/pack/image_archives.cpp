#include "pack/image_archives.h"

#include <fcntl.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/aside_name.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/text_stream.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "listing/class_folders.h"
#include "listing/root_folder.h"
#include "listing/sample_file.h"
#include "listing/tar_members.h"
#include "listing/tar_samples.h"
#include "pack/disk_space.h"
#include "pack/pack_folder.h"
#include "ratings/rating_store.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeadBytes = 1024;
constexpr std::size_t kSpoolBytes = 1 << 20;
// Tars whose headers are read at once: their groups are held in memory.
constexpr std::size_t kTarsAtOnce = 16;

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

constexpr std::string_view kStdin = "-";

/// Whether a regular file begins as a tar, as it is.
bool is_plain_tar(const InputFile& file) {
  ByteBuffer head(std::min<std::uint64_t>(kHeadBytes, file.byte_count()));
  file.read_at(0, head);
  return is_tar(head);
}

/// Whether a file is a tar, plain or compressed.
bool is_tar_file(const std::string& path) {
  TextStream stream(path);
  return is_tar(stream.head());
}

/// The files below a root that are named as tars are, by their paths below it; none where it holds an image,
/// or what may be one.
std::vector<std::string> tar_names(const std::string& root, bool follow_symlinks) {
  constexpr auto kNames = std::to_array<std::string_view>({".tar", ".tgz", ".gz", ".zst"});
  const auto follow =
      follow_symlinks ? fs::directory_options::follow_directory_symlink : fs::directory_options::none;
  std::vector<std::string> tars;
  std::error_code error;
  fs::recursive_directory_iterator entries(root, follow, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (name.starts_with('.')) entries.disable_recursion_pending();
    if (name.starts_with('.') || is_folder(entries->path().string())) continue;
    const std::string kind = evident_kind(name);
    if (kind.empty()) return {};
    if (std::ranges::find(kNames, kind) != kNames.end())
      tars.push_back(entries->path().lexically_relative(root).string());
  }
  if (error) throw_failed_read(root, "cannot be listed: ", error.value());
  return tars;
}

fs::path whole_path(const std::string& path) { return fs::absolute(path).lexically_normal(); }

/// The folder that all inputs are in.
std::string common_folder(const std::vector<std::string>& inputs) {
  fs::path common = whole_path(inputs.front()).parent_path();
  for (const std::string& input : inputs)
    while (!whole_path(input).lexically_relative(common).empty() &&
           *whole_path(input).lexically_relative(common).begin() == "..")
      common = common.parent_path();
  return common.string();
}

void check_inputs(const std::vector<std::string>& inputs) {
  std::vector<std::string> sorted;
  for (const std::string& input : inputs) {
    std::error_code error;
    if (is_folder(input))
      throw Error(ErrorCode::usage,
                  "`root`: " + input + " is a folder, expected one folder or else archives");
    if (input != kStdin && !fs::exists(input, error))
      throw Error(ErrorCode::bad_data, input + ": no such file or folder");
    sorted.push_back(whole_path(input).string());
  }
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) throw Error(ErrorCode::usage, "`root`: " + *twice + " is given twice");
}

}  // namespace

void take_inputs(PackImagesOptions& options) {
  if (!options.root.empty() && !options.inputs.empty())
    throw Error(ErrorCode::usage, "`root` and `inputs` exclude each other");
  if (!options.root.empty()) options.inputs = {std::exchange(options.root, "")};
  const bool is_one = options.inputs.size() == 1 && options.inputs[0] != kStdin;
  std::error_code error;
  if (is_one && (is_folder(options.inputs[0]) || !fs::exists(options.inputs[0], error)))
    options.root = std::exchange(options.inputs, {})[0];
  if (options.inputs.empty()) return;
  check_inputs(options.inputs);
  options.root = common_folder(options.inputs);
}

std::vector<std::string> find_tars(const PackImagesSpec& spec, const std::string& root) {
  std::vector<std::string> tars;
  if (!is_folder(root)) return tars;
  const RootFolder folder(root, spec.follow_symlinks);
  for (const std::string& tar : tar_names(root, spec.follow_symlinks)) {
    const std::string path = (fs::path(root) / tar).string();
    if (const std::string reason = folder.open(tar).error; !reason.empty())
      throw Error(ErrorCode::bad_data,
                  path + ": " + reason + (spec.follow_symlinks ? "" : "; `follow_symlinks` follows links"));
    if (is_tar_file(path)) tars.push_back(path);
  }
  std::ranges::sort(tars);
  return tars;
}

namespace {

/// Opens tars one after the other; what cannot be read in place is spooled.
class ArchiveSpool {
 public:
  ArchiveSpool(SampleList& list, std::string folder, const std::atomic<bool>* stop)
      : list_(list), folder_(std::move(folder)), stop_(stop) {}

  [[nodiscard]] TarInput open(const std::string& path, std::string name) {
    const auto container = static_cast<std::uint32_t>(list_.containers.size());
    std::error_code error;
    if (fs::is_regular_file(path, error)) {
      SampleContainer plain = open_container(path);
      if (is_plain_tar(plain.file)) {
        const std::uint64_t bytes = plain.file.byte_count();
        list_.containers.push_back(std::move(plain));
        return {std::move(name), container, 0, bytes};
      }
    }
    const std::uint64_t begin = spool(path);
    return {std::move(name), container, begin, list_.containers.back().file.byte_count() - begin};
  }

  /// The copies are whole: from now on a change of their file is an error.
  void finish() {
    for (SampleContainer& container : list_.containers)
      if (spool_fd_ && container.listed == FileStamp{}) container.listed = stamp_of(container.file);
  }

 private:
  /// Appends what a stream holds to the spool, as a container of its own; returns where it begins.
  std::uint64_t spool(const std::string& path) {
    std::error_code error;
    const bool is_regular = fs::is_regular_file(path, error);
    const FileStamp source = is_regular ? open_container(path).stamp : FileStamp{};
    TextStream stream(path, stop_);
    if (!is_tar(stream.head()))
      throw Error(ErrorCode::bad_data, path +
                                           ": found neither a folder nor a tar (plain, gzip or zstd), "
                                           "expected a folder of images, or archives of them");
    make_spool(path, source.bytes);
    ByteBuffer block(kSpoolBytes);
    std::optional<std::uint64_t> begin;
    for (std::size_t count = 1; count > 0;) {
      if (stop_ != nullptr && *stop_) break;
      count = stream.read(block);
      const std::uint64_t at = spool_->append(Bytes(block).first(count));
      if (!begin) begin = at;
      end_ = at + count;
    }
    list_.containers.push_back({InputFile(path, spool_fd_, end_), {}, source});
    return begin.value_or(end_);
  }

  void make_spool(const std::string& path, std::uint64_t stored_bytes) {
    if (!spool_) {
      remove_left_overs();
      spool_ = std::make_unique<SpillFile>(folder_);
      spool_fd_ =
          std::make_shared<const FileDescriptor>(::open(spool_->open_path().c_str(), O_RDONLY | O_CLOEXEC));
      if (!spool_fd_->is_open()) throw_failed_read(folder_, "cannot open the copy of " + path + ": ", errno);
    }
    const std::string error = space_error({stored_bytes, true}, free_bytes(folder_));
    if (!error.empty())
      throw Error(ErrorCode::cannot_write, folder_ + ": the copy of " + path + ", unpacked, " + error);
  }

  /// Where the file system has no files without a name, a killed run leaves one.
  void remove_left_overs() const {
    for (const std::string& name : folder_entries(folder_))
      if (name_written_aside(name) == kSpillName && find_aside_writer(folder_, name) == AsideWriter::is_gone)
        ::unlink((folder_ + "/" + name).c_str());
  }

  SampleList& list_;
  std::string folder_;
  const std::atomic<bool>* stop_;
  std::unique_ptr<SpillFile> spool_;
  std::shared_ptr<const FileDescriptor> spool_fd_;
  std::uint64_t end_ = 0;
};

/// Lists the samples of archives.
class ArchiveList {
 public:
  ArchiveList(const PackImagesSpec& spec, const PackImagesOptions& options, std::string spool_folder)
      : spec_(spec),
        options_(options),
        columns_(spec.columns),
        spool_(list_, std::move(spool_folder), options.stop) {
    columns_.labels_are_names = !spec.classes.empty();
  }

  SampleList list() {
    TarSamples samples(list_, columns_, spec_.folders.include);
    if (spec_.folders.split_folders.empty()) add(samples, "");
    for (const std::string& folder : spec_.folders.split_folders) {
      add(samples, folder + "/");
      list_.folders.push_back({folder, list_.row_count});
    }
    spool_.finish();
    samples.finish();
    return std::move(list_);
  }

 private:
  /// Adds the samples of the inputs that are below a folder of the root.
  void add(TarSamples& samples, const std::string& folder) {
    std::vector<TarInput> inputs;
    for (const std::string& path : options_.inputs) {
      std::string name = path == kStdin ? "stdin" : relative_name(path);
      if (name.starts_with(folder)) inputs.push_back(with_retries([&] { return spool_.open(path, name); }));
    }
    if (inputs.empty()) throw Error(ErrorCode::bad_data, options_.root + "/" + folder + ": holds no tar");
    for (std::size_t first = 0; first < inputs.size(); first += kTarsAtOnce)
      add_tars(std::span(inputs).subspan(first, std::min(kTarsAtOnce, inputs.size() - first)), samples);
  }

  [[nodiscard]] std::string relative_name(const std::string& path) const {
    return whole_path(path).lexically_relative(whole_path(options_.root)).string();
  }

  /// Reads the headers of several tars at once, because they wait for storage, and adds their rows in order.
  void add_tars(std::span<const TarInput> inputs, TarSamples& samples) const {
    std::vector<std::vector<TarGroup>> groups(inputs.size());
    tbb::task_arena arena(static_cast<int>(options_.threads > 0 ? options_.threads : allowed_cpus()));
    arena.execute([&] {
      tbb::parallel_for(std::size_t{0}, inputs.size(), [&](std::size_t at) {
        groups[at] = with_retries([&] {
          return read_tar(list_.containers[inputs[at].container], inputs[at], columns_.label_columns);
        });
      });
    });
    for (std::size_t at = 0; at < inputs.size(); ++at) samples.add(inputs[at], groups[at]);
  }

  const PackImagesSpec& spec_;
  const PackImagesOptions& options_;
  LabelCsvSpec columns_;
  SampleList list_;
  ArchiveSpool spool_;
};

}  // namespace

SampleList list_archives(const PackImagesSpec& spec, const PackImagesOptions& options,
                         std::string spool_folder) {
  if (!spec.labels.empty())
    throw Error(ErrorCode::usage, "`labels`: the labels of samples in a tar lie beside them in it");
  return ArchiveList(spec, options, std::move(spool_folder)).list();
}

std::string existing_folder(const std::string& path) {
  fs::path at = fs::absolute(path);
  std::error_code error;
  while (!fs::exists(at, error) && at.has_relative_path()) at = at.parent_path();
  return at.string();
}

}  // namespace chunkhit
