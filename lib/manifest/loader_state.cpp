#include "manifest/loader_state.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/hash.h"
#include "base/throw_error.h"

namespace chunkhit {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "chunkhit-loader-state-1";

[[noreturn]] void refuse(const std::string& what) { throw_usage("loader state: " + what); }

/// The fields of a state, each to be taken once; what is left at the end is none.
class Fields {
 public:
  explicit Fields(Json object) : object_(std::move(object)) {}
  [[nodiscard]] bool has(const char* key) const { return object_.contains(key); }
  Json take(const char* key, const char* expected, bool (*fits)(const Json&)) {
    const auto found = object_.find(key);
    if (found == object_.end()) refuse(std::string(key) + ": is missing, expected " + expected);
    Json value = std::move(*found);
    if (!fits(value)) refuse(std::string(key) + ": found " + value.dump() + ", expected " + expected);
    object_.erase(key);
    return value;
  }
  std::uint64_t number(const char* key) {
    return take(key, "a whole number", [](const Json& value) { return value.is_number_unsigned(); })
        .get<std::uint64_t>();
  }
  /// A count of an option, which has 32 bits and is not 0.
  std::uint64_t count(const char* key) {
    return take(key, "a number from 1 to 4294967295",
                [](const Json& value) {
                  return value.is_number_unsigned() && value.get<std::uint64_t>() >= 1 &&
                         value.get<std::uint64_t>() <= UINT32_MAX;
                })
        .get<std::uint64_t>();
  }
  std::string text(const char* key) {
    return take(key, "a text", [](const Json& value) { return value.is_string(); }).get<std::string>();
  }
  std::uint64_t hash(const char* key) {
    std::uint64_t hash = 0;
    if (const std::string found = text(key); !parse_hash(found, hash))
      refuse(std::string(key) + ": found \"" + found + "\", expected 16 hexadecimal digits");
    return hash;
  }
  bool truth(const char* key) {
    return take(key, "true or false", [](const Json& value) { return value.is_boolean(); }).get<bool>();
  }
  void finish() const {
    if (!object_.empty()) refuse(object_.begin().key() + ": no such field");
  }

 private:
  Json object_;
};

/// Parses JSON in which no key comes twice: of two, readers take different ones.
Json parse_object(const std::string& text) {
  std::vector<std::vector<std::string>> open;  // the keys of each object that has not ended
  const auto check_keys = [&open](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event != Json::parse_event_t::key) return true;
    const auto key = parsed.get<std::string>();
    for (const std::string& before : open.back())
      if (before == key) refuse(key + ": is repeated");
    open.back().push_back(key);
    return true;
  };
  Json object = Json::parse(text, check_keys, false);
  const bool is_state = object.is_object() && object.contains("format") && object["format"] == kFormat;
  if (!is_state) refuse("expected an object of format " + std::string(kFormat));
  object.erase("format");
  return object;
}

std::vector<std::pair<std::string, double>> parse_augment(Fields& fields) {
  std::vector<std::pair<std::string, double>> augment;
  if (!fields.has("augment")) return augment;
  const Json options =
      fields.take("augment", "an object", [](const Json& value) { return value.is_object(); });
  for (const auto& [name, value] : options.items()) {
    if (!value.is_number()) refuse("augment." + name + ": found " + value.dump() + ", expected a number");
    augment.emplace_back(name, value.get<double>());
  }
  return augment;
}

}  // namespace

std::string loader_state_text(const LoaderState& state) {
  Json object{{"format", kFormat},
              {"source", hash_text(state.source)},
              {"shuffle", state.shuffle},
              {"seed", state.seed},
              {"window_chunks", state.window_chunks},
              {"epoch", state.epoch},
              {"batch_size", state.batch_size},
              {"world_size", state.world_size},
              {"echo", state.echo},
              {"rank_remainder", state.rank_remainder},
              {"drop_last", state.drop_last}};
  if (state.streams > 1) {
    object["streams"] = state.streams;
    object["stream_unit"] = state.stream_unit;
  }
  if (state.sampler) object["sampler"] = hash_text(*state.sampler);
  for (const auto& [name, value] : state.augment) object["augment"][name] = value;
  object["first_position"] = state.first_position;
  object["batches"] = state.batches;
  if (state.positions) object["positions"] = *state.positions;
  return object.dump();
}

LoaderState parse_loader_state(const std::string& text) {
  Fields fields(parse_object(text));
  LoaderState state;
  state.source = fields.hash("source");
  state.shuffle = fields.text("shuffle");
  state.seed = fields.number("seed");
  state.window_chunks = fields.count("window_chunks");
  state.epoch = fields.number("epoch");
  state.batch_size = fields.count("batch_size");
  state.world_size = fields.count("world_size");
  state.echo = fields.count("echo");
  state.rank_remainder = fields.text("rank_remainder");
  state.drop_last = fields.truth("drop_last");
  if (fields.has("streams")) {
    state.streams = fields.count("streams");
    state.stream_unit = fields.number("stream_unit");
  }
  if (fields.has("sampler")) state.sampler = fields.hash("sampler");
  state.augment = parse_augment(fields);
  state.first_position = fields.number("first_position");
  state.batches = fields.number("batches");
  if (fields.has("positions")) state.positions = fields.number("positions");
  fields.finish();
  return state;
}

}  // namespace chunkhit
