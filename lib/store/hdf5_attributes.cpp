#include "store/hdf5_attributes.h"

namespace chunkhit {
namespace {

// An attribute lies in an object's header, whose messages have at most 64 KiB.
constexpr hssize_t kMaxValues = 65536;
constexpr std::size_t kMaxTextBytes = 65536;

Hdf5Handle variable_text_type(const Hdf5Check& check, H5T_cset_t encoding) {
  Hdf5Handle type(check(H5Tcopy(H5T_C_S1), "create a text type"), H5Tclose);
  check(H5Tset_size(type.get(), H5T_VARIABLE), "set a text's length");
  check(H5Tset_cset(type.get(), encoding), "set a text's encoding");
  return type;
}

}  // namespace

void write_attribute(const Hdf5Check& check, hid_t object, const char* name, hid_t type, AttributeShape shape,
                     hsize_t count, const void* values) {
  const Hdf5Handle space(
      check(shape == AttributeShape::scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, nullptr),
            "create a dataspace"),
      H5Sclose);
  const Hdf5Handle attribute(
      check(H5Acreate2(object, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT), "create an attribute"),
      H5Aclose);
  if (count > 0) check(H5Awrite(attribute.get(), type, values), "write an attribute");
}

void write_text_attribute(const Hdf5Check& check, hid_t object, const char* name, const std::string& text) {
  const char* pointer = text.c_str();
  const Hdf5Handle type = variable_text_type(check, H5T_CSET_UTF8);
  write_attribute(check, object, name, type.get(), AttributeShape::scalar, 1, &pointer);
}

void write_text_attribute(const Hdf5Check& check, hid_t object, const char* name,
                          const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  pointers.reserve(texts.size());
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  const Hdf5Handle type = variable_text_type(check, H5T_CSET_UTF8);
  write_attribute(check, object, name, type.get(), AttributeShape::array, pointers.size(), pointers.data());
}

std::size_t attribute_count(const Hdf5Check& check, hid_t object, const char* name) {
  if (check(H5Aexists(object, name), "look for an attribute") == 0) return 0;
  const Hdf5Handle attribute(check(H5Aopen(object, name, H5P_DEFAULT), "open an attribute"), H5Aclose);
  const Hdf5Handle space(check(H5Aget_space(attribute.get()), "ask for an attribute's size"), H5Sclose);
  const hssize_t count = check(H5Sget_simple_extent_npoints(space.get()), "ask for an attribute's size");
  if (count > kMaxValues) check.refuse(std::string("attribute ") + name + " has too many values");
  return static_cast<std::size_t>(count);
}

void read_attribute(const Hdf5Check& check, hid_t object, const char* name, hid_t type, void* values) {
  const Hdf5Handle attribute(check(H5Aopen(object, name, H5P_DEFAULT), "open an attribute"), H5Aclose);
  check(H5Aread(attribute.get(), type, values), (std::string("read attribute ") + name).c_str());
}

std::string read_text_attribute(const Hdf5Check& check, hid_t object, const char* name) {
  const std::size_t count = attribute_count(check, object, name);
  if (count == 0) return "";
  if (count != 1) check.refuse(std::string("attribute ") + name + " is not one text");
  const Hdf5Handle attribute(check(H5Aopen(object, name, H5P_DEFAULT), "open an attribute"), H5Aclose);
  const Hdf5Handle stored(check(H5Aget_type(attribute.get()), "ask for an attribute's type"), H5Tclose);
  if (H5Tget_class(stored.get()) != H5T_STRING)
    check.refuse(std::string("attribute ") + name + " is no text");
  if (H5Tis_variable_str(stored.get()) <= 0) {
    if (H5Tget_size(stored.get()) > kMaxTextBytes)
      check.refuse(std::string("attribute ") + name + " is too long");
    std::string text(H5Tget_size(stored.get()), '\0');
    read_attribute(check, object, name, stored.get(), text.data());
    return text.substr(0, text.find('\0'));
  }
  const Hdf5Handle type = variable_text_type(check, H5Tget_cset(stored.get()));
  char* pointer = nullptr;
  read_attribute(check, object, name, type.get(), &pointer);
  std::string text = pointer == nullptr ? "" : pointer;
  H5free_memory(pointer);
  return text;
}

}  // namespace chunkhit
