#include "manifest/plan.h"

#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/hash.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/pack.h"
#include "manifest/json_fields.h"
#include "types/enum_names.h"
#include "types/fields.h"

namespace chunkhit {
namespace {

using Json = nlohmann::ordered_json;

Json packs_json(const PackPlan& plan) {
  Json packs = Json::array();
  for (const PlannedPack& pack : plan.packs)
    packs.push_back({{"name", pack.name},
                     {"pack_id", hash_text(pack.pack_id)},
                     {"spec", spec_json(pack.spec)},
                     {"samples", pack.samples},
                     {"parts", pack.parts}});
  return packs;
}

/// The name of a pack's folder: a path that led elsewhere would be written to.
std::string parse_pack_name(const Json& entry) {
  std::string name = entry.at("name").get<std::string>();
  if (name.find('/') != std::string::npos || name.starts_with(".") || name.find('\0') != std::string::npos)
    throw_bad_data("packs: name: expected the name of a folder, found " + entry.at("name").dump());
  return name;
}

std::vector<PlannedPack> parse_packs(const Json& list) {
  std::vector<PlannedPack> packs;
  std::set<std::string> names;
  for (const Json& entry : list) {
    PlannedPack pack{parse_pack_name(entry), hash_field(entry, "pack_id"), parse_spec(entry.at("spec")),
                     count_field(entry, "samples"), count_field(entry, "parts")};
    if (pack.parts < 1 || pack.parts > pack.samples)
      throw_bad_data("packs: " + std::to_string(pack.samples) + " samples in " + std::to_string(pack.parts) +
                     " parts");
    if (!names.insert(pack.name).second) throw_bad_data("packs: '" + pack.name + "' is repeated");
    packs.push_back(std::move(pack));
  }
  if (packs.empty() || (packs.size() > 1 && names.contains("")))
    throw_bad_data("packs: expected one pack, or several with names");
  return packs;
}

/// Checks numbers against each other: loops and buffers follow them.
void check_counts(const PackPlan& plan) {
  std::uint64_t samples = 0;
  for (const PlannedPack& pack : plan.packs) {
    if (pack.samples > plan.rows - samples)
      throw_bad_data("packs: more samples than the " + std::to_string(plan.rows) + " rows");
    samples += pack.samples;
  }
  const bool are_members = !plan.containers.empty() && !plan.listed_fields().empty();
  const std::size_t folders = are_members ? 0 : plan.sample.pairs.size();
  if ((are_members && plan.sample.pairs.empty()) || plan.masks.size() != folders)
    throw_bad_data("masks: expected " + count_text(folders, "folder") + ", one for each field, found " +
                   count_text(plan.masks.size()));
  if (!plan.masks_xxh3.empty() && plan.masks_xxh3.size() != folders)
    throw_bad_data("masks_xxh3: expected " + count_text(folders) + ", found " +
                   count_text(plan.masks_xxh3.size()));
  if (plan.tasks < 1 || plan.tasks > plan.parts())
    throw_bad_data("tasks: expected 1 to " + std::to_string(plan.parts()) + ", found " +
                   std::to_string(plan.tasks));
  if (plan.label_columns.empty() || (plan.class_labels && plan.label_columns.size() != 1))
    throw_bad_data("labels: columns: found " + std::to_string(plan.label_columns.size()));
}

}  // namespace

std::uint64_t PackPlan::parts() const {
  return std::accumulate(packs.begin(), packs.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const PlannedPack& pack) { return sum + pack.parts; });
}

std::vector<SampleField> PackPlan::listed_fields() const {
  std::vector<std::string> texts;
  const RecordedSpec& spec = packs.front().spec;
  if (spec.has("mask-column")) RepeatedForm().parse("mask-column", spec.get("mask-column"), texts);
  std::vector<SampleField> fields;
  try {
    for (FieldPlace& column : parse_fields(texts, "mask-column", "COLUMN"))
      fields.push_back(std::move(column.field));
  } catch (const Error& error) {
    throw_bad_data(std::string("packs: ") + error.what());
  }
  return fields;
}

std::string plan_text(const PackPlan& plan) {
  Json json{{"format", kPlanFormat},
            {"version", kManifestVersion},
            {"tool", plan.tool},
            {"libraries", spec_json(plan.libraries)},
            {"command_line", plan.command_line},
            {"root", plan.root},
            {"tasks", plan.tasks},
            {"input_xxh3", hash_text(plan.input_xxh3)},
            {"rows", plan.rows},
            {"max_rejected", plan.max_rejected},
            {"sample", sample_json(plan.sample)},
            {"first_file", {{"file", plan.first_file}, {"bytes", plan.first_file_bytes}}},
            {"file_column", plan.file_column},
            {"labels", labels_json(plan.class_labels, plan.label_columns)},
            {"classes", plan.classes},
            {"packs", packs_json(plan)},
            {"rows_file", file_json(plan.rows_file)}};
  if (plan.masks.size() == 1)
    json["masks"] = plan.masks.front();
  else if (!plan.masks.empty())
    json["masks"] = plan.masks;
  for (std::size_t i = 0; i < plan.masks_xxh3.size(); ++i)
    json["masks_xxh3"][plan.sample.pairs[i].name] = hash_text(plan.masks_xxh3[i]);
  if (!plan.columns.empty()) json["columns"] = columns_json(plan.columns);
  for (const PlannedContainer& container : plan.containers)
    json["containers"].push_back({{"file", container.file}, {"bytes", container.bytes}});
  return seal_json(json);
}

PackPlan parse_plan(std::string_view text, const std::string& name) {
  return with_name(name, [&] {
    const Json json = open_format(text, name, kPlanFormat);
    PackPlan plan;
    plan.tool = json.at("tool").get<std::string>();
    plan.libraries = parse_spec(json.at("libraries"));
    plan.command_line = json.at("command_line").get<std::string>();
    plan.root = json.at("root").get<std::string>();
    if (json.contains("masks") && json.at("masks").is_string())
      plan.masks = {json.at("masks").get<std::string>()};
    else if (json.contains("masks"))
      plan.masks = json.at("masks").get<std::vector<std::string>>();
    plan.tasks = count_field(json, "tasks");
    plan.input_xxh3 = hash_field(json, "input_xxh3");
    plan.rows = count_field(json, "rows");
    plan.max_rejected = count_field(json, "max_rejected");
    plan.sample = parse_sample(json.at("sample"));
    if (json.contains("masks_xxh3"))
      for (const SampleField& field : plan.sample.pairs)
        plan.masks_xxh3.push_back(hash_field(json.at("masks_xxh3"), field.name.c_str()));
    plan.first_file = json.at("first_file").at("file").get<std::string>();
    plan.first_file_bytes = count_field(json.at("first_file"), "bytes");
    plan.file_column = json.at("file_column").get<std::string>();
    plan.class_labels = parse_class_labels(json.at("labels"));
    plan.label_columns = json.at("labels").at("columns").get<std::vector<std::string>>();
    plan.columns = parse_columns(json, "columns");
    plan.classes = json.at("classes").get<std::vector<std::string>>();
    if (json.contains("containers"))
      for (const Json& container : list_field(json, "containers"))
        plan.containers.push_back({container.at("file").get<std::string>(), count_field(container, "bytes")});
    plan.packs = parse_packs(list_field(json, "packs"));
    plan.rows_file = parse_file(json.at("rows_file"), kPlanRowsName);
    check_counts(plan);
    return plan;
  });
}

std::string plan_status_json(const PlanStatus& status) {
  Json json{{"path", status.path},
            {"finished", false},
            {"rows", status.rows},
            {"tasks", status.tasks},
            {"parts", status.parts},
            {"parts_done", status.parts_done},
            {"missing_tasks", status.missing_tasks},
            {"rejected", status.rejected},
            {"max_rejected", status.max_rejected},
            {"begun", status.begun}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace chunkhit
