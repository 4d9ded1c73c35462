// Values as bytes, between processes of one program: each as it lies in memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "chunkhit/error.h"

namespace chunkhit {

/// Numbers and structs of numbers; no views and no pointers, which mean nothing to another process.
template <class Value>
concept PlainValue = std::is_trivially_copyable_v<Value> &&
    (std::is_arithmetic_v<Value> || std::is_enum_v<Value> || std::is_aggregate_v<Value>);

/// Appends values to a message: numbers, texts, and lists and optionals of what it can append.
class MessageWriter {
 public:
  template <class... Values>
  void operator()(const Values&... values) {
    (write(values), ...);
  }
  [[nodiscard]] const ByteBuffer& bytes() const { return bytes_; }
  [[nodiscard]] ByteBuffer take() { return std::move(bytes_); }
  /// Makes room for so many bytes in all.
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }

 private:
  template <PlainValue Value>
  void write(const Value& value) {
    append(&value, sizeof value);
  }
  void write(const std::string& text) {
    write(std::uint64_t{text.size()});
    append(text.data(), text.size());
  }
  template <class Item>
  void write(const std::vector<Item>& items) {
    write(std::uint64_t{items.size()});
    if constexpr (PlainValue<Item>)
      append(items.data(), items.size() * sizeof(Item));
    else
      for (const Item& item : items) write(item);
  }
  template <class Value>
  void write(const std::optional<Value>& value) {
    write(value.has_value());
    if (value) write(*value);
  }
  void append(const void* from, std::size_t bytes) {
    const auto* const begin = static_cast<const std::uint8_t*>(from);
    bytes_.insert(bytes_.end(), begin, begin + bytes);
  }

  ByteBuffer bytes_;
};

/// Takes values from a message in the order in which they were appended; throws bad_data when it ends early.
class MessageReader {
 public:
  explicit MessageReader(Bytes bytes) : left_(bytes) {}
  template <class... Values>
  void operator()(Values&... values) {
    (read(values), ...);
  }

 private:
  template <PlainValue Value>
  void read(Value& value) {
    std::memcpy(&value, take(1, sizeof value).data(), sizeof value);
  }
  void read(std::string& text) { text = as_text(take(count(), 1)); }
  template <class Item>
  void read(std::vector<Item>& items) {
    const std::uint64_t item_count = count();
    if constexpr (PlainValue<Item>) {
      const Bytes bytes = take(item_count, sizeof(Item));
      items.resize(item_count);
      if (item_count > 0) std::memcpy(items.data(), bytes.data(), bytes.size());
    } else {
      items.clear();
      for (std::uint64_t i = 0; i < item_count; ++i) read(items.emplace_back());
    }
  }
  template <class Value>
  void read(std::optional<Value>& value) {
    value.reset();
    if (take(1, 1)[0] != 0) read(value.emplace());
  }
  std::uint64_t count() {
    std::uint64_t number = 0;
    read(number);
    return number;
  }
  Bytes take(std::uint64_t item_count, std::size_t item_bytes) {
    if (item_count > left_.size() / item_bytes)
      throw Error(ErrorCode::bad_data, "what a child process sent ends early");
    const Bytes taken = left_.first(item_count * item_bytes);
    left_ = left_.subspan(taken.size());
    return taken;
  }

  Bytes left_;
};

}  // namespace chunkhit
