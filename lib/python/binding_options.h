// Options of loaders and datasets, from keywords.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "binding.h"
#include "chunkhit/dataset.h"
#include "chunkhit/image_loader.h"
#include "chunkhit/loader.h"
#include "chunkhit/sparse_loader.h"
#include "types/enum_names.h"

namespace chunkhit {

/// A text or bytes; nothing for a text with a surrogate alone, which has no UTF-8.
[[nodiscard]] inline std::optional<std::string> text_in(const py::handle& value) {
  try {
    return value.cast<std::string>();
  } catch (const py::cast_error&) {
    return std::nullopt;
  }
}

/// Takes named values out of a dict, each once; what is None keeps its default.
class OptionDict {
 public:
  /// `location` is put before names in messages: "augment." for a dict in another.
  explicit OptionDict(const py::dict& options, std::string location = "")
      : left_(options.attr("copy")()), location_(std::move(location)) {}

  /// Throws usage when the value is of another kind.
  template <class Value>
  void take(const char* name, Value& field) {
    const py::object value = take_value(name);
    if (value.is_none()) return;
    if (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool> && py::isinstance<py::bool_>(value))
      refuse(name, value, kind_of<Value>());
    if (std::is_same_v<Value, bool> && py::isinstance<py::float_>(value))  // a probability, say
      refuse(name, value, kind_of<Value>());
    try {
      if (PyRange_Check(value.ptr()) != 0) throw py::cast_error();  // the cast would list its numbers
      field = value.cast<Value>();
    } catch (const py::cast_error&) {
      refuse(name, value, kind_of<Value>());
    }
  }

  /// Takes a whole number in a range.
  template <class Count>
  void take_count(const char* name, Count& field, std::uint64_t min, std::uint64_t max) {
    const bool is_given = has(name);
    const py::object value = is_given ? py::object(left_[name]) : py::none();
    std::conditional_t<(sizeof(Count) < sizeof(std::uint32_t)), std::uint32_t, Count> number = field;
    take(name, number);
    if (is_given && (number < min || number > max))
      refuse(name, value,
             max == UINT64_MAX ? "at least " + std::to_string(min)
                               : "a whole number from " + std::to_string(min) + " to " + std::to_string(max));
    field = static_cast<Count>(number);
  }

  template <class Enum>
  void take_word(const char* name, Enum& field) {
    if (const auto index = take_index(name, kEnumWords<Enum>)) field = static_cast<Enum>(*index);
  }
  /// The same; words of which one is yes and one is no are also True and False.
  template <class Enum>
  void take_enum(const char* name, Enum& field) {
    if (enum_of<Enum>("yes") && has(name) && py::isinstance<py::bool_>(left_[name]))
      left_[name] = left_[name].cast<bool>() ? "yes" : "no";
    take_word(name, field);
  }

  /// Takes one of some words, or of "0" the number; returns its index, or nothing for None.
  std::optional<std::size_t> take_index(const char* name, std::span<const std::string_view> words);

  /// Whether a name that nobody took has a value.
  [[nodiscard]] bool has(const char* name) const { return left_.contains(name) && !left_[name].is_none(); }
  [[nodiscard]] bool has_text(const char* name) const {
    return has(name) && (py::isinstance<py::str>(left_[name]) || py::isinstance<py::bytes>(left_[name]));
  }
  [[nodiscard]] py::object take_value(const char* name);
  [[nodiscard]] const std::string& location() const { return location_; }
  [[noreturn]] void refuse(const char* name, const py::object& value, const std::string& expected) const;
  /// Throws usage when a name is left that nobody took, with those that could be.
  void finish() const;

 private:
  template <class Value>
  [[nodiscard]] static const char* kind_of() {
    if constexpr (std::is_same_v<Value, bool> || std::is_same_v<Value, std::optional<bool>>)
      return "True or False";
    if constexpr (std::is_unsigned_v<Value>)
      return sizeof(Value) == 8 ? "a whole number from 0 and below 2**64"
                                : "a whole number from 0 and below 2**32";
    if constexpr (std::is_floating_point_v<Value> || std::is_same_v<Value, std::optional<float>>)
      return "a number";
    if constexpr (std::is_same_v<Value, std::optional<int>> ||
                  std::is_same_v<Value, std::optional<std::int64_t>>)
      return "a whole number";
    if constexpr (std::is_same_v<Value, std::string> || std::is_same_v<Value, std::optional<std::string>>)
      return "a text";
    if constexpr (std::is_same_v<Value, py::dict>) return "a dict";
    return "a list of numbers";
  }

  py::dict left_;
  std::vector<std::string> taken_;  ///< names that have been asked for
  std::string location_;
};

/// The annotation of one of some words.
template <class Words>
[[nodiscard]] std::string word_type(const Words& words) {
  std::string type;
  for (const auto& word : words) {
    if (word == "no" || word.empty()) continue;
    if (word == "yes")
      type.insert(0, "bool, ");
    else
      type.append(type.empty() || type.ends_with(' ') ? "" : ", ").append("\"").append(word).append("\"");
    if (word == "0") type.append(", 0");
  }
  return type.starts_with("bool, ") ? "Union[bool, Literal[" + type.substr(6) + "]]"
                                    : "Literal[" + type + "]";
}

[[nodiscard]] ImageLoaderOptions image_loader_options(const py::dict& options);
/// Those of sparse loaders and of datasets.
template <class Options>
[[nodiscard]] Options options_of(const py::dict& options);

/// The fields of "pack_images" or "pack_sparse", as FieldLister lists them.
[[nodiscard]] py::list fields_of_packing(const std::string& table);

/// Memory from a Python function of a number of bytes, which gives a writable buffer, or none where `make` is
/// None.
[[nodiscard]] BatchAllocator batch_allocator(const py::object& make);

}  // namespace chunkhit
