// Merges packs by metadata alone: parts are linked, and the manifest, which is published last, lists them.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "chunkhit/pack.h"
#include "manifest/plan.h"
#include "manifest/run_record.h"
#include "pack/merge_inputs.h"
#include "pack/output_pack.h"
#include "pack/parallel_files.h"
#include "pack/run_frame.h"
#include "store/part.h"

namespace chunkhit {
namespace {

constexpr std::size_t kCopiedBytes = 4 << 20;
/// Fewer chunks in a part leave the window order little to mix.
constexpr std::uint64_t kMinPartChunks = 8;

std::string text_of(const Manifest& manifest) { return manifest_text(manifest); }
std::string text_of(const MatrixManifest& manifest) { return matrix_manifest_text(manifest); }

/// Copies a file, flushes it, and compares what can be read from the disk with what was read; does nothing
/// once the run is stopped.
void copy_file(const std::string& from, const std::string& to, const RunFrame& frame) {
  const InputFile input(from);
  PendingFile copy(to);
  Xxh3Stream hash;
  ByteBuffer buffer(kCopiedBytes);
  for (std::uint64_t offset = 0; offset < input.byte_count(); offset += kCopiedBytes) {
    if (frame.is_stopped()) return;
    const MutableBytes block =
        MutableBytes(buffer).first(std::min<std::uint64_t>(kCopiedBytes, input.byte_count() - offset));
    input.read_at(offset, block);
    hash.update(block);
    copy.append(block);
  }
  copy.flush();
  if (const std::uint64_t found = hash_file(copy.aside_path()); found != hash.value())
    throw_cannot_write(to + ": what was copied does not read back: checksum " + hash_text(found) +
                       ", expected " + hash_text(hash.value()));
  copy.publish();
}

/// How many parts were put into the folder, and how.
struct PlacedParts {
  std::atomic<std::uint64_t> linked{0};
  std::atomic<std::uint64_t> copied{0};
};

/// Links or copies a part with its record, unless an earlier run did; `from` is the part's own path.
void place_part(const std::string& from, const std::string& folder, const PackManifest& merged,
                const PartRecord& part, const RunFrame& frame, PlacedParts& placed) {
  if (whole_part(folder, merged, part)) return;
  // Where a record is, its part is: what is there now goes before the part does.
  const std::string record = folder + "/" + part_record_name(part.file);
  if (::unlink(record.c_str()) != 0 && errno != ENOENT) throw_write_error(record, "cannot remove", errno);
  const bool is_linked = link_file(from, folder + "/" + part.file);
  if (!is_linked) copy_file(from, folder + "/" + part.file, frame);
  if (frame.is_stopped()) return;
  ++(is_linked ? placed.linked : placed.copied);
  const std::string from_record = part_record_name(from);
  if (!link_file(from_record, record)) copy_file(from_record, record, frame);
}

void place_parts(const std::string& output, std::span<const MergeInput> inputs, const PackManifest& merged,
                 const RunFrame& frame, MergeReport& report) {
  std::vector<std::string> paths;  // empty: is in its place
  for (const MergeInput& input : inputs)
    for (const PartRecord& part : input.manifest().parts)
      paths.push_back(input.is_output ? "" : input.folder + "/" + part.file);
  PlacedParts placed;
  for_each_file(paths.size(), [&](std::size_t index) {
    if (!frame.is_stopped() && !paths[index].empty())
      place_part(paths[index], output, merged, merged.parts[index], frame, placed);
  });
  report.interrupted = frame.is_stopped();
  report.parts_linked = placed.linked;
  report.parts_copied = placed.copied;
}

/// Names the parts of the merged pack: those that are in its folder keep their names, the others get the
/// first free ones.
void name_parts(std::span<const MergeInput> inputs, PackManifest& merged) {
  std::set<std::string> taken;
  for (const MergeInput& input : inputs)
    for (const PartRecord& part : input.manifest().parts)
      if (input.is_output) taken.insert(part_record_name(part.file));
  const std::string extension(container(merged.container).extension);
  std::uint64_t number = 0;
  std::size_t index = 0;
  for (const MergeInput& input : inputs) {
    const std::size_t end = index + input.manifest().parts.size();
    for (; index < end; ++index) {
      if (input.is_output) continue;
      while (taken.contains(part_stem(number) + ".json")) ++number;
      merged.parts[index].file = part_stem(number++) + extension;
    }
  }
}

bool is_appended(std::span<const MergeInput> inputs) {
  return std::ranges::any_of(inputs, &MergeInput::is_output);
}

/// Throws cannot_write where parts without a manifest are not what a killed run of this merge left.
void check_left_parts(const OutputPack& folder, const PackManifest& merged) {
  std::map<std::string, std::uint64_t> expected;
  for (const PartRecord& part : merged.parts)
    expected.emplace(part_record_name(part.file), merged.pack_id_of(part));
  for (const std::string& name : folder_entries(folder.path())) {
    if (!name.starts_with("part-") || !name.ends_with(".json")) continue;
    const std::string path = folder.file(name);
    const auto own = expected.find(name);
    if (own == expected.end() ||
        parse_part_manifest(as_text(read_file(path, kMaxManifestBytes)), path).pack_id != own->second)
      throw_cannot_write(path +
                         ": is of an unfinished pack that is not this one; run the command that began it to "
                         "its end first, or "
                         "give another folder");
  }
}

/// Throws cannot_write where the output holds something else than these packs or this merge, try_again where
/// another process appended to it meanwhile.
void check_output(const OutputPack& folder, std::span<const MergeInput> inputs, const PackManifest& merged) {
  const auto refuse = [&](const std::string& what) { throw_cannot_write(folder.path() + ": holds " + what); };
  if (folder.has(kPlanName)) refuse("a plan, whose tasks may be running; give another folder");
  const std::optional<AnyManifest> held = find_manifest(folder.path());
  const auto output = std::ranges::find(inputs, true, &MergeInput::is_output);
  if (output != inputs.end()) {
    if (!held || held->manifest().pack_id != output->manifest().pack_id)
      throw Error(ErrorCode::try_again,
                  folder.path() + ": holds another pack than a moment ago; run the command again");
  } else if (held && held->manifest().pack_id != merged.pack_id) {
    refuse("another pack; name it among the packs to append to it, or give another folder");
  } else if (!held) {
    check_left_parts(folder, merged);
  }
}

void describe(const PackManifest& merged, MergeReport& report) {
  report.packs = merged.sources.size();
  report.rows = merged.rows;
  report.parts = merged.parts.size();
  std::uint64_t chunks = 0;
  for (const PartRecord& part : merged.parts) {
    report.samples += part.samples;
    report.bytes += part.bytes;
    chunks += part.chunks;
  }
  if (report.parts > 1 && chunks > 0 && chunks < kMinPartChunks * report.parts)
    report.notices.push_back("parts have " + count_text(chunks / report.parts, "chunk") +
                             " on average: shuffle \"window\" mixes few samples; pack the inputs again as "
                             "one pack when there are many such parts");
}

/// Says where samples of the packs do not mean the same, or are repeated. `settings`: those on which it
/// depends what a sample means.
void add_source_notices(std::span<const SourcePack> sources, const std::vector<std::string>& settings,
                        MergeReport& report) {
  std::string names;
  for (const std::string& name : settings) {
    const auto differs = [&](const SourcePack& source) {
      return source.spec.get(name) != sources.front().spec.get(name);
    };
    if (std::ranges::any_of(sources, differs)) names.append(names.empty() ? "" : ", ").append(name);
  }
  if (!names.empty())
    report.notices.push_back("the packs were made with different settings: " + names +
                             " (sources in pack-info --json has them)");
  std::set<std::uint64_t> inputs;
  for (const SourcePack& source : sources)
    if (!inputs.insert(source.input_xxh3).second) {
      report.notices.emplace_back("two of the packs are of the same list of inputs: samples may be repeated");
      break;
    }
}

/// Says which classes the first pack does not have: other spellings of its own, say.
void add_class_notice(std::span<const MergeInput> inputs, const Manifest& merged, MergeReport& report) {
  const std::vector<PackClass>& first = inputs.front().images->classes;
  std::string names;
  std::uint64_t added = 0;
  for (const PackClass& each : merged.classes) {
    if (std::ranges::any_of(first, [&](const PackClass& own) { return own.id == each.id; })) continue;
    constexpr std::uint64_t kShown = 3;
    const std::string name = each.name.empty() ? std::to_string(each.id) : each.name;
    if (added++ < kShown) names += (names.empty() ? "" : ", ") + name;
  }
  if (added > 0 && !first.empty())
    report.notices.push_back(count_text(first.size()) + (first.size() == 1 ? " class" : " classes") + " of " +
                             inputs.front().folder + (first.size() == 1 ? " becomes " : " become ") +
                             count_text(merged.classes.size()) + ": it does not have " + names +
                             (added > 3 ? ", …" : ""));
}

/// Says where packs of a split lose the statistics that normalize them.
void add_normalize_notice(std::span<const MergeInput> inputs, const Manifest& merged, MergeReport& report) {
  const auto has_shared = [](const MergeInput& input) { return input.images->normalize.has_value(); };
  if (merged.normalize || !std::ranges::all_of(inputs, has_shared)) return;
  const std::string& from = inputs.front().images->normalize->from;
  report.notices.push_back("normalised by its own mean and std, unlike the packs of the split: merge " +
                           from + " of the same inputs first, into the folder " + from + " beside " +
                           report.path);
}

/// The folders of the images of all packs, as far as their run.json names them.
std::map<std::uint64_t, std::string> roots_of(std::span<const MergeInput> inputs) {
  std::map<std::uint64_t, std::string> roots;
  for (const MergeInput& input : inputs)  // a pack is whole without the file
    if (const auto run = find_file(input.folder + "/" + std::string(kRunName), kMaxManifestBytes))
      roots.merge(image_roots(as_text(*run)));
  return roots;
}

/// Publishes the tables, run.json and the manifest, then removes what it no longer lists.
template <class OneManifest>
void write_merged(const std::string& output, std::span<const MergeInput> inputs, const RunFrame& frame,
                  OneManifest merged, MergeReport& report) {
  name_parts(inputs, merged);
  const OutputPack folder(inputs.front().kind(), output, false);
  check_output(folder, inputs, merged);
  place_parts(output, inputs, merged, frame, report);
  if (report.interrupted) return;
  // The tables that the manifest still lists stay until it is replaced.
  const auto name = [&](std::string_view table) {
    return is_appended(inputs) ? merged_table_name(table, merged.pack_id) : std::string(table);
  };
  publish_tables(inputs, folder.path(), name, merged);
  frame.publish(folder.path(), roots_of(inputs));
  if (!folder.is_whole(merged, tables(merged)))
    throw Error(ErrorCode::try_again,
                folder.path() + ": another process changed this folder; run the same command again");
  publish_file(folder.file(kManifestName), text_of(merged));
  folder.remove_others(merged, tables(merged));
  describe(merged, report);
}

/// Whether the output holds the merged pack already. Removes what a run left that was killed at its end.
bool is_done(const MergeOptions& options, std::span<const MergeInput> inputs, MergeReport& report) {
  const std::optional<AnyManifest> held = find_manifest(options.output);
  if (!held || !held->manifest().is_merged) return false;
  std::vector<std::uint64_t> before, after;
  bool is_behind = false;
  for (const MergeInput& input : inputs) {
    is_behind = is_behind || input.is_output;
    const std::vector<std::uint64_t> ids = content_ids(input.manifest());
    if (!input.is_output)
      (is_behind ? after : before).insert((is_behind ? after : before).end(), ids.begin(), ids.end());
  }
  const std::vector<std::uint64_t> found = content_ids(held->manifest());
  const bool has_all =
      is_behind ? found.size() >= before.size() + after.size() : found.size() == before.size();
  if (!has_all || !std::equal(before.begin(), before.end(), found.begin()) ||
      !std::equal(after.rbegin(), after.rend(), found.rbegin()))
    return false;
  const OutputPack folder(held->kind(), options.output, false);
  if (!folder.is_whole(held->manifest(), held->tables())) return false;
  folder.remove_others(held->manifest(), held->tables());
  describe(held->manifest(), report);
  report.already_finished = true;
  return true;
}

}  // namespace

MergeReport merge_packs(const MergeOptions& given) {
  const RunFrame frame("pack-merge", given.command_line, given.stop);
  MergeOptions options = given;
  if (options.output.empty()) throw_usage("`output`: no folder was given");
  if (options.packs.empty()) throw_usage("`packs`: no pack was given");
  options.output = pack_folder_of(options.output);
  MergeReport report;
  report.path = options.output;
  std::vector<MergeInput> inputs = open_merge_inputs(options);
  if (inputs.size() < options.packs.size())
    report.notices.push_back(options.output + " holds no pack yet: it is taken as empty");
  if (inputs.size() == 1 && inputs.front().is_output) {  // another id would cost states and caches
    describe(inputs.front().manifest(), report);
    report.packs = std::max<std::uint64_t>(report.packs, 1);
    report.already_finished = true;
  }
  if (report.already_finished || is_done(options, inputs, report)) return report;
  check_outside_packs(options.output);
  check_merge_inputs(inputs);
  if (inputs.front().images) {
    Manifest merged = merge_images(inputs, options.output);
    add_source_notices(merged.sources, image_settings(), report);
    add_normalize_notice(inputs, merged, report);
    add_class_notice(inputs, merged, report);
    write_merged(options.output, inputs, frame, std::move(merged), report);
  } else {
    MatrixManifest merged = merge_ratings(inputs);
    add_source_notices(merged.sources, rating_settings(), report);
    write_merged(options.output, inputs, frame, std::move(merged), report);
  }
  report.seconds = frame.seconds();
  return report;
}

}  // namespace chunkhit
