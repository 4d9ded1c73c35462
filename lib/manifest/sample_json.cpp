// The shape of samples in manifests and plans.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/throw_error.h"
#include "manifest/json_fields.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

using Json = nlohmann::ordered_json;

std::uint32_t side(const Json& object, const char* key) {
  const std::uint64_t value = count_field(object, key);
  if (value < 1 || value > 0x7fffffff)
    throw_bad_data(std::string("sample: ") + key + ": expected 1 to 2147483647, found " +
                   std::to_string(value));
  return static_cast<std::uint32_t>(value);
}

/// Reads `fields`, names and roles in the order of the fields.
std::vector<SampleField> parse_fields(const Json& list) {
  std::vector<SampleField> fields;
  for (const Json& entry : list) {
    const auto role = entry.at("role").get<std::string>();
    const std::optional<FieldRole> found = enum_of<FieldRole>(role);
    if (!found) throw_bad_data("sample: fields: role: expected mask or view, found " + role);
    fields.push_back({entry.at("name").get<std::string>(), *found});
  }
  if (const std::string problem = fields_problem(fields); !problem.empty())
    throw_bad_data("sample: fields: " + problem);
  return fields;
}

}  // namespace

Json sample_json(const SampleShape& sample) {
  Json json = Json::object();
  if (sample.height != 0) json.update(Json{{"height", sample.height}, {"width", sample.width}});
  json.update(Json{{"channels", sample.channels}, {"layout", name_of(sample.layout)}, {"dtype", "uint8"}});
  if (sample.has_usual_fields()) {
    for (const SampleField& field : sample.pairs) json[field.name] = "uint8";
    return json;
  }
  for (const auto& [name, role] : sample.pairs)
    json["fields"].push_back(Json{{"name", name}, {"role", name_of(role)}});
  return json;
}

SampleShape parse_sample(const Json& object) {
  SampleShape sample{0, 0, side(object, "channels"), Layout::nhwc};
  if (object.contains("height") || object.contains("width")) {
    sample.height = side(object, "height");
    sample.width = side(object, "width");
  }
  const auto layout = object.at("layout").get<std::string>();
  const std::optional<Layout> found = enum_of<Layout>(layout);
  if (!found) throw_bad_data("sample: layout: expected nhwc or nchw, found " + layout);
  sample.layout = *found;
  if (sample.height == 0 && sample.layout != Layout::nhwc)
    throw_bad_data("sample: layout: expected nhwc where images have sizes of their own");
  if (sample.channels > 4)
    throw_bad_data("sample: channels: expected 1 to 4, found " + std::to_string(sample.channels));
  for (const RoleTraits& field : kRoles) {
    if (!object.contains(field.name)) continue;
    const std::string name = std::string("sample: ") + field.name;
    if (object.at(field.name) != "uint8") throw_bad_data(name + ": expected uint8");
    if (!sample.pairs.empty()) throw_bad_data(name + ": expected one field beside the image");
    if (sample.height == 0 && !field.fits_own_sizes) throw_bad_data(name + ": expected images of one size");
    sample.pairs.push_back({field.name, field.role});
  }
  if (!object.contains("fields")) return sample;
  if (!sample.pairs.empty()) throw_bad_data("sample: has fields beside a mask or view, expected one of them");
  sample.pairs = parse_fields(list_field(object, "fields"));
  for (const SampleField& field : sample.pairs)
    if (sample.height == 0 && !traits_of(field.role).fits_own_sizes)
      throw_bad_data("sample: fields: " + field.name + ": expected images of one size");
  if (sample.has_usual_fields()) throw_bad_data("sample: fields: expected several, or a name of its own");
  return sample;
}

}  // namespace chunkhit
