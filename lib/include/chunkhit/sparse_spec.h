// Spec of packs of user-item ratings: what pack_sparse makes of its input. Recorded in the manifest.
#pragma once

#include <chunkhit/error.h>
#include <chunkhit/pack_info.h>

#include <cstdint>
#include <optional>
#include <string>

namespace chunkhit {

/// Whether the first line names the columns.
enum class TableHeader : std::uint8_t { automatic, yes, no };

/// Quoting of fields.
enum class TextQuoting : std::uint8_t {
  none,          ///< a quote is a letter like others
  double_quote,  ///< RFC 4180: "" inside stands for ", delimiters and line ends inside are text
  automatic,     ///< detected from the first lines; a later line that has a quoted field is bad
  letters,       ///< letters, as detected: a line with a field in quotes is bad
};

/// Encoding of text.
enum class TextEncoding : std::uint8_t { utf8, latin1 };

/// Columns of a text table, by name or by number from 1; "none" for no column.
struct RatingTableSpec {
  std::string delimiter;  ///< some bytes, or "blanks"; empty: detected
  TableHeader header = TableHeader::automatic;
  std::string user;   ///< empty: by the usual names, or the first column where there is no header
  std::string item;   ///< the same; the second
  std::string value;  ///< the same; the third; without one every rating is 1
  std::string time;   ///< the same; the fourth
  TextQuoting quote = TextQuoting::automatic;
  std::string comment;  ///< lines that start with it are skipped; empty: none
};

/// Rows of several matrix files that have one name, or without names one number. join: they are one user.
/// file_name: the file's name and a slash stand before the names of all rows.
enum class SharedRows : std::uint8_t { error, join, file_name };

/// How the inputs are read; they have one format.
struct RatingInputSpec {
  /// "text", "user-items", "netflix", "json-lines", "matrix-market", "svmlight", "npz", "hdf5", "pack";
  /// empty: detected by content; folders are packs.
  std::string format;
  RatingTableSpec table;
  bool transpose = false;         ///< columns of matrices are users; else as the file says, or rows are
  std::string layer;              ///< hdf5: AnnData layer, or "raw"; empty: X
  std::string feature_type = {};  ///< hdf5 of 10x Genomics: the features that are read; empty: all
  SharedRows shared_rows = SharedRows::error;
  TextEncoding encoding = TextEncoding::utf8;  ///< encoding of ratings and of the tables beside them
};

/// Ratings of 0.
enum class Zeros { drop, keep };

/// Several ratings of one item by one user. `last` and `first` are by time where there are times; of equal
/// ones, and without times, the last or first in the input. `max`: of equal ones the first in the input. The
/// result has the time and the position of the rating that is kept; with `sum` of the last one. `keep`: all
/// stay, in the order of time, equal times in that of the input; needs `keep_times`.
enum class Duplicates { error, sum, last, first, max, keep };

/// Cleaning of the ratings, in this order.
struct RatingRules {
  Zeros zeros = Zeros::drop;
  Duplicates duplicates = Duplicates::error;
  std::optional<float> above{};  ///< keep ratings > this
  bool binarize = false;         ///< replace every rating by 1
  std::uint64_t min_user = 0;    ///< minimum ratings per user
  std::uint64_t min_item = 0;    ///< minimum ratings per item; both are applied until both hold (k-core)
  /// Type that the ratings are stored as; one that these rules keep and that it cannot hold is an error. f32:
  /// values and sums that float32 cannot hold are rounded. Not set: the smallest type that holds all; values
  /// that float32 cannot hold are an error.
  std::optional<StoredValues> values{};
  [[nodiscard]] bool rounds_values() const { return values && values->type == ValueType::f32; }
};

/// Parses RatingRules::values: "none", "u8", "u8:SCALE", "u16", "u16:SCALE", "f32"; nothing for "auto".
/// Throws usage.
[[nodiscard]] CHUNKHIT_API std::optional<StoredValues> parse_stored_values(const std::string& text);

/// How ratings are divided. users: whole users are held out; a share of their items is X, the rest held_out.
/// users_by_id: the same, chosen and divided by seed and id alone, whatever other users the input has: packs
/// of separate inputs agree. Shares are met on average; a pack that gets no user is not written.
/// ratio: a share of each user's ratings is held out. leave_one_out: one rating of each user. time: the
/// latest ratings of all. given: the inputs are files of each pack.
enum class SplitKind { none, users, users_by_id, ratio, leave_one_out, time, given };

/// Ratings of a user that ratio and leave_one_out hold out. time: the latest, of equal times the later in the
/// input. input: the last in the input. automatic: time for leave_one_out, random for ratio.
enum class SplitOrder { automatic, time, input, random };

/// Amount that is held out: a count, or a share of all if that is 0.
struct CHUNKHIT_API SplitAmount {
  std::uint64_t count = 0;
  double share = 0;
  [[nodiscard]] bool is_none() const { return count == 0 && share == 0; }
  /// Returns the count out of `all`, rounded down.
  [[nodiscard]] std::uint64_t of(std::uint64_t all) const;
};

/// Numbers of inputs that belong to each pack of SplitKind::given; inputs are given in this order.
struct GivenFiles {
  std::uint64_t train = 0;
  std::uint64_t validation = 0;
  std::uint64_t test = 0;
  [[nodiscard]] std::uint64_t count() const { return train + validation + test; }
};

/// Split of the ratings into packs.
struct CHUNKHIT_API RatingSplitSpec {
  SplitKind split_by = SplitKind::none;
  /// Number or share of users (users; users_by_id: share), of a user's ratings (ratio), of ratings (time);
  /// leave_one_out: 1: each user's last but one.
  SplitAmount validation{};
  SplitAmount test{};                    ///< the same; leave_one_out: always one
  double fold_in = 0.8;                  ///< users, users_by_id: share of a held-out user's items that is X
  std::optional<std::int64_t> before{};  ///< time: start of the test period
  SplitOrder split_order = SplitOrder::automatic;  ///< ratio, leave_one_out
  /// ratio, leave_one_out, time, given: X of test lacks the ratings that are held out for validation.
  bool hide_validation = false;
  std::string validation_users{};  ///< users: file of their ids, one per line, instead of `validation`
  std::string test_users{};        ///< the same, instead of `test`
  GivenFiles files{};              ///< given
  [[nodiscard]] bool has_validation() const;
  [[nodiscard]] bool has_test() const;
  /// Returns the order that `automatic` means for the kind.
  [[nodiscard]] SplitOrder resolved_order() const;
  [[nodiscard]] bool is_by_time() const;
  /// Whether whole users are held out.
  [[nodiscard]] bool is_by_user() const {
    return split_by == SplitKind::users || split_by == SplitKind::users_by_id;
  }
};

/// Order of the columns. popularity: items with more ratings first, of equal ones the one that the input has
/// first; first: as the input has them; sorted: by id.
enum class ItemOrder { popularity, first, sorted };

/// Rules, split and order of rows and columns.
struct RatingPacksSpec {
  RatingRules rules{};
  RatingSplitSpec split{};
  ItemOrder id_order = ItemOrder::popularity;
  PackOrder order = PackOrder::shuffle;  ///< of rows: by seed, or users in the order of the input
  std::uint64_t seed = 0;                ///< seed of the shuffle and the split
  bool keep_times = false;               ///< keep the time of each rating beside its value
};

/// Returns what Liang and others did with MovieLens-20M (Variational Autoencoders for Collaborative
/// Filtering, 2018): ratings above 3.5 become 1, users with 5 of them, 10,000 users held out twice, a fifth
/// of their items held out. The held-out users are drawn by our seed, not by NumPy's.
[[nodiscard]] CHUNKHIT_API RatingPacksSpec vae_cf_spec();

/// What is packed. Two packs with the same spec and the same input are equal, byte for byte.
struct PackSparseSpec {
  RatingInputSpec input;
  RatingPacksSpec packs;
  std::string reuse_ids;            ///< pack, or its items.csv, that gives the columns; empty: none
  std::string container = "shard";  ///< "shard", "hdf5"
  std::string codec;             ///< "zstd", "deflate", "none", with ":LEVEL"; empty: the container's default
  std::uint64_t chunk_rows = 0;  ///< shard: rows per block; 0: computed
  std::uint64_t part_bytes = 1ull << 30;  ///< maximum raw bytes per part
  /// CSV with a row for each item, whose columns are kept beside the items' ids: the ids are in the column
  /// named as that of the ratings, else in one with a usual name, else in the first one
  /// (schemas/item-columns.md); empty: none.
  std::string item_columns{};
  std::string user_columns{};  ///< the same for users
  /// Whether the first line of both names the columns; no: these are named by their numbers, ids stand first.
  TableHeader table_header = TableHeader::automatic;
  TextQuoting table_quote = TextQuoting::automatic;  ///< of both; automatic: as double_quote
};

}  // namespace chunkhit
