// pack-info: says what a pack or a part holds.
#include "chunkhit/pack_info.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "base/text.h"
#include "base/words.h"
#include "chunkhit/pack.h"
#include "cli.h"
#include "pack_list.h"
#include "read/list_samples.h"
#include "recipe_text.h"
#include "types/csr_rows.h"
#include "types/enum_names.h"
#include "types/image.h"
#include "types/input_sizes.h"
#include "unfinished_packs.h"

namespace chunkhit {
namespace {

constexpr std::size_t kShownClasses = 20;
constexpr std::size_t kShownParts = 10;
constexpr double kBarWidth = 24;  // characters of the largest class
constexpr std::size_t kShownValues = 12;

std::string numbers_text(const std::vector<double>& numbers) {
  std::string text;
  char one[32];
  for (const double number : numbers) {
    std::snprintf(one, sizeof one, "%s%.4f", text.empty() ? "" : ", ", number);
    text += one;
  }
  return text;
}

/// A bar behind a blank, as long as `count` is of `most`; none for 0.
std::string bar_text(std::uint64_t count, std::uint64_t most) {
  if (count == 0) return {};
  const double share = static_cast<double>(count) / static_cast<double>(most);
  return " " + std::string(std::max<std::size_t>(1, static_cast<std::size_t>(share * kBarWidth + 0.5)), '#');
}

/// Prints how many samples each class, or label column, has.
void print_counts(const std::vector<PackClass>& classes) {
  std::uint64_t most = 1;
  for (const PackClass& entry : classes) most = std::max(most, entry.samples);
  for (std::size_t index = 0; index < std::min(classes.size(), kShownClasses); ++index) {
    const PackClass& entry = classes[index];
    std::printf("           %5lld  %-24s %12s%s\n", static_cast<long long>(entry.id),
                printable_text(entry.name).c_str(), count_text(entry.samples).c_str(),
                bar_text(entry.samples, most).c_str());
  }
  const std::string more = count_text(classes.size() - std::min(classes.size(), kShownClasses));
  if (more != "0") std::printf("           … %s more (--json lists all)\n", more.c_str());
}

/// Prints label columns, and where `counts` are known how many samples have each.
void print_label_columns(const std::vector<std::string>& names, const std::vector<std::uint64_t>& counts) {
  const std::span shown = std::span(names).first(std::min(names.size(), kShownClasses));
  std::printf("labels     float32, %s", count_text(names.size(), "column").c_str());
  if (counts.empty()) {
    std::printf(": %s%s\n", printable_text(joined(shown)).c_str(), shown.size() < names.size() ? ", …" : "");
    return;
  }
  std::printf(" of 0 and 1; samples with 1:\n");
  std::vector<PackClass> columns;
  for (std::size_t column = 0; column < names.size(); ++column)
    columns.push_back({static_cast<std::int64_t>(column), names[column], counts[column]});
  print_counts(columns);
}

void print_labels(const PackInfo& info) {
  const ImagesInfo& images = info.images();
  if (images.label_kind == LabelKind::numbers)
    return print_label_columns(info.label_columns, images.label_counts);
  if (images.classes.size() == 1 && images.classes[0].id == -1) {
    std::printf("labels     none: every sample's is -1%s\n",
                info.external ? " (--labels names their dataset)" : "");
    return;
  }
  std::printf("labels     int64 class ids, %s classes\n", count_text(images.classes.size()).c_str());
  print_counts(images.classes);
}

void print_columns(const char* title, const std::vector<PackColumn>& columns) {
  for (std::size_t index = 0; index < columns.size(); ++index)
    std::printf("%-10s %s, %s\n", index == 0 ? title : "", printable_text(columns[index].name).c_str(),
                name_of(columns[index].type).c_str());
}

/// Prints the sizes that images had before they were packed.
void print_inputs(const InputSizes& inputs) {
  const char* name = "inputs";
  for (const InputFormat& entry : inputs.formats)
    std::printf("%-10s %s %s: width %.0f to %.0f, height %.0f to %.0f, aspect ratio %.2f to %.2f\n",
                std::exchange(name, ""), count_text(entry.images).c_str(),
                printable_text(entry.format).c_str(), entry.width.min, entry.width.max, entry.height.min,
                entry.height.max, entry.aspect_ratio.min, entry.aspect_ratio.max);
  for (const std::string& text : input_notices(inputs))
    std::printf("           %s\n", flag_text(text).c_str());
}

void print_parts(const PackInfo& info) {
  std::printf("parts      %s\n", count_text(info.parts.size()).c_str());
  for (std::size_t index = 0; index < std::min(info.parts.size(), kShownParts); ++index) {
    const PackPart& part = info.parts[index];
    const std::string samples = count_text(part.samples, info.is_matrix() ? "row" : "sample");
    const std::string chunks = part.chunks > 0 ? ", " + count_text(part.chunks, "chunk") : std::string();
    std::printf("           %s  %s%s, %s\n", printable_text(part.file).c_str(), samples.c_str(),
                chunks.c_str(), bytes_text(static_cast<double>(part.bytes)).c_str());
  }
  if (info.parts.size() > kShownParts)
    std::printf("           … %s more\n", count_text(info.parts.size() - kShownParts).c_str());
}

void print_cache(const char* name, const CachePrediction& cache) {
  std::printf("  %-8s rdcc_nbytes=%llu, rdcc_nslots=%llu, rdcc_w0=%.2f\n           ", name,
              static_cast<unsigned long long>(cache.rdcc_nbytes),
              static_cast<unsigned long long>(cache.rdcc_nslots), cache.rdcc_w0);
  if (cache.bypass)
    std::printf("single samples are read exactly, past the cache: sequential, windowed and random alike\n");
  else
    std::printf("predicted hits: sequential %.1f %%, windowed %.1f %%, random %.1f %%\n",
                cache.sequential * 100, cache.windowed * 100, cache.random * 100);
}

void print_caches(const ImagesInfo& images) {
  const CachePrediction& plain = images.default_cache;
  const CachePrediction& advised = images.advised_cache;
  if (plain.rdcc_nbytes == advised.rdcc_nbytes && plain.rdcc_nslots == advised.rdcc_nslots) return;
  std::printf("h5py cache per part, h5py.File(part, rdcc_nbytes=…, rdcc_nslots=…):\n");
  print_cache("default", plain);
  print_cache("advised", advised);
}

std::string kind_text(const PackInfo& info, const char* of_what) {
  if (info.external) return std::string("an external HDF5 file").append(of_what);
  const char* const kind = info.single_part        ? "a part"
                           : info.problems.empty() ? "a finished pack"
                                                   : "a damaged pack";
  return std::string(kind).append(of_what) + ", pack " + info.pack_id;
}

/// Prints missing parts and wrong sizes; comparing hashes is left to pack-verify.
void print_problems(const PackInfo& info) {
  for (const std::string& error : info.problems)
    std::printf("damaged    %s\n", printable_text(error).c_str());
  if (!info.problems.empty()) std::printf("           pack-verify says what to remove\n");
}

void print_provenance(const PackInfo& info) {
  if (info.external) {
    std::printf("made by    (unknown: no hashes, no manifest; \"stored\" is what its chunks take)\n");
    return;
  }
  if (info.single_part) {
    std::printf("made by    (a single part: the manifest of its pack knows)\n");
    return;
  }
  for (std::size_t index = 0; index < std::min(info.sources.size(), kShownParts); ++index) {
    const MergedPack& source = info.sources[index];
    std::printf("%-10s %zu: pack %s: %s in %s, codec %s, by %s%s\n", index == 0 ? "merged" : "", index,
                source.pack_id.c_str(), count_text(source.samples, "sample").c_str(),
                count_text(source.parts, "part").c_str(), source.codec.c_str(), source.tool.c_str(),
                source.root.empty() ? "" : (", of " + printable_text(source.root)).c_str());
  }
  if (info.sources.size() > kShownParts)
    std::printf("           … %s more\n", count_text(info.sources.size() - kShownParts).c_str());
  const std::string recipe = recipe_text(info);
  std::printf("made by    %s%s%s\n", printable_text(info.tool).c_str(), recipe.empty() ? "" : ": ",
              printable_text(recipe).c_str());
  std::printf("input      %s %s\n", info.is_matrix() ? "all" : "list", info.input_xxh3.c_str());
}

void print_reasons(const char* heading, const std::vector<std::pair<std::string, std::uint64_t>>& counts) {
  for (const auto& [name, count] : counts)
    std::printf("%-10s %s %s\n", heading, count_text(count).c_str(), printable_text(name).c_str());
}

void print_values(const MatrixInfo& matrix) {
  if (matrix.values.type == ValueType::none) {
    std::printf("values     none are stored: every rating is 1\n");
    return;
  }
  const std::vector<ValueCount>& values = matrix.stats.values;
  std::printf("values     %s", name_of(matrix.values.type).c_str());
  if (matrix.values.scale != 1)
    std::printf(", a rating is the stored number times %s",
                number_text(static_cast<float>(matrix.values.scale)).c_str());
  const char* const of_which = matrix.split_name.empty() ? ";" : "; in all splits";
  for (std::size_t index = 0; index < std::min(values.size(), kShownValues); ++index)
    std::printf("%s %s: %s", index == 0 ? of_which : ",", number_text(values[index].value).c_str(),
                index == 0 ? count_text(values[index].ratings, "rating").c_str()
                           : count_text(values[index].ratings).c_str());
  std::printf("%s\n", values.size() > kShownValues ? ", … (--json lists all)" : "");
}

/// Prints the steps, which are the same in all packs of a split: once. `shown`: those of the pack before.
void print_steps(const std::vector<PackStep>& steps, std::vector<PackStep>& shown) {
  const auto are_same = [](const PackStep& a, const PackStep& b) {
    return a.name == b.name && a.users == b.users && a.items == b.items && a.ratings == b.ratings;
  };
  if (steps.empty()) return;
  if (std::ranges::equal(steps, shown, are_same)) {
    std::printf("steps      as above\n");
    return;
  }
  shown = steps;
  std::printf("%-26s %12s %12s %14s\n", "steps", "users", "items", "ratings");
  for (const PackStep& step : changing_steps(steps))
    std::printf("           %-15s %12s %12s %14s\n", step.name.c_str(), count_text(step.users).c_str(),
                count_text(step.items).c_str(), count_text(step.ratings).c_str());
}

void print_stats(const RatingStats& stats, std::vector<PackStep>& shown_steps) {
  for (const InputStats& input : stats.inputs)
    std::printf("input      %s %s\n", count_text(input.ratings).c_str(), printable_text(input.file).c_str());
  if (stats.bad_lines > 0) std::printf("bad lines  %s\n", count_text(stats.bad_lines).c_str());
  print_reasons("", stats.reasons);
  print_steps(stats.steps, shown_steps);
  print_reasons("left out", stats.left_out);
}

std::uint64_t file_bytes(const PackInfo& info) {
  std::uint64_t bytes = 0;
  for (const PackPart& part : info.parts) bytes += part.bytes;
  return bytes;
}

void print_matrix_info(const PackInfo& info, std::vector<PackStep>& shown_steps) {
  const MatrixInfo& matrix = info.matrix();
  std::printf("%s: %s\n", printable_text(info.path).c_str(), kind_text(info, " of matrices").c_str());
  print_problems(info);
  std::printf("shape      %s x %s", count_text(info.samples, "row").c_str(),
              count_text(matrix.columns, "column").c_str());
  std::printf("%s%s\n", matrix.split_name.empty() ? "" : ", ", printable_text(matrix.split_name).c_str());
  std::uint64_t entries = 0;
  for (const PackMatrix& each : matrix.matrices) {
    std::printf("matrix     %-10s %s, longest row %s\n", printable_text(each.name).c_str(),
                count_text(each.nnz, "rating").c_str(), count_text(each.longest_row).c_str());
    entries += each.nnz;
  }
  print_values(matrix);
  if (!matrix.times.empty()) std::printf("times      int64, %s, of each rating\n", matrix.times.c_str());
  if (matrix.has_repeats) std::printf("repeats    a user's ratings of one item are all kept\n");
  if (!info.label_columns.empty()) print_label_columns(info.label_columns, {});
  print_columns("of items", matrix.item_columns);
  print_columns("of users", matrix.user_columns);
  const std::uint64_t files = file_bytes(info);
  std::printf("stored     %s, codec %s: %s in chunks, %s in files", info.container.c_str(),
              info.codec.c_str(), bytes_text(static_cast<double>(info.stored_bytes)).c_str(),
              bytes_text(static_cast<double>(files)).c_str());
  if (entries > 0)
    std::printf(", %.2f bytes a rating in files", static_cast<double>(files) / static_cast<double>(entries));
  if (matrix.chunk_rows > 0) std::printf("; blocks of %s", count_text(matrix.chunk_rows, "row").c_str());
  std::printf("\ndense      %s a batch of 500 rows in f32\n",
              bytes_text(500.0 * 4 * static_cast<double>(matrix.columns)).c_str());
  print_parts(info);
  print_stats(matrix.stats, shown_steps);
  if (!matrix.lost.empty()) std::printf("warning    %s\n", printable_text(matrix.lost).c_str());
  print_provenance(info);
}

void print_sizes(const OwnSizesInfo& sizes) {
  const auto print = [](const char* name, const Spread& spread) {
    std::printf("           %-12s %u to %u, half of them up to %u\n", name, spread.min, spread.max,
                spread.median);
  };
  print("height", sizes.height);
  print("width", sizes.width);
  print("bytes", sizes.stored_bytes);
  std::printf("           stored as    jpeg %s, photo %s, zstd %s, raw %s\n", count_text(sizes.jpeg).c_str(),
              count_text(sizes.photo).c_str(), count_text(sizes.zstd).c_str(), count_text(sizes.raw).c_str());
}

void print_shape(const ImagesInfo& images) {
  std::string fields;
  for (const auto& [name, role] : images.fields)
    fields += "; " + name + (name == name_of(role) ? "s" : " (" + name_of(role) + "s)") + ", uint8";
  if (images.own_sizes)
    std::printf("shape      each image its own size, channels %u, uint8, nhwc%s\n", images.channels,
                fields.c_str());
  else
    std::printf("shape      height %u, width %u, channels %u, uint8, %s%s\n", images.height, images.width,
                images.channels, name_of(images.layout).c_str(), fields.c_str());
}

/// `shown_steps`: of the packs before, of which no step is printed again.
void print_info(const PackInfo& info, std::vector<PackStep>& shown_steps) {
  if (info.is_matrix()) return print_matrix_info(info, shown_steps);
  const ImagesInfo& images = info.images();
  std::printf("%s: %s\n", printable_text(info.path).c_str(), kind_text(info, "").c_str());
  print_problems(info);
  if (info.single_part)
    std::printf("samples    %s\n", count_text(info.samples).c_str());
  else
    std::printf("samples    %s (%s, %s rejected%s)\n", count_text(info.samples).c_str(),
                count_text(images.rows, "row").c_str(), count_text(images.rejected).c_str(),
                warned_text(images.warned).c_str());
  print_shape(images);
  if (images.sizes) print_sizes(*images.sizes);
  if (images.inputs) print_inputs(*images.inputs);
  print_labels(info);
  print_columns("columns", info.images().columns);
  if (!images.mean.empty())
    std::printf("mean, std  %s | %s (of pixels scaled to 0..1)\n", numbers_text(images.mean).c_str(),
                numbers_text(images.std).c_str());
  if (images.normalize)
    std::printf("normalize  %s | %s (those of %s, for all packs of the split)\n",
                numbers_text(images.normalize->mean).c_str(), numbers_text(images.normalize->std).c_str(),
                printable_text(images.normalize->from).c_str());
  if (images.own_sizes && images.chunk_bytes > 0)  // a single part does not say it
    std::printf("chunks     up to %s of images each\n",
                bytes_text(static_cast<double>(images.chunk_bytes)).c_str());
  if (!images.own_sizes) {
    // A pack of one chunk has no more samples than there are.
    const std::uint64_t samples = std::min(images.chunk_samples, info.samples);
    const std::uint64_t sample_bytes = images.chunk_bytes / std::max<std::uint64_t>(1, images.chunk_samples);
    std::printf("chunks     %s = %s raw each\n", count_text(samples, "sample").c_str(),
                bytes_text(static_cast<double>(sample_bytes * samples)).c_str());
  }
  const std::uint64_t files = file_bytes(info);
  std::printf("stored     %s, codec %s: %s raw in %s of chunks, %s of files, ratio %.2f\n",
              info.container.c_str(), info.codec.c_str(),
              bytes_text(static_cast<double>(info.raw_bytes)).c_str(),
              bytes_text(static_cast<double>(info.stored_bytes)).c_str(),
              bytes_text(static_cast<double>(files)).c_str(),
              files == 0 ? 1.0 : static_cast<double>(info.raw_bytes) / static_cast<double>(files));
  print_parts(info);
  print_provenance(info);
  if (images.default_cache.rdcc_nbytes > 0) print_caches(images);
}

/// Prints an unfinished pack, or gives it as JSON; returns whether the path is one.
bool say_how_far(const std::string& path, bool json, std::string& text) {
  const std::optional<UnfinishedPack> pack = read_unfinished_pack(path);
  if (pack && json) text = unfinished_pack_json(*pack);
  if (pack && !json) print_unfinished(*pack);
  return pack.has_value();
}

using PrintJson = void (*)(const std::string&);

/// Prints the contents of a path, as JSON where `print` is given; returns the exit code.
int show(const std::string& path, const Hdf5Names& names, PrintJson print) {
  const bool json = print != nullptr;
  if (const auto status = plan_status(path)) {
    if (json)
      print(plan_status_json(*status));
    else
      print_plan_status(*status);
    return static_cast<int>(ErrorCode::try_again);
  }
  std::vector<PackStep> shown_steps;
  const auto scan = [&](const std::string& pack, std::string& text) {
    if (say_how_far(pack, json, text)) return static_cast<int>(ErrorCode::try_again);
    const PackInfo info = read_pack_info(pack, names);
    if (json)
      text = pack_info_json(info);
    else
      print_info(info, shown_steps);
    return info.problems.empty() ? 0 : static_cast<int>(ErrorCode::bad_data);
  };
  return scan_packs(path, packs_of(path), scan, print);
}

/// Prints the samples as a label CSV; what it leaves out goes to stderr.
int list(const std::string& path) {
  const ListedSamples listed =
      list_samples(path, [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); });
  const std::string name = printable_text(shell_word(path));
  if (listed.rejected > 0)
    std::fprintf(
        stderr, "note: %s not listed: see rejects.csv in %s\n",
        (count_text(listed.rejected, "rejected row") + (listed.rejected == 1 ? " is" : " are")).c_str(),
        name.c_str());
  if (!listed.root.empty())
    std::fprintf(stderr, "note: the files are below several folders, all in %s: pack-images %s --labels …\n",
                 printable_text(listed.root).c_str(), printable_text(shell_word(listed.root)).c_str());
  if (listed.are_roots_unknown)
    std::fprintf(stderr,
                 "note: each file is named as in its pack; below which folder it is, run.json of the merged "
                 "packs does not say\n");
  if (listed.are_names_numbers)
    std::fprintf(
        stderr, "note: the names of classes are numbers: pack-images reads them as names with --classes %s\n",
        name.c_str());
  return 0;
}

/// Shows a pack again and again until it is finished.
int watch(const std::string& path, const Hdf5Names& names, PrintJson print) {
  constexpr auto kPause = std::chrono::milliseconds(100);
  constexpr int kPauses = 20;
  handle_signals();
  for (;;) {
    if (print == nullptr && ::isatty(STDOUT_FILENO) == 1) std::fputs("\033[H\033[J", stdout);
    const int code = show(path, names, print);
    std::fflush(stdout);
    if (code != static_cast<int>(ErrorCode::try_again)) return code;
    for (int pause = 0; pause < kPauses; ++pause) {
      if (stop_requested) return signal_exit_code();
      std::this_thread::sleep_for(kPause);
    }
  }
}

constexpr const char* kExamples =
    "Exit code 75: the pack is not finished.\n"
    "Examples:\n"
    "  pack-info train\n"
    "  pack-info train/part-00000.h5 --json\n"
    "  pack-info train --list > list.csv\n"
    "  pack-info theirs.h5 --images x --labels y";

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): only without memory for the flags
  using namespace chunkhit;
  Command command("pack-info", "Prints what a pack or a part holds.", kExamples);
  command.add_argument("PATH", "Pack, folder of packs or splits, plan, manifest.json, part, or HDF5 file");
  command.add_dataset_flags();
  command.add_switch("--json", "Print JSON; for several packs one object with their folders as keys");
  command.add_switch("--watch", "Show an unfinished pack every two seconds, with --json as a line of JSON");
  command.add_switch("--list", "Print files and labels of images as CSV, for pack-images --labels")
      .excludes = {"--json", "--watch"};
  return command.run(argc, argv, [&] {
    const bool json = command["--json"].is_on(), is_watched = command["--watch"].is_on();
    const PrintJson print = !json ? nullptr : is_watched ? print_json_line : print_json;
    const auto describe = [&] {
      std::string path = command["PATH"].text();
      if (path.ends_with("plan.json")) path = plan_folder(path);  // gone once the packs are finished
      if (command["--list"].is_on()) return list(path);
      const Hdf5Names names = dataset_names(command);
      return is_watched ? watch(path, names, print) : show(path, names, print);
    };
    return json ? with_json_error(describe, print) : describe();
  });
}
