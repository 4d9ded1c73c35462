#include "manifest/sealed_json.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/hash.h"
#include "chunkhit/error.h"

namespace chunkhit {
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

}  // namespace chunkhit
