#include "manifest/json_fields.h"

#include <algorithm>
#include <limits>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/text.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void throw_field(const char* key, const char* expected, const Json& found) {
  throw_bad_data(std::string(key) + ": expected " + expected + ", found " + found.dump());
}

}  // namespace

std::uint64_t count_field(const Json& object, const char* key) {
  const Json& value = object.at(key);
  if (!value.is_number_unsigned()) throw_field(key, "a count", value);
  return value.get<std::uint64_t>();
}

std::int64_t integer_field(const Json& object, const char* key) {
  const Json& value = object.at(key);
  const bool fits = !value.is_number_unsigned() ||
                    value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (!value.is_number_integer() || !fits) throw_field(key, "a whole number of 64 bits", value);
  return value.get<std::int64_t>();
}

std::array<std::uint64_t, 4> four_counts_field(const Json& object, const char* key) {
  const Json& list = object.at(key);
  std::array<std::uint64_t, 4> counts{};
  const auto is_count = [](const Json& value) { return value.is_number_unsigned(); };
  if (!list.is_array() || list.size() != counts.size() || !std::all_of(list.begin(), list.end(), is_count))
    throw_field(key, "4 counts", list);
  std::copy(list.begin(), list.end(), counts.begin());
  return counts;
}

std::uint64_t hash_field(const Json& object, const char* key) {
  const Json& value = object.at(key);
  std::uint64_t hash = 0;
  if (!value.is_string() || !parse_hash(value.get_ref<const std::string&>(), hash))
    throw_field(key, "16 hexadecimal digits", value);
  return hash;
}

const Json& list_field(const Json& object, const char* key) {
  const Json& value = object.at(key);
  if (!value.is_array()) throw_field(key, "a list", value);
  return value;
}

namespace {

constexpr std::string_view kSealBegin = "  \"xxh3\": \"";
constexpr std::string_view kSealEnd = "\"\n}\n";
constexpr std::size_t kSealBytes = kSealBegin.size() + 16 + kSealEnd.size();
constexpr int kMaxNesting = 16;

bool nests_too_deep(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (in_string && text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      in_string = !in_string;
    else if (!in_string && (text[at] == '{' || text[at] == '['))
      deepest = std::max(deepest, ++depth);
    else if (!in_string && (text[at] == '}' || text[at] == ']'))
      --depth;
  }
  return deepest > kMaxNesting;
}

}  // namespace

std::string seal_json(const nlohmann::ordered_json& object) {
  std::string text = object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize(text.size() - 2);  // the final "\n}"
  text += ",\n";
  const std::string hash = hash_text(xxh3(as_bytes(text)));
  return text.append(kSealBegin).append(hash).append(kSealEnd);
}

nlohmann::ordered_json open_sealed_json(std::string_view text, const std::string& name) {
  const auto fail = [&](const std::string& what) -> Error {
    return {ErrorCode::bad_data, name + ": " + what};
  };
  if (text.size() < kSealBytes)
    throw fail("is " + std::to_string(text.size()) + " bytes, too short for a manifest");
  const std::string_view body = text.substr(0, text.size() - kSealBytes);
  const std::string_view seal = text.substr(body.size());
  std::uint64_t expected = 0;
  if (!seal.starts_with(kSealBegin) || !seal.ends_with(kSealEnd) ||
      !parse_hash(seal.substr(kSealBegin.size(), 16), expected))
    throw fail("does not end in its own xxh3: truncated or edited");
  const std::uint64_t found = xxh3(as_bytes(body));
  if (found != expected)
    throw fail("checksum " + hash_text(found) + ", expected " + hash_text(expected) + ": damaged or edited");
  if (nests_too_deep(text)) throw fail("is nested too deep for a manifest");
  try {
    return nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw fail(error.what());
  }
}

Json open_format(std::string_view text, const std::string& name, std::string_view format,
                 std::uint64_t max_version) {
  Json json = open_sealed_json(text, name);
  const auto found = json.at("format").get<std::string>();
  if (found != format) throw_bad_data("format: expected " + std::string(format) + ", found " + found);
  const std::uint64_t version = count_field(json, "version");
  if (version < 1 || version > max_version)
    throw_bad_data("version: expected 1" + (max_version > 1 ? " to " + std::to_string(max_version) : "") +
                   ", found " + json.at("version").dump());
  return json;
}

Json spec_json(const RecordedSpec& spec) {
  Json object = Json::object();
  for (const SpecEntry& entry : spec) object[entry.name] = entry.value;
  return object;
}

RecordedSpec parse_spec(const Json& object) {
  if (!object.is_object()) throw_bad_data("spec: expected an object, found " + object.dump());
  RecordedSpec spec;
  for (const auto& [name, value] : object.items()) spec.push_back({name, value.get<std::string>()});
  return spec;
}

namespace {

/// A whole number without a point.
Json number_json(double number) {
  const auto whole = static_cast<std::uint64_t>(number);
  return static_cast<double>(whole) == number ? Json(whole) : Json(number);
}

Json size_counts_json(const SizeCounts& counts) {
  Json ranges = Json::object();
  for (const auto& [from, images] : counts.ranges) ranges[number_text(from)] = images;
  return {{"min", number_json(counts.min)}, {"max", number_json(counts.max)}, {"ranges", std::move(ranges)}};
}

double size_field(const Json& object, const char* key) {
  const Json& value = object.at(key);
  if (!value.is_number() || value.get<double>() <= 0) throw_field(key, "a number above 0", value);
  return value.get<double>();
}

SizeCounts parse_size_counts(const Json& object) {
  SizeCounts counts{size_field(object, "min"), size_field(object, "max"), {}};
  for (const auto& [from, images] : object.at("ranges").items()) {
    double number = 0;
    if (!parse_all(from, number) || !(number >= 0 && number <= counts.max))
      throw_field("ranges", "numbers from 0 to max", from);
    counts.ranges[number] = count_field(object.at("ranges"), from.c_str());
  }
  return counts;
}

}  // namespace

Json input_sizes_json(const InputSizes& inputs) {
  Json formats = Json::array();
  for (const InputFormat& entry : inputs.formats)
    formats.push_back({{"format", entry.format},
                       {"images", entry.images},
                       {"width", size_counts_json(entry.width)},
                       {"height", size_counts_json(entry.height)},
                       {"aspect_ratio", size_counts_json(entry.aspect_ratio)}});
  Json object{{"formats", std::move(formats)},
              {"squeezed", inputs.squeezed},
              {"max_squeeze", number_json(inputs.max_squeeze)}};
  if (inputs.cropped > 0) {
    object["cropped"] = inputs.cropped;
    object["max_crop_loss"] = number_json(inputs.max_crop_loss);
  }
  if (inputs.padded > 0) {
    object["padded"] = inputs.padded;
    object["max_padding"] = number_json(inputs.max_padding);
  }
  if (inputs.alpha_dropped > 0) object["alpha_dropped"] = inputs.alpha_dropped;
  if (inputs.frames_dropped > 0) object["frames_dropped"] = inputs.frames_dropped;
  if (inputs.deep > 0) {
    object["deep"] = inputs.deep;
    object["max_value"] = inputs.max_value;
  }
  return object;
}

std::optional<InputSizes> parse_input_sizes(const Json& parent) {
  if (!parent.contains("inputs")) return std::nullopt;
  const Json& object = parent.at("inputs");
  InputSizes inputs;
  inputs.squeezed = count_field(object, "squeezed");
  inputs.max_squeeze = size_field(object, "max_squeeze");
  if (object.contains("cropped")) {
    inputs.cropped = count_field(object, "cropped");
    inputs.max_crop_loss = size_field(object, "max_crop_loss");
  }
  if (object.contains("padded")) {
    inputs.padded = count_field(object, "padded");
    inputs.max_padding = size_field(object, "max_padding");
  }
  if (object.contains("alpha_dropped")) inputs.alpha_dropped = count_field(object, "alpha_dropped");
  if (object.contains("frames_dropped")) inputs.frames_dropped = count_field(object, "frames_dropped");
  if (object.contains("deep")) {
    inputs.deep = count_field(object, "deep");
    inputs.max_value =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(count_field(object, "max_value"), 65535));
  }
  for (const Json& entry : list_field(object, "formats"))
    inputs.formats.push_back({entry.at("format").get<std::string>(), count_field(entry, "images"),
                              parse_size_counts(entry.at("width")), parse_size_counts(entry.at("height")),
                              parse_size_counts(entry.at("aspect_ratio"))});
  return inputs;
}

Json columns_json(const std::vector<PackColumn>& columns) {
  Json list = Json::array();
  for (const PackColumn& column : columns)
    list.push_back({{"name", column.name}, {"type", name_of(column.type)}});
  return list;
}

void add_kept(const std::vector<PackColumn>& item_columns, const std::vector<PackColumn>& user_columns,
              const std::string& times, bool has_repeats, Json& json) {
  if (!item_columns.empty()) json["item_columns"] = columns_json(item_columns);
  if (!user_columns.empty()) json["user_columns"] = columns_json(user_columns);
  if (!times.empty()) json["times"] = times;
  if (has_repeats) json["repeats"] = true;
}

namespace {

constexpr std::size_t kMaxColumns = 1024;

}  // namespace

std::vector<PackColumn> parse_columns(const Json& object, const char* key) {
  std::vector<PackColumn> columns;
  if (!object.contains(key)) return columns;
  for (const Json& entry : list_field(object, key)) {
    const auto name = entry.at("name").get<std::string>();
    const auto type = entry.at("type").get<std::string>();
    const std::optional<ColumnType> known = enum_of<ColumnType>(type);
    if (!known) throw_bad_data(std::string(key) + ": type: expected int64, float64 or text, found " + type);
    if (name.empty() || std::ranges::find(columns, name, &PackColumn::name) != columns.end())
      throw_bad_data(std::string(key) + ": expected different names, found \"" + name + '"');
    columns.push_back({name, *known});
    if (columns.size() > kMaxColumns)
      throw_bad_data(std::string(key) + ": expected at most " + std::to_string(kMaxColumns) + " columns");
  }
  return columns;
}

Json file_json(const FileRecord& file) {
  return {{"file", file.file}, {"bytes", file.bytes}, {"xxh3", hash_text(file.xxh3)}};
}

FileRecord parse_file(const Json& object, std::string_view expected, bool is_merged) {
  FileRecord file{object.at("file").get<std::string>(), count_field(object, "bytes"),
                  hash_field(object, "xxh3")};
  if (file.file != expected && !(is_merged && plain_table_name(file.file) == expected))
    throw_bad_data("file: expected " + std::string(expected) + ", found " + file.file);
  return file;
}

}  // namespace chunkhit
