// Writes parts with known ratings for other readers to read, and reads what others wrote:
//   matrix_probe write FOLDER      shard-TYPE-MATRICES-FILTER.zst, hdf5-TYPE-MATRICES-LAYOUT.h5
//   matrix_probe read FILE [X]     prints one line of numbers for each row, names first
#include <cstdio>
#include <exception>
#include <string>

#include "chunkhit/error.h"
#include "known_matrices.h"
#include "store/hdf5/matrix.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kRows = 10;

struct KnownType {
  std::string name;
  ValueType type;
  double scale;
};

const std::vector<KnownType> kTypes{{"none", ValueType::none, 1},
                                    {"u8", ValueType::u8, 1},
                                    {"half", ValueType::u8, 0.5},
                                    {"u16", ValueType::u16, 1},
                                    {"f32", ValueType::f32, 1}};

void write_hdf5(const std::string& path, const PartSpec& spec) {
  std::vector<std::uint64_t> counts;
  for (std::uint64_t column = 0; column < spec.rows().matrix.column_count; ++column)
    counts.push_back(column % 9);
  MatrixHdf5Writer writer(path, spec, {.item_counts = counts});
  for (std::uint64_t first = 0; first < kRows; first += 3) {
    const std::uint64_t count = std::min<std::uint64_t>(3, kRows - first);
    const CsrRows x = known_rows(spec.rows().matrix, 0, first, count);
    const CsrRows held_out = known_rows(spec.rows().matrix, 1, first, count);
    writer.append(x.view(), held_out.view());
  }
  static_cast<void>(
      writer.finish(known_users(spec, kRows, spec.rows().matrix.value_type != ValueType::none)));
}

void write_all(const std::string& folder) {
  for (const KnownType& known : kTypes)
    for (const std::uint32_t matrices : {1u, 2u}) {
      const MatrixShape shape = known_shape(known.type, matrices, known.scale);
      const std::string what = known.name + "-" + std::to_string(matrices);
      const std::size_t label_columns = known.name == "u16" ? 2 : 0;
      for (const char* filter : {"zstd", "none"})
        write_known_matrices(folder + "/shard-" + what + "-" + filter + ".zst",
                             known_matrix_spec(shape, filter, label_columns), kRows);
      const PartSpec spec = known_matrix_spec(shape, "none", label_columns);
      write_hdf5(folder + "/hdf5-" + what + "-csr.h5", spec);
    }
}

void print_rows(const char* name, const CsrRows& rows) {
  for (std::size_t row = 0; row < rows.row_count(); ++row) {
    std::printf("%s", name);
    for (std::uint64_t at = rows.indptr[row]; at < rows.indptr[row + 1]; ++at)
      std::printf(" %u:%.9g", rows.indices[at], static_cast<double>(rows.values[at]));
    std::printf("\n");
  }
}

void print_file(const std::string& path, const std::string& x) {
  const Hdf5Matrix matrix = read_matrix_hdf5(InputFile(path), {x});
  std::printf("columns %llu\n", static_cast<unsigned long long>(matrix.column_count));
  for (std::size_t i = 0; i < matrix.samples.row_ids.size(); ++i)
    std::printf("user %s\n", std::string(matrix.samples.row_ids[i]).c_str());
  for (const std::string& name : matrix.column_names) std::printf("item %s\n", name.c_str());
  print_rows("x", matrix.x);
  if (matrix.held_out) print_rows("held_out", *matrix.held_out);
}

}  // namespace
}  // namespace chunkhit

int main(int count, char** arguments) {
  if (count < 3) return 2;
  try {
    if (std::string(arguments[1]) == "write")
      chunkhit::write_all(arguments[2]);
    else
      chunkhit::print_file(arguments[2], count > 3 ? arguments[3] : "X");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
