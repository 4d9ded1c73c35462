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
    try {
      field = value.cast<Value>();
    } catch (const py::cast_error&) {
      refuse(name, value, kind_of<Value>());
    }
  }

  /// Takes a number, or "auto", which is kAutomatic.
  void take_automatic(const char* name, std::uint32_t& field);

  template <class Enum>
  void take_word(const char* name, Enum& field) {
    if (const auto index = take_index(name, kEnumWords<Enum>)) field = static_cast<Enum>(*index);
  }

  /// Takes one of some words; returns its index, or nothing for None.
  std::optional<std::size_t> take_index(const char* name, std::span<const std::string_view> words);

  /// Whether a name that nobody took has a value.
  [[nodiscard]] bool has(const char* name) const { return left_.contains(name) && !left_[name].is_none(); }
  /// The value of a name that nobody took, if it is True or False.
  [[nodiscard]] std::optional<bool> find_bool(const char* name) const {
    if (!has(name) || !py::isinstance<py::bool_>(left_[name])) return std::nullopt;
    return left_[name].cast<bool>();
  }
  /// Takes a value if it is text.
  [[nodiscard]] std::optional<std::string> take_text(const char* name) {
    if (!has(name) || !py::isinstance<py::str>(left_[name])) return std::nullopt;
    return take_value(name).cast<std::string>();
  }
  [[nodiscard]] py::object take_value(const char* name);
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

[[nodiscard]] ImageLoaderOptions image_loader_options(const py::dict& options);
[[nodiscard]] SparseLoaderOptions sparse_loader_options(const py::dict& options);
[[nodiscard]] ImageDatasetOptions image_dataset_options(const py::dict& options);
[[nodiscard]] SparseDatasetOptions sparse_dataset_options(const py::dict& options);

/// Memory from a Python function of a number of bytes, which gives a writable buffer, or none where `make` is
/// None.
[[nodiscard]] BatchAllocator batch_allocator(const py::object& make);

}  // namespace chunkhit
