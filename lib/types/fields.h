// Fields of specs and options: how each is called, what it is for, and its value as text.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/words.h"
#include "types/enum_names.h"

namespace chunkhit {

/// A row of a table of fields. A table is a function template that shows each field of a struct once, with
/// its value and its form, to a visitor: what records specs, adds flags, reads Python's keywords or prints
/// pages.
struct Field {
  const char* name;        ///< as in C++ and Python; with dashes in flags, recipes and manifests
  const char* help;        ///< a sentence; visitors add the words of an enum and the default
  const char* shape = "";  ///< stands for the value in the help; empty: the form's
  const char* more = "";   ///< sentences that Python's help() adds
  /// Packs that differ in it are merged without a notice.
  bool may_differ = false;

  /// The same field, which chooses samples, their order or their form, and not what they mean.
  [[nodiscard]] constexpr Field that_may_differ() const {
    Field field = *this;
    field.may_differ = true;
    return field;
  }
};

/// Longest side of an image in pixels.
inline constexpr std::uint32_t kMaxSide = 65535;

/// A name as flags and manifests have it.
[[nodiscard]] std::string dashed(std::string_view name);

/// Throws usage: "`name`: expected a count, found 'x'".
[[noreturn]] void refuse_text(const std::string& name, const std::string& expected, const std::string& found);

/// "a whole number from 1 to 4096".
[[nodiscard]] std::string range_text(std::uint64_t min, std::uint64_t max);

/// Reads a whole number from `min` to `max`. What reads text throws usage that begins with `name`.
[[nodiscard]] std::uint64_t parse_count(const std::string& name, const std::string& text,
                                        std::uint64_t min = 0, std::uint64_t max = UINT64_MAX);
/// Reads "250", "64K", "2G", "1.5GiB" (powers of 1024) as bytes.
[[nodiscard]] std::uint64_t parse_bytes(const std::string& name, const std::string& text);
/// Reads "WxH" as width and height, "N" as N and 0: sides of 1 to 65535 pixels.
[[nodiscard]] std::pair<std::uint32_t, std::uint32_t> parse_size(const std::string& name,
                                                                 const std::string& text);
/// The same, where "N" is a square of NxN.
[[nodiscard]] std::pair<std::uint32_t, std::uint32_t> parse_square(const std::string& name,
                                                                   const std::string& text);
/// Reads a share as "0.1" or "10%", or a count: the one that is not given is 0.
[[nodiscard]] std::pair<std::uint64_t, double> parse_amount(const std::string& name, const std::string& text);

// Forms: how a value is written. `text` is what is recorded, `parse` reads it and what a person writes,
// `shown`, where a form has it, is the default as a person writes it. `kPythonType` is that of the keyword.

/// One word of an enum.
struct WordForm {
  static constexpr const char* kShape = "WORD";
  template <class Enum>
  [[nodiscard]] std::string text(Enum value) const {
    return name_of(value);
  }
  template <class Enum>
  void parse(const std::string& name, const std::string& text, Enum& value) const {
    const std::optional<Enum> found = enum_of<Enum>(text);
    if (!found) refuse_text(name, "one of " + words<Enum>(), text);
    value = *found;
  }
  template <class Enum>
  [[nodiscard]] static std::string words() {
    return joined(kEnumWords<Enum>);
  }
};

/// Yes or no; a flag without a value.
struct SwitchForm {
  static constexpr const char* kShape = "";
  static constexpr const char* kPythonType = "bool";
  [[nodiscard]] std::string text(bool value) const { return value ? "true" : "false"; }
  void parse(const std::string& name, const std::string& text, bool& value) const {
    if (text != "true" && text != "false") refuse_text(name, "true or false", text);
    value = text == "true";
  }
};

/// Text; `if_empty` stands for an empty one.
struct TextForm {
  static constexpr const char* kShape = "TEXT";
  static constexpr const char* kPythonType = "str";
  const char* if_empty = "";
  [[nodiscard]] std::string text(const std::string& value) const { return value.empty() ? if_empty : value; }
  void parse(const std::string&, const std::string& text, std::string& value) const {
    value = text == if_empty ? "" : text;
  }
};

/// One of some words that are no enum, separated by blanks.
struct ChoiceForm : TextForm {
  static constexpr const char* kShape = "WORD";
  const char* choices = "";
  [[nodiscard]] std::vector<std::string> words() const;
};

/// The path of a file or folder.
struct PathForm : TextForm {
  static constexpr const char* kShape = "FILE";
  static constexpr const char* kPythonType = "Path";
};

/// Names, separated by commas.
struct NamesForm {
  static constexpr const char* kShape = "NAMES";
  static constexpr const char* kPythonType = "types.Texts";
  const char* if_empty = "none";
  [[nodiscard]] std::string text(const std::vector<std::string>& value) const;
  void parse(const std::string& name, const std::string& text, std::vector<std::string>& value) const;
};

/// Names that are given one by one, because a comma may be in one: a line each. They are recorded with
/// commas.
struct RepeatedForm {
  static constexpr const char* kShape = "NAME";
  static constexpr const char* kPythonType = "types.Texts";
  [[nodiscard]] std::string text(const std::vector<std::string>& value) const {
    return NamesForm{""}.text(value);
  }
  void parse(const std::string& name, const std::string& text, std::vector<std::string>& value) const;
};

/// A whole number in a range; `if_zero` stands for 0.
struct CountForm {
  static constexpr const char* kShape = "N";
  static constexpr const char* kPythonType = "int";
  std::uint64_t min = 0;
  std::uint64_t max = UINT64_MAX;
  const char* if_zero = "0";
  template <class Count>
  [[nodiscard]] std::string text(Count value) const {
    return value == 0 ? if_zero : std::to_string(value);
  }
  template <class Count>
  void parse(const std::string& name, const std::string& text, Count& value) const {
    const std::uint64_t limit = std::min<std::uint64_t>(max, std::numeric_limits<Count>::max());
    value = text == if_zero ? 0 : static_cast<Count>(parse_count(name, text, min, limit));
  }
  template <std::unsigned_integral Count>
  [[nodiscard]] bool holds(Count value) const {
    return (value >= min && value <= max) || (value == 0 && std::string_view(if_zero) != "0");
  }
  [[nodiscard]] std::string expected() const { return range_text(min, max); }
};

/// Bytes.
struct BytesForm {
  static constexpr const char* kShape = "SIZE";
  static constexpr const char* kPythonType = "types.Bytes";
  const char* if_zero = "0";
  [[nodiscard]] std::string text(std::uint64_t value) const {
    return value == 0 ? if_zero : std::to_string(value);
  }
  [[nodiscard]] std::string shown(std::uint64_t value) const;
  void parse(const std::string& name, const std::string& text, std::uint64_t& value) const {
    value = text == if_zero ? 0 : parse_bytes(name, text);
  }
};

/// A share of a whole, above 0 and below 1.
struct ShareForm {
  static constexpr const char* kShape = "SHARE";
  static constexpr const char* kPythonType = "float";
  [[nodiscard]] std::string text(double value) const;
  void parse(const std::string& name, const std::string& text, double& value) const;
};

/// A count, or a share below 1: a struct of `count` and `share`.
struct AmountForm {
  static constexpr const char* kShape = "N|SHARE";
  static constexpr const char* kPythonType = "types.Amount";
  template <class Amount>
  [[nodiscard]] std::string text(const Amount& value) const {
    return value.count > 0 ? std::to_string(value.count) : ShareForm().text(value.share);
  }
  template <class Amount>
  void parse(const std::string& name, const std::string& text, Amount& value) const {
    value = {};
    std::tie(value.count, value.share) = parse_amount(name, text);
  }
};

/// What only a program gives, as an array, a dict or a function: flags and recipes leave it out.
struct CodeForm {
  const char* python_type;
};

/// A visitor that takes all fields alike; `Self` has `operator()(field, value, form)`.
template <class Self>
class FieldVisitor {
 public:
  /// What follows belongs to a group of the help.
  void group(const char*) {}
  /// Shows a field that is recorded only if the flag holds.
  template <class Value, class Form>
  void record_if(bool, const Field& field, Value& value, const Form& form) {
    self()(field, value, form);
  }
  /// A field that says how to run.
  template <class Value, class Form>
  void unrecorded(const Field& field, Value& value, const Form& form) {
    self()(field, value, form);
  }
  /// The same, of which recipes say nothing.
  template <class Value, class Form>
  void not_in_recipes(const Field& field, Value& value, const Form& form) {
    self()(field, value, form);
  }
  /// A value that is computed, and recorded where a condition holds.
  template <class Value, class Form>
  void recorded_only(bool, const Field&, Value&, const Form&) {}

 private:
  [[nodiscard]] Self& self() { return static_cast<Self&>(*this); }
};

/// Throws usage for the first whole number that is outside of its limits.
class LimitCheck : public FieldVisitor<LimitCheck> {
 public:
  template <class Value, class Form>
  void operator()(const Field& field, const Value& value, const Form& form) const {
    if constexpr (requires { form.holds(value); })
      if (!form.holds(value))
        refuse_text("`" + std::string(field.name) + "`", form.expected(), std::to_string(value));
  }
};

/// Collects the recorded names of fields, on which it depends what a sample means.
class MeaningCollector : public FieldVisitor<MeaningCollector> {
 public:
  template <class Value, class Form>
  void operator()(const Field& field, Value&, const Form&) {
    if (!field.may_differ) names.push_back(dashed(field.name));
  }
  template <class Value, class Form>
  void unrecorded(const Field&, Value&, const Form&) {}
  template <class Value, class Form>
  void not_in_recipes(const Field&, Value&, const Form&) {}

  std::vector<std::string> names;
};

/// The sentence of a field, with the words that the value can have where it does not name them all.
template <class Value, class Form>
[[nodiscard]] std::string help_sentence(const Field& field) {
  std::string help = field.help;
  if constexpr (std::is_same_v<Form, WordForm>)
    for (const std::string_view word : kEnumWords<Value>)
      if (help.find(word) == std::string::npos) return help + ": " + WordForm::words<Value>();
  return help;
}

/// What a form shows of a value to a person.
template <class Form, class Value>
[[nodiscard]] std::string shown_text(const Form& form, const Value& value) {
  if constexpr (requires { form.shown(value); })
    return form.shown(value);
  else
    return form.text(value);
}

}  // namespace chunkhit
