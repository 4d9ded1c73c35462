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
enum class Check;
enum class CheckHashes;
enum class ColumnType;
enum class Decode;
enum class Dtype;
enum class Duplicates;
enum class Encoding : std::uint8_t;
enum class Exif;
enum class Filter;
enum class Header : std::uint8_t;
enum class ItemOrder;
enum class EmptyLabels;
enum class LabelType;
enum class Layout;
enum class OnCorrupt;
enum class OnError;
enum class Order;
enum class Quoting : std::uint8_t;
enum class PairKind;
enum class RankRemainder;
enum class RowNorm;
enum class SharedRows : std::uint8_t;
enum class Shares;
enum class Shuffle;
enum class Sizes;
enum class SparseFormat;
enum class SplitKind;
enum class SplitOrder;
enum class Store;
enum class ValueType : std::uint8_t;
enum class Zeros;

template <std::size_t kCount>
using Words = std::array<std::string_view, kCount>;

/// Words of an enum's values, in their order from 0. A value beyond them cannot be asked for. Specializations
/// say that they are hidden, because GCC exports them otherwise, whatever -fvisibility is.
template <class Enum>
inline constexpr Words<0> kEnumWords{};

template <>
[[gnu::visibility("hidden")]] inline constexpr Words<4> kEnumWords<Cache>{"automatic", "decoded",
                                                                          "compressed", "none"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<4> kEnumWords<Channels>{"rgb", "gray", "rgba", "keep"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<2> kEnumWords<Check>{"whole", "region"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<2> kEnumWords<CheckHashes>{"always", "never"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<3> kEnumWords<ColumnType>{"int64", "float64", "text"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<2> kEnumWords<Decode>{"exact", "fast"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<2> kEnumWords<Dtype>{"uint8", "float32"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<5> kEnumWords<Duplicates>{"error", "sum", "last",
                                                                               "first", "max"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<2> kEnumWords<EmptyLabels>{"zeros", "reject"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<2> kEnumWords<Exif>{"apply", "ignore"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<6> kEnumWords<Filter>{"bilinear", "bicubic", "lanczos",
                                                                           "box",      "hamming", "nearest"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<3> kEnumWords<Header>{"auto", "yes", "no"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<3> kEnumWords<ItemOrder>{"popularity", "first",
                                                                              "sorted"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<3> kEnumWords<LabelType>{"auto", "classes", "numbers"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<2> kEnumWords<Layout>{"nhwc", "nchw"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<2> kEnumWords<OnCorrupt>{"fail", "skip"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<2> kEnumWords<OnError>{"skip", "fail"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<2> kEnumWords<Order>{"shuffle", "input"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<2> kEnumWords<PairKind>{"mask", "view"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<3> kEnumWords<Quoting>{"none", "double", "auto"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<2> kEnumWords<Encoding>{"utf-8", "latin-1"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<2> kEnumWords<RankRemainder>{"pad", "drop"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<3> kEnumWords<RowNorm>{"none", "l1", "l2"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<3> kEnumWords<SharedRows>{"error", "join", "file-name"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<2> kEnumWords<Shares>{"batch", "epoch"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<3> kEnumWords<Shuffle>{"none", "window", "global"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<2> kEnumWords<Sizes>{"fixed", "own"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<4> kEnumWords<SparseFormat>{"dense_f32", "dense_f16",
                                                                                 "dense_u8", "csr"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<7> kEnumWords<SplitKind>{
    "none", "users", "users-by-id", "ratio", "leave-one-out", "time", "given"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<4> kEnumWords<SplitOrder>{"auto", "time", "input",
                                                                               "random"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<4> kEnumWords<Store>{"jpeg", "photo", "zstd", "raw"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<4> kEnumWords<ValueType>{"none", "u8", "u16", "f32"};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<2> kEnumWords<Zeros>{"drop", "keep"};

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
