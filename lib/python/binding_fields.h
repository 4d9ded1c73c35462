// Visitors of tables of fields: values from Python's keywords, and rows for signatures, help() and stubs.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "binding_options.h"
#include "types/fields.h"

namespace chunkhit {

/// A field as messages name it.
[[nodiscard]] inline std::string quoted(const char* name) { return "`" + std::string(name) + "`"; }

/// Takes one text or a list of texts.
void take_texts(OptionDict& from, const char* name, std::vector<std::string>& texts);

/// Takes a count given as an int, or a share from 0 to 1 given as a float.
template <class Amount>
void take_amount(OptionDict& from, const char* name, Amount& amount) {
  const py::object value = from.take_value(name);
  if (value.is_none()) return;
  try {
    if (py::isinstance<py::bool_>(value)) throw py::cast_error();
    const bool is_share = py::isinstance<py::float_>(value);
    amount.count = is_share ? 0 : value.template cast<std::uint64_t>();
    amount.share = is_share ? value.template cast<double>() : 0;
    if (!(amount.share >= 0 && amount.share <= 1)) throw py::cast_error();
  } catch (const py::cast_error&) {
    from.refuse(name, value, "a count as an int or a share as a float");
  }
}

/// Takes what is written as a text.
template <class Value, class Form>
void take_written(OptionDict& from, const char* name, Value& value, const Form& form) {
  std::string text;
  from.take(name, text);
  if (!text.empty()) form.parse(quoted(name), text, value);
}

/// Takes bytes as a whole number, or as a text like "2G".
template <class Bytes>
void take_bytes(OptionDict& from, const char* name, Bytes& bytes, const BytesForm& form = {}) {
  if (from.has_text(name))
    take_written(from, name, bytes, form);
  else
    from.take(name, bytes);
}

// Overloads of take_field for forms of one kind stand beside their tables' bindings.

/// Takes the value of a field.
template <class Value, class Form>
void take_field(OptionDict& from, const char* name, Value& value, const Form& form) {
  if constexpr (std::is_enum_v<Value>)
    from.take_enum(name, value);
  else if constexpr (std::is_same_v<Form, NamesForm> || std::is_same_v<Form, RepeatedForm>)
    take_texts(from, name, value);
  else if constexpr (std::is_same_v<Form, AmountForm>)
    take_amount(from, name, value);
  else if constexpr (std::is_same_v<Form, CountForm>)
    from.take_count(name, value, form.min, form.max);
  else if constexpr (std::is_same_v<Form, BytesForm>)
    take_bytes(from, name, value, form);
  else if constexpr (std::is_base_of_v<TextForm, Form> && !std::is_same_v<Form, TextForm>)
    take_written(from, name, value, form);
  else
    from.take(name, value);
}

/// What annotates the keyword of a field.
template <class Value, class Form>
[[nodiscard]] std::string python_type(const Value&, const Form& form) {
  if constexpr (std::is_same_v<Form, WordForm>)
    return word_type(kEnumWords<Value>);
  else if constexpr (std::is_same_v<Form, CodeForm>)
    return form.python_type;
  else if constexpr (std::is_same_v<Form, ChoiceForm>)
    return word_type(form.words());
  else
    return Form::kPythonType;
}

/// Sets the fields of a table from keywords.
class KeywordReader : public FieldVisitor<KeywordReader> {
 public:
  explicit KeywordReader(OptionDict& from) : from_(from) {}
  template <class Value, class Form>
  void operator()(const Field& field, Value& value, const Form& form) {
    take_field(from_, field.name, value, form);
  }

 private:
  OptionDict& from_;
};

/// Lists the fields of a table: (name, annotation, default, group, help). A default that Python does not show
/// is None, and in the help's words.
template <bool kShowsDefaults>
class FieldLister : public FieldVisitor<FieldLister<kShowsDefaults>> {
 public:
  void group(const char* name) { group_ = name; }
  template <class Value, class Form>
  void operator()(const Field& field, const Value& value, const Form& form) {
    py::object given = py::none();
    std::string shown;
    if constexpr (kShowsDefaults)
      given = default_of(value, form);
    else
      shown = shown_text(form, value);
    std::string type = python_type(value, form);
    if (given.is_none()) type = "Optional[" + type + "]";
    std::string help = *field.more == 0 ? help_sentence<Value, Form>(field) : std::string(field.help);
    if (*field.more != 0) help.append(". ").append(field.more);
    if (!shown.empty()) help.append(" (").append(shown).append(")");
    rows_.append(py::make_tuple(field.name, type, given, group_, help));
  }
  [[nodiscard]] py::list rows() const { return rows_; }

 private:
  template <class Value, class Form>
  [[nodiscard]] static py::object default_of(const Value& value, const Form& form) {
    if constexpr (std::is_same_v<Form, CountForm>) {
      return value == 0 && form.text(value) != "0" ? py::object(py::none()) : py::cast(value);
    } else if constexpr (std::is_arithmetic_v<Value>) {
      return py::cast(value);
    } else if constexpr (std::is_enum_v<Value>) {
      return py::cast(name_of(value));
    } else if constexpr (std::is_same_v<Value, std::string>) {
      return value.empty() ? py::object(py::none()) : py::cast(value);
    } else {
      return py::none();
    }
  }

  const char* group_ = "";
  py::list rows_;
};

}  // namespace chunkhit
