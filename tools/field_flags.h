// Visitors of a table of fields: flags of a command line and of a recipe, and the values that were given.
#pragma once

#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "cli.h"
#include "types/fields.h"

namespace chunkhit {

/// The flags of a table's fields. Must live until the command line is parsed.
class FieldFlags {
 public:
  explicit FieldFlags(CLI::App& app) : app_(app) {}
  FieldFlags(const FieldFlags&) = delete;
  FieldFlags& operator=(const FieldFlags&) = delete;

  /// Adds a flag for each field of a struct that has a table, whose values are the defaults.
  template <class Struct>
  void add(const Struct& defaults) {
    Adder adder(*this);
    show(defaults, adder);
  }
  /// Sets the fields whose flags were given; throws usage naming the field.
  template <class Struct>
  void read(Struct& values) const {
    Reader reader(*this);
    show(values, reader);
  }
  /// Lets a saved recipe have these values for flags that were not given.
  template <class Struct>
  void set_defaults(const Struct& defaults) {
    Setter setter(*this);
    show(defaults, setter);
  }
  [[nodiscard]] bool is_given(const std::string& name) const {
    const auto found = flags_.find(name);
    return found != flags_.end() && found->second.option->count() > 0;
  }

 private:
  struct Flag {
    CLI::Option* option = nullptr;
    std::string text;
    std::vector<std::string> names;  ///< of a flag that is repeated
    bool is_on = false;              ///< of a switch
  };

  class Adder : public FieldVisitor<Adder> {
   public:
    explicit Adder(FieldFlags& flags) : flags_(flags) {}
    void group(const char* name) { group_ = name; }
    template <class Value, class Form>
    void operator()(const Field& field, const Value& value, const Form& form) {
      Flag& flag = flags_.flags_[field.name];
      if constexpr (std::is_base_of_v<SwitchForm, Form>)
        flag.option = flags_.app_.add_flag(flag_name(field), flag.is_on, field.help)->group(group_);
      else if constexpr (std::is_same_v<Form, RepeatedForm>)
        flag.option = add_option(field, flag.names, field.help, form.text(value), form.kShape)
                          ->allow_extra_args(false);  // it would swallow what is no flag
      else
        flag.option = add_option(field, flag.text = shown_text(form, value),
                                 help_sentence<Value, Form>(field), shown_text(form, value), form.kShape);
      if constexpr (std::is_same_v<Form, WordForm>) flag.option->check(one_of<Value>());
      if constexpr (std::is_same_v<Form, ChoiceForm>) flag.option->check(one_of(form.words()));
      if constexpr (std::is_same_v<Form, NamesForm>)
        flag.option->multi_option_policy(CLI::MultiOptionPolicy::Join)
            ->delimiter(',')
            ->allow_extra_args(false);
    }
    template <class Value, class Form>
    void not_in_recipes(const Field& field, const Value& value, const Form& form) {
      (*this)(field, value, form);
      flags_.flags_[field.name].option->configurable(false);
    }

   private:
    template <class Value>
    CLI::Option* add_option(const Field& field, Value& value, const std::string& help,
                            const std::string& shown, const char* shape) {
      return flags_.app_
          .add_option(flag_name(field), value, shown.empty() ? help : help + " (" + shown + ")")
          ->option_text(*field.shape == 0 ? shape : field.shape)
          ->group(group_)
          ->default_str(shown);
    }
    FieldFlags& flags_;
    const char* group_ = "Options";
  };

  class Reader : public FieldVisitor<Reader> {
   public:
    explicit Reader(const FieldFlags& flags) : flags_(flags) {}
    template <class Value, class Form>
    void operator()(const Field& field, Value& value, const Form& form) {
      if (!flags_.is_given(field.name)) return;
      const Flag& flag = flags_.flags_.at(field.name);
      if constexpr (std::is_base_of_v<SwitchForm, Form>)
        value = flag.is_on;
      else if constexpr (std::is_same_v<Form, RepeatedForm>)
        value = flag.names;
      else
        form.parse("`" + std::string(field.name) + "`", flag.text, value);
    }

   private:
    const FieldFlags& flags_;
  };

  class Setter : public FieldVisitor<Setter> {
   public:
    explicit Setter(FieldFlags& flags) : flags_(flags) {}
    template <class Value, class Form>
    void operator()(const Field& field, const Value& value, const Form& form) {
      if (flags_.is_given(field.name)) return;
      CLI::Option& option = *flags_.flags_[field.name].option;
      if constexpr (std::is_base_of_v<SwitchForm, Form>)
        option.default_str(value ? "true" : "false");
      else
        option.default_str(shown_text(form, value));
    }

   private:
    FieldFlags& flags_;
  };

  [[nodiscard]] static std::string flag_name(const Field& field) {
    const std::string name = "--" + dashed(field.name);
    return name == "--output" ? "-o," + name : name;
  }

  CLI::App& app_;
  std::map<std::string, Flag> flags_;
};

}  // namespace chunkhit
