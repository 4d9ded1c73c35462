// Visitors of a table of fields: flags of a command and of its recipe, and the values that were given.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "command.h"
#include "types/fields.h"

namespace chunkhit {

/// Returns the flag of a field, "--part-bytes".
[[nodiscard]] inline std::string flag_name(const Field& field) { return "--" + dashed(field.name); }

/// Sets a value to what was given, if anything was; throws usage naming the field.
template <class Value, class Form>
void read_flag(const Flag& flag, Value& value, const Form& form) {
  if (!flag.is_given()) return;
  if constexpr (std::is_base_of_v<SwitchForm, Form>)
    value = flag.is_on();
  else if constexpr (std::is_base_of_v<RepeatedForm, Form>)
    value = value.empty() && flag.given == Value{""} ? Value() : flag.given;  // recipes write no names so
  else
    form.parse(flag.names().back(), flag.text(), value);
}

/// Adds a flag for each field of a table, whose values are the defaults; of some tables for those named.
class FlagAdder : public FieldVisitor<FlagAdder> {
 public:
  explicit FlagAdder(Command& command, std::set<std::string_view> named = {})
      : command_(command), named_(std::move(named)) {}
  void group(const char* name) { command_.group(name); }
  template <class Value, class Form>
  void operator()(const Field& field, const Value& value, const Form& form) {
    add(field, value, form);
  }
  template <class Value, class Form>
  void not_in_recipes(const Field& field, const Value& value, const Form& form) {
    add(field, value, form, false);
  }
  template <class Value>
  void operator()(const Field&, const Value&, const CodeForm&) {}

 private:
  template <class Value, class Form>
  void add(const Field& field, const Value& value, const Form& form, bool in_recipes = true) {
    const std::string name = flag_name(field);
    if ((!named_.empty() && !named_.contains(field.name)) || command_.find(name) != nullptr) return;
    Flag flag{name == "--output" ? "-o," + name : name, *field.shape == 0 ? Form::kShape : field.shape,
              help_sentence<Value, Form>(field)};
    flag.in_recipes = in_recipes;
    if constexpr (std::is_base_of_v<SwitchForm, Form>)
      flag.takes = Flag::Takes::nothing;
    else
      flag.shown = shown_text(form, value);
    if (!flag.shown.empty()) flag.help += " (" + flag.shown + ")";
    if constexpr (std::is_base_of_v<RepeatedForm, Form>) flag.takes = Flag::Takes::list;
    if constexpr (std::is_same_v<Form, NamesForm>) flag.takes = Flag::Takes::names;
    if constexpr (requires { form.words(); }) flag.words = form.words();
    if constexpr (requires { typename Value::value_type; })
      add_words<typename Value::value_type>(flag);
    else
      add_words<Value>(flag);
    command_.add(std::move(flag));
  }

  template <class Enum>
  static void add_words(Flag& flag) {
    if constexpr (std::is_enum_v<Enum>) flag.words.assign(kEnumWords<Enum>.begin(), kEnumWords<Enum>.end());
  }

  Command& command_;
  std::set<std::string_view> named_;
};

/// Sets the fields whose flags were given.
class FlagReader : public FieldVisitor<FlagReader> {
 public:
  explicit FlagReader(Command& command) : command_(command) {}
  template <class Value, class Form>
  void operator()(const Field& field, Value& value, const Form& form) {
    if constexpr (!std::is_same_v<Form, CodeForm>)
      if (const Flag* flag = command_.find(flag_name(field))) read_flag(*flag, value, form);
  }

 private:
  Command& command_;
};

/// Lets a saved recipe have these values for flags that were not given.
class DefaultSetter : public FieldVisitor<DefaultSetter> {
 public:
  explicit DefaultSetter(Command& command) : command_(command) {}
  template <class Value, class Form>
  void operator()(const Field& field, const Value& value, const Form& form) {
    Flag& flag = command_[flag_name(field)];
    if (flag.is_given()) return;
    if constexpr (std::is_base_of_v<SwitchForm, Form>)
      flag.shown = value ? "true" : "false";
    else
      flag.shown = shown_text(form, value);
  }

 private:
  Command& command_;
};

/// Shows the table of a struct to a visitor of a command.
template <class Visitor, class Struct>
void visit_fields(Command& command, Struct&& values) {
  Visitor visitor(command);
  show(values, visitor);
}

}  // namespace chunkhit
