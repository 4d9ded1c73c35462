// Writes what a SparseLoader gives of packs, for scripts that compare it with scipy.
// Usage: sparse_loader_probe OPTIONS OUT PATH...
// OPTIONS are numbers, in one argument: SHUFFLE(0 none, 1 window, 2 global) SEED WINDOW_CHUNKS BATCH_SIZE
// RESIDENCY(0 automatic, 1 decoded, 2 compressed, 3 stream) THREADS AS(0 f32, 1 f16, 2 u8, 3 csr) EPOCHS.
// OUT.x and OUT.held_out get the cells, or with csr lines of "row column value"; OUT.rows the own ids of the
// rows as lines; stdout gets a line "ROWS COLUMNS SCALE".
#include <fstream>
#include <iostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "chunkhit/sparse_loader.h"

namespace {

using namespace chunkhit;

void write(const SparseMatrix& matrix, SparseFormat format, std::span<const std::uint64_t> rows,
           std::ofstream& out) {
  const auto put = [&](const auto& numbers) {
    out.write(reinterpret_cast<const char*>(numbers.data()),
              static_cast<std::streamsize>(numbers.size_bytes()));
  };
  if (format == SparseFormat::dense_f32) put(matrix.dense_f32());
  if (format == SparseFormat::dense_f16) put(matrix.dense_f16());
  if (format == SparseFormat::dense_u8) put(matrix.dense_u8());
  if (format != SparseFormat::csr) return;
  const CsrBatch& csr = matrix.csr();
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (auto at = csr.indptr[row]; at < csr.indptr[row + 1]; ++at)
      out << rows[row] << ' ' << csr.indices[static_cast<std::size_t>(at)] << ' '
          << csr.values[static_cast<std::size_t>(at)] << '\n';
}

void write_all(const std::string& text, const std::string& out, const std::vector<std::string>& paths) {
  std::istringstream in(text);
  unsigned shuffle = 0, cache = 0, as = 0;
  std::uint64_t epochs = 0;
  SparseLoaderOptions options;
  in >> shuffle >> options.seed >> options.window_chunks >> options.batch_size >> cache >> options.threads >>
      as >> epochs;
  if (!in) throw Error(ErrorCode::usage, "OPTIONS: eight numbers are expected");
  options.shuffle = static_cast<Shuffle>(shuffle);
  options.cache = static_cast<Cache>(cache);
  options.format = static_cast<SparseFormat>(as);
  SparseLoader loader(paths, options);
  std::cout << loader.size() << ' ' << loader.column_count() << ' ' << loader.value_scale() << '\n';
  std::ofstream x(out + ".x", std::ios::binary), held_out(out + ".held_out", std::ios::binary);
  x.precision(9);  // an f32 reads back
  std::ofstream rows(out + ".rows");
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch)
    for (const SparseBatch& batch : loader.epoch(epoch)) {
      write(batch, options.format, batch.rows, x);
      if (loader.has_held_out()) write(batch.held_out, options.format, batch.rows, held_out);
      for (const std::uint64_t row : batch.rows) rows << loader.row_id(row) << '\n';
    }
  std::ofstream columns(out + ".columns");
  for (std::uint64_t column = 0; column < loader.column_count(); ++column)
    columns << loader.column_id(column) << '\n';
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::cerr << "usage: sparse_loader_probe OPTIONS OUT PATH...\n";
    return 64;
  }
  try {
    write_all(arguments[1], arguments[2], {arguments + 3, arguments + count});
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(error.code());
  }
  return 0;
}
