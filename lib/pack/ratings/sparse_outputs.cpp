#include "pack/ratings/sparse_outputs.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "base/throw_error.h"
#include "codec/chunk_codec.h"
#include "pack/pack_folder.h"
#include "ratings/rating_split.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

/// Returns the identity of a pack without its pack_id, which depends on the input's hash.
PackIdentity identity_of(const PackSparseSpec& spec, const RecordedIds& ids, const std::string& name) {
  PackIdentity pack{recorded_spec(spec, ids, name)};
  pack.codec_library = codec_library(codec_choice(spec).codec);
  pack.difference = [recorded = pack.spec](const EarlierPack& before) {
    const std::string difference = first_difference(before.spec, recorded);
    return difference.empty() ? "the input changed" : difference;
  };
  return pack;
}

/// Throws cannot_write if a finished pack has another spec.
void check_same_spec(const std::string& path, const std::optional<AnyManifest>& finished,
                     const PackIdentity& wanted) {
  if (finished && !first_difference(finished->manifest().spec, wanted.spec).empty())
    check_same_pack(path, kMatrixPacks, wanted);
}

[[noreturn]] void refuse_stale_pack(const std::string& path, const std::string& but) {
  throw_cannot_write(path + ": holds a pack of matrices" + but +
                     "; `force` removes it, another `output` keeps both");
}

/// Folders that runs with another split, or without one, left in the output.
struct StaleFolders {
  std::vector<std::string> packs;
  std::vector<std::string> empty;  ///< a killed run may have got no further than to make its folders
};

/// Looks only at folders named like splits: other folders are never touched.
StaleFolders stale_folders(const PackSparseOptions& options, const std::vector<std::string>& wanted) {
  StaleFolders stale;
  for (const std::string_view part : kEnumWords<Split>) {
    std::string path = options.output + "/" + std::string(part);
    std::error_code error;
    if (std::find(wanted.begin(), wanted.end(), part) != wanted.end()) continue;
    if (!std::filesystem::is_directory(std::filesystem::symlink_status(path, error))) continue;
    if (std::filesystem::is_empty(path, error))
      stale.empty.push_back(std::move(path));
    else if (holds_pack(path, kMatrixPacks) || is_matrix_pack(path))
      stale.packs.push_back(std::move(path));
  }
  return stale;
}

/// Throws cannot_write for a stale pack without `force`, or if its folder holds other files as well.
void check_stale_packs(const std::vector<std::string>& packs, bool force, bool has_split) {
  if (!packs.empty() && !force)
    refuse_stale_pack(packs[0], has_split ? " of another split, which this run does not make"
                                          : " of a split, and no `split_by` is asked for");
  for (const std::string& path : packs)
    if (!is_matrix_pack(path))
      throw_cannot_write(path +
                         ": holds a pack of another split and more, which `force` "
                         "does not remove; give another `output`");
}

/// Throws cannot_write if the folders of a split would be inside a pack that stays.
void check_around_split(const PackSparseOptions& options) {
  if (is_matrix_pack(options.output)) {
    if (!options.force) refuse_stale_pack(options.output, " itself, and `split_by` makes folders in it");
    return;
  }
  const std::string format = held_format(options.output);
  if (kind_of_format(format) != nullptr)
    throw_cannot_write(options.output + ": holds a finished pack (" + format +
                       ") and more, and `split_by` makes folders in it; give another `output`");
}

/// Throws cannot_write if an output folder has an entry that is neither a pack's file nor stale.
void check_wanted(const std::string& folder, const StaleFolders& stale) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return;
  std::set<std::string> gone;
  for (const std::vector<std::string>& paths : {stale.packs, stale.empty})
    for (const std::string& path : paths) gone.insert(std::filesystem::path(path).filename().string());
  check_only_our_files(folder, gone);
}

/// Finds stale packs in the output; throws cannot_write if they would stay. A stale validation pack beside a
/// new training pack would hold ratings that were trained on.
StaleFolders check_stale_folders(const PackSparseOptions& options, const std::vector<std::string>& wanted) {
  const bool has_split = !wanted[0].empty();
  StaleFolders stale = stale_folders(options, wanted);
  check_stale_packs(stale.packs, options.force, has_split);
  if (has_split) check_around_split(options);
  if (options.force)
    for (const std::string& name : wanted) check_wanted(pack_path(options.output, name), stale);
  return stale;
}

/// Removes stale packs with `force`, only after everything in the folders was identified as a pack's.
void clear_stale_packs(const PackSparseOptions& options, const std::vector<std::string>& wanted) {
  const StaleFolders stale = check_stale_folders(options, wanted);
  if (!options.force) return;
  for (const std::string& path : stale.packs) OutputPack(kMatrixPacks, path, false).remove();
  for (const std::string& path : stale.empty) ::rmdir(path.c_str());
  if (!wanted[0].empty() && is_matrix_pack(options.output))
    OutputPack(kMatrixPacks, options.output, false).clear();
}

}  // namespace

SparseOutput::SparseOutput(const PackSparseSpec& spec, const PackSparseOptions& options,
                           const RecordedIds& ids, std::string split_name)
    : name(std::move(split_name)),
      identity(identity_of(spec, ids, name)),
      pack(kMatrixPacks, pack_path(options.output, name), options.force),
      finished(pack.finished()) {}

SparseOutputs::SparseOutputs(const PackSparseSpec& spec, const PackSparseOptions& options,
                             const RecordedIds& ids) {
  std::vector<std::string> names = pack_names(spec.packs.split);
  clear_stale_packs(options, names);
  for (std::string& name : names) {
    outputs_.push_back(std::make_unique<SparseOutput>(spec, options, ids, std::move(name)));
    const SparseOutput& output = *outputs_.back();
    check_same_spec(output.pack.path(), output.finished, output.identity);
  }
}

// The first output made the common folder, which can be removed only after those inside it: last to first.
SparseOutputs::~SparseOutputs() {
  while (!outputs_.empty()) outputs_.pop_back();
}

void SparseOutputs::check(const PackSparseSpec& spec, const PackSparseOptions& options,
                          const RecordedIds& ids, std::optional<std::uint64_t> input_xxh3) {
  const std::vector<std::string> names = pack_names(spec.packs.split);
  static_cast<void>(check_stale_folders(options, names));
  for (const std::string& name : names) {
    const std::string path = pack_path(options.output, name);
    std::error_code error;
    // With `force` everything in the folder was identified as a pack's and will be removed.
    if (options.force && std::filesystem::is_directory(path, error)) continue;
    OutputPack::check(kMatrixPacks, path, options.force);
    PackIdentity identity = identity_of(spec, ids, name);
    check_same_spec(path, finished_pack(path, kMatrixPacks), identity);
    if (!input_xxh3) continue;
    identity.pack_id = pack_id(identity.spec, *input_xxh3);
    check_same_pack(path, kMatrixPacks, identity);
  }
}

void SparseOutputs::compare(std::uint64_t input_xxh3) {
  for (const std::unique_ptr<SparseOutput>& output : outputs_) {
    // Another run may have finished it while this one read the input.
    if (!output->finished) output->finished = output->pack.finished();
    output->identity.pack_id = pack_id(output->identity.spec, input_xxh3);
    output->pack.identify(output->identity);
  }
  for (const std::unique_ptr<SparseOutput>& output : outputs_) {
    const std::optional<AnyManifest>& finished = output->finished;
    if (!finished || output->pack.is_whole(finished->manifest(), finished->tables())) continue;
    output->pack.reopen(finished->manifest());
    output->finished.reset();
  }
}

bool SparseOutputs::all_finished() const {
  return std::all_of(outputs_.begin(), outputs_.end(),
                     [](const auto& output) { return output->finished.has_value(); });
}

SparseOutput& SparseOutputs::find(const std::string& name) {
  const auto found = std::find_if(outputs_.begin(), outputs_.end(),
                                  [&](const auto& output) { return output->name == name; });
  if (found == outputs_.end()) throw_usage("no folder for the pack " + name);
  return **found;
}

}  // namespace chunkhit
