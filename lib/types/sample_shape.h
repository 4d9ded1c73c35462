// What a sample of images consists of: the image, and what lies behind it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chunkhit/image_spec.h"

namespace chunkhit {

/// What follows from the role of a field that lies behind the image.
struct RoleTraits {
  FieldRole role;
  const char* name;    ///< of a field that is given none
  const char* plural;  ///< the dataset of that field in HDF5, and in messages
  /// It has the image's channels, and is resized, predicted and normalised as the image; else it has a class
  /// id a pixel.
  bool is_image;
  bool fits_own_sizes;             ///< images of their own sizes may have it
  std::uint64_t manifest_version;  ///< of packs that have it alone, under its name
  std::uint32_t code;              ///< in parts: the image and this alone, under its name
};

/// In the order of the roles.
inline constexpr std::array kRoles{RoleTraits{FieldRole::mask, "mask", "masks", false, true, 3, 2},
                                   RoleTraits{FieldRole::view, "view", "views", true, false, 4, 3}};

[[nodiscard]] constexpr const RoleTraits& traits_of(FieldRole role) {
  return kRoles[static_cast<std::size_t>(role)];
}

/// Versions of packs that have more fields, or names of their own for them.
inline constexpr std::uint64_t kFieldsVersion = 5;
inline constexpr std::size_t kMaxFields = 8;  ///< beside the image

/// Whether a field has the name of its role.
[[nodiscard]] inline bool has_usual_name(const SampleField& field) {
  return field.name == traits_of(field.role).name;
}

/// What messages and HDF5 call a field of all samples.
[[nodiscard]] inline std::string plural_of(const SampleField& field) {
  return has_usual_name(field) ? traits_of(field.role).plural : field.name;
}

struct SampleShape;

/// " with masks and depth (views)"; empty without fields.
[[nodiscard]] std::string fields_text(const SampleShape& sample);

/// "224x224x3 nhwc with masks", for messages.
[[nodiscard]] std::string shape_text(const SampleShape& sample);

/// What is wrong with the fields of samples; empty where nothing is.
[[nodiscard]] std::string fields_problem(const std::vector<SampleField>& fields);

/// A field, and where its files are: a folder, a column of a CSV, or the extension of members of tars.
struct FieldPlace {
  SampleField field;
  std::string place;
};

/// Parses "PLACE", "NAME=PLACE", "PLACE:view" and "NAME=PLACE:view", in their order: without a role, a field
/// called "view" is a view, each other one a mask; without a name, it has that of its role. Throws usage,
/// with the name of the option and the shape that it has.
[[nodiscard]] std::vector<FieldPlace> parse_fields(std::span<const std::string> texts,
                                                   std::string_view option, std::string_view shape);

/// What `parse_fields` parses, with names and roles.
[[nodiscard]] std::vector<std::string> field_texts(std::span<const FieldPlace> fields);

/// The shape of one sample of 8-bit values: an image, and the fields behind it, of as many rows and columns.
struct SampleShape {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 0;
  Layout layout = Layout::nhwc;
  std::vector<SampleField> pairs = {};  ///< the fields, in their order behind the image

  /// The number of a field among them; their count where there is none.
  [[nodiscard]] std::size_t find(std::string_view name) const {
    return static_cast<std::size_t>(std::ranges::find(pairs, name, &SampleField::name) - pairs.begin());
  }
  /// Where a field begins, in bytes.
  [[nodiscard]] std::uint64_t offset_of(std::size_t field) const {
    std::uint64_t offset = pixel_bytes();
    for (std::size_t i = 0; i < field; ++i) offset += shape_of(pairs[i].role).byte_count();
    return offset;
  }
  /// Whether there is one field at most, which has the name of its role.
  [[nodiscard]] bool has_usual_fields() const {
    return pairs.empty() || (pairs.size() == 1 && has_usual_name(pairs.front()));
  }
  /// A field's own shape, as that of an image.
  [[nodiscard]] SampleShape shape_of(FieldRole role) const {
    if (traits_of(role).is_image) return {height, width, channels, layout};
    return {height, width, 1, Layout::nhwc};
  }
  /// Bytes of a pixel in all fields.
  [[nodiscard]] std::uint64_t values() const {
    std::uint64_t count = channels;
    for (const SampleField& field : pairs) count += shape_of(field.role).channels;
    return count;
  }
  /// Of the image.
  [[nodiscard]] std::uint64_t pixel_bytes() const { return std::uint64_t{height} * width * channels; }
  [[nodiscard]] std::uint64_t byte_count() const { return std::uint64_t{height} * width * values(); }
  bool operator==(const SampleShape&) const = default;
};

}  // namespace chunkhit
