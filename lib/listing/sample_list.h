// Samples and their labels, as class folders, a label CSV or rows list them: read, numbered, rejected,
// written.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "chunkhit/image_spec.h"
#include "chunkhit/pack_info.h"
#include "listing/root_folder.h"
#include "types/enum_names.h"
#include "types/image.h"
#include "types/reject.h"
#include "types/sample_column.h"
#include "types/sample_shape.h"
#include "types/text_list.h"

namespace chunkhit {

class CsvReader;

/// Where the labels of a list come from, as the manifest has it.
enum class LabelSource { folders, csv, members, idx, writer };
constexpr Words<5> words_of(LabelSource) { return {"folders", "csv", "members", "idx", "writer"}; }

/// A folder of the root whose samples become a pack of their own, and the end of its rows.
struct ListedFolder {
  std::string name;
  std::uint64_t row_end = 0;
};

/// A file that holds samples in ranges of its bytes, wherever it lies.
struct SampleContainer {
  InputFile file;
  FileStamp listed;  ///< of the file when the list was made
  FileStamp stamp;   ///< recorded of its samples: of the file, or of what it is a temporary copy of
};

/// Where a sample lies in the containers of its list.
struct FileRange {
  static constexpr std::uint32_t kNone = UINT32_MAX;  ///< container of a sample that is in none
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint32_t container = 0;
};

/// Where a field of the samples lies, sample by sample.
struct ListedField {
  SampleField field;
  TextList files;                   ///< below the folder of the field, or members; none of a program's pixels
  std::vector<FileRange> ranges;    ///< of those in containers: files, or pixels of a shape
  std::vector<SampleShape> shapes;  ///< of these
};

/// Samples by row; rows that were rejected while listing are in `rejects`, not among the samples.
struct SampleList {
  LabelKind label_kind = LabelKind::class_id;
  std::string file_column = "file";        ///< header of the column of files in a CSV
  std::vector<std::string> label_columns;  ///< headers of the columns of labels; {"label"} for class folders
  std::string names_column;        ///< header of the one column whose cells hold several names; empty: none
  std::string label_separator;     ///< between these names; each is a label column
  std::uint64_t empty_labels = 0;  ///< samples without a name there: their labels are 0
  LabelSource labels_from = LabelSource::folders;
  std::vector<std::string> classes;   ///< names by id; empty when ids are integers of the input
  bool is_detected = false;           ///< labels are ids or numbers, whichever their texts looked like
  std::vector<ListedFolder> folders;  ///< the ClassFoldersSpec::split_folders, in their order
  std::uint64_t row_count = 0;        ///< rows of the input: samples + rejects
  std::vector<Reject> rejects;
  std::vector<std::string>
      notices;             ///< what a user should know ("3 files directly under ROOT have no class")
  std::uint64_t xxh3 = 0;  ///< hash of all rows, files and labels: equal lists have equal hashes
  std::vector<SampleContainer> containers;  ///< what `ranges` are ranges of

  // Per sample, in the order of rows.
  TextList files;
  std::vector<std::uint32_t> rows;      ///< filled only where a row was rejected before it, else row = index
  std::vector<std::int64_t> class_ids;  ///< class of each sample, for class_id
  std::vector<float> values;            ///< label_columns.size() values a sample, for numbers
  std::vector<SampleColumn> columns;    ///< kept beside the labels
  std::vector<FileRange> ranges;        ///< where it lies; empty: each is a file of its own below the root
  std::vector<SampleShape> shapes;      ///< of pixels that lie there; no channels, or empty: an image file
  std::vector<ListedField> fields;      ///< those whose places the list says

  /// The field of a name whose places the list says; none where it does not.
  [[nodiscard]] const ListedField* find_field(std::string_view name) const {
    const auto found = std::ranges::find(fields, name, [](const ListedField& at) { return at.field.name; });
    return found == fields.end() ? nullptr : &*found;
  }
  [[nodiscard]] std::size_t size() const { return files.size(); }
  [[nodiscard]] std::string_view file(std::size_t index) const { return files[index]; }
  [[nodiscard]] std::uint64_t row(std::size_t index) const { return rows.empty() ? index : rows[index]; }
  /// Headers of the columns that `label_text` is of, without those of `columns`.
  [[nodiscard]] std::vector<std::string> label_headers() const {
    return names_column.empty() ? label_columns : std::vector<std::string>{names_column};
  }
  /// The sample's labels as text, one per label column, or its names in one, and behind them its values of
  /// `columns`, such that reading them again gives the same ones.
  [[nodiscard]] std::vector<std::string> label_text(std::size_t index) const;
};

/// How folders are listed.
struct FolderRules {
  bool follow_symlinks = false;
  bool has_classes = true;  ///< false: all files at any depth, with the class id -1
};

/// Lists a folder whose sub-folders are the classes, as torchvision's ImageFolder does: sorted by name
/// (bytes), nested folders belong to their top one, hidden files and folders are skipped, links to folders
/// (unless `follow_symlinks`) and special files are rejected. All `split_folders` have one list of classes.
/// Throws bad_data when `root` or one of them is no folder or there is no class or no file, try_again when a
/// folder cannot be read in three tries though nothing is wrong with it.
[[nodiscard]] SampleList list_class_folders(const std::string& root, const ClassFoldersSpec& spec = {},
                                            const FolderRules& rules = {});

/// Columns of a list, and whether numbers are names of classes, too: where classes are given.
struct LabelColumns : LabelCsvSpec {
  bool labels_are_names = false;
};

/// Lists a CSV (RFC 4180 quoting, BOM, CRLF, .gz and .zst detected by content; "-" is stdin).
/// One label column: integers are class ids as they are; other text becomes ids of the sorted names; numbers
/// that are not integers become a float. A few rows (under 1 %) that break the rule of the others are
/// rejected. Several label columns are floats, and names with a separator are a column of 0 and 1 each. Rows
/// with a missing field or label are rejected. Throws bad_data with line and column for a table that cannot
/// be read (no such column, an unbalanced quote, a field over 1 MiB, UTF-16). Once `stop` is set, stdin or a
/// FIFO ends where it is, and the list is of no use.
[[nodiscard]] SampleList list_label_csv(const std::string& path, const LabelColumns& spec,
                                        const std::atomic<bool>* stop = nullptr);

/// The columns of fields, or the extensions of their members of tars. Throws usage.
[[nodiscard]] std::vector<FieldPlace> field_columns(const LabelCsvSpec& spec);

/// Throws usage for a column that is named twice, where there is none of labels, and for several of them with
/// what is for one.
void check_columns(const LabelColumns& spec);

/// Takes the rows of an input list in their order: each is a sample or a reject.
class SampleRows {
 public:
  explicit SampleRows(SampleList& list) : list_(list) {}
  /// Adds the next row as a sample; its label is the caller's to add. Throws bad_data beyond 2^32 - 1 rows.
  void add(std::string_view file);
  /// Adds the next row as a reject.
  void reject(std::string_view file, std::vector<std::string> labels, std::string reason);

 private:
  SampleList& list_;
};

/// Hashes texts in a row, each behind its length in 64 bits, so that no two lists of texts look alike.
class TextHash {
 public:
  void add(std::string_view text);
  [[nodiscard]] std::uint64_t value();

 private:
  static constexpr std::size_t kBufferBytes = 65536;
  void flush();

  Xxh3Stream stream_;
  ByteBuffer buffer_;
};

/// Hashes the path of a file: "./a" is "a".
[[nodiscard]] std::uint64_t file_hash(std::string_view file);

/// Writes out the rows of a list whose rows have been its indices so far.
void write_rows(SampleList& list);

/// Makes rejects of the samples at `indices`, in ascending order, whose labels and columns the list does not
/// have yet.
void reject_samples(SampleList& list, std::span<const std::size_t> indices, std::vector<Reject> rejects);

/// For each sample the index of the first one of the same file ("./a" is "a"); empty where none repeats.
[[nodiscard]] std::vector<std::uint32_t> first_samples_of_files(const SampleList& list);

/// Adds a notice when several samples name the same file, and of how many files their labels differ.
void notice_repeated_files(SampleList& list);

/// Reads the names of classes from text, one a line; throws bad_data, with `path`, for a name that is listed
/// twice or is not UTF-8, and for a text without names.
[[nodiscard]] std::vector<std::string> parse_class_names(std::string_view text, const std::string& path);

/// Returns "train,val" where these are classes: the names of a split, so that the root may be one level too
/// high. Empty where they are not.
[[nodiscard]] std::string split_names(const SampleList& list);

/// Adds a notice where all classes have numbers as names and ids do not follow these: "10" comes before "9".
void notice_text_order(SampleList& list);

/// Gives classes the ids of `known`, a name's position in it. Throws bad_data naming the first class that it
/// lacks and a file of it, and usage where labels are numbers.
void renumber_classes(SampleList& list, std::vector<std::string> known);

/// Lists the rest of a table; `list_label_csv` without the opening of a file.
[[nodiscard]] SampleList list_label_rows(CsvReader& table, const LabelColumns& spec);

/// A sample whose bytes can be read, or why they cannot: then the rest means nothing.
struct SampleFile {
  FileError error;
  std::uint64_t bytes = 0;
  FileStamp stamp;  ///< of the file, or of the container
  RootFolder::File file;
  const SampleContainer* container = nullptr;  ///< of the list, which outlives this; none: `file`
  std::uint64_t offset = 0;                    ///< in the container
  SampleShape pixels;                          ///< as in the list
  /// Reads all of it into `buffer` (resized), or returns what went wrong with a file. Throws
  /// MachineError, and bad_data where the container is not as it was when the list was made.
  [[nodiscard]] FileError read(ByteBuffer& buffer) const;
};

/// Opens a sample. Throws MachineError, and bad_data for a range that does not lie in its container.
/// Thread-safe.
[[nodiscard]] SampleFile open_sample(const RootFolder& root, const SampleList& list, std::size_t index);
/// Opens a file below a folder as a sample. Throws MachineError. Thread-safe.
[[nodiscard]] SampleFile open_file(const RootFolder& folder, std::string_view file);
/// Opens the file or the pixels of a sample's field that lie in a container.
[[nodiscard]] SampleFile open_field_range(const SampleList& list, const ListedField& field,
                                          std::size_t index);

/// The stamp of a sample without opening it; throws MachineError. Thread-safe.
[[nodiscard]] FileStamp stamp_sample(const RootFolder& root, const SampleList& list, std::size_t index);

/// Opens a container as it is now: samples that are read from it later are an error where it has changed.
/// Throws as InputFile.
[[nodiscard]] SampleContainer open_container(const std::string& path);

/// Takes an open file as a container whose samples are stamped as those of `source` are.
[[nodiscard]] SampleContainer make_container(InputFile file, const FileStamp& source);

}  // namespace chunkhit
