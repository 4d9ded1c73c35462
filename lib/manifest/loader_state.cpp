#include "manifest/loader_state.h"

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr const char* kFormat = "chunkhit-loader-state-1";

std::uint64_t number(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned())
    throw Error(ErrorCode::usage, std::string("loader state: ") + key + ": expected a number");
  return found->get<std::uint64_t>();
}

bool truth(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_boolean())
    throw Error(ErrorCode::usage, std::string("loader state: ") + key + ": expected true or false");
  return found->get<bool>();
}

std::string text_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string())
    throw Error(ErrorCode::usage, std::string("loader state: ") + key + ": expected a text");
  return found->get<std::string>();
}

}  // namespace

std::string loader_state_text(const LoaderState& state) {
  nlohmann::ordered_json object{{"format", kFormat},
                                {"source", hash_text(state.source)},
                                {"shuffle", state.shuffle},
                                {"seed", state.seed},
                                {"window_chunks", state.window_chunks},
                                {"epoch", state.epoch},
                                {"batch_size", state.batch_size},
                                {"world_size", state.world_size},
                                {"echo", state.echo},
                                {"uneven", state.uneven},
                                {"drop_last", state.drop_last},
                                {"first_place", state.first_place},
                                {"batches", state.batches}};
  if (state.places) object["places"] = *state.places;
  return object.dump();
}

LoaderState parse_loader_state(const std::string& text) {
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object() || text_of(object, "format") != kFormat)
    throw Error(ErrorCode::usage, std::string("loader state: expected an object of format ") + kFormat);
  LoaderState state;
  const std::string source = text_of(object, "source");
  if (source.size() != 16 || source.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw Error(ErrorCode::usage, "loader state: source: expected 16 hexadecimal digits");
  state.source = std::stoull(source, nullptr, 16);
  state.shuffle = text_of(object, "shuffle");
  state.seed = number(object, "seed");
  state.window_chunks = number(object, "window_chunks");
  state.epoch = number(object, "epoch");
  state.batch_size = number(object, "batch_size");
  state.world_size = number(object, "world_size");
  state.echo = number(object, "echo");
  state.uneven = text_of(object, "uneven");
  state.drop_last = truth(object, "drop_last");
  state.first_place = number(object, "first_place");
  state.batches = number(object, "batches");
  if (object.contains("places")) state.places = number(object, "places");
  return state;
}

}  // namespace chunkhit
