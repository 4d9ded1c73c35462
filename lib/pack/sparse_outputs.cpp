#include "pack/sparse_outputs.h"

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

}  // namespace

SparseOutput::SparseOutput(const PackSparseSpec& spec, const PackSparseOptions& options,
                           const std::string& reuse_ids, std::string split_name)
    : name(std::move(split_name)),
      recorded(recorded_spec(spec, reuse_ids, name)),
      folder(name.empty() ? options.output : options.output + "/" + name, options.force, PackKind::matrices),
      finished(folder.finished_matrix_pack()) {}

SparseOutputs::SparseOutputs(const PackSparseSpec& spec, const PackSparseOptions& options,
                             const std::string& reuse_ids) {
  for (std::string& name : pack_names(spec.packs.split)) {
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
