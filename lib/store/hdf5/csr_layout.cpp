#include <array>
#include <utility>

#include "store/hdf5/attributes.h"
#include "store/hdf5/columns.h"
#include "store/hdf5/csr.h"
#include "store/hdf5/csr_names.h"
#include "store/hdf5/csr_numbers.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMaxListedNames = 20;

bool has(const Hdf5Check& check, hid_t file, const std::string& place) {
  return has_object(check, file, place.c_str() + 1);
}

bool has_arrays(const Hdf5Check& check, hid_t file, const std::string& group) {
  if (!group.empty() && !is_group(check, file, group)) return false;
  return has(check, file, group + "/data") && has(check, file, group + "/indices") &&
         has(check, file, group + "/indptr");
}

herr_t list_name(hid_t, const char* name, const H5L_info_t*, void* listed) {
  auto& names = *static_cast<std::vector<std::string>*>(listed);
  names.emplace_back(name);
  return names.size() > kMaxListedNames ? 1 : 0;
}

std::vector<std::string> names_in(const Hdf5Check& check, hid_t file, const std::string& group) {
  std::vector<std::string> names;
  check(H5Literate_by_name(file, group.c_str(), H5_INDEX_NAME, H5_ITER_INC, nullptr, list_name, &names,
                           H5P_DEFAULT),
        "list its objects");
  return names;
}

[[noreturn]] void refuse_missing(const Hdf5Check& check, hid_t file, const std::string& what,
                                 const std::string& group = "/") {
  std::string listed;
  for (const std::string& name : names_in(check, file, group))
    listed += (listed.empty() ? group : ", " + group) + name;
  check.refuse(what + "; it has " + (listed.empty() ? "nothing" : listed));
}

/// Where a layer is missed, those that there are.
std::string listed_group(const Hdf5Check& check, hid_t file, const std::string& place) {
  const bool is_layer = place.starts_with("/layers/") && has(check, file, "/layers");
  return is_layer && is_group(check, file, "/layers") ? "/layers/" : "/";
}

/// The matrix that is meant where none is named.
std::string find_place(const Hdf5Check& check, hid_t file) {
  if (has(check, file, "/X")) return "/X";
  if (has(check, file, "/matrix")) return "/matrix";
  if (has_arrays(check, file, "")) return "";
  std::vector<std::string> found;
  for (const std::string& name : names_in(check, file, "/")) {
    const std::string place = "/" + name;
    if (has_arrays(check, file, place)) found.push_back(place);
  }
  if (found.size() == 1) return found[0];
  refuse_missing(check, file,
                 found.empty() ? "has no matrix: neither /X nor a group with data, indices and indptr"
                               : "has several matrices: say which one (`layer`)");
}

/// Reads two sides from an attribute or a dataset of the group.
std::vector<std::int64_t> read_shape(const Hdf5Check& check, hid_t file, hid_t group,
                                     const std::string& place) {
  std::vector<std::int64_t> shape;
  for (const char* name : {"shape", "h5sparse_shape"})
    if (shape.empty()) shape = read_attribute<std::int64_t>(check, group, name);
  if (shape.empty() && has(check, file, place + "/shape")) {
    Hdf5Numbers numbers(check, file, place + "/shape");
    shape.resize(numbers.count() == 2 ? 2 : 0);
    if (shape.empty()) check.refuse(place + "/shape is not two numbers");
    numbers.read(check, shape);
  }
  if (shape.empty()) return shape;
  if (shape.size() != 2 || shape[0] < 0 || shape[1] < 0 || shape[0] == INT64_MAX || shape[1] == INT64_MAX)
    check.refuse(place + " has a shape that is not two counts");
  return shape;
}

std::string read_format(const Hdf5Check& check, hid_t group, const std::string& place) {
  std::string format = read_any_text_attribute(check, group, "encoding-type");
  if (format.empty())
    format = read_any_text_attribute(check, group, "h5sparse_format");  // AnnData before 0.7
  if (format == "csr_matrix" || format == "csr") return "csr";
  if (format == "csc_matrix" || format == "csc") return "csc";
  if (!format.empty())
    check.refuse(place + " is a \"" + format + "\", expected csr_matrix, csc_matrix or array");
  return "";
}

}  // namespace

CsrLayout find_csr_layout(const Hdf5Check& check, hid_t file, const std::string& place) {
  CsrLayout layout;
  layout.place = place.empty() ? find_place(check, file) : (place[0] == '/' ? "" : "/") + place;
  while (layout.place.ends_with('/')) layout.place.pop_back();
  if (!layout.place.empty() && !has(check, file, layout.place))
    refuse_missing(check, file, "has no " + layout.place, listed_group(check, file, layout.place));
  layout.is_dense = !layout.place.empty() && !is_group(check, file, layout.place);
  layout.kind = has(check, file, "/obs") ? CsrFileKind::anndata : CsrFileKind::bare;
  if (layout.is_dense) return layout;
  if (!has_arrays(check, file, layout.place))
    refuse_missing(check, file, layout.place + " lacks data, indices or indptr");
  const std::string root_or_place = layout.place.empty() ? "/" : layout.place;
  if (has(check, file, layout.place + "/barcodes"))
    check.refuse(root_or_place +
                 " is a matrix of 10x Genomics, expected AnnData: convert it with its names, "
                 "scanpy.read_10x_h5(file).write(\"cells.h5ad\")");
  const Hdf5Handle group(check(H5Gopen2(file, root_or_place.c_str(), H5P_DEFAULT), "open a group"), H5Gclose);
  // The root of a file may be encoded as something else.
  layout.format = layout.place.empty() ? "" : read_format(check, group.get(), layout.place);
  layout.shape = read_shape(check, file, group.get(), layout.place);
  return layout;
}

void read_axis_names(const Hdf5Check& check, hid_t file, const CsrLayout& layout, CsrFacts& facts) {
  if (layout.kind != CsrFileKind::anndata) return;
  facts.row_names = read_table_index(check, file, "/obs", facts.row_count);
  const bool is_raw = layout.place.starts_with("/raw/");
  const std::string columns = is_raw ? "/raw/var" : "/var";
  if (has(check, file, columns))
    facts.column_names = read_table_index(check, file, columns, facts.column_count);
  for (const auto& [names, table] :
       {std::pair(&facts.row_names, std::string("/obs")), {&facts.column_names, columns}})
    if (names->count() == 0)
      facts.notices.push_back(table + ": has no names: " + facts.place + " is numbered from 0");
}

}  // namespace chunkhit
