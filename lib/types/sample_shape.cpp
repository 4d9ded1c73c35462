#include "types/sample_shape.h"

#include <optional>
#include <set>
#include <utility>

#include "base/throw_error.h"
#include "base/words.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

/// Names of other things in manifests, batches and HDF5 files, and of those that have another role.
constexpr std::array<std::string_view, 17> kTakenNames{
    "image",   "images",  "label", "labels", "samples", "sample", "masks", "views", "label_columns",
    "columns", "classes", "rows",  "files",  "data",    "key",    "seed",  "batch"};

bool is_field_name(std::string_view name) {
  constexpr std::size_t kMaxBytes = 32;
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && name.size() <= kMaxBytes && is_letter(name.front()) &&
         std::ranges::all_of(name,
                             [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

std::string field_problem(const SampleField& field) {
  if (!is_field_name(field.name))
    return "'" + field.name + "': expected a name of up to 32 lower-case letters, digits and _";
  if (std::ranges::find(kTakenNames, field.name) != kTakenNames.end())
    return field.name + ": is the name of something else; choose another one";
  for (const RoleTraits& role : kRoles)
    if (field.name == role.name && field.role != role.role)
      return field.name + ": is the name of a " + role.name + ", found a " + traits_of(field.role).name;
  return "";
}

/// Throws usage for what stands where a role does and is like one.
void check_role(std::string_view text, std::string_view option) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || text.find('/', colon) != text.npos) return;
  const std::string_view word = text.substr(colon + 1);
  std::vector<std::string> roles;
  for (const RoleTraits& role : kRoles) {
    const std::string_view name = role.name;
    if (word.size() + 1 >= name.size() && word.size() <= name.size() + 1) roles.emplace_back(name);
  }
  const std::string hint = did_you_mean(word, roles);
  if (!hint.empty())
    throw_usage(std::string(option) + ": '" + std::string(text) + "': expected :mask or :view at the end" +
                hint);
}

FieldPlace parse_field(std::string_view text, std::string_view option) {
  std::optional<FieldRole> given;
  for (const RoleTraits& role : kRoles) {
    const std::string suffix = std::string(":") + role.name;
    if (!text.ends_with(suffix)) continue;
    given = role.role;
    text.remove_suffix(suffix.size());
    break;
  }
  if (!given) check_role(text, option);
  const std::size_t equals = text.find('=');
  const bool has_name = equals != text.npos && text.substr(0, equals).find('/') == text.npos;
  std::string name(has_name ? text.substr(0, equals) : "");
  if (has_name) text.remove_prefix(equals + 1);
  const FieldRole role = given.value_or(enum_of<FieldRole>(name).value_or(FieldRole::mask));
  if (!has_name) name = traits_of(role).name;
  return {{std::move(name), role}, std::string(text)};
}

}  // namespace

std::vector<FieldPlace> parse_fields(std::span<const std::string> texts, std::string_view option,
                                     std::string_view shape) {
  std::vector<FieldPlace> found;
  std::vector<SampleField> fields;
  for (const std::string& text : texts) {
    found.push_back(parse_field(text, option));
    fields.push_back(found.back().field);
    if (found.back().place.empty())
      throw_usage(std::string(option) + ": expected " + std::string(shape) + ", found '" + text + "'");
  }
  if (const std::string problem = fields_problem(fields); !problem.empty())
    throw_usage(std::string(option) + ": " + problem + "; NAME=" +
                std::string(shape.substr(shape.find(']') + 1, shape.rfind('[') - shape.find(']') - 1)) +
                " names a field");
  return found;
}

std::vector<std::string> field_texts(std::span<const FieldPlace> fields) {
  std::vector<std::string> texts;
  texts.reserve(fields.size());
  for (const auto& [field, place] : fields)
    texts.push_back(field.name + "=" + place + ":" + traits_of(field.role).name);
  return texts;
}

std::string fields_text(const SampleShape& sample) {
  std::string text;
  for (const SampleField& field : sample.pairs) {
    text.append(text.empty() ? " with " : " and ").append(plural_of(field));
    if (field.role == FieldRole::view && !has_usual_name(field)) text += " (views)";
  }
  return text;
}

std::string shape_text(const SampleShape& sample) {
  if (sample.height == 0)
    return "their own sizes, " + count_text(sample.channels, "channel") + fields_text(sample);
  return std::to_string(sample.height) + "x" + std::to_string(sample.width) + "x" +
         std::to_string(sample.channels) + " " + name_of(sample.layout) + fields_text(sample);
}

std::string fields_problem(const std::vector<SampleField>& fields) {
  if (fields.size() > kMaxFields)
    return std::to_string(fields.size()) + " fields, expected at most " + std::to_string(kMaxFields);
  std::set<std::string_view> names;
  for (const SampleField& field : fields) {
    std::string problem = field_problem(field);
    if (!problem.empty()) return problem;
    if (!names.insert(field.name).second) return field.name + ": is repeated";
  }
  return "";
}

}  // namespace chunkhit
