#include "pack/images/pack_spec.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "base/hash.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "decode/image_decoder.h"
#include "manifest/recorded_fields.h"
#include "pack/images/image_fields.h"
#include "pack/images/mask_decoder.h"
#include "store/part.h"
#include "store/part_index.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

std::string names_hash(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + '\n';
  return hash_text(xxh3(as_bytes(text)));
}

/// chunk-samples follows from the number of samples where no flag gives it.
RecordedSpec without_chunk_samples(RecordedSpec spec) {
  std::erase_if(spec, [](const SpecEntry& entry) { return entry.name == "chunk-samples"; });
  return spec;
}

/// A spec for people: the classes by where they come from, not by their hash.
RecordedSpec with_source_of_classes(RecordedSpec spec, const std::string& hash, const std::string& source) {
  for (SpecEntry& entry : spec)
    if (entry.name == "classes" && entry.value != "sorted")
      entry.value = entry.value == hash ? source : "a list";
  return spec;
}

void check_folder_name(const std::string& flag, const std::string& name) {
  const std::string words = flag + ": '" + name + "' is no name for a folder";
  if (name.find('/') != std::string::npos) throw_usage(words + "; it must not contain /");
  if (name.starts_with(".")) throw_usage(words + "; it must not begin with a dot");
  if (name.empty()) throw_usage(words);
}

void check_split_folders(const PackImagesSpec& spec) {
  const std::vector<std::string>& folders = spec.folders.split_folders;
  if (folders.empty()) return;
  if (!spec.split.empty()) throw_usage("`split` and `split_folders` exclude each other");
  if (!spec.labels.empty()) throw_usage("`split_folders`: is for class folders, not for `labels`");
  std::set<std::string> names;
  for (const std::string& name : folders) {
    check_folder_name("`split_folders`", name);
    if (!names.insert(name).second) throw_usage("`split_folders`: " + name + " is repeated");
  }
}

void check_classes(const PackImagesSpec& spec) {
  if (!spec.pair.empty() && spec.labels.empty() && !spec.classes.empty())
    throw_usage("`classes`: folders are no classes with `pair`; give `labels`, or leave it out");
  const LabelType type = spec.columns.label_type;
  if (type == LabelType::numbers && !spec.classes.empty())
    throw_usage("`label_type` numbers: excludes `classes`, which takes labels as names");
  if (type == LabelType::none && !spec.classes.empty())
    throw_usage("`label_type` none: excludes `classes`, samples have no labels then");
  if (type == LabelType::none && spec.columns.label_column != LabelCsvSpec().label_column)
    throw_usage(
        "`label_type` none: excludes `label_column`; `keep_columns` stores a column beside the images");
  if (type != LabelType::automatic && !spec.columns.label_separator.empty())
    throw_usage("`label_type`: excludes `label_separator`, which takes labels as names");
  if (spec.columns.empty_labels != EmptyLabels::zeros && spec.columns.label_separator.empty())
    throw_usage("`empty_labels`: needs `label_separator`; other samples without a label are always rejected");
  check_columns(LabelColumns{spec.columns, !spec.classes.empty()});
}

/// Throws usage for what is given of `sizes` own alone.
void check_fixed(const OwnSizesSpec& own) {
  const OwnSizesSpec plain;
  const std::pair<const char*, bool> given[] = {{"max_side", own.max_side != 0},
                                                {"short_side", own.short_side != 0},
                                                {"store", own.store != plain.store},
                                                {"quality", own.quality != plain.quality},
                                                {"jpeg_tile", own.jpeg_tile != plain.jpeg_tile},
                                                {"part_samples", own.part_samples != 0}};
  for (const auto& [field, is_given] : given)
    if (is_given) throw_usage("`" + std::string(field) + "`: is for `sizes` own");
}

/// Refuses what has no meaning, so that no flag is without effect in silence.
void check_sizes(const PackImagesSpec& spec) {
  const OwnSizesSpec& own = spec.own_sizes;
  const OwnSizesSpec plain;
  if (spec.sizes == Sizes::fixed) return check_fixed(own);
  if (spec.transform.resize != Resize::none || spec.transform.crop_width != 0)
    throw_usage(
        "`sizes` own: `resize`, `fit` and `crop` give all images one shape; `max_side` or "
        "`short_side` makes them smaller");
  if (own.quality < 1 || own.quality > 100) throw_usage("`quality`: expected 1 to 100");
  constexpr std::uint32_t kMaxRowMcus = 8192;
  if (own.jpeg_tile > kMaxRowMcus) throw_usage("`jpeg_tile`: expected up to " + std::to_string(kMaxRowMcus));
  if (own.store == SizedStore::photo && spec.transform.channels != Channels::rgb)
    throw_usage("`store` photo: is for `channels` rgb; zstd takes any");
  if (own.store != SizedStore::jpeg && own.jpeg_tile != plain.jpeg_tile)
    throw_usage("`jpeg_tile`: is for `store` jpeg");
  const bool encodes = own.max_side != 0 || own.short_side != 0;
  if (own.quality != plain.quality && (own.store != SizedStore::jpeg || !encodes))
    throw_usage(
        "`quality`: is for what is encoded: `store` jpeg with images that are made smaller (`max_side`, "
        "`short_side`)");
  if (own.max_side != 0 && own.short_side != 0) throw_usage("`max_side` and `short_side` exclude each other");
  if (spec.container != "shard")
    throw_usage("`sizes` own: `container`: expected shard, found " + spec.container +
                "; HDF5 takes images of one shape");
  if (!spec.codec.empty() && spec.codec != "none")
    throw_usage("`sizes` own: `codec`: expected none, found " + spec.codec +
                "; `store` says how images are stored");
  if (spec.chunk_samples != 0)
    throw_usage("`sizes` own: chunks are cut by `chunk_bytes`, not by `chunk_samples`");
  const std::uint64_t most = container(spec.container).max_chunk_bytes;
  if (spec.chunk_bytes > most) throw_usage("`chunk_bytes`: expected at most " + std::to_string(most));
  if (spec.transform.layout != Layout::nhwc) throw_usage("`sizes` own: `layout`: expected nhwc");
}

/// Throws usage where a crop is larger than what `resize` or `fit` leaves of every image, so that all samples
/// would have black borders.
void check_crop(const TransformSpec& transform) {
  const std::uint32_t width = transform.crop_width, height = transform.crop_height;
  if (width == 0 || transform.resize == Resize::none || transform.resize == Resize::long_side) return;
  const bool is_short_side = transform.resize == Resize::short_side;
  const std::uint32_t side = transform.resize_width;
  if (is_short_side ? std::min(width, height) <= side : width <= side && height <= transform.resize_height)
    return;
  const auto text = [](std::uint32_t w, std::uint32_t h) {
    return std::to_string(w) + "x" + std::to_string(h);
  };
  const std::string of = transform.resize == Resize::fit ? "`fit`" : "`resize`";
  const std::string left = is_short_side
                               ? std::to_string(side) + " leaves a short side of " + std::to_string(side)
                               : text(side, transform.resize_height) + " leaves less";
  throw_usage("`crop` " + text(width, height) + ": " + of + " " + left +
              ", so that every sample would have black borders; give a smaller `crop` or a larger " + of);
}

/// Refuses the same of resizing.
void check_resizing(const PackImagesSpec& spec) {
  const TransformSpec& transform = spec.transform;
  const TransformSpec plain;
  if (transform.resize != Resize::fit && transform.pad_color != plain.pad_color)
    throw_usage("`pad_color`: is for `fit`, which pads");
  if (spec.mask_pad != 0 && transform.resize != Resize::fit && transform.crop_width == 0)
    throw_usage("`mask_pad`: is for `fit` and `crop`, which pad; loaders have mask_padding");
  const bool resizes =
      transform.resize != Resize::none || spec.own_sizes.max_side != 0 || spec.own_sizes.short_side != 0;
  if (!resizes && transform.resample != plain.resample)
    throw_usage(
        "`resample`: is for images that are resized: give `resize` or `fit`, or with `sizes` own "
        "`max_side` or `short_side`");
  check_crop(transform);
}

/// What a pack records of its fields: where their files were is not part of it.
std::vector<std::string> recorded_pairs(const PackImagesSpec& spec, const SampleList& list) {
  std::vector<FieldPlace> pairs = pairs_of(spec);
  const char* const place = !pairs.empty()                            ? "folder"
                            : list.labels_from == LabelSource::writer ? "writer"
                                                                      : "members";
  if (pairs.empty())
    for (const ListedField& listed : list.fields) pairs.push_back({listed.field, ""});
  for (FieldPlace& pair : pairs) pair.place = place;
  if (pairs.size() != 1 || !has_usual_name(pairs[0].field)) return field_texts(pairs);
  return {place + std::string(traits_of(pairs[0].field.role).is_image ? ":view" : "")};
}

/// The columns of fields in one spelling.
std::vector<std::string> recorded_columns(const PackImagesSpec& spec) {
  const std::vector<FieldPlace> columns = field_columns(spec.columns);
  const bool is_mask = columns.size() == 1 && columns[0].field == SampleField{"mask"};
  const bool is_bare = is_mask && columns[0].place.find_first_of(":=") == std::string::npos;
  return is_bare ? std::vector{columns[0].place} : field_texts(columns);
}

void check_split(const PackImagesSpec& spec) {
  const std::vector<SplitShare>& split = spec.split;
  const bool is_by_values = !spec.split_column.empty();
  if (is_by_values && !spec.split_group.empty())
    throw_usage("`split_column` and `split_group` exclude each other");
  double sum = 0;
  std::set<std::string> names;
  for (const SplitShare& share : split) {
    check_folder_name("`split`", share.name);
    if (!names.insert(share.name).second) throw_usage("`split`: " + share.name + " is repeated");
    if (!is_by_values && !(share.share > 0))
      throw_usage("`split`: " + share.name + ": expected a share above 0" +
                  (share.values.empty() ? "" : ", found " + share.values + "; `split_column` takes values"));
    sum += share.share;
  }
  if (split.size() > 255) throw_usage("`split`: at most 255 shares");
  if (!split.empty() && !is_by_values && std::abs(sum - 1) > 1e-6)
    throw_usage("`split`: the shares add up to " + number_text(sum) + ", expected 1");
}

}  // namespace

void check_fields(const PackImagesSpec& spec, const std::vector<SampleField>& fields) {
  if (spec.sizes == Sizes::fixed) return;
  for (const SampleField& field : fields)
    if (!traits_of(field.role).fits_own_sizes)
      throw_usage("`sizes` own: found the " + std::string(traits_of(field.role).name) + " '" + field.name +
                  "'; images of their own sizes have masks alone beside them");
}

CodecChoice codec_choice(const PackImagesSpec& spec) {
  if (spec.sizes == Sizes::own) return {"none", 0};
  const Container& kind = container(spec.container);
  const bool rgb = spec.transform.channels == Channels::rgb;
  // Photo is for colours alone; the next codec takes any channels.
  const std::string_view plain = kind.codecs[kind.codecs[0] == "photo" && !rgb ? 1 : 0];
  return parse_codec(spec.codec.empty() ? std::string(plain) : spec.codec, spec.container, kind.codecs);
}

RecordedSpec recorded_spec(const PackImagesSpec& spec, const ChunkPlan& plan, const std::string& split_name,
                           const SampleList& list) {
  const bool is_written = list.labels_from == LabelSource::writer;
  PackImagesSpec recorded = spec;
  recorded.pair = recorded_pairs(spec, list);
  recorded.columns.mask_column = recorded_columns(spec);
  const bool is_sets = !spec.columns.label_separator.empty();
  std::map<std::string, std::string> computed{
      {"labels", name_of(list.labels_from)},
      {"classes", spec.classes.empty() ? "sorted" : names_hash(is_sets ? list.label_columns : list.classes)},
      {"codec", codec_text(codec_choice(spec))},
      {"chunk-bytes", std::to_string(plan.chunk_bytes)},
      {"chunk-samples", std::to_string(plan.chunk_samples)}};
  if (recorded.pair == std::vector<std::string>{kOneView}) computed["pair"] = kOneMask;
  // Recorded where it matters: packs from before it was an option have no sample without a label.
  if (spec.columns.empty_labels == EmptyLabels::zeros && list.empty_labels == 0)
    computed["empty-labels"] = "";
  if (is_written) computed["include"] = "";
  if (list.labels_from == LabelSource::folders) computed["label-column"] = "";
  if (list.labels_from == LabelSource::csv && !is_sets)
    computed["label-column"] = RepeatedForm().text(list.label_columns);
  FieldRecorder recorder(std::move(computed));
  show(std::as_const(recorded), recorder);
  if (!split_name.empty()) recorder.entries.push_back({"split-name", split_name});
  return std::move(recorder.entries);
}

PackImagesSpec spec_of(const RecordedSpec& recorded) {
  PackImagesSpec spec;
  RecordReader reader(recorded);
  show(spec, reader);
  if (spec.sizes == Sizes::own && spec.own_sizes.part_samples == 0)
    throw_bad_data("spec: part-samples: found '0'");
  if (recorded.has("pair-kind") && recorded.get("pair-kind") != "mask") spec.pair = {kOneView};
  // What says which samples there are is not recorded as it was given; a plan lists them.
  spec.labels.clear();
  spec.columns = {};
  spec.folders = {};
  spec.classes.clear();
  spec.split.clear();
  check_spec(spec);
  return spec;
}

std::string pack_difference(const EarlierPack& before, const WantedPack& now) {
  const bool list_changed = pack_id(before.spec, now.input_xxh3) != before.pack_id;
  const bool computed = now.flags.chunk_samples == 0 && now.flags.chunk_bytes == 0;
  const std::string hash = now.spec.get("classes");
  const auto earlier = with_source_of_classes(before.spec, hash, now.flags.classes);
  const auto wanted = with_source_of_classes(now.spec, hash, now.flags.classes);
  std::string difference =
      computed ? first_difference(without_chunk_samples(earlier), without_chunk_samples(wanted))
               : first_difference(earlier, wanted);
  if (!list_changed) return difference.empty() ? first_difference(earlier, wanted) : difference;
  std::string text = "the input list changed";
  if (before.rows && *before.rows == now.rows)
    text += ": other files, labels or order in its " + count_text(now.rows, "row");
  else if (before.rows)
    text += ": " + count_text(*before.rows, "row") + " before, " + count_text(now.rows) + " now";
  return difference.empty() ? text : text + "; " + difference;
}

bool is_column_name(const std::string& name) {
  return !name.empty() && name != "." && name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

void check_spec(const PackImagesSpec& spec) {
  const LabelCsvSpec plain;
  const LabelCsvSpec& columns = spec.columns;
  if (spec.labels.empty() && columns.file_column != plain.file_column)
    throw_usage("`file_column` is for a CSV: give it with `labels`");
  if (columns.keep_columns.size() > kMaxKeptColumns)
    throw_usage("`keep_columns`: found " + count_text(columns.keep_columns.size(), "column") +
                ", expected at most " + count_text(kMaxKeptColumns));
  for (const std::string& name : columns.keep_columns)
    if (!is_column_name(name)) throw_usage("`keep_columns`: '" + name + "' is no name for a dataset of HDF5");
  if (spec.transform.background && spec.transform.channels == Channels::rgba)
    throw_usage("`background`: is for samples without alpha; leave out `channels` rgba");
  if (spec.scale_from[0] >= spec.scale_from[1])
    throw_usage("`scale_from`: expected a lower and a higher value, found " +
                RangeForm().text(spec.scale_from));
  if (spec.max_decode_bytes < 1) throw_usage("`max_decode_bytes`: must be at least 1");
  if (spec.part_bytes < 1) throw_usage("`part_bytes`: must be at least 1");
  if (spec.chunk_samples > 0 && spec.chunk_bytes > 0)
    throw_usage("`chunk_samples` and `chunk_bytes` exclude each other");
  if (!spec.labels.empty() && !spec.folders.include.empty())
    throw_usage("`include`: is for class folders; a CSV names its files");
  if (spec.transform.resize == Resize::long_side)
    throw_usage("`resize`: long_side is what `max_side` of `sizes` own does");
  check_sizes(spec);
  check_resizing(spec);
  check_fields(spec, fields_of(spec, {}));
  check_classes(spec);
  check_split_folders(spec);
  check_split(spec);
  static_cast<void>(codec_choice(spec));
}

/// Images of their own sizes are compressed one by one, and so are their masks.
std::string codec_libraries(const PackImagesSpec& spec, const SampleShape& sample) {
  if (spec.sizes != Sizes::own) return codec_library(codec_choice(spec).codec);
  const bool is_raw = spec.own_sizes.store == SizedStore::raw;
  std::string libraries = is_raw ? "" : codec_library("zstd");
  if (!sample.pairs.empty()) libraries += (is_raw ? "" : ", ") + codec_library("deflate");
  return libraries;
}

}  // namespace chunkhit
