#include "input/sample_list.h"

#include "input/label_text.h"

namespace chunkhit {
namespace {

// A column of floats that happen to be whole must not read as a column of class ids.
std::string lone_number_text(float value) {
  std::string text = number_text(value);
  if (parse_integer(text)) text += ".0";
  return text;
}

}  // namespace

std::vector<std::string> SampleList::label_text(std::size_t index) const {
  if (label_kind == LabelKind::class_id) {
    const std::int64_t id = class_ids[index];
    return {classes.empty() ? std::to_string(id) : classes[static_cast<std::size_t>(id)]};
  }
  const std::size_t count = label_columns.size();
  if (count == 1) return {lone_number_text(values[index])};
  std::vector<std::string> texts;
  for (std::size_t column = 0; column < count; ++column)
    texts.push_back(number_text(values[index * count + column]));
  return texts;
}

}  // namespace chunkhit
