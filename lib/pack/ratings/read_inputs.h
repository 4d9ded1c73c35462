// The inputs of pack-sparse → all ratings by number, with what was learnt of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/spill_file.h"
#include "base/text_stream.h"
#include "chunkhit/sparse_spec.h"
#include "ratings/rating_format.h"
#include "ratings/rating_intake.h"
#include "ratings/rating_reader.h"
#include "types/rating_block.h"

namespace chunkhit {

/// Keeps the copy while this object lives.
class InputCopy {
 public:
  /// Copies a stream to a file without a name in `folder`, up to where `stop` was set, and tells on the way
  /// how many bytes there are; throws what reading throws, and cannot_write.
  InputCopy(TextStream& stream, const std::string& folder, const std::atomic<bool>* stop,
            const std::function<void(std::uint64_t)>& on_bytes);
  [[nodiscard]] std::uint64_t byte_count() const { return byte_count_; }
  /// By what this process and children that it forks open the copy.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// A message of what read the copy, with the input's own name.
  [[nodiscard]] std::string own_words(std::string message) const;

 private:
  SpillFile file_;
  std::string name_;
  std::string path_;
  std::uint64_t byte_count_ = 0;
};

/// How files that hold a matrix are read.
struct MatrixFileSpec {
  bool transpose = false;
  std::string layer;           ///< HDF5: a layer's name, "raw", or a path; empty: X
  std::string feature_type;    ///< HDF5: the only type of features that is read; empty: all
  bool rounds_values = false;  ///< text: values that 32-bit floats do not hold become the nearest
  std::uint64_t memory_bytes = UINT64_MAX;  ///< HDF5: limit for names and chunks; packs: for a part
};

/// Whether files of a format are read by `open_matrix_files`; the others are text of ratings.
[[nodiscard]] bool is_matrix_format(RatingFormat format);

/// Opens the files; readers give their ratings one after the other. Those of svmlight have one reader for
/// all, which numbers the rows through. `opened`: the stream of "-" where its head was read already, or null.
/// Throws bad_data, and usage for an option that the format has not.
[[nodiscard]] std::vector<std::unique_ptr<RatingReader>> open_matrix_files(
    RatingFormat format, const std::vector<std::string>& paths, const MatrixFileSpec& spec,
    std::unique_ptr<TextStream> opened = nullptr);

/// Hashes ratings on their way, for inputs whose bytes are not hashed themselves.
class RatingHash {
 public:
  /// Before this, nothing is hashed.
  void begin() { has_begun_ = true; }
  void add(std::span<const std::uint32_t> users, std::span<const std::uint32_t> items,
           std::span<const float> values, std::span<const std::int64_t> times);
  /// With the ids that the numbers stand for.
  [[nodiscard]] std::uint64_t value(const IdMap& users, const IdMap& items) const;

 private:
  bool has_begun_ = false;
  Xxh3Stream users_;
  Xxh3Stream items_;
  Xxh3Stream values_;
  std::optional<Xxh3Stream> times_;  ///< where there are times
};

/// What was read beside the ratings.
struct InputFacts {
  RatingFormat format = RatingFormat::text;
  std::optional<RowLabels> labels;         ///< labels of svmlight's rows
  std::optional<std::int64_t> first_item;  ///< first number of the items of a matrix without names
  std::vector<std::uint64_t> pack_ids;     ///< of packs
  std::vector<std::string> notices;
};

/// Where ratings come from.
struct InputPaths {
  const std::vector<std::string>& paths;
  const std::string& spill_folder;          ///< folder for copies of streams and for spilled ratings
  bool are_parts = false;                   ///< some are for training, others are held out
  std::uint64_t memory_bytes = UINT64_MAX;  ///< memory limit of a reader of HDF5 or packs
  bool have_tables = false;                 ///< of items or users, which have the encoding, too
};

/// The first option given that says how files are read; null where there is none.
[[nodiscard]] const char* given_input_flag(const RatingInputSpec& spec);

/// Names that the columns of ids have in tables of ratings; empty: none.
struct IdColumnNames {
  std::string user;
  std::string item;
};

/// The names in the header of the first input, where that is a file of a table; else those given.
[[nodiscard]] IdColumnNames id_column_names(const RatingInputSpec& spec,
                                            const std::vector<std::string>& paths);
/// The names in the header of a table; the number of a column where it has no header.
[[nodiscard]] IdColumnNames id_column_names(const RatingTable& table);

/// Reads inputs, which are of one kind, through `intake`, whose sink also feeds `hash`; throws what that
/// throws, usage where a flag does not suit the kind. Where `stop` is set meanwhile, the ratings are not all.
[[nodiscard]] InputFacts read_inputs(const RatingInputSpec& spec, const InputPaths& inputs,
                                     RatingIntake& intake, RatingHash& hash, const std::atomic<bool>* stop);

/// Reads the ratings of a reader through `intake`; `name` stands for it in messages. They are hashed as those
/// of a matrix. Throws as read_inputs.
[[nodiscard]] InputFacts read_reader(RatingReader& reader, const std::string& name, RatingIntake& intake,
                                     RatingHash& hash);

/// Stands for all that was read: of texts of ratings their bytes, undone; of packs their ids; of other
/// matrices `ratings` and ids.
[[nodiscard]] std::uint64_t hash_inputs(const InputFacts& facts, const RatingIntake& intake,
                                        const RatingHash& ratings);

}  // namespace chunkhit
