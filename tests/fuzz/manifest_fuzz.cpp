// Any bytes as manifest.json, of images or of matrices, and as part-NNNNN.json: they end in a manifest or in
// an Error, and a manifest that is written out reads the same. Tried twice: as they are, and with the hash in
// their last line set right, so that what lies behind that check is reached. What is read is described as
// pack-info does it, with its advice on caches.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "chunkhit/error.h"
#include "manifest/manifest.h"
#include "read/pack_info.h"

namespace {

using namespace chunkhit;

constexpr std::size_t kSealBytes = 31;  // schemas/manifest.md, "The seal"
const std::string kName = "fuzz.json";

void require(bool holds) {
  if (!holds) std::abort();
}

/// Puts a right seal over the last bytes.
std::string sealed(std::string_view text) {
  std::string body(text.substr(0, text.size() - kSealBytes));
  const std::string hash = hash_text(xxh3(as_bytes(body)));
  return body.append("  \"xxh3\": \"").append(hash).append("\"\n}\n");
}

template <class Parse>
auto parsed(Parse parse, std::string_view text) -> std::optional<decltype(parse(text, kName))> {
  try {
    return parse(text, kName);
  } catch (const Error& error) {
    require(error.code() == ErrorCode::bad_data && std::string_view(error.what()).starts_with(kName));
    return std::nullopt;
  }
}

void check(const Manifest& manifest) {
  require(manifest.rows >= manifest.samples && manifest.rows - manifest.samples == manifest.rejected);
  require(manifest.sample.byte_count() > 0);
  std::uint64_t left = manifest.samples;
  for (const PartRecord& part : manifest.parts) {
    require(part.samples <= left && part.file.find('/') == std::string::npos);
    left -= part.samples;
  }
  require(left == 0 && manifest.warned <= manifest.samples);
}

void check(const MatrixManifest& manifest) {
  require(!manifest.matrices.empty() && manifest.matrices.size() <= 2 && manifest.columns > 0);
  std::uint64_t left = manifest.rows;
  for (const PartRecord& part : manifest.parts) {
    require(part.samples <= left && part.file.find('/') == std::string::npos);
    left -= part.samples;
  }
  require(left == 0);
  for (const FileRecord* list : {&manifest.users, &manifest.items})
    require(!list->file.empty() && list->file.find('/') == std::string::npos);
}

void check(const PartManifest& manifest) {
  const PartRecord& part = manifest.part;
  require(part.rows >= part.samples && part.rows - part.samples == part.rejects.size());
  require(part.warnings.size() <= part.samples);
}

void describe(const PartManifest&) {}

template <class AnyManifest>
void describe(const AnyManifest& manifest) {
  const PackInfo info = manifest_info("/nowhere", manifest);
  require(info.parts.size() == manifest.parts.size());
  require(!pack_info_json(info).empty());
}

template <class Parse, class Write>
void read(Parse parse, Write write, std::string_view text) {
  const auto manifest = parsed(parse, text);
  if (!manifest) return;
  check(*manifest);
  describe(*manifest);
  const std::string written = write(*manifest);
  const auto again = parsed(parse, written);
  require(again && write(*again) == written);
}

void read_text(std::string_view text) {
  read(parse_manifest, manifest_text, text);
  read(parse_part_manifest, part_manifest_text, text);
  read(parse_matrix_manifest, matrix_manifest_text, text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = as_text({data, size});
  read_text(text);
  if (size >= kSealBytes) read_text(sealed(text));
  return 0;
}
