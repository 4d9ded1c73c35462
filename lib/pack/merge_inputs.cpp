#include "pack/merge_inputs.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "base/throw_error.h"
#include "chunkhit/version.h"
#include "pack/output_pack.h"
#include "pack/pack_folder.h"
#include "pack/parallel_files.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;

/// Explains why a folder is no finished pack: it is missing, unfinished, or holds the packs of a split.
[[noreturn]] void refuse_input(const std::string& folder, const std::string& output) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw_bad_data(folder + ": no such folder");
  std::vector<std::string> packs;
  for (const std::string& name : folder_entries(folder))
    if (fs::exists(fs::path(folder) / name / kManifestName, error)) packs.push_back(name);
  // Training first: the merged packs of a split are normalised like it.
  std::ranges::sort(packs, {}, [](const std::string& name) { return std::pair(name != "train", name); });
  std::string commands;
  for (const std::string& name : packs)
    commands.append(commands.empty() ? "" : "; ")
        .append("pack-merge " + output + "/" + name + " " + folder + "/" + name + " …");
  if (!packs.empty()) throw_bad_data(folder + ": holds several packs; merge those of one name: " + commands);
  throw_bad_data(folder + ": no finished pack: " + std::string(kManifestName) +
                 " is missing; run the command that began it to its end first");
}

bool are_same(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

/// Whether the output is named among the packs before anything was merged into it.
bool is_empty_output(const std::string& folder, const std::string& output) {
  std::error_code error;
  const auto whole = [&](const std::string& path) { return fs::weakly_canonical(path, error); };
  if (whole(folder) != whole(output) || error) return false;
  if (!fs::exists(folder, error)) return true;
  return fs::is_directory(folder, error) &&
         std::ranges::none_of(folder_entries(folder), [&](const std::string& name) {
           return fs::exists(fs::path(folder) / name / kManifestName, error);
         });
}

/// Throws bad_data where a part is missing, has another size, or has not the record that the manifest lists.
void check_parts(MergeInput& input) {
  const PackManifest& manifest = input.manifest();
  std::mutex mutex;
  for_each_file(manifest.parts.size(), [&](std::size_t index) {
    const PartRecord& listed = manifest.parts[index];
    const std::optional<PartManifest> own = whole_part(input.folder, manifest, listed);
    if (!own)
      throw_bad_data(input.folder + "/" + listed.file +
                     ": it or its record is missing, or is not what the manifest lists; see pack-verify " +
                     input.folder);
    const std::lock_guard lock(mutex);
    input.pixels.add(own->part.pixels);
  });
}

/// Throws bad_data where a pack is repeated, by itself or in a merged pack.
void check_distinct(std::span<const MergeInput> inputs) {
  std::unordered_map<std::uint64_t, const MergeInput*> known;
  for (const MergeInput& input : inputs)
    for (const std::uint64_t id : content_ids(input.manifest()))
      if (const auto [found, is_new] = known.try_emplace(id, &input); !is_new)
        throw_bad_data(input.folder + ": a pack is repeated: " + found->second->folder + " holds it, too");
}

void check_same_kind(const MergeInput& input, const MergeInput& first) {
  const auto kind = [](const MergeInput& each) { return each.images ? "images" : "matrices"; };
  check_equal(input, first, "holds", kind(input), kind(first), "they cannot be one pack");
  const auto sizes = [](const MergeInput& each) {
    return each.images && each.images->own_sizes() ? "of their own sizes" : "of one shape";
  };
  check_equal(input, first, "samples are", sizes(input), sizes(first),
              "pack one of them again with the other's `sizes`");
  check_equal(input, first, "container", input.manifest().container, first.manifest().container,
              "pack one of them again with the other's `container`");
}

}  // namespace

std::vector<MergeInput> open_merge_inputs(const MergeOptions& options) {
  std::vector<MergeInput> inputs;
  for (const std::string& path : options.packs) {
    const std::string folder = pack_folder_of(path);
    std::optional<AnyManifest> pack = find_manifest(folder);
    if (!pack && options.packs.size() > 1 && is_empty_output(folder, options.output)) continue;
    if (!pack) refuse_input(folder, options.output);
    inputs.push_back({*std::move(pack), folder, are_same(folder, options.output)});
    check_same_kind(inputs.back(), inputs.front());
  }
  if (inputs.empty()) refuse_input(options.packs.front(), options.output);
  return inputs;
}

void check_merge_inputs(std::span<MergeInput> inputs) {
  check_distinct(inputs);
  for (MergeInput& input : inputs) check_parts(input);
}

void check_equal(const MergeInput& input, const MergeInput& first, const std::string& what,
                 const std::string& found, const std::string& expected, const std::string& advice) {
  if (found != expected)
    throw_bad_data(input.folder + ": " + what + " " + found + ", expected " + expected + " as in " +
                   first.folder + ": " + advice);
}

namespace {

/// The entries of a spec that all packs have.
RecordedSpec common_spec(std::span<const MergeInput> inputs) {
  RecordedSpec common = inputs.front().manifest().spec;
  for (const MergeInput& input : inputs.subspan(1))
    std::erase_if(common, [&](const SpecEntry& entry) {
      return std::ranges::find(input.manifest().spec, entry) == input.manifest().spec.end();
    });
  return common;
}

}  // namespace

void merge_common(std::span<const MergeInput> inputs, PackManifest& merged) {
  const PackManifest& first = inputs.front().manifest();
  merged.is_merged = true;
  merged.tool = "pack-merge " + version();
  merged.spec = common_spec(inputs);
  merged.container = first.container;
  merged.codec = first.codec;
  merged.label_columns = first.label_columns;
  std::vector<std::uint64_t> input_hashes;
  for (const MergeInput& input : inputs) {
    const PackManifest& manifest = input.manifest();
    merged.rows += manifest.rows;
    for (PartRecord part : manifest.parts) {
      part.source += merged.sources.size();
      merged.parts.push_back(std::move(part));
    }
    for (const SourcePack& source : manifest.sources) {
      input_hashes.push_back(source.input_xxh3);
      merged.sources.push_back(source);
    }
  }
  merged.pack_id = hash_of_ids(content_ids(merged));
  merged.input_xxh3 = hash_of_ids(input_hashes);
}

}  // namespace chunkhit
