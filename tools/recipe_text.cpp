#include "recipe_text.h"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli.h"
#include "codec/chunk_codec.h"
#include "pack/images/image_fields.h"
#include "pack/ratings/pack_sparse_spec.h"
#include "pack/ratings/sparse_fields.h"
#include "types/fields.h"

namespace chunkhit {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

/// Collects the flags of recorded values that differ from those of a plain spec.
class FlagCollector : public FieldVisitor<FlagCollector> {
 public:
  FlagCollector(const Entries& recorded, std::string codec) : recorded_(recorded), codec_(std::move(codec)) {}

  template <class Value, class Form>
  void operator()(const Field& field, const Value& plain, const Form& form) {
    const std::string name = dashed(field.name);
    const auto found = std::ranges::find(recorded_, name, &std::pair<std::string, std::string>::first);
    if (found == recorded_.end() || is_computed(name, found->second) || found->second == form.text(plain))
      return;
    flags += " --" + name;
    if constexpr (std::is_base_of_v<SwitchForm, Form>) return;
    constexpr bool kIsPath = std::is_base_of_v<PathForm, Form>;
    const std::string shape = *field.shape == 0 ? Form::kShape : field.shape;
    flags += " " + (kIsPath || name == "pair" ? shape : shell_word(found->second));
  }
  template <class Value, class Form>
  void unrecorded(const Field&, const Value&, const Form&) {}

  std::string flags;

 private:
  /// What was computed, or says what kind of input there was.
  [[nodiscard]] bool is_computed(std::string_view name, const std::string& value) const {
    return name.starts_with("chunk-") || name == "part-samples" || (name == "codec" && value == codec_) ||
           (name == "labels" && value != "csv" && value != "idx") || (name == "pair" && value == "members") ||
           (name == "classes" && value == "sorted");
  }

  const Entries& recorded_;
  std::string codec_;
};

template <class Spec>
std::string flags_of(const Entries& recorded, const Spec& plain, const CodecChoice& codec) {
  FlagCollector collector(recorded, codec_text(codec));
  show(plain, collector);
  return collector.flags;
}

/// Whether ratings came from a RatingWriter, which is then the one input.
bool is_of_program(const PackInfo& info) {
  const std::vector<InputStats>& inputs = info.matrix().stats.inputs;
  return inputs.size() == 1 && inputs.front().file == "RatingWriter" && inputs.front().lines == 0;
}

}  // namespace

std::string recipe_text(const PackInfo& info) {
  const auto recorded = [&](std::string_view name) {
    const auto found = std::ranges::find(info.spec, name, &std::pair<std::string, std::string>::first);
    return found == info.spec.end() ? std::string() : found->second;
  };
  if (info.tool.starts_with("pack-sparse ")) {
    PackSparseSpec codec, plain;
    codec.container = recorded("container");
    std::string flags = flags_of(info.spec, plain, codec_choice(codec));
    const std::uint64_t bad = info.is_matrix() ? info.matrix().stats.bad_lines : 0;
    if (bad > 0) flags += " --on-error skip --max-errors " + std::to_string(bad);
    return (is_of_program(info) ? "ratings of a program (RatingWriter, pack_ratings)" : "pack-sparse INPUT") +
           flags;
  }
  const bool is_made = recorded("labels") != "writer" &&
                       !(recorded("sizes") == "own" && recorded("container") == "hdf5");  // of 0.1.0
  if (!info.tool.starts_with("pack-images ") || !is_made) return "";
  PackImagesSpec codec, plain;
  codec.sizes = recorded("sizes") == "own" ? Sizes::own : Sizes::fixed;
  codec.container = recorded("container");
  codec.transform.channels = enum_of<Channels>(recorded("channels")).value_or(Channels::rgb);
  plain.container = default_container(codec.sizes);
  return "pack-images ROOT" + flags_of(info.spec, plain, codec_choice(codec));
}

}  // namespace chunkhit
