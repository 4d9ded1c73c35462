#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/cpu.h"
#include "base/file.h"
#include "base/hash.h"
#include "chunkhit/pack.h"
#include "read/isolated.h"
#include "read/manifest_check.h"
#include "read/pack_source.h"
#include "store/part.h"

namespace chunkhit {
namespace {

/// What a part must be, from its own record or from nothing for a lone part.
struct Expected {
  std::string path;
  std::string name;  ///< for messages
  const Manifest* manifest = nullptr;
  const PartRecord* listed = nullptr;  ///< without sums, from the manifest
  const PartRecord* record = nullptr;  ///< with sums, from part-NNNNN.json
  std::uint32_t part_index = 0;
};

/// Collects faults of several threads in the order of chunks.
class FaultList {
 public:
  void add(std::size_t chunk, std::string text) {
    const std::lock_guard lock(mutex_);
    faults_.emplace(chunk, std::move(text));
  }
  [[nodiscard]] std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const auto& [chunk, text] : faults_) texts.push_back(text);
    return texts;
  }

 private:
  std::mutex mutex_;
  std::set<std::pair<std::size_t, std::string>> faults_;
};

void check_chunk(const ChunkReader& part, std::size_t index, ByteBuffer& stored, ByteBuffer& raw,
                 PixelSums& sums) {
  const StoredChunk& chunk = part.chunks()[index];
  part.fetch(index, stored);
  raw.resize(chunk.raw_bytes);
  decode_chunk(part, index, stored, raw);
  const SampleShape& sample = part.spec().sample;
  for (std::uint64_t at = 0; at < chunk.sample_count; ++at)
    sums.add_sample(raw.data() + at * sample.byte_count(), sample);
}

/// Fetches and decodes every chunk on several threads; returns the sums over all pixels.
PixelSums check_chunks(const ChunkReader& part, const std::string& name, std::uint32_t threads,
                       FaultList& faults) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  PixelSums total;
  const auto work = [&] {
    ByteBuffer stored;
    ByteBuffer raw;
    PixelSums sums;
    for (std::size_t index = next++; index < part.chunks().size(); index = next++) {
      try {
        check_chunk(part, index, stored, raw, sums);
      } catch (const Error& error) {
        faults.add(index, error.what());
      } catch (const std::bad_alloc&) {
        faults.add(index, name + ": chunk " + std::to_string(index) + ": needs more memory than there is");
      }
    }
    const std::lock_guard lock(mutex);
    total.add(sums);
  };
  std::vector<std::jthread> workers;
  try {
    for (std::uint32_t thread = 1; thread < threads; ++thread) workers.emplace_back(work);
  } catch (const std::system_error&) {
    // The system gives no more threads; those that there are do the same work.
  }
  work();
  workers.clear();
  return total;
}

void compare_with_record(const ChunkReader& part, const Expected& expected,
                         std::vector<std::string>& faults) {
  const auto fault = [&](const std::string& what) { faults.push_back(expected.name + ": " + what); };
  const PartSpec& spec = part.spec();
  for (std::string& text : compare_with_part(expected.name, *expected.manifest, spec))
    faults.push_back(std::move(text));
  if (spec.part_index != expected.part_index)
    fault("is part " + std::to_string(spec.part_index) + ", expected " + std::to_string(expected.part_index));
  if (part.chunks().size() != expected.record->chunks)
    fault("has " + std::to_string(part.chunks().size()) + " chunks, expected " +
          std::to_string(expected.record->chunks));
  if (part.samples().rows.size() != expected.record->samples)
    fault("has " + std::to_string(part.samples().rows.size()) + " samples, expected " +
          std::to_string(expected.record->samples));
}

void compare_hash(const ChunkReader& part, const Expected& expected, std::vector<std::string>& faults) {
  const std::uint64_t found = part.hash_of_all();
  if (found != expected.listed->xxh3)
    faults.push_back(expected.name + ": checksum of the part " + hash_text(found) + ", expected " +
                     hash_text(expected.listed->xxh3));
}

void add(std::vector<std::string> more, std::vector<std::string>& faults) {
  for (std::string& fault : more) faults.push_back(std::move(fault));
}

/// Everything that needs the part's own reader; runs in a child process.
std::vector<std::string> check_part(const Expected& expected, const VerifyOptions& options) {
  std::vector<std::string> faults;
  try {
    const std::unique_ptr<ChunkReader> part = open_part(expected.path);
    if (expected.manifest != nullptr) compare_with_record(*part, expected, faults);
    if (expected.listed != nullptr) compare_hash(*part, expected, faults);
    if (options.quick) return faults;
    FaultList chunk_faults;
    const std::uint32_t threads = options.threads > 0 ? options.threads : allowed_cpus();
    const PixelSums sums = check_chunks(*part, expected.name, threads, chunk_faults);
    for (std::string& text : chunk_faults.texts()) faults.push_back(std::move(text));
    if (expected.record != nullptr && faults.empty() &&
        (sums.sum != expected.record->pixels.sum ||
         sums.sum_of_squares != expected.record->pixels.sum_of_squares))
      faults.push_back(expected.name + ": the pixels' sums differ from those recorded when it was packed");
  } catch (const Error& error) {
    faults.emplace_back(error.what());
  } catch (const std::bad_alloc&) {
    faults.push_back(expected.name + ": needs more memory than there is");
  }
  return faults;
}

void add_isolated(const Expected& expected, const VerifyOptions& options, std::vector<std::string>& faults) {
  add(run_isolated(expected.name, [&] { return check_part(expected, options); }), faults);
}

/// Says whether a file has the bytes that a manifest says.
bool check_size(const std::string& path, std::uint64_t bytes, std::vector<std::string>& faults) {
  try {
    const std::uint64_t found = InputFile(path).byte_count();
    if (found != bytes)
      faults.push_back(path + ": has " + std::to_string(found) + " bytes, expected " + std::to_string(bytes));
    return found == bytes;
  } catch (const Error& error) {
    faults.emplace_back(error.what());
    return false;
  }
}

bool check_rejects_file(const std::string& path, const Manifest& manifest, std::vector<std::string>& faults) {
  if (!check_size(path, manifest.rejects_bytes, faults)) return false;
  const std::uint64_t found = hash_file(path);
  if (found != manifest.rejects_xxh3)
    faults.push_back(path + ": checksum of the file " + hash_text(found) + ", expected " +
                     hash_text(manifest.rejects_xxh3));
  return found == manifest.rejects_xxh3;
}

std::string sidecar_name(const std::string& part_file) {
  return part_file.substr(0, part_file.rfind('.')) + ".json";
}

/// Gives the part's own record where it can be read.
std::optional<PartManifest> check_sidecar(const std::string& folder, const Manifest& manifest,
                                          const PartRecord& listed, std::vector<std::string>& faults) {
  const std::string sidecar = folder + "/" + sidecar_name(listed.file);
  try {
    PartManifest own = parse_part_manifest(as_text(read_file(sidecar, kMostManifestBytes)), sidecar);
    const PartRecord& part = own.part;
    if (own.pack_id != manifest.pack_id || part.file != listed.file || part.xxh3 != listed.xxh3 ||
        part.bytes != listed.bytes || part.samples != listed.samples || part.rows != listed.rows ||
        part.chunks != listed.chunks || part.stored_bytes != listed.stored_bytes)
      faults.push_back(sidecar + ": differs from what the manifest says of " + listed.file);
    return own;
  } catch (const Error& error) {
    faults.emplace_back(error.what());
    return std::nullopt;
  }
}

/// Gives the part's own record where it can be read.
std::optional<PartManifest> check_part_of_pack(const std::string& folder, const Manifest& manifest,
                                               std::uint32_t part_index, const VerifyOptions& options,
                                               VerifyReport& report) {
  const PartRecord& listed = manifest.parts[part_index];
  const std::string path = folder + "/" + listed.file;
  check_size(path, listed.bytes, report.faults);
  std::optional<PartManifest> own = check_sidecar(folder, manifest, listed, report.faults);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return own;
  Expected expected{path, path, nullptr, &listed, nullptr, part_index};
  if (own) expected.manifest = &manifest, expected.record = &own->part;
  add_isolated(expected, options, report.faults);
  return own;
}

void check_strangers(const std::string& folder, const Manifest& manifest, std::vector<std::string>& faults) {
  std::set<std::string> known{std::string(kManifestName), std::string(kRejectsName), std::string(kRunName)};
  for (const PartRecord& part : manifest.parts) known.insert({part.file, sidecar_name(part.file)});
  std::set<std::string> strangers;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (!known.contains(entry.path().filename().string())) strangers.insert(entry.path().filename().string());
  for (const std::string& name : strangers)
    faults.push_back(folder + "/" + name + ": is not part of the pack");
}

void add_damaged(const std::string& folder, std::string_view name, VerifyReport& report) {
  const std::string path = folder + "/" + std::string(name);
  std::error_code error;
  if (std::filesystem::exists(path, error)) report.damaged.push_back(path);
}

VerifyReport verify_part(const std::string& path, const VerifyOptions& options) {
  if (options.on_part) options.on_part(path);
  VerifyReport report;
  report.parts = 1;
  report.bytes = InputFile(path).byte_count();
  add_isolated({path, path, nullptr, nullptr, nullptr, 0}, options, report.faults);
  if (!report.faults.empty()) return report;
  const PackInfo info = read_pack_info(path);
  report.chunks = info.parts[0].chunks;
  report.samples = info.samples;
  return report;
}

}  // namespace

VerifyReport verify_pack(const std::string& path, const VerifyOptions& options) {
  const PackSource source = open_source(path);
  if (!source.manifest) return verify_part(source.part, options);
  const Manifest& manifest = *source.manifest;
  VerifyReport report;
  std::vector<PartManifest> own;
  for (std::uint32_t part_index = 0; part_index < manifest.parts.size(); ++part_index) {
    const PartRecord& part = manifest.parts[part_index];
    if (options.on_part) options.on_part(part.file);
    const std::size_t faults = report.faults.size();
    if (auto record = check_part_of_pack(source.folder, manifest, part_index, options, report))
      own.push_back(std::move(*record));
    if (report.faults.size() > faults)
      for (const std::string& file : {part.file, sidecar_name(part.file)})
        add_damaged(source.folder, file, report);
    ++report.parts;
    report.chunks += part.chunks;
    report.samples += part.samples;
    report.bytes += part.bytes;
  }
  const std::string rejects = source.folder + "/" + std::string(kRejectsName);
  if (own.size() == manifest.parts.size())
    add(compare_with_parts(source.folder + "/" + std::string(kManifestName), manifest, own), report.faults);
  const std::size_t faults = report.faults.size();
  if (check_rejects_file(rejects, manifest, report.faults))
    add(compare_with_rejects(rejects, manifest), report.faults);
  if (report.faults.size() > faults) add_damaged(source.folder, kRejectsName, report);
  if (!report.faults.empty()) add_damaged(source.folder, kManifestName, report);
  check_strangers(source.folder, manifest, report.faults);
  return report;
}

}  // namespace chunkhit
