#include "pack/ratings/ratings_stages.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include "base/aside_name.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "chunkhit/error.h"
#include "chunkhit/pack.h"
#include "listing/root_folder.h"
#include "manifest/id_list.h"
#include "manifest/plan.h"
#include "pack/output_folder.h"
#include "pack/pack_folder.h"
#include "pack/ratings/column_table.h"
#include "pack/ratings/ratings_plan.h"

namespace chunkhit {

namespace fs = std::filesystem;

std::string numbered(const std::string& kind, std::uint64_t index) {
  return kind + part_stem(index).substr(std::string("part").size());
}

bool is_whole(const std::string& path, const FileRecord& record) {
  std::error_code error;
  return fs::file_size(path, error) == record.bytes && !error && hash_file(path) == record.xxh3;
}

FileRecord write_hashes(const std::string& folder, const std::string& name,
                        const std::vector<std::uint64_t>& hashes) {
  const Bytes bytes{reinterpret_cast<const std::uint8_t*>(hashes.data()), hashes.size() * sizeof(hashes[0])};
  PendingFile file(folder + "/" + name);
  file.append(bytes);
  file.publish();
  return {name, bytes.size(), xxh3(bytes)};
}

void add_users(const std::string& path, const FileRecord& record, std::uint64_t input,
               std::vector<UserOfInput>& users) {
  const ByteBuffer bytes = read_file(path, record.bytes);
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t id;
    std::memcpy(&id, bytes.data() + at, sizeof id);
    users.push_back({id, static_cast<std::uint32_t>(input)});
  }
}

void add_items(const std::string& path, const FileRecord& record, ItemCounts& items) {
  const ByteBuffer bytes = read_file(path, record.bytes);
  if (bytes.size() != record.bytes || xxh3(bytes) != record.xxh3)
    throw Error(ErrorCode::try_again, path + ": changed while it was read; run the same command again");
  std::size_t taken = 0;
  IdListReader list(path, [&](MutableBytes out) {
    const std::size_t count = std::min(out.size(), bytes.size() - taken);
    std::copy_n(bytes.data() + taken, count, out.data());
    taken += count;
    return count;
  });
  while (list.next()) {
    const std::size_t number = items.ids.add(std::string(list.id()));
    if (number == items.ratings.size()) items.ratings.push_back(0);
    items.ratings[number] += list.ratings();
  }
}

std::string planned_table(const std::string& folder, std::string_view name, const std::string& hash) {
  if (hash.empty()) return "";
  std::string path = folder + "/" + std::string(name);
  if (hash_text(hash_file(path)) != hash)
    throw Error(ErrorCode::bad_data, path + ": is not what was planned; plan again with `force`");
  return path;
}

bool lacks_users(const std::string& table_path, const std::vector<UserOfInput>& users) {
  if (table_path.empty()) return false;
  const ColumnTable table(table_path, {"`user_columns`", "user", ""});
  std::vector<std::uint64_t> listed;
  for (std::size_t row = 0; row < table.row_count(); ++row) listed.push_back(xxh3(as_bytes(table.id(row))));
  std::ranges::sort(listed);
  return std::ranges::any_of(
      users, [&](const UserOfInput& user) { return !std::ranges::binary_search(listed, user.id); });
}

ValueFit value_fit(const PlanCount& count, const std::string& path) {
  std::array<ValueFit::Scale, ValueFit::kScales.size()> scales{};
  if (count.value_scales.size() != scales.size())
    throw Error(ErrorCode::bad_data, path + ": value_scales: expected " + std::to_string(scales.size()));
  for (std::size_t at = 0; at < scales.size(); ++at)
    scales[at] = {count.value_scales[at].has_value(), count.value_scales[at].value_or(0)};
  return {count.all_one, scales};
}

std::optional<RatingsPlan> read_ratings_plan(const std::string& folder) {
  const std::string path = folder + "/" + std::string(kPlanName);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const ByteBuffer bytes = with_retries([&] { return read_file(path, kMaxManifestBytes); });
  if (manifest_format(as_text(bytes), path) != kRatingsPlanFormat) return std::nullopt;
  return parse_ratings_plan(as_text(bytes), path);
}

std::string stage_folder(const std::string& folder, const RatingsPlan& plan) {
  return folder + "/" + std::string(kStageFolderBegin) + hash_text(plan.id());
}

PlanStatus ratings_plan_status(const std::string& folder, const RatingsPlan& plan) {
  PlanStatus status{.path = folder, .tasks = plan.tasks, .parts = plan.inputs.size()};
  const std::string stages = stage_folder(folder, plan);
  std::error_code error;
  const bool has_columns = fs::exists(stages + "/" + std::string(kColumnsName), error);
  std::set<std::uint64_t> missing;
  std::uint64_t counted = 0;
  for (std::uint64_t input = 0; input < plan.inputs.size(); ++input) {
    const bool is_packed = fs::exists(stages + "/" + numbered("pack", input), error);
    const bool is_counted = fs::exists(stages + "/" + numbered("count", input) + ".json", error);
    status.parts_done += is_packed ? 1 : 0;
    counted += is_counted ? 1 : 0;
    if (has_columns ? !is_packed : !is_counted) missing.insert(input % plan.tasks);
  }
  status.missing_tasks.assign(missing.begin(), missing.end());
  if (!has_columns) status.parts_done = counted;
  status.stage = has_columns ? PlanStage::pack : missing.empty() ? PlanStage::columns : PlanStage::count;
  for (const std::string& name : folder_entries(stages))
    if (!name_written_aside(name).empty()) status.begun.push_back(begun_text(stages, name));
  std::ranges::sort(status.begun);
  return status;
}

}  // namespace chunkhit
