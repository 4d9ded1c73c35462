#include "pack/sparse_outputs.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "chunkhit/error.h"
#include "pack/pack_sparse_spec.h"
#include "pack/pack_spec.h"

namespace chunkhit {
namespace {

[[noreturn]] void refuse_other_pack(const SparseOutput& output, const std::string& difference) {
  throw Error(ErrorCode::cannot_write, output.folder.path() + ": holds another pack (" + difference +
                                           "); --force starts afresh, another --output keeps both");
}

[[noreturn]] void refuse_stale_pack(const std::string& path, const std::string& but) {
  throw Error(ErrorCode::cannot_write, path + ": holds a pack of matrices" + but +
                                           "; --force removes it, another --output keeps both");
}

/// The packs that runs with another split, or with none, left where those of this run are to be.
std::vector<std::string> stale_packs(const PackSparseOptions& options,
                                     const std::vector<std::string>& wanted) {
  std::vector<std::string> stale;
  for (const std::string_view part : kPartNames) {
    std::string path = options.output + "/" + std::string(part);
    if (std::find(wanted.begin(), wanted.end(), part) != wanted.end()) continue;
    // A killed run may have got no further than to make its folders.
    if (options.force && ::rmdir(path.c_str()) == 0) continue;
    if (held_format(path) == kMatrixFormat || is_matrix_pack(path)) stale.push_back(std::move(path));
  }
  return stale;
}

/// A stale validation pack beside a new one for training would hold ratings that were trained on.
void clear_stale_packs(const PackSparseOptions& options, const std::vector<std::string>& wanted) {
  const bool has_split = !wanted[0].empty();
  const std::vector<std::string> stale = stale_packs(options, wanted);
  if (!stale.empty() && !options.force)
    refuse_stale_pack(stale[0], has_split ? " of another split, which this run does not make"
                                          : " of a split, and no --split is asked for");
  for (const std::string& path : stale)
    if (!is_matrix_pack(path))
      throw Error(ErrorCode::cannot_write, path +
                                               ": holds a pack of another split and more, which --force "
                                               "does not remove; give another --output");
  if (has_split && is_matrix_pack(options.output)) {
    if (!options.force) refuse_stale_pack(options.output, " itself, and --split makes folders in it");
    OutputFolder(options.output, false, PackKind::matrices).clear();
  }
  if (const std::string format = held_format(options.output);
      has_split && (format == kImagesFormat || format == kMatrixFormat))
    throw Error(ErrorCode::cannot_write,
                options.output + ": holds a finished pack (" + format +
                    ") and more, and --split makes folders in it; give another --output");
  for (const std::string& path : stale) OutputFolder(path, false, PackKind::matrices).remove();
}

}  // namespace

SparseOutput::SparseOutput(const PackSparseSpec& spec, const PackSparseOptions& options,
                           const std::string& reuse_ids, std::string split_name)
    : name(std::move(split_name)),
      recorded(recorded_spec(spec, reuse_ids, name)),
      folder(name.empty() ? options.output : options.output + "/" + name, options.force, PackKind::matrices),
      finished(folder.finished_matrix_pack()) {}

SparseOutputs::SparseOutputs(const PackSparseSpec& spec, const PackSparseOptions& options,
                             const std::string& reuse_ids) {
  std::vector<std::string> names = pack_names(spec.packs.split);
  clear_stale_packs(options, names);
  for (std::string& name : names) {
    outputs_.push_back(std::make_unique<SparseOutput>(spec, options, reuse_ids, std::move(name)));
    const SparseOutput& output = *outputs_.back();
    const std::string difference =
        output.finished ? first_difference(output.finished->spec, output.recorded) : std::string();
    if (!difference.empty()) refuse_other_pack(output, difference);
  }
}

void SparseOutputs::compare(std::uint64_t input_xxh3) {
  for (const std::unique_ptr<SparseOutput>& output : outputs_) {
    output->pack_id = pack_id(output->recorded, input_xxh3);
    if (output->finished && output->finished->pack_id != output->pack_id)
      refuse_other_pack(*output, "the input changed");
  }
  for (const std::unique_ptr<SparseOutput>& output : outputs_) {
    if (output->finished && output->folder.is_whole(*output->finished)) continue;
    output->finished.reset();
    output->folder.clear();
  }
}

bool SparseOutputs::all_finished() const {
  return std::all_of(outputs_.begin(), outputs_.end(),
                     [](const auto& output) { return output->finished.has_value(); });
}

SparseOutput& SparseOutputs::find(const std::string& name) {
  const auto found = std::find_if(outputs_.begin(), outputs_.end(),
                                  [&](const auto& output) { return output->name == name; });
  if (found == outputs_.end()) throw Error(ErrorCode::usage, "no folder for the pack " + name);
  return **found;
}

}  // namespace chunkhit
