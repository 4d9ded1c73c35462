#include "listing/tar_groups.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "base/words.h"
#include "listing/tar_members.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kMaxLabelBytes = std::uint64_t{1} << 20;
constexpr std::string_view kBlanksOfLabels = " \t\r\n\v\f";

// Extensions of what the decoders read, and of what they name the converter of.
constexpr auto kImageExtensions = std::to_array<std::string_view>(
    {"avif", "bmp", "dib", "gif", "heic", "heif", "jfif", "jpe", "jpeg", "jpg", "jxl",
     "npy",  "pbm", "pgm", "png", "pnm",  "ppm",  "tga",  "tif", "tiff", "webp"});

}  // namespace

SplitName split_name(std::string_view path) {
  const std::size_t base = path.rfind('/') + 1;
  const std::size_t dot = path.find('.', base);
  if (dot == std::string_view::npos) return {path, ""};
  return {path.substr(0, dot), lower(path.substr(dot + 1))};
}

bool has_image_extension(const std::string& path) {
  const std::string extension = split_name(path).extension;
  return std::ranges::find(kImageExtensions, extension.substr(extension.rfind('.') + 1)) !=
         kImageExtensions.end();
}

namespace {

bool is_hidden(std::string_view path) {
  return path.starts_with('.') || path.find("/.") != std::string_view::npos;
}

std::string kind_error(TarKind kind) {
  switch (kind) {
    case TarKind::link:
      return "a link, which is not followed";
    case TarKind::sparse:
      return "a sparse file, whose bytes do not lie in one piece";
    case TarKind::special:
      return "not a regular file";
    default:
      return "";
  }
}

/// Gathers the members of one tar by their keys.
class TarGroups {
 public:
  TarGroups(const SampleContainer& container, const TarInput& input, const LabelColumns& columns)
      : container_(container),
        input_(input),
        keys_(columns.label_column),
        keep_(columns.keep_columns),
        rules_{columns.label_separator, columns.missing != MissingLabels::reject} {}

  void take(const TarMember& member) {
    if (member.kind == TarKind::folder || member.name.empty() || is_hidden(member.name)) return;
    const auto [key, extension] = split_name(member.name);
    const auto [found, is_new] = by_key_.try_emplace(std::string(key), groups_.size());
    if (is_new) groups_.push_back({std::string(key), {}, "", {}, {}});
    TarGroup& group = groups_[found->second];
    const bool takes_cls = keys_.size() == 1 && keys_[0] == LabelCsvSpec().label_column[0];
    if (member.kind == TarKind::file && (extension == "json" || (takes_cls && extension == "cls")))
      take_label(member, extension, group);
    else
      group.images.push_back(image_of(member));
  }

  std::vector<TarGroup> finish() { return std::move(groups_); }

 private:
  /// A .cls goes before a .json, but for kept columns.
  void take_label(const TarMember& member, const std::string& extension, TarGroup& group) {
    const bool is_json = extension == "json";
    const bool is_label = group.label_from != "cls" || !is_json;
    const bool is_first = !is_label && !std::exchange(has_seen_both_, true);
    if (!is_label && keep_.empty() && !is_first) return;
    const bool is_second = group.label_from == extension || (is_json && !group.kept.values.empty());
    std::string error = is_second ? "the tar holds its ." + extension + " twice" : "";
    if (member.bytes > kMaxLabelBytes)
      error = "its label has " + count_text(member.bytes, "byte") + ", expected at most " +
              count_text(kMaxLabelBytes);
    ByteBuffer bytes(error.empty() ? member.bytes : 0);
    container_.file.read_at(input_.begin + member.offset, bytes);
    const std::string_view text = as_text(bytes);
    if (is_json && !keep_.empty()) group.kept = json_columns(text, keep_);
    if (is_json && !error.empty()) group.kept.error = error;
    if (is_first) group.has_class_name = names_class(text);
    if (!is_label) return;
    group.label_from = extension;
    group.label = !error.empty() ? LabelTexts{{}, error}
                  : is_json      ? json_labels(text, keys_, rules_)
                                 : cls_label(text);
  }

  [[nodiscard]] static bool names_class(std::string_view json) {
    const std::string key = "class";
    const LabelTexts found = json_labels(json, {&key, 1});
    return found.error.empty() && !found.labels[0].empty() && !parse_number(found.labels[0]);
  }

  [[nodiscard]] static LabelTexts cls_label(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanksOfLabels), text.size()));
    return {{std::string(text.substr(0, text.find_last_not_of(kBlanksOfLabels) + 1))}, ""};
  }

  /// A hard link is another name of a member before it.
  [[nodiscard]] TarImage image_of(const TarMember& member) {
    TarImage image{
        member.name, {input_.begin + member.offset, member.bytes, input_.container}, kind_error(member.kind)};
    if (member.kind == TarKind::hard_link) {
      const auto target = ranges_.find(member.target);
      if (target != ranges_.end())
        image.range = target->second;
      else
        image.error =
            "a link to " + printable_text(member.target) + ", which is no file in the tar before it";
    }
    if (image.error.empty() && !ranges_.try_emplace(member.name, image.range).second)
      image.error = "the tar holds it twice";
    return image;
  }

  const SampleContainer& container_;
  const TarInput& input_;
  std::span<const std::string> keys_;
  std::span<const std::string> keep_;
  JsonLabelRules rules_;
  std::unordered_map<std::string, std::size_t> by_key_;
  std::unordered_map<std::string, FileRange> ranges_;  // of files, by name
  std::vector<TarGroup> groups_;
  bool has_seen_both_ = false;  ///< a .json beside a .cls
};

}  // namespace

std::vector<TarGroup> read_tar(const SampleContainer& container, const TarInput& input,
                               const LabelColumns& columns) {
  TarReader reader(container.file, input.begin, input.bytes, container.file.path());
  TarGroups groups(container, input, columns);
  for (TarMember member; reader.next(member);) groups.take(member);
  return groups.finish();
}

}  // namespace chunkhit
