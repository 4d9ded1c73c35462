#include "listing/tar_samples.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"

namespace chunkhit {
namespace {

/// The class that a tar's name may be: "cats" of "pets/cats.tar.gz".
std::string_view tar_class(std::string_view name) {
  name.remove_prefix(name.rfind('/') + 1);
  return name.substr(0, name.find('.'));
}

constexpr std::string_view kTextAdvice = "; a .txt beside an image is not read as its label";

/// Whether a group has a text, a caption say.
bool has_text(const std::vector<TarImage>& members) {
  return std::ranges::any_of(
      members, [](const TarImage& member) { return split_name(member.name).extension == "txt"; });
}

}  // namespace

TarSamples::TarSamples(SampleList& list, const LabelColumns& columns, std::vector<std::string> include)
    : list_(list),
      include_(std::move(include)),
      fields_(field_columns(columns)),
      file_names_(include_),
      rows_(list, columns),
      keep_columns_(columns.keep_columns),
      has_kept_(columns.keep_columns.size()),
      is_unlabelled_(columns.label_type == LabelType::none) {
  check_columns(columns);
  for (FieldPlace& field : fields_) {
    if (field.place.starts_with('.') || field.place.find('/') != std::string::npos)
      throw_usage("`mask_column`: expected the extension of masks in tars, as seg.png, found " + field.place);
    field.place = lower(field.place);
    list_.fields.push_back({field.field, {}, {}, {}});
  }
  list_.label_columns = columns.label_column;
}

void TarSamples::add(const TarInput& input, const std::vector<TarGroup>& groups) {
  inputs_.push_back(input.name);
  find_source(input, groups);
  for (const TarGroup& group : groups) {
    take_kept(group);
    if (source_ == LabelSource::members || !fields_.empty())
      add_group(input, group);
    else
      add_listed(input, group);
  }
}

/// Takes the columns of a group; those that it lacks are missing.
void TarSamples::take_kept(const TarGroup& group) {
  kept_ = group.kept.values;
  kept_.resize(keep_columns_.size());
  for (std::size_t column = 0; column < group.kept.values.size(); ++column)
    if (group.kept.lacks.empty() || !group.kept.lacks[column]) has_kept_[column] = true;
  if (json_keys_.empty()) json_keys_ = group.kept.keys;
  has_class_names_ = has_class_names_ || group.has_class_name;
  for (const TarImage& member : group.images)
    if (dotted_label_.empty() && (member.name.ends_with(".cls") || member.name.ends_with(".json")))
      dotted_label_ = member.name;
  has_texts_ = has_texts_ || (group.images.size() > 1 && has_text(group.images));
}

/// A column that is missing in every sample is a misspelt one.
void TarSamples::check_kept() const {
  const auto lacking = std::ranges::find(has_kept_, false);
  if (lacking == has_kept_.end()) return;
  const std::string& name = keep_columns_[static_cast<std::size_t>(lacking - has_kept_.begin())];
  std::string found;
  for (const std::string& key : json_keys_)
    found += (found.empty() ? "; one has " : ", ") + ('"' + printable_text(key) + '"');
  throw_bad_data("`keep_columns`: no image has a .json with the key \"" + printable_text(name) +
                 "\" beside it" + found + did_you_mean(name, json_keys_));
}

/// Labels lie beside images where one image has a label that can be read: a single .json, or one that
/// describes something else, is none.
void TarSamples::find_source(const TarInput& input, const std::vector<TarGroup>& groups) {
  const auto is_labelled = [&](const TarGroup& group) {
    return !group.label_from.empty() && (group.label.error.empty() || group.label_from == "cls") &&
           std::ranges::any_of(group.images, [&](const TarImage& image) { return is_image(image); });
  };
  const bool has_columns = list_.label_columns != LabelCsvSpec().label_column;
  const auto labelled = std::ranges::find_if(groups, is_labelled);
  if (groups.empty()) return;
  const LabelSource found =
      has_columns || labelled != groups.end() ? LabelSource::members : LabelSource::folders;
  if (!source_) {
    source_ = list_.labels_from = found;
  } else if (found == LabelSource::members && source_ == LabelSource::folders && !is_unlabelled_) {
    throw_bad_data(input.name + ": " + printable_text(labelled->key) + "." + labelled->label_from +
                   " is the label of an image, but " + inputs_.front() +
                   " has no labels beside its images; pack them by themselves");
  }
}

bool TarSamples::is_image(const TarImage& image) const {
  return include_.empty() ? has_image_extension(image.name) : FileNames(include_).take(image.name);
}

namespace {

bool has_second_dot(const TarImage* image) {
  return split_name(image->name).extension.find('.') != std::string::npos;
}

bool is_array(const TarImage* image) { return split_name(image->name).extension == "npy"; }

}  // namespace

/// The members of the fields beside the images of a group; null where it has none.
std::vector<const TarImage*> TarSamples::fields_of(const TarGroup& group) const {
  std::vector<const TarImage*> members;
  for (const FieldPlace& field : fields_) {
    const auto found = std::ranges::find_if(
        group.images, [&](const TarImage& image) { return split_name(image.name).extension == field.place; });
    members.push_back(found == group.images.end() ? nullptr : &*found);
  }
  return members;
}

/// The images that belong together, of which one is the sample: of several the one without a second dot, as
/// a.jpg beside a.mask.png.
std::vector<const TarImage*> TarSamples::images_of(const TarGroup& group) {
  std::vector<const TarImage*> images;
  const std::vector<const TarImage*> fields = fields_of(group);
  for (const TarImage& image : group.images) {
    if (std::ranges::find(fields, &image) != fields.end()) continue;
    if (is_image(image))
      images.push_back(&image);
    else
      static_cast<void>(file_names_.take(image.name));
  }
  // Arrays beside an image are its features, say.
  if (!std::ranges::all_of(images, is_array)) std::erase_if(images, is_array);
  if (images.size() > 1 && std::ranges::count_if(images, has_second_dot) + 1 == std::ssize(images))
    std::erase_if(images, has_second_dot);
  return images;
}

/// Says why a group is no sample; nothing where it is one.
std::string TarSamples::problem_of(const TarGroup& group, const std::vector<const TarImage*>& images) const {
  const bool has_label = !group.label_from.empty();
  const std::vector<const TarImage*> fields = fields_of(group);
  if (images.empty()) {
    const auto found = std::ranges::find_if(fields, [](const TarImage* member) { return member != nullptr; });
    return has_label ? "has a label and no image"
                     : "has a " + fields_[static_cast<std::size_t>(found - fields.begin())].field.name +
                           " and no image";
  }
  // WebDataset takes photo.v1.jpg and photo.v2.jpg for two files of one sample.
  const std::string dot_advice =
      !has_second_dot(images.front())
          ? ""
          : "; all up to the first dot of a name is its key, as in WebDataset: \"" +
                printable_text(group.key) + "\" here; rename such files: a_1.jpg instead of a.1.jpg";
  if (images.size() > 1)
    return "has " + std::to_string(images.size()) + " images, " + printable_text(images[0]->name) + " and " +
           printable_text(images[1]->name) + (images.size() > 2 ? " among them" : "") +
           "; `include` chooses one" + dot_advice;
  if (!images.front()->error.empty()) return images.front()->error;
  for (std::size_t at = 0; at < fields.size(); ++at) {
    const auto& [field, extension] = fields_[at];
    if (fields[at] == nullptr)
      return "has no " + field.name + ": expected " + printable_text(group.key) + "." + extension +
             " beside it" + dot_advice;
    if (!fields[at]->error.empty())
      return "its " + field.name + " " + printable_text(fields[at]->name) + ": " + fields[at]->error;
  }
  if (has_labels() && !has_label)
    return "has no label: expected " +
           (dot_advice.empty() ? ".cls or .json of the same name"
                               : printable_text(group.key) + ".cls or .json") +
           " beside it" + dot_advice + std::string(has_text(group.images) ? kTextAdvice : "");
  if (has_labels() && !group.label.error.empty()) return group.label.error;
  return group.kept.error;
}

/// Adds members that belong together as one sample, with their label where the list has labels.
void TarSamples::add_group(const TarInput& input, const TarGroup& group) {
  const std::vector<const TarImage*> images = images_of(group);
  const std::vector<const TarImage*> fields = fields_of(group);
  const bool has_fields = std::ranges::any_of(fields, [](const TarImage* at) { return at != nullptr; });
  if (images.empty() && !has_fields && (group.label_from.empty() || is_unlabelled_)) return;  // a README, say
  const std::string file = input.name + "/" + (images.empty() ? group.key : images.front()->name);
  const bool has_label = has_labels();
  std::vector<std::string> texts;
  if (has_label && group.label.error.empty()) texts = group.label.labels;
  if (std::string problem = problem_of(group, images); !problem.empty())
    return reject(file, std::move(texts), std::move(problem));
  rows_.hash().add(file);
  for (const std::string& label : texts) rows_.hash().add(label);
  for (const KeptValue& value : kept_) rows_.hash().add(value.text);
  for (const TarImage* const field : fields) rows_.hash().add(field->name);
  const std::vector<std::string_view> labels(texts.begin(), texts.end());
  std::string error = has_label ? rows_.take(file, labels, kept_) : rows_.take_unlabelled(file, kept_);
  if (!error.empty()) return rows_.reject(file, std::move(texts), std::move(error));
  list_.ranges.push_back(images.front()->range);
  for (std::size_t at = 0; at < fields.size(); ++at) {
    list_.fields[at].files.add(input.name + "/" + fields[at]->name);
    list_.fields[at].ranges.push_back(fields[at]->range);
  }
}

void TarSamples::add_listed(const TarInput& input, const TarGroup& group) {
  for (const TarImage& image : group.images) {
    if (!file_names_.take(image.name)) continue;
    const std::string file = input.name + "/" + image.name;
    std::string error = image.error.empty() ? group.kept.error : image.error;
    if (error.empty()) error = rows_.take_unlabelled(file, kept_);
    if (!error.empty()) {
      reject(file, {}, error);
      continue;
    }
    rows_.hash().add(file);
    for (const KeptValue& value : kept_) rows_.hash().add(value.text);
    list_.ranges.push_back(image.range);
  }
}

void TarSamples::reject(const std::string& file, std::vector<std::string> labels, std::string reason) {
  rows_.hash().add(file);
  rows_.reject(file, std::move(labels), std::move(reason));
}

void TarSamples::finish() {
  check_kept();
  if (has_labels()) rows_.finish();
  const std::vector<std::uint32_t> rows = list_.rows;
  // What pixels show is said by masks: folders need not be classes.
  const bool has_classes = source_ == LabelSource::folders && fields_.empty() && !is_unlabelled_;
  const bool are_tars = has_classes && tars_are_classes();
  if (has_classes && !are_tars) reject_without_folder();
  for (std::string& notice : file_names_.notices()) list_.notices.push_back(std::move(notice));
  const std::string tars = inputs_.front() + (inputs_.size() > 1 ? ", …" : "");
  if (list_.row_count == 0)
    throw_bad_data(tars + ": holds no images" + (list_.notices.empty() ? "" : ": " + list_.notices.front()));
  if (list_.size() == 0)
    throw_bad_data(tars + ": none of the " + count_text(list_.row_count, "sample") +
                   " can be used; the first: " + list_.rejects[0].file + ": " + list_.rejects[0].reason +
                   (has_classes ? "; `label_type` none packs images without labels" : ""));
  if (has_labels() && has_class_names_)
    list_.notices.emplace_back(
        "labels are the ids in .cls; the .json beside them have the names of their classes: `label_column` "
        "class takes these");
  if (has_classes) number_classes(are_tars);
  if (!has_labels() && !has_classes) list_.class_ids.assign(list_.size(), -1);
  if (!has_labels()) rows_.finish_unlabelled(rows);
}

/// Whether each tar is a class: no image is in a folder, and the names of several tars differ in more than
/// numbers, which those of shards differ in.
bool TarSamples::tars_are_classes() const {
  for (std::size_t index = 0; index < list_.size(); ++index)
    if (member(index).find('/') != std::string_view::npos) return false;
  std::set<std::string> words;
  for (const std::string& input : inputs_) {
    std::string name(tar_class(input));
    std::erase_if(name, [](char letter) { return letter >= '0' && letter <= '9'; });
    words.insert(std::move(name));
  }
  return words.size() > 1;
}

void TarSamples::reject_without_folder() {
  std::vector<std::size_t> indices;
  std::vector<Reject> rejects;
  const std::string reason =
      "has no class: expected .cls or .json of the same name beside it, or a folder above it" +
      (dotted_label_.empty()
           ? ""
           : "; " + printable_text(dotted_label_) +
                 " is none: all up to the first dot of a name is its key, as in WebDataset; "
                 "rename such files: a_1.cls instead of a.1.cls") +
      std::string(has_texts_ ? kTextAdvice : "");
  for (std::size_t index = 0; index < list_.size(); ++index) {
    if (member(index).find('/') != std::string_view::npos) continue;
    indices.push_back(index);
    rejects.push_back({list_.row(index), std::string(list_.file(index)), {""}, reason});
  }
  reject_samples(list_, indices, std::move(rejects));
}

std::string_view TarSamples::member(std::size_t index) const {
  return list_.file(index).substr(inputs_[list_.ranges[index].container].size() + 1);
}

/// The length of the path, with its slash, of the folders that all members are in and that hold no image
/// themselves: tar keeps the name of the folder that was packed.
std::size_t TarSamples::common_folder() const {
  std::string_view common = member(0).substr(0, member(0).rfind('/') + 1);
  std::size_t shallowest = common.size();
  for (std::size_t index = 0; index < list_.size(); ++index) {
    const std::string_view path = member(index);
    shallowest = std::min(shallowest, path.rfind('/') + 1);
    const auto [end, other] = std::ranges::mismatch(common, path);
    common = common.substr(0, static_cast<std::size_t>(end - common.begin()));
  }
  common = common.substr(0, common.rfind('/') + 1);
  // The last folder above an image is its class, not one that holds the classes.
  while (!common.empty() && common.size() >= shallowest)
    common = common.substr(0, common.rfind('/', common.size() - 2) + 1);
  return common.size();
}

void TarSamples::number_classes(bool are_tars) {
  const std::size_t begin = are_tars ? 0 : common_folder();
  if (begin > 0)
    list_.notices.push_back("all images are in " + std::string(member(0).substr(0, begin)) +
                            ", whose sub-folders are the classes");
  std::map<std::string, std::int64_t, std::less<>> ids;
  const auto class_of = [&](std::size_t index) {
    if (are_tars) return tar_class(inputs_[list_.ranges[index].container]);
    const std::string_view path = member(index).substr(begin);
    return path.substr(0, path.find('/'));
  };
  for (std::size_t index = 0; index < list_.size(); ++index) ids.emplace(class_of(index), 0);
  for (auto& [name, id] : ids) {
    id = static_cast<std::int64_t>(list_.classes.size());
    list_.classes.push_back(name);
  }
  list_.class_ids.reserve(list_.size());
  for (std::size_t index = 0; index < list_.size(); ++index)
    list_.class_ids.push_back(ids.find(class_of(index))->second);
  if (are_tars)
    list_.notices.push_back(
        "no image has a label beside it or a folder above it, so that the name of its tar is its class: "
        "images of " +
        list_.classes.front() + ".tar are of the class " + list_.classes.front());
  const std::string split = split_names(list_);
  if (!split.empty())
    list_.notices.push_back("the classes " + split +
                            " have the names of a split; put the images of each into a tar in a folder of "
                            "that name, and give `split_folders` " +
                            split + " with the folder above as `root`");
}

}  // namespace chunkhit
