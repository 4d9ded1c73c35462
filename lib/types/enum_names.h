// The words of enumerators: one list an enum, from which flags, manifests, messages and Python take them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace chunkhit {

// Of the public headers, declared here so that these need not be included.
enum class Cache;
enum class Channels;
enum class DecodeCheck;
enum class CheckHashes;
enum class ColumnType;
enum class JpegDecode;
enum class Dtype;
enum class Duplicates;
enum class TextEncoding : std::uint8_t;
enum class ExifUse;
enum class FieldRole;
enum class Filter;
enum class TableHeader : std::uint8_t;
enum class ItemOrder;
enum class EmptyLabels;
enum class LabelType;
enum class Layout;
enum class MissingLabels;
enum class OnCorrupt;
enum class OnError;
enum class PackOrder;
enum class TextQuoting : std::uint8_t;
enum class RankRemainder;
enum class RejectKind : std::uint8_t;
enum class RowNorm;
enum class SharedRows : std::uint8_t;
enum class MixtureShares;
enum class Shuffle;
enum class Sizes;
enum class SequenceCut;
enum class SparseFormat;
enum class SplitKind;
enum class SplitOrder;
enum class SizedStore;
enum class ValueType : std::uint8_t;
enum class Zeros;

template <std::size_t kCount>
using Words = std::array<std::string_view, kCount>;

// Words of the values of each enum, in their order from 0.

constexpr Words<4> words_of(Cache) { return {"automatic", "decoded", "compressed", "none"}; }
constexpr Words<4> words_of(Channels) { return {"rgb", "gray", "rgba", "keep"}; }
constexpr Words<2> words_of(DecodeCheck) { return {"whole", "region"}; }
constexpr Words<2> words_of(CheckHashes) { return {"always", "never"}; }
constexpr Words<3> words_of(ColumnType) { return {"int64", "float64", "text"}; }
constexpr Words<2> words_of(JpegDecode) { return {"exact", "fast"}; }
constexpr Words<4> words_of(Dtype) { return {"uint8", "float32", "float16", "bfloat16"}; }
constexpr Words<6> words_of(Duplicates) { return {"error", "sum", "last", "first", "max", "keep"}; }
constexpr Words<2> words_of(EmptyLabels) { return {"zeros", "reject"}; }
constexpr Words<2> words_of(ExifUse) { return {"apply", "ignore"}; }
constexpr Words<6> words_of(Filter) {
  return {"bilinear", "bicubic", "lanczos", "box", "hamming", "nearest"};
}
constexpr Words<3> words_of(TableHeader) { return {"auto", "yes", "no"}; }
constexpr Words<3> words_of(ItemOrder) { return {"popularity", "first", "sorted"}; }
constexpr Words<4> words_of(LabelType) { return {"auto", "classes", "numbers", "none"}; }
constexpr Words<2> words_of(Layout) { return {"nhwc", "nchw"}; }
constexpr Words<3> words_of(MissingLabels) { return {"reject", "0", "nan"}; }
constexpr Words<2> words_of(OnCorrupt) { return {"fail", "skip"}; }
constexpr Words<2> words_of(OnError) { return {"skip", "fail"}; }
constexpr Words<2> words_of(PackOrder) { return {"shuffle", "input"}; }
constexpr Words<2> words_of(FieldRole) { return {"mask", "view"}; }
constexpr Words<3> words_of(TextQuoting) { return {"none", "double", "auto"}; }
constexpr Words<2> words_of(TextEncoding) { return {"utf-8", "latin-1"}; }
constexpr Words<2> words_of(RankRemainder) { return {"pad", "drop"}; }
constexpr Words<14> words_of(RejectKind) {
  return {"other",       "row",     "missing",   "unreadable", "empty",   "changed", "unknown_type",
          "unsupported", "damaged", "too_large", "too_slow",   "no_pair", "shape",   "values"};
}
constexpr Words<3> words_of(RowNorm) { return {"none", "l1", "l2"}; }
constexpr Words<3> words_of(SharedRows) { return {"error", "join", "file-name"}; }
constexpr Words<2> words_of(MixtureShares) { return {"batch", "epoch"}; }
constexpr Words<3> words_of(Shuffle) { return {"none", "window", "global"}; }
constexpr Words<2> words_of(Sizes) { return {"fixed", "own"}; }
constexpr Words<6> words_of(SparseFormat) {
  return {"dense_f32", "dense_f16", "dense_u8", "csr", "sequences", "pairs"};
}
constexpr Words<3> words_of(SequenceCut) { return {"last", "sliding", "random"}; }
constexpr Words<7> words_of(SplitKind) {
  return {"none", "users", "users-by-id", "ratio", "leave-one-out", "time", "given"};
}
constexpr Words<4> words_of(SplitOrder) { return {"auto", "time", "input", "random"}; }
constexpr Words<4> words_of(SizedStore) { return {"jpeg", "photo", "zstd", "raw"}; }
constexpr Words<4> words_of(ValueType) { return {"none", "u8", "u16", "f32"}; }
constexpr Words<2> words_of(Zeros) { return {"drop", "keep"}; }

/// Words of an enum's values. Hidden, because GCC exports it otherwise, whatever -fvisibility is.
template <class Enum>
[[gnu::visibility("hidden")]] inline constexpr auto kEnumWords = words_of(Enum());

/// Returns the word of a value.
template <class Enum>
requires std::is_enum_v<Enum>
[[nodiscard]] std::string name_of(Enum value) {
  return std::string(kEnumWords<Enum>.at(static_cast<std::size_t>(value)));
}

/// Returns the value of a word, or nothing for an unknown one.
template <class Enum>
[[nodiscard]] std::optional<Enum> enum_of(std::string_view word) {
  const auto& words = kEnumWords<Enum>;
  const auto found = static_cast<std::size_t>(std::ranges::find(words, word) - words.begin());
  return found < words.size() ? std::optional(static_cast<Enum>(found)) : std::nullopt;
}

}  // namespace chunkhit
