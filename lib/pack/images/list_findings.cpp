#include "pack/images/list_findings.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "base/words.h"
#include "decode/image_decoder.h"
#include "pack/images/image_reader.h"
#include "pack/images/mask_decoder.h"
#include "types/input_sizes.h"
#include "types/reject.h"

namespace chunkhit {
namespace {

constexpr std::size_t kLookedAt = 64;
constexpr std::size_t kMaxFindings = 3;

/// Files of the list by what is wrong with them: how many, and the first.
struct Sampled {
  std::size_t looked_at = 0;
  std::size_t rejected = 0;
  std::string first_reject;
  std::size_t enlarged = 0;
  std::string first_enlarged;
};

/// Whether a sample has more pixels than the image on both sides, its padding aside.
bool is_enlarged(const FirstImage& image, const TransformSpec& transform) {
  if (transform.resize == Resize::none) return false;
  if (transform.resize == Resize::short_side)
    return std::min(image.width, image.height) < transform.resize_width;
  return image.width < transform.resize_width && image.height < transform.resize_height;
}

/// Makes the masks of a list's sample, and throws ImageError where one cannot be packed. Of views, looks only
/// whether they are there.
void check_pairs_of(const ImageRun& run, const InputFolders& folders, const SampleList& list,
                    std::size_t index, const FirstImage& image) {
  MaskDecoder masks(run.spec);
  for (const PairFolder& pair : folders.pairs) {
    if (traits_of(pair.field.role).is_image) {
      static_cast<void>(open_pair(folders.images, pair, list, index));
      continue;
    }
    const MaskDecoder::Size size{image.width, image.height};
    std::vector<std::uint8_t> out(masks.plan(size).sample.pixel_bytes());
    static_cast<void>(
        masks.make(folders.images, pair, list, index, size, run.spec.max_decode_bytes, out.data()));
  }
}

Sampled look_at_files(const ImageRun& run, const SampleList& list) {
  const PackImagesSpec& spec = run.spec;
  const RootFolder root(run.options.root, spec.follow_symlinks);
  const std::vector<SampleField> fields = fields_of(spec, list);
  const std::vector<PairFolder> pairs = pair_folders(spec, fields);
  Sampled sampled{.looked_at = std::min(list.size(), kLookedAt), .first_reject = {}, .first_enlarged = {}};
  ByteBuffer bytes;
  for (std::size_t i = 0; i < sampled.looked_at; ++i) {
    const std::size_t index = i * list.size() / sampled.looked_at;
    const std::string file(list.file(index));
    try {
      load_with_retries(spec, root, list, index, bytes);
      const SampleShape pixels = list.shapes.empty() ? SampleShape() : list.shapes[index];
      const FirstImage image = probe_file(spec, file, bytes, pixels, fields);
      make_with_retries(file, [&] { check_pairs_of(run, {root, pairs}, list, index, image); });
      if (!is_enlarged(image, spec.transform) || sampled.enlarged++ > 0) continue;
      sampled.first_enlarged =
          file + " with " + std::to_string(image.width) + "x" + std::to_string(image.height) + " pixels";
    } catch (const ImageError& error) {
      if (sampled.rejected++ == 0) sampled.first_reject = file + ": " + error.reason();
    }
  }
  return sampled;
}

std::string class_name(const SampleList& list, std::int64_t id) {
  const auto at = static_cast<std::size_t>(id);
  return "class " + (id >= 0 && at < list.classes.size() ? list.classes[at] : std::to_string(id));
}

std::map<std::int64_t, std::uint64_t> count_classes(const SampleList& list,
                                                    const std::vector<std::uint32_t>& indices) {
  std::map<std::int64_t, std::uint64_t> counts;
  for (const std::uint32_t index : indices) ++counts[list.class_ids[index]];
  return counts;
}

/// "val lacks 3 classes, the first is class ant".
void find_lacking(const ImageInput& input, std::vector<std::string>& findings) {
  std::map<std::int64_t, std::uint64_t> all;
  std::vector<std::map<std::int64_t, std::uint64_t>> packs;
  for (const PackSamples& pack : input.packs) {
    packs.push_back(count_classes(input.list, pack.indices));
    for (const auto& [id, count] : packs.back()) all[id] += count;
  }
  for (std::size_t pack = 0; packs.size() > 1 && pack < packs.size(); ++pack) {
    const std::size_t lacking = all.size() - packs[pack].size();
    const auto first =
        std::ranges::find_if(all, [&](const auto& each) { return !packs[pack].contains(each.first); });
    if (lacking > 0)
      findings.push_back(input.packs[pack].name + " lacks " + count_text(lacking, "class") +
                         ", the first is " + class_name(input.list, first->first));
  }
  constexpr std::uint64_t kFew = 10, kShareOfMost = 20;
  if (all.size() < 2) return;
  const auto by_count = [](const auto& one, const auto& other) { return one.second < other.second; };
  const auto [least, most] = std::ranges::minmax_element(all, by_count);
  if (least->second >= kFew && least->second * kShareOfMost >= most->second) return;
  const auto is_few = [max_images = most->second](const auto& each) {
    return each.second < kFew || each.second * kShareOfMost < max_images;
  };
  if (least->second < most->second)
    findings.push_back(count_text(static_cast<std::uint64_t>(std::ranges::count_if(all, is_few)), "class") +
                       " of " + count_text(all.size()) + " with few images: " +
                       class_name(input.list, least->first) + " has " + count_text(least->second) + ", " +
                       class_name(input.list, most->first) + " " + count_text(most->second));
}

/// Decodes all of a view; gives its largest value where it has 16 bits a value, else 0.
std::uint32_t max_value_of(const PackImagesSpec& spec, const SampleFile& view) {
  ByteBuffer bytes;
  if (view.bytes > spec.max_decode_bytes || view.pixels.channels != 0 || view.read(bytes)) return 0;
  ImageFile file(bytes, decode_options(spec));
  const ImageHeader& header = file.header();
  const std::uint64_t pixel_bytes = std::uint64_t{header.width} * header.height * header.channels;
  if (std::max(header.peak_bytes, header.extra_bytes + pixel_bytes) > spec.max_decode_bytes) return 0;
  Image pixels;
  file.decode({1, {0, 0, header.width, header.height}, 0}, pixels);
  return header.max_value;
}

InputSizes look_at_views(const ImageRun& run, const SampleList& list, const PairFolder& views) {
  constexpr std::size_t kViews = 8;
  const RootFolder root(run.options.root, run.spec.follow_symlinks);
  InputSizes seen;
  const std::size_t count = std::min(list.size(), kViews);
  for (std::size_t i = 0; i < count; ++i) {
    try {
      const MaskFile view = open_pair(root, views, list, i * list.size() / count);
      const std::uint32_t max_value = max_value_of(run.spec, view.file);
      seen.deep += max_value > 0 ? 1 : 0;
      seen.max_value = std::max(seen.max_value, max_value);
    } catch (const ImageError&) {
    } catch (const MachineError&) {
    }
  }
  return seen;
}

}  // namespace

std::vector<std::string> dark_view_notices(const ImageRun& run, const ImageInput& input) {
  std::vector<std::string> notices;
  for (const PairFolder& pair : pair_folders(run.spec, input.first.sample.pairs)) {
    if (!traits_of(pair.field.role).is_image || input.list.labels_from == LabelSource::writer) continue;
    const std::string text = range_text(look_at_views(run, input.list, pair));
    if (!text.empty()) notices.push_back("views '" + pair.field.name + "' that were looked at: " + text);
  }
  return notices;
}

std::vector<std::string> find_in_list(const ImageRun& run, const ImageInput& input) {
  std::vector<std::string> findings;
  const Sampled sampled = look_at_files(run, input.list);
  const std::string of_looked_at = " of " + count_text(sampled.looked_at, "file") + " that were looked at ";
  if (sampled.rejected > 0)
    findings.push_back(count_text(sampled.rejected) + of_looked_at + "would be rejected, the first is " +
                       sampled.first_reject);
  if (input.list.label_kind == LabelKind::class_id) find_lacking(input, findings);
  if (sampled.enlarged > 0)
    findings.push_back(count_text(sampled.enlarged) + of_looked_at + "are enlarged, the first is " +
                       sampled.first_enlarged);
  findings.resize(std::min(findings.size(), kMaxFindings));
  return findings;
}

}  // namespace chunkhit
