#include "manifest/ratings_plan.h"

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/throw_error.h"
#include "manifest/json_fields.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kCountFormat = "chunkhit-count";
constexpr std::string_view kColumnsFormat = "chunkhit-columns";
constexpr std::uint64_t kMaxInputs = 1'000'000;

Json inputs_json(const RatingsPlan& plan) {
  Json inputs = Json::array();
  for (const PlannedInput& input : plan.inputs)
    inputs.push_back({{"file", input.file}, {"bytes", input.bytes}, {"mtime_ns", input.mtime_ns}});
  return inputs;
}

std::vector<PlannedInput> parse_inputs(const Json& list) {
  std::vector<PlannedInput> inputs;
  for (const Json& entry : list)
    inputs.push_back(
        {entry.at("file").get<std::string>(), count_field(entry, "bytes"), integer_field(entry, "mtime_ns")});
  if (inputs.empty() || inputs.size() > kMaxInputs)
    throw_bad_data("inputs: expected 1 to " + std::to_string(kMaxInputs) + ", found " +
                   std::to_string(inputs.size()));
  return inputs;
}

StoredValues parse_values(const Json& json) {
  const auto type = enum_of<ValueType>(json.at("type").get<std::string>());
  if (!type) throw_bad_data("values: type: found " + json.at("type").dump());
  const double scale = json.at("scale").get<double>();
  if (!(scale > 0 && scale <= 1))
    throw_bad_data("values: scale: expected above 0, at most 1, found " + json.at("scale").dump());
  return {*type, scale};
}

}  // namespace

std::uint64_t RatingsPlan::id() const {
  RatingsPlan same = *this;
  same.tasks = 1;
  same.command_line.clear();
  same.root.clear();
  return xxh3(as_bytes(ratings_plan_text(same)));
}

std::string ratings_plan_text(const RatingsPlan& plan) {
  return seal_json({{"format", kRatingsPlanFormat},
                    {"version", kManifestVersion},
                    {"tool", plan.tool},
                    {"libraries", spec_json(plan.libraries)},
                    {"command_line", plan.command_line},
                    {"root", plan.root},
                    {"tasks", plan.tasks},
                    {"skips_bad_lines", plan.skips_bad_lines},
                    {"max_errors", plan.max_errors},
                    {"max_error_share", plan.max_error_share},
                    {"reuses_items", plan.reuses_items},
                    {"spec", spec_json(plan.spec)},
                    {"inputs", inputs_json(plan)}});
}

RatingsPlan parse_ratings_plan(std::string_view text, const std::string& name) {
  return with_name(name, [&] {
    const Json json = open_format(text, name, kRatingsPlanFormat);
    RatingsPlan plan;
    plan.tool = json.at("tool").get<std::string>();
    plan.libraries = parse_spec(json.at("libraries"));
    plan.command_line = json.at("command_line").get<std::string>();
    plan.root = json.at("root").get<std::string>();
    plan.tasks = count_field(json, "tasks");
    plan.skips_bad_lines = json.at("skips_bad_lines").get<bool>();
    plan.max_errors = count_field(json, "max_errors");
    plan.max_error_share = json.at("max_error_share").get<double>();
    plan.reuses_items = json.at("reuses_items").get<bool>();
    plan.spec = parse_spec(json.at("spec"));
    plan.inputs = parse_inputs(list_field(json, "inputs"));
    if (plan.tasks < 1 || plan.tasks > plan.inputs.size())
      throw_bad_data("tasks: expected 1 to " + std::to_string(plan.inputs.size()) + ", found " +
                     std::to_string(plan.tasks));
    return plan;
  });
}

std::string plan_count_text(const PlanCount& count) {
  Json scales = Json::array();
  for (const std::optional<std::uint64_t>& largest : count.value_scales)
    scales.push_back(largest ? Json(*largest) : Json());
  return seal_json({{"format", kCountFormat},
                    {"version", kManifestVersion},
                    {"plan_id", hash_text(count.plan_id)},
                    {"input_xxh3", hash_text(count.input_xxh3)},
                    {"lines", count.lines},
                    {"bad_lines", count.bad_lines},
                    {"columns_text", count.columns_text},
                    {"all_one", count.all_one},
                    {"value_scales", scales},
                    {"rows", count.rows},
                    {"ratings", count.ratings},
                    {"longest_row", count.longest_row},
                    {"items", file_json(count.items)},
                    {"users", file_json(count.users)}});
}

PlanCount parse_plan_count(std::string_view text, const std::string& name) {
  return with_name(name, [&] {
    const Json json = open_format(text, name, kCountFormat);
    PlanCount count;
    count.plan_id = hash_field(json, "plan_id");
    count.input_xxh3 = hash_field(json, "input_xxh3");
    count.lines = count_field(json, "lines");
    count.bad_lines = count_field(json, "bad_lines");
    count.columns_text = json.at("columns_text").get<std::string>();
    count.all_one = json.at("all_one").get<bool>();
    for (const Json& largest : list_field(json, "value_scales"))
      count.value_scales.push_back(largest.is_null() ? std::nullopt
                                                     : std::optional(largest.get<std::uint64_t>()));
    count.rows = count_field(json, "rows");
    count.ratings = count_field(json, "ratings");
    count.longest_row = count_field(json, "longest_row");
    count.items = parse_file(json.at("items"), json.at("items").at("file").get<std::string>());
    count.users = parse_file(json.at("users"), json.at("users").at("file").get<std::string>());
    return count;
  });
}

std::string plan_columns_text(const PlanColumns& columns) {
  Json json{{"format", kColumnsFormat},
            {"version", kManifestVersion},
            {"plan_id", hash_text(columns.plan_id)},
            {"values", values_json(columns.values)},
            {"chunk_rows", columns.chunk_rows},
            {"items", file_json(columns.items)}};
  if (columns.lacks_users) json["lacks_users"] = true;
  return seal_json(json);
}

PlanColumns parse_plan_columns(std::string_view text, const std::string& name) {
  return with_name(name, [&] {
    const Json json = open_format(text, name, kColumnsFormat);
    PlanColumns columns;
    columns.plan_id = hash_field(json, "plan_id");
    columns.values = parse_values(json.at("values"));
    columns.chunk_rows = count_field(json, "chunk_rows");
    if (columns.chunk_rows > UINT32_MAX)
      throw_bad_data("chunk_rows: found " + std::to_string(columns.chunk_rows));
    columns.items = parse_file(json.at("items"), json.at("items").at("file").get<std::string>());
    columns.lacks_users = json.value("lacks_users", false);
    return columns;
  });
}

}  // namespace chunkhit
