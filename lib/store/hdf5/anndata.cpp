#include "store/hdf5/anndata.h"

#include <algorithm>

#include "base/throw_error.h"
#include "base/words.h"
#include "store/hdf5/attributes.h"

namespace chunkhit {
namespace {

/// Decoded chunks may take 1/kChunkShare of the memory; ids, blocks and ratings need the rest.
constexpr std::uint64_t kChunkShare = 3;
/// Bytes of a name beside its text: ends in growing lists, and hash tables that find equal names.
constexpr std::uint64_t kNameBytes = 80;
constexpr std::uint64_t kNameCopies = 5;
/// Largest expansion of deflate: a file of N bytes has at most N · kMaxInflation names.
constexpr std::uint64_t kMaxInflation = 1032;
/// Bytes of a name that becomes an id, as pack-sparse counts users and items.
constexpr std::uint64_t kIdBytes = 240;
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 16;

[[noreturn]] void refuse_memory(const std::string& what, std::uint64_t memory_bytes, double enough) {
  throw_usage("`memory_bytes` " + bytes_text(static_cast<double>(memory_bytes)) + " cannot hold " + what +
              ": give `memory_bytes` " + memory_text(enough));
}

bool has_arrays(const Hdf5Check& check, hid_t file, const std::string& group) {
  if (group != "/" && !has_group(check, file, group)) return false;
  const std::string below = group == "/" ? "" : group;
  return has_object(check, file, below + "/data") && has_object(check, file, below + "/indices") &&
         has_object(check, file, below + "/indptr");
}

/// Whether a group is a matrix as Cell Ranger writes it, whose columns are cells.
bool is_cell_ranger(const Hdf5Check& check, hid_t file, const std::string& group) {
  return group != "/" && has_arrays(check, file, group) && has_object(check, file, group + "/barcodes");
}

/// Throws bad_data for Cell Ranger's list of molecules, which lies beside its matrices.
void check_no_molecules(const Hdf5Check& check, hid_t file) {
  const auto has = [&](const char* name) { return has_object(check, file, name); };
  if (has("/umi") && (has("/barcode_idx") || has("/barcode")))
    check.refuse(
        "is a molecule_info.h5 of 10x Genomics: a list of molecules, expected a matrix; give "
        "filtered_feature_bc_matrix.h5 of the same run");
}

/// Throws bad_data for a loom file, whose rows are genes.
void check_no_loom(const Hdf5Check& check, hid_t file) {
  const auto has = [&](const char* name) { return has_object(check, file, name); };
  if (has("/matrix") && has("/row_attrs") && has("/col_attrs"))
    check.refuse(
        "is a loom file, whose rows are genes: convert it with its names, scanpy.read_loom(file).write("
        "\"cells.h5ad\"), or give `layer` /matrix and `transpose`, for cells by number");
}

/// Returns the path of the matrix if none is named: /X, /matrix, the root, or the only group with arrays.
std::string find_matrix(const Hdf5Check& check, hid_t file) {
  check_no_loom(check, file);
  check_no_molecules(check, file);
  for (const char* name : {"/X", "/matrix"})
    if (has_object(check, file, name)) return name;
  if (has_arrays(check, file, "/")) return "/";
  std::vector<std::string> found;
  for (const std::string& name : child_names(check, file, "/"))
    if (has_arrays(check, file, "/" + name)) found.push_back("/" + name);
  if (found.size() == 1) return found[0];
  if (!found.empty() && is_cell_ranger(check, file, found[0]))
    check.refuse("has matrices of " + count_text(found.size(), "genome") + ", " +
                 joined(found, ", ", [](const std::string& path) { return path.substr(1); }) +
                 ": say which one (`layer`)");
  refuse_missing(check, file,
                 found.empty() ? "has no matrix: neither /X nor a group with data, indices and indptr"
                               : "has several matrices: say which one (`layer`)",
                 "/X");
}

/// Reads the format by AnnData's attribute, or the one before 0.7. The root's attribute describes the file.
std::string read_format(const Hdf5Check& check, hid_t group, const std::string& path) {
  if (path == "/") return "";
  std::string format = read_text_attribute(check, group, "encoding-type");
  if (format.empty()) format = read_text_attribute(check, group, "h5sparse_format");
  if (format == "csr_matrix" || format == "csr") return "csr";
  if (format == "csc_matrix" || format == "csc") return "csc";
  if (!format.empty())
    check.refuse(path + " is a \"" + format + "\", expected csr_matrix, csc_matrix or array");
  return "";
}

void require_count(const Hdf5Check& check, const std::vector<hsize_t>& dimensions, std::uint64_t expected,
                   const std::string& path) {
  const std::uint64_t count = dimensions.size() == 1 ? dimensions[0] : 0;
  if (count != expected)
    check.refuse(path + " has " + std::to_string(count) + " names, expected " + std::to_string(expected));
}

TextList read_name_list(const Hdf5Check& check, hid_t file, const std::string& path, std::uint64_t expected) {
  require_count(check, dataset_dimensions(check, open_dataset(check, file, path).get()), expected, path);
  return read_names(check, file, path);
}

/// Reads a categorical column of AnnData: codes that index a list of names.
TextList read_categories(const Hdf5Check& check, hid_t file, const std::string& path,
                         std::uint64_t expected) {
  const Hdf5Column codes = open_column(check, file, path + "/codes");
  require_count(check, codes.dimensions, expected, path + "/codes");
  const TextList categories = read_names(check, file, path + "/categories");
  TextList names;
  for (const std::int64_t code : read_column<std::int64_t>(check, codes)) {
    if (code < 0 || static_cast<std::uint64_t>(code) >= categories.size())
      check.refuse(path + " has code " + std::to_string(code) + " of " + std::to_string(categories.size()) +
                   " categories");
    names.add(categories[static_cast<std::size_t>(code)]);
  }
  return names;
}

/// Reads an index of texts or integers, of AnnData's categories, or of its nullable texts.
TextList read_index_column(const Hdf5Check& check, hid_t file, const std::string& path,
                           std::uint64_t expected) {
  if (!has_group(check, file, path)) return read_name_list(check, file, path, expected);
  if (has_object(check, file, path + "/categories")) return read_categories(check, file, path, expected);
  return read_name_list(check, file, path + "/values", expected);
}

/// Reads the member "index" of records: text of fixed length, as h5py wrote it for AnnData.
TextList read_record_index(const Hdf5Check& check, hid_t dataset, const std::string& path,
                           std::uint64_t expected) {
  const Hdf5Handle type(check(H5Dget_type(dataset), "ask for a type"), H5Tclose);
  const int member = H5Tget_class(type.get()) == H5T_COMPOUND ? H5Tget_member_index(type.get(), "index") : -1;
  if (member < 0) return {};
  const Hdf5Handle text(
      check(H5Tget_member_type(type.get(), static_cast<unsigned>(member)), "ask for a type"), H5Tclose);
  const std::size_t bytes = H5Tget_size(text.get());
  if (H5Tget_class(text.get()) != H5T_STRING || H5Tis_variable_str(text.get()) > 0 || bytes > kMaxTextBytes)
    return {};
  const std::vector<hsize_t> dimensions = dataset_dimensions(check, dataset);
  require_count(check, dimensions, expected, path);
  check_storage(check, dataset, dimensions, H5Tget_size(type.get()), path);
  const Hdf5Handle record(check(H5Tcreate(H5T_COMPOUND, bytes), "create a record type"), H5Tclose);
  check(H5Tinsert(record.get(), "index", 0, text.get()), "create a record type");
  std::vector<char> items(expected * bytes);
  if (expected > 0)
    check(H5Dread(dataset, record.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, items.data()), "read names");
  TextList names;
  for (std::size_t i = 0; i < expected; ++i) {
    const char* const item = items.data() + i * bytes;
    names.add({item, ::strnlen(item, bytes)});
  }
  return names;
}

}  // namespace

/// The index is the column that `_index` names; older files have "_index" or "index" themselves.
TextList read_table_index(const Hdf5Check& check, hid_t file, const std::string& path,
                          std::uint64_t expected) {
  if (!has_object(check, file, path)) return {};
  const Hdf5Handle table = open_object(check, file, path);
  if (H5Iget_type(table.get()) != H5I_GROUP) return read_record_index(check, table.get(), path, expected);
  const std::string said = read_text_attribute(check, table.get(), "_index");
  for (const std::string& name : {said, std::string("_index"), std::string("index")})
    if (!name.empty() && has_object(check, file, path + "/" + name))
      return read_index_column(check, file, path + "/" + name, expected);
  if (!said.empty()) check.refuse(path + " says that its index is \"" + said + "\", which is not there");
  return {};
}

AnnDataMatrix::AnnDataMatrix(const Hdf5Source& source, const std::string& wanted, std::uint64_t memory_bytes)
    : source_(source), memory_bytes_(memory_bytes) {
  const Hdf5Session session;
  const Hdf5Check& check = source_.check();
  const hid_t file = source_.file();
  register_lzf(check);
  facts_.path = wanted.empty() ? find_matrix(check, file) : hdf5_path(wanted);
  while (facts_.path.size() > 1 && facts_.path.ends_with('/')) facts_.path.pop_back();
  constexpr std::string_view kLayers = "/layers/";
  if (const std::string genome = "/" + facts_.path.substr(std::min(kLayers.size(), facts_.path.size()));
      facts_.path.starts_with(kLayers) && is_cell_ranger(check, file, genome))
    facts_.path = genome;
  if (facts_.path != "/" && !has_object(check, file, facts_.path))
    refuse_missing(check, file, "has no " + facts_.path, facts_.path);
  if (facts_.path == "/" || has_group(check, file, facts_.path))
    open_compressed();
  else
    open_dense();
  check_chunk_memory();
}

void AnnDataMatrix::open_dense() {
  const Hdf5Check& check = source_.check();
  facts_.storage = CsrStorage::dense;
  values_.emplace(check, source_.file(), facts_.path);
  facts_.entry_count = values_->count();
  if (values_->dimensions().size() != 2) check.refuse(facts_.path + " has one dimension, expected a matrix");
  facts_.row_count = values_->dimensions()[0];
  facts_.column_count = values_->dimensions()[1];
}

void AnnDataMatrix::open_compressed() {
  const Hdf5Check& check = source_.check();
  const hid_t file = source_.file();
  const std::string below = facts_.path == "/" ? "" : facts_.path;
  if (!has_arrays(check, file, facts_.path))
    refuse_missing(check, file, facts_.path + " lacks data, indices or indptr", below + "/data");
  facts_.is_cell_ranger = is_cell_ranger(check, file, facts_.path);
  values_.emplace(check, file, below + "/data");
  indices_.emplace(check, file, below + "/indices");
  indptr_.emplace(check, file, below + "/indptr");
  facts_.entry_count = values_->count();
  for (const auto* list : {&*values_, &*indices_, &*indptr_})
    if (list->dimensions().size() != 1) check.refuse(facts_.path + " has an array that is no list");
  if (indices_->count() != facts_.entry_count)
    check.refuse(facts_.path + " has " + std::to_string(facts_.entry_count) + " values and " +
                 std::to_string(indices_->count()) + " indices");
  if (indptr_->count() == 0) check.refuse(facts_.path + " has an empty indptr");
  const Hdf5Handle group(check(H5Gopen2(file, facts_.path.c_str(), H5P_DEFAULT), "open a group"), H5Gclose);
  if (facts_.is_cell_ranger)
    set_cell_sides(read_shape());
  else
    set_sides(read_format(check, group.get(), facts_.path), read_shape());
  const std::uint64_t outer = facts_.storage == CsrStorage::csr ? facts_.row_count : facts_.column_count;
  if (indptr_->count() != outer + 1)
    check.refuse(facts_.path + " has " + std::to_string(indptr_->count()) + " numbers in indptr, expected " +
                 std::to_string(outer + 1));
}

/// Reads the two sides from an attribute or a dataset of the group; empty if there is neither.
std::vector<std::int64_t> AnnDataMatrix::read_shape() const {
  const Hdf5Check& check = source_.check();
  const Hdf5Handle group(check(H5Gopen2(source_.file(), facts_.path.c_str(), H5P_DEFAULT), "open a group"),
                         H5Gclose);
  std::vector<std::int64_t> shape;
  for (const char* name : {"shape", "h5sparse_shape"})
    if (shape.empty()) shape = read_attribute<std::int64_t>(check, group.get(), name);
  const std::string dataset = (facts_.path == "/" ? "" : facts_.path) + "/shape";
  if (shape.empty() && has_object(check, source_.file(), dataset)) {
    const Hdf5Column column = open_column(check, source_.file(), dataset);
    // Checked before it is read: a compressed one may claim any size.
    if (column.count() == 2) shape = read_column<std::int64_t>(check, column);
  } else if (shape.empty()) {
    return shape;
  }
  if (shape.size() != 2 || shape[0] < 0 || shape[1] < 0 || shape[0] == INT64_MAX || shape[1] == INT64_MAX)
    check.refuse(facts_.path + " has a shape that is not two counts");
  return shape;
}

/// Without a format the length of indptr decides between CSR and CSC; without a shape only CSR is possible.
void AnnDataMatrix::set_sides(const std::string& format, const std::vector<std::int64_t>& shape) {
  const std::uint64_t outer_count = indptr_->count() - 1;
  facts_.storage = format == "csc" ? CsrStorage::csc : CsrStorage::csr;
  if (shape.empty()) {
    if (facts_.storage == CsrStorage::csc) source_.check().refuse(facts_.path + " does not say its shape");
    facts_.row_count = outer_count;
    facts_.column_count = UINT64_MAX;
    facts_.notices.push_back(facts_.path +
                             ": does not say its shape: columns behind the last entry are lost");
    return;
  }
  facts_.row_count = static_cast<std::uint64_t>(shape[0]);
  facts_.column_count = static_cast<std::uint64_t>(shape[1]);
  if (format.empty()) {
    if (facts_.row_count != outer_count && facts_.column_count == outer_count)
      facts_.storage = CsrStorage::csc;
    facts_.notices.push_back(facts_.path + ": does not say its format: taken as " +
                             (facts_.storage == CsrStorage::csr ? "csr" : "csc"));
  }
}

/// The shape is features × cells, as compressed columns: cells are rows here.
void AnnDataMatrix::set_cell_sides(const std::vector<std::int64_t>& shape) {
  if (shape.empty()) source_.check().refuse(facts_.path + " does not say its shape");
  facts_.row_count = static_cast<std::uint64_t>(shape[1]);
  facts_.column_count = static_cast<std::uint64_t>(shape[0]);
}

/// Throws usage if the chunks read at a time do not fit: while decoding, one is in memory twice.
void AnnDataMatrix::check_chunk_memory() const {
  std::uint64_t sum = 0;
  std::uint64_t largest = 0;
  for (const auto* list : {&values_, &indices_, &indptr_}) {
    const std::uint64_t bytes = *list ? (*list)->chunk_bytes() : 0;
    sum += bytes;
    largest = std::max(largest, bytes);
  }
  if ((sum + largest) <= memory_bytes_ / kChunkShare) return;
  refuse_memory("the chunks of " + source_.check().path() + ": " + facts_.path + " (" +
                    bytes_text(static_cast<double>(sum)) +
                    " at a time; h5repack -l CHUNK=1000000 writes them smaller)",
                memory_bytes_, static_cast<double>(sum + largest) * kChunkShare);
}

void AnnDataMatrix::check_name_memory(std::uint64_t count, std::uint64_t text_bytes) const {
  const double text = static_cast<double>(text_bytes) * kNameCopies;
  const auto names = static_cast<double>(count);
  if (names * kNameBytes + text <= static_cast<double>(memory_bytes_)) return;
  if (count / kMaxInflation > source_.byte_count())
    source_.check().refuse(facts_.path + " has a shape of " + count_text(count) +
                           " rows and columns, more than " + std::to_string(source_.byte_count()) +
                           " bytes can name");
  refuse_memory("the " + count_text(count) + " names of rows and columns of " + source_.check().path(),
                memory_bytes_, names * kIdBytes + text);
}

/// Features have their ids, which are unique, as those of .mtx files have; older files call them genes.
void AnnDataMatrix::read_cell_names() {
  const Hdf5Check& check = source_.check();
  const hid_t file = source_.file();
  check_name_memory(facts_.row_count + facts_.column_count, 0);
  facts_.row_names = read_name_list(check, file, facts_.path + "/barcodes", facts_.row_count);
  const auto read_columns = [&](const std::string& path, TextList& texts) {
    if (!has_object(check, file, path)) return false;
    texts = read_name_list(check, file, path, facts_.column_count);
    return true;
  };
  const bool is_named = read_columns(facts_.path + "/features/id", facts_.column_names) ||
                        read_columns(facts_.path + "/genes", facts_.column_names);
  if (!is_named)
    facts_.notices.push_back(facts_.path + ": has neither features/id nor genes: items are numbered from 0");
  static_cast<void>(read_columns(facts_.path + "/features/feature_type", facts_.column_types));
  check_name_memory(
      facts_.row_names.size() + facts_.column_names.size(),
      facts_.row_names.text.size() + facts_.column_names.text.size() + facts_.column_types.text.size());
}

void AnnDataMatrix::read_names() {
  const Hdf5Session session;
  const Hdf5Check& check = source_.check();
  const hid_t file = source_.file();
  if (facts_.is_cell_ranger) return read_cell_names();
  if (!has_object(check, file, "/obs")) return;
  check_name_memory(facts_.row_count + (facts_.column_count == UINT64_MAX ? 0 : facts_.column_count), 0);
  const std::string columns = facts_.path.starts_with("/raw/") ? "/raw/var" : "/var";
  facts_.row_names = read_table_index(check, file, "/obs", facts_.row_count);
  facts_.column_names = read_table_index(check, file, columns, facts_.column_count);
  check_name_memory(facts_.row_names.size() + facts_.column_names.size(),
                    facts_.row_names.text.size() + facts_.column_names.text.size());
  if (facts_.row_names.empty())
    facts_.notices.push_back("/obs: has no names: " + facts_.path + " is numbered from 0");
  if (facts_.column_names.empty())
    facts_.notices.push_back(columns + ": has no names: " + facts_.path + " is numbered from 0");
}

}  // namespace chunkhit
