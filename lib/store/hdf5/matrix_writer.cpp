#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/hash.h"
#include "base/throw_error.h"
#include "chunkhit/error.h"
#include "store/hdf5/anndata.h"
#include "store/hdf5/attributes.h"
#include "store/hdf5/handle.h"
#include "store/hdf5/index.h"
#include "store/hdf5/matrix.h"
#include "store/hdf5/matrix_arrays.h"
#include "store/hdf5/numbers.h"
#include "store/hdf5/output.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kMetadataBlockBytes = 16 << 10;

PartSpec checked_spec(const std::string& path, const PartSpec& spec) {
  try {
    check_matrix_shape(spec.rows().matrix);
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.what());
  }
  return spec;
}

/// Returns the items' ids, or their column numbers if they have none: AnnData needs names.
TextList item_names(const PartSpec& spec) {
  TextList names;
  for (const std::string& name : spec.rows().item_ids) names.add(name);
  for (std::uint64_t column = names.size(); column < spec.rows().matrix.column_count; ++column)
    names.add(std::to_string(column));
  return names;
}

/// Throws bad_data unless the columns of each row ascend, as CSR requires.
void check_rows(const CsrView& rows, const MatrixShape& shape) {
  for (std::size_t row = 0; row < rows.row_count(); ++row) {
    std::uint64_t least = 0;
    for (std::uint64_t at = rows.indptr[row] - rows.indptr[0]; at < rows.indptr[row + 1] - rows.indptr[0];
         ++at) {
      if (rows.indices[at] < least || rows.indices[at] >= shape.column_count)
        throw_bad_data("column " + std::to_string(rows.indices[at]) + " in row " + std::to_string(row) +
                       ", expected ascending columns below " + std::to_string(shape.column_count));
      least = std::uint64_t{rows.indices[at]} + (shape.has_repeats ? 0 : 1);
    }
  }
}

void write_root(const Hdf5Check& check, hid_t file, const PartSpec& spec) {
  write_attribute(check, file, kMatrixVersionAttribute, version_of(spec.rows().matrix));
  write_text_attribute(check, file, kPackIdAttribute, hash_text(spec.pack_id));
  write_attribute(check, file, kPartIndexAttribute, std::uint64_t{spec.part_index});
  write_attribute(check, file, kMatricesAttribute, std::uint64_t{spec.rows().matrix.matrix_count});
  write_text_attribute(check, file, kValueTypeAttribute, name_of(spec.rows().matrix.value_type));
  write_attribute(check, file, kScaleAttribute, spec.rows().matrix.scale);
  write_attribute(check, file, kChunkRowsAttribute, spec.chunk_samples);
}

/// Writes the labels as columns of obs. Labels that are all -1 stand for none.
void write_labels(DataFrameWriter& obs, const PartSpec& spec, const Labels& labels) {
  if (std::ranges::any_of(labels.ids, [](std::int64_t id) { return id != -1; })) obs.add("label", labels.ids);
  if (labels.values.empty()) return;
  const std::vector<std::string> names = label_column_names(spec.label_columns);
  std::vector<float> numbers(labels.values.size() / names.size());
  for (std::size_t column = 0; column < names.size(); ++column) {
    for (std::size_t row = 0; row < numbers.size(); ++row)
      numbers[row] = labels.values[row * names.size() + column];
    obs.add(names[column], numbers);
  }
}

/// Writes the groups that AnnData expects beside the matrix; `uns` also has the names of label columns.
void write_groups(const Hdf5Check& check, hid_t file, const PartSpec& spec, const PartSamples& samples) {
  for (const char* name : {"obsm", "obsp", "varm", "varp", "uns"})
    static_cast<void>(create_group(check, file, name, "dict", "0.1.0"));
  if (samples.labels.values.empty()) return;
  TextList names;
  for (const std::string& name : spec.label_columns) names.add(name);
  write_text_column(check, file, kLabelColumnsName, names);
  write_encoding(check, open_dataset(check, file, kLabelColumnsName).get(), "string-array", "0.2.0");
}

}  // namespace

struct MatrixHdf5Writer::State {
  State(const std::string& path, const PartSpec& part_spec, MatrixHdf5Options writer_options)
      : spec(checked_spec(path, part_spec)),
        options(std::move(writer_options)),
        items(item_names(spec)),
        output(path, kMetadataBlockBytes) {
    write_encoding(check, output.file(), "anndata", "0.1.0");
    static_cast<void>(create_group(check, output.file(), "layers", "dict", "0.1.0"));
    write_root(check, output.file(), spec);
    matrices.push_back(start(kXName, kTimesName, kTiesName));
    if (spec.rows().matrix.matrix_count == 2)
      matrices.push_back(start(kHeldOutName, kHeldOutTimesName, kHeldOutTiesName));
  }

  std::unique_ptr<MatrixOutput> start(const char* name, const char* times_name, const char* ties_name) {
    return start_csr_group({output, name, spec.rows().matrix, options.deflate_level, times_name, ties_name});
  }

  void check_samples(const PartSamples& samples) const {
    const bool whole = samples.rows.size() == row_count && samples.row_ids.size() == row_count &&
                       items.size() == spec.rows().matrix.column_count &&
                       (options.item_counts.empty() || options.item_counts.size() == items.size()) &&
                       (samples.labels.values.empty()
                            ? samples.labels.ids.size() == row_count
                            : samples.labels.values.size() == row_count * spec.label_columns.size());
    if (!whole)
      throw Error(ErrorCode::cannot_write,
                  check.path() + ": users, items or labels are not as many as rows and columns");
  }

  /// Writes obs, var and the remaining groups.
  void write_beside(const PartSamples& samples) {
    DataFrameWriter obs(check, output.file(), "obs", samples.row_ids);
    obs.add("row", samples.rows);
    write_labels(obs, spec, samples.labels);
    kept_user_names = obs.add_kept(samples.columns);
    obs.finish();
    DataFrameWriter var(check, output.file(), "var", items);
    if (!options.item_counts.empty()) var.add("ratings", options.item_counts);
    kept_item_names = var.add_kept(options.item_columns);
    var.finish();
    write_groups(check, output.file(), spec, samples);
  }

  /// Reads again what HDF5 wrote.
  void check_written(const PartSamples& samples) {
    const Hdf5Handle written = open_hdf5_file(check, output.pending().aside_path());
    for (const auto& matrix : matrices) matrix->check_written(written.get());
    const auto rows = read_column<std::uint64_t>(check, open_column(check, written.get(), kRowName));
    if (rows != samples.rows ||
        read_table_index(check, written.get(), "/obs", row_count) != samples.row_ids ||
        read_table_index(check, written.get(), "/var", items.size()) != items)
      check.refuse("what was written of users and items does not read back");
    for (std::size_t column = 0; column < samples.columns.size(); ++column)
      check_kept(written.get(), "obs/" + kept_user_names[column], samples.columns[column]);
    for (std::size_t column = 0; column < options.item_columns.size(); ++column)
      check_kept(written.get(), "var/" + kept_item_names[column], options.item_columns[column]);
  }

  /// Reads a kept column again.
  void check_kept(hid_t file, const std::string& path, const SampleColumn& expected) const {
    SampleColumn column = empty_column({expected.name, expected.type()});
    if (auto* const texts = std::get_if<TextList>(&column.values))
      *texts = read_names(check, file, path);
    else if (auto* const integers = std::get_if<std::vector<std::int64_t>>(&column.values))
      *integers = read_column<std::int64_t>(check, open_column(check, file, path));
    else
      column.values = read_column<double>(check, open_column(check, file, path));
    if (!are_equal(column, expected)) check.refuse("/" + path + " does not read back");
  }

  PartSpec spec;
  MatrixHdf5Options options;
  TextList items;
  Hdf5Output output;
  const Hdf5Check& check = output.check();
  std::vector<std::unique_ptr<MatrixOutput>> matrices;  // closed before the file
  std::uint64_t row_count = 0;
  std::vector<std::string> kept_user_names;  // in /obs
  std::vector<std::string> kept_item_names;  // in /var
};

MatrixHdf5Writer::MatrixHdf5Writer(const std::string& path, const PartSpec& spec, MatrixHdf5Options options) {
  leave_files_alone_at_exit();
  const Hdf5Session session;
  state_ = std::make_unique<State>(path, spec, std::move(options));
}

MatrixHdf5Writer::~MatrixHdf5Writer() {
  // An unfinished part is discarded; errors of HDF5 while closing do not matter.
  const Hdf5Session session;
  state_.reset();
}

void MatrixHdf5Writer::append(const CsrView& x, const CsrView& held_out) {
  const Hdf5Session session;
  State& state = *state_;
  const CsrView* const views[]{&x, &held_out};
  try {
    for (std::size_t i = 0; i < state.matrices.size(); ++i) {
      if (views[i]->row_count() != x.row_count()) throw_bad_data("held_out has other rows than X");
      check_rows(*views[i], state.spec.rows().matrix);
    }
    for (std::size_t i = 0; i < state.matrices.size(); ++i) state.matrices[i]->append(*views[i]);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    throw Error(error.code(), state.check.path() + ": " + error.what());
  }
  state.row_count += x.row_count();
}

PartReport MatrixHdf5Writer::finish(const PartSamples& samples) {
  CompletePart part = complete(samples);
  part.file.publish();
  return part.report;
}

CompletePart MatrixHdf5Writer::complete(const PartSamples& samples) {
  State& state = *state_;
  state.check_samples(samples);
  PartReport report{.sample_count = state.row_count};
  {
    const Hdf5Session session;
    for (const auto& matrix : state.matrices) {
      matrix->finish();
      report.chunk_count += matrix->chunk_count();
      report.stored_bytes += matrix->stored_bytes();
    }
    state.write_beside(samples);
    state.output.close();
    state.check_written(samples);
  }
  PendingFile& pending = state.output.pending();
  append_hdf5_index(pending, hdf5_format(false), SampleKind::matrices, {}, {});
  const InputFile written(pending.aside_path());
  const std::optional<Hdf5Trailer> trailer = read_hdf5_trailer(written);
  if (!trailer) state.check.refuse("what was written does not read back: no trailer");
  report.bytes = written.byte_count();
  report.xxh3 = trailer->xxh3;
  pending.flush();
  return {report, std::move(pending)};
}

}  // namespace chunkhit
