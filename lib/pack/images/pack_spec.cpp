#include "pack/images/pack_spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include "base/hash.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "decode/image_decoder.h"
#include "store/column_index.h"
#include "store/part.h"
#include "transform/transform_plan.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

std::string size_text(std::uint32_t width, std::uint32_t height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

SpecEntry resize_entry(const TransformSpec& transform) {
  switch (transform.resize) {
    case Resize::exact:
      return {"resize", size_text(transform.resize_width, transform.resize_height)};
    case Resize::short_side:
      return {"resize", std::to_string(transform.resize_width)};
    case Resize::long_side:
      return {"resize-long", std::to_string(transform.resize_width)};
    case Resize::fit:
      return {"fit", size_text(transform.resize_width, transform.resize_height)};
    case Resize::none:
      break;
  }
  return {"resize", "none"};
}

std::string color_text(const std::array<std::uint8_t, 3>& color) {
  return std::to_string(color[0]) + "," + std::to_string(color[1]) + "," + std::to_string(color[2]);
}

std::string split_text(const std::vector<SplitShare>& split) {
  std::string text;
  for (const SplitShare& share : split)
    text += (text.empty() ? "" : ",") + share.name + "=" + number_text(share.share);
  return text.empty() ? "none" : text;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

std::string names_hash(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + '\n';
  return hash_text(xxh3(as_bytes(text)));
}

std::string none_or(const std::string& text) { return text.empty() ? "none" : text; }

/// chunk-samples follows from the number of samples where no flag gives it.
std::vector<SpecEntry> without_chunk_samples(std::vector<SpecEntry> spec) {
  std::erase_if(spec, [](const SpecEntry& entry) { return entry.name == "chunk-samples"; });
  return spec;
}

/// A spec for people: the classes by where they come from, not by their hash.
std::vector<SpecEntry> with_source_of_classes(std::vector<SpecEntry> spec, const std::string& hash,
                                              const std::string& source) {
  for (SpecEntry& entry : spec)
    if (entry.name == "classes" && entry.value != "sorted")
      entry.value = entry.value == hash ? source : "a list";
  return spec;
}

std::string classes_hash(const std::vector<SpecEntry>& spec) {
  for (const SpecEntry& entry : spec)
    if (entry.name == "classes") return entry.value;
  return "";
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
    if (!names.insert(name).second) throw_usage("`split_folders`: " + name + " is there twice");
  }
}

void check_classes(const PackImagesSpec& spec) {
  const LabelType type = spec.columns.label_type;
  if (type == LabelType::classes && spec.columns.label_columns.size() > 1)
    throw_usage("`label_type` classes: is for one `label_column`; several are numbers");
  if (type == LabelType::numbers && !spec.classes.empty())
    throw_usage("`label_type` numbers: excludes `classes`, which takes labels as names");
  if (spec.classes.empty() && spec.classes_extra != ClassesExtra::error)
    throw_usage("`classes_extra`: is for what `classes` does not list: give it, too");
  if (!spec.classes.empty() && spec.columns.label_columns.size() > 1)
    throw_usage("`classes`: is for classes with names; several label columns are numbers");
}

/// Refuses what has no meaning, so that no flag is without effect in silence.
void check_sizes(const PackImagesSpec& spec) {
  const OwnSizesSpec& own = spec.own_sizes;
  const OwnSizesSpec plain;
  if (spec.sizes == Sizes::fixed) {
    if (own.max_side != 0 || own.short_side != 0 || own.store != plain.store || own.others != plain.others ||
        own.quality != plain.quality || own.jpeg_tile != plain.jpeg_tile || own.part_samples != 0)
      throw_usage(
          "`max_side`, `short_side`, `store`, `others`, `quality`, `jpeg_tile` and `part_samples` are for "
          "`sizes` own");
    return;
  }
  if (spec.transform.resize != Resize::none || spec.transform.crop_width != 0)
    throw_usage(
        "`sizes` own: `resize`, `resize_long`, `fit` and `crop` give all images one shape; `max_side` or "
        "`short_side` makes them smaller");
  if (own.quality < 1 || own.quality > 100) throw_usage("`quality`: expected 1 to 100");
  constexpr std::uint32_t kMaxRowMcus = 8192;
  if (own.jpeg_tile > kMaxRowMcus) throw_usage("`jpeg_tile`: expected up to " + std::to_string(kMaxRowMcus));
  if (own.store == Store::photo && spec.transform.channels != Channels::rgb)
    throw_usage("`store` photo: is for `channels` rgb; zstd takes any");
  if (own.store != Store::jpeg && own.jpeg_tile != plain.jpeg_tile)
    throw_usage("`jpeg_tile`: is for `store` jpeg");
  if (own.store != Store::jpeg && own.others != plain.others) throw_usage("`others`: is for `store` jpeg");
  const bool encodes = own.max_side != 0 || own.short_side != 0 || own.others == Others::jpeg;
  if (own.quality != plain.quality && (own.store != Store::jpeg || !encodes))
    throw_usage(
        "`quality`: is for what is encoded: `store` jpeg with images that are made smaller (`max_side`, "
        "`short_side`) or with `others` jpeg");
  if (own.max_side != 0 && own.short_side != 0) throw_usage("`max_side` and `short_side` exclude each other");
  if (spec.container == "hdf5" && (own.store == Store::photo || own.store == Store::zstd))
    throw_usage(std::string("`store` ") + name_of(own.store) +
                ": is for `container` shard; hdf5 takes jpeg and raw");
  if (!spec.codec.empty() && spec.codec != "none")
    throw_usage("`sizes` own: `codec`: expected none, found " + spec.codec +
                "; `store` says how images are stored");
  if (spec.chunk_samples != 0)
    throw_usage("`sizes` own: chunks are cut by `chunk_bytes`, not by `chunk_samples`");
  if (const std::uint64_t max_bytes = container(spec.container).max_chunk_bytes; spec.chunk_bytes > max_bytes)
    throw_usage("`chunk_bytes`: expected at most " + std::to_string(max_bytes));
  if (spec.transform.layout != Layout::nhwc) throw_usage("`sizes` own: `layout`: expected nhwc");
  if (spec.max_pixels > kMaxOwnPixels)
    throw_usage("`sizes` own: `max_pixels`: expected at most " + std::to_string(kMaxOwnPixels));
}

void check_split(const std::vector<SplitShare>& split) {
  double sum = 0;
  std::set<std::string> names;
  for (const SplitShare& share : split) {
    check_folder_name("`split`", share.name);
    if (!names.insert(share.name).second) throw_usage("`split`: " + share.name + " is there twice");
    if (!(share.share > 0)) throw_usage("`split`: " + share.name + ": expected a share above 0");
    sum += share.share;
  }
  if (split.size() > 255) throw_usage("`split`: at most 255 shares");
  if (!split.empty() && std::abs(sum - 1) > 1e-6)
    throw_usage("`split`: the shares add up to " + number_text(sum) + ", expected 1");
}

}  // namespace

CodecChoice codec_choice(const PackImagesSpec& spec) {
  if (spec.sizes == Sizes::own) return {"none", 0};
  const Container& kind = container(spec.container);
  const bool rgb = spec.transform.channels == Channels::rgb;
  std::string text = spec.codec;
  if (text.empty()) text = spec.container == "hdf5" ? "none" : rgb ? "photo" : "zstd";
  return parse_codec(text, spec.container, kind.codecs);
}

namespace {

/// Packs of one shape have none of these entries.
void add_own_sizes(const PackImagesSpec& spec, const ChunkPlan& plan, std::vector<SpecEntry>& entries) {
  if (spec.sizes == Sizes::fixed) return;
  const OwnSizesSpec& own = spec.own_sizes;
  entries.push_back({"sizes", name_of(spec.sizes)});
  entries.push_back({"max-side", std::to_string(own.max_side)});
  entries.push_back({"short-side", std::to_string(own.short_side)});
  entries.push_back({"store", name_of(own.store)});
  entries.push_back({"others", name_of(own.others)});
  entries.push_back({"quality", std::to_string(own.quality)});
  entries.push_back({"jpeg-tile", std::to_string(own.jpeg_tile)});
  entries.push_back({"chunk-bytes", std::to_string(plan.chunk_bytes)});
  entries.push_back({"part-samples", std::to_string(own.part_samples)});
}

}  // namespace

std::vector<SpecEntry> recorded_spec(const PackImagesSpec& spec, const ChunkPlan& plan,
                                     const std::string& split_name, const SampleList& list) {
  const TransformSpec& transform = spec.transform;
  const bool is_written = spec.labels == kWriterLabels;
  std::vector<SpecEntry> entries{{"labels", !list.labels_from.empty() ? list.labels_from
                                            : spec.labels.empty()     ? "folders"
                                            : is_written              ? "writer"
                                                                      : "csv"}};
  if (!spec.labels.empty() && !is_written) entries.push_back({"file-column", spec.columns.file_column});
  if (!spec.labels.empty() || !list.labels_from.empty())
    entries.push_back({"label-column", joined(spec.columns.label_columns)});
  if (!spec.columns.keep_columns.empty())
    entries.push_back({"keep-columns", joined(spec.columns.keep_columns)});
  if (spec.columns.label_type != LabelType::automatic)
    entries.push_back({"label-type", name_of(spec.columns.label_type)});
  if (spec.labels.empty()) entries.push_back({"include", none_or(joined(spec.folders.include))});
  entries.push_back({"classes", spec.classes.empty() ? "sorted" : names_hash(list.classes)});
  entries.push_back({"follow-symlinks", spec.follow_symlinks ? "true" : "false"});
  entries.push_back(resize_entry(transform));
  if (transform.resize == Resize::fit) entries.push_back({"pad-color", color_text(transform.pad_color)});
  entries.push_back({"resample", name_of(transform.resample)});
  entries.push_back(
      {"crop", transform.crop_width == 0 ? "none" : size_text(transform.crop_width, transform.crop_height)});
  entries.push_back({"channels", name_of(transform.channels)});
  if (transform.background) entries.push_back({"background", color_text(*transform.background)});
  add_own_sizes(spec, plan, entries);
  entries.push_back({"exif", name_of(spec.exif)});
  entries.push_back({"decode", transform.fast_decode ? "fast" : "exact"});
  entries.push_back({"check", name_of(spec.check)});
  entries.push_back({"accept-warnings", spec.accept_warnings ? "true" : "false"});
  entries.push_back({"max-pixels", std::to_string(spec.max_pixels)});
  entries.push_back({"max-input-bytes", std::to_string(spec.max_input_bytes)});
  entries.push_back({"max-decode-bytes", std::to_string(spec.max_decode_bytes)});
  entries.push_back({"max-seconds-per-image", std::to_string(spec.max_seconds_per_image)});
  entries.push_back({"container", spec.container});
  entries.push_back({"layout", name_of(transform.layout)});
  entries.push_back({"codec", codec_text(codec_choice(spec))});
  entries.push_back({"chunk-samples", std::to_string(plan.chunk_samples)});
  entries.push_back({"part-bytes", std::to_string(spec.part_bytes)});
  entries.push_back({"order", name_of(spec.order)});
  entries.push_back({"seed", std::to_string(spec.seed)});
  entries.push_back({"split", split_text(spec.split)});
  entries.push_back({"split-folders", none_or(joined(spec.folders.split_folders))});
  if (!split_name.empty()) entries.push_back({"split-name", split_name});
  return entries;
}

namespace {

[[noreturn]] void throw_value(const SpecEntry& entry) {
  throw Error(ErrorCode::bad_data, "spec: " + entry.name + ": found '" + entry.value + "'");
}

std::uint64_t count_of(const SpecEntry& entry) {
  const auto count = parse_integer(entry.value);
  if (!count || *count < 0) throw_value(entry);
  return static_cast<std::uint64_t>(*count);
}

/// The numbers of "256x224", "256", "0,0,0".
template <std::size_t kMax, class Number>
std::array<Number, kMax> numbers_of(const SpecEntry& entry, char delimiter) {
  std::array<Number, kMax> numbers{};
  std::string_view left = entry.value;
  for (Number& number : numbers) {
    const std::string_view field = left.substr(0, left.find(delimiter));
    const auto value = parse_integer(field);
    if (!value || *value < 0 || static_cast<std::uint64_t>(*value) > std::numeric_limits<Number>::max())
      throw_value(entry);
    number = static_cast<Number>(*value);
    left.remove_prefix(std::min(left.size(), field.size() + 1));
    if (left.empty()) break;
  }
  if (!left.empty()) throw_value(entry);
  return numbers;
}

std::uint32_t number_of(const SpecEntry& entry) { return numbers_of<1, std::uint32_t>(entry, ',')[0]; }

template <class Enum>
Enum choice_of(const SpecEntry& entry) {
  const std::optional<Enum> found = enum_of<Enum>(entry.value);
  if (!found) throw_value(entry);
  return *found;
}

bool is_true(const SpecEntry& entry) {
  if (entry.value != "true" && entry.value != "false") throw_value(entry);
  return entry.value == "true";
}

void set_resize(const SpecEntry& entry, TransformSpec& transform) {
  if (entry.value == "none") return;
  const auto sides = numbers_of<2, std::uint32_t>(entry, 'x');
  transform.resize = entry.name == "fit"           ? Resize::fit
                     : entry.name == "resize-long" ? Resize::long_side
                     : sides[1] > 0                ? Resize::exact
                                                   : Resize::short_side;
  transform.resize_width = sides[0];
  transform.resize_height = sides[1];
}

void set_crop(const SpecEntry& entry, TransformSpec& transform) {
  if (entry.value == "none") return;
  const auto sides = numbers_of<2, std::uint32_t>(entry, 'x');
  if (sides[0] == 0 || sides[1] == 0) throw_value(entry);
  transform.crop_width = sides[0];
  transform.crop_height = sides[1];
}

struct SpecField {
  std::string_view name;
  void (*set)(const SpecEntry& entry, PackImagesSpec& spec);
};

constexpr std::array kSpecFields{
    SpecField{"labels", [](const auto& entry,
                           auto& spec) { spec.labels = entry.value == "folders" ? "" : entry.value; }},
    SpecField{"resize", [](const auto& entry, auto& spec) { set_resize(entry, spec.transform); }},
    SpecField{"resize-long", [](const auto& entry, auto& spec) { set_resize(entry, spec.transform); }},
    SpecField{"fit", [](const auto& entry, auto& spec) { set_resize(entry, spec.transform); }},
    SpecField{"pad-color",
              [](const auto& entry, auto& spec) {
                spec.transform.pad_color = numbers_of<3, std::uint8_t>(entry, ',');
              }},
    SpecField{"background",
              [](const auto& entry, auto& spec) {
                spec.transform.background = numbers_of<3, std::uint8_t>(entry, ',');
              }},
    SpecField{"resample",
              [](const auto& entry, auto& spec) { spec.transform.resample = choice_of<Filter>(entry); }},
    SpecField{"crop", [](const auto& entry, auto& spec) { set_crop(entry, spec.transform); }},
    SpecField{"channels",
              [](const auto& entry, auto& spec) { spec.transform.channels = choice_of<Channels>(entry); }},
    SpecField{"sizes", [](const auto& entry, auto& spec) { spec.sizes = choice_of<Sizes>(entry); }},
    SpecField{"max-side", [](const auto& entry, auto& spec) { spec.own_sizes.max_side = number_of(entry); }},
    SpecField{"short-side",
              [](const auto& entry, auto& spec) { spec.own_sizes.short_side = number_of(entry); }},
    SpecField{"store", [](const auto& entry, auto& spec) { spec.own_sizes.store = choice_of<Store>(entry); }},
    SpecField{"others",
              [](const auto& entry, auto& spec) { spec.own_sizes.others = choice_of<Others>(entry); }},
    SpecField{"quality", [](const auto& entry, auto& spec) { spec.own_sizes.quality = number_of(entry); }},
    SpecField{"jpeg-tile",
              [](const auto& entry, auto& spec) { spec.own_sizes.jpeg_tile = number_of(entry); }},
    SpecField{"chunk-bytes", [](const auto& entry, auto& spec) { spec.chunk_bytes = count_of(entry); }},
    SpecField{"part-samples",
              [](const auto& entry, auto& spec) { spec.own_sizes.part_samples = count_of(entry); }},
    SpecField{"exif", [](const auto& entry, auto& spec) { spec.exif = choice_of<Exif>(entry); }},
    SpecField{"decode",
              [](const auto& entry, auto& spec) { spec.transform.fast_decode = entry.value == "fast"; }},
    SpecField{"check", [](const auto& entry, auto& spec) { spec.check = choice_of<Check>(entry); }},
    SpecField{"accept-warnings",
              [](const auto& entry, auto& spec) { spec.accept_warnings = is_true(entry); }},
    SpecField{"follow-symlinks",
              [](const auto& entry, auto& spec) { spec.follow_symlinks = is_true(entry); }},
    SpecField{"max-pixels", [](const auto& entry, auto& spec) { spec.max_pixels = count_of(entry); }},
    SpecField{"max-input-bytes",
              [](const auto& entry, auto& spec) { spec.max_input_bytes = count_of(entry); }},
    SpecField{"max-decode-bytes",
              [](const auto& entry, auto& spec) { spec.max_decode_bytes = count_of(entry); }},
    SpecField{"max-seconds-per-image",
              [](const auto& entry, auto& spec) { spec.max_seconds_per_image = number_of(entry); }},
    SpecField{"container", [](const auto& entry, auto& spec) { spec.container = entry.value; }},
    SpecField{"layout",
              [](const auto& entry, auto& spec) { spec.transform.layout = choice_of<Layout>(entry); }},
    SpecField{"codec", [](const auto& entry, auto& spec) { spec.codec = entry.value; }},
    SpecField{"chunk-samples", [](const auto& entry, auto& spec) { spec.chunk_samples = count_of(entry); }},
    SpecField{"part-bytes", [](const auto& entry, auto& spec) { spec.part_bytes = count_of(entry); }},
};

}  // namespace

PackImagesSpec spec_of(const std::vector<SpecEntry>& recorded) {
  PackImagesSpec spec;
  std::size_t known = 0;
  for (const SpecEntry& entry : recorded) {
    const auto field = std::ranges::find(kSpecFields, entry.name, &SpecField::name);
    if (field == kSpecFields.end()) continue;
    field->set(entry, spec);
    ++known;
  }
  // resize, resize-long and fit are one choice; pad-color stands beside fit alone, background where given.
  constexpr std::size_t kOwnSizesFields = 9;
  if (known < kSpecFields.size() - 4 - (spec.sizes == Sizes::own ? 0 : kOwnSizesFields))
    throw Error(ErrorCode::bad_data, "spec: " + std::to_string(known) + " of its entries are known");
  if (spec.sizes == Sizes::own && spec.own_sizes.part_samples == 0)
    throw Error(ErrorCode::bad_data, "spec: part-samples: found '0'");
  check_spec(spec);
  return spec;
}

std::string pack_difference(const EarlierPack& before, const WantedPack& now) {
  const bool list_changed = pack_id(before.spec, now.input_xxh3) != before.pack_id;
  const bool computed = now.flags.chunk_samples == 0 && now.flags.chunk_bytes == 0;
  const std::string hash = classes_hash(now.spec);
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

void check_spec(const PackImagesSpec& spec) {
  const LabelCsvSpec plain;
  const LabelCsvSpec& columns = spec.columns;
  if (spec.labels.empty() && (columns.file_column != plain.file_column || columns.delimiter != 0))
    throw_usage("`file_column` and `delimiter` are for a CSV: give it with `labels`");
  if (columns.keep_columns.size() > kMaxKeptColumns)
    throw_usage("`keep_columns`: found " + count_text(columns.keep_columns.size(), "column") +
                ", expected at most " + count_text(kMaxKeptColumns));
  for (const std::string& name : columns.keep_columns)
    if (name.empty() || name == "." || name.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
      throw_usage("`keep_columns`: '" + name + "' is no name for a dataset of HDF5");
  if (spec.transform.background && spec.transform.channels == Channels::rgba)
    throw_usage("`background`: is for samples without alpha; leave out `channels` rgba");
  if (spec.max_pixels < 1) throw_usage("`max_pixels`: must be at least 1");
  if (spec.max_input_bytes < 1) throw_usage("`max_input_bytes`: must be at least 1");
  if (spec.max_decode_bytes < 1) throw_usage("`max_decode_bytes`: must be at least 1");
  if (spec.part_bytes < 1) throw_usage("`part_bytes`: must be at least 1");
  if (spec.chunk_samples > 0 && spec.chunk_bytes > 0)
    throw_usage("`chunk_samples` and `chunk_bytes` exclude each other");
  if (!spec.labels.empty() && !spec.folders.include.empty())
    throw_usage("`include`: is for class folders; a CSV names its files");
  check_sizes(spec);
  check_classes(spec);
  check_split_folders(spec);
  check_split(spec.split);
  static_cast<void>(codec_choice(spec));
}

}  // namespace chunkhit
