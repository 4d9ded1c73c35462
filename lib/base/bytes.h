// Views and buffers of bytes, and little-endian numbers in them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace chunkhit {

static_assert(std::endian::native == std::endian::little, "layouts are written as they lie in memory");

using Bytes = std::span<const std::uint8_t>;
using MutableBytes = std::span<std::uint8_t>;

inline constexpr std::size_t kCacheLineBytes = 64;

/// Allocates on cache lines and leaves new bytes unwritten, so that a buffer is touched only by who fills it.
template <class T>
struct UnwrittenAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{kCacheLineBytes};
  UnwrittenAllocator() = default;
  template <class U>
  UnwrittenAllocator(const UnwrittenAllocator<U>&) noexcept {}
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kAlignment)); }
  void deallocate(T* pointer, std::size_t) noexcept { ::operator delete(pointer, kAlignment); }
  template <class U>
  void construct(U* pointer) noexcept(std::is_nothrow_default_constructible_v<U>) {
    ::new (static_cast<void*>(pointer)) U;
  }
  template <class U, class... Arguments>
  void construct(U* pointer, Arguments&&... arguments) {
    ::new (static_cast<void*>(pointer)) U(std::forward<Arguments>(arguments)...);
  }
  template <class U>
  bool operator==(const UnwrittenAllocator<U>&) const noexcept {
    return true;
  }
};

/// Owns bytes; `resize` does not write the new ones.
using ByteBuffer = std::vector<std::uint8_t, UnwrittenAllocator<std::uint8_t>>;

/// The bytes of a row of numbers or plain structs.
template <class Range>
[[nodiscard]] Bytes bytes_of(const Range& values) {
  static_assert(std::is_trivially_copyable_v<typename Range::value_type>);
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(*values.data())};
}

/// Reads a little-endian number from bytes that the caller has checked to be there.
template <class Number>
[[nodiscard]] Number load_little(const std::uint8_t* from) {
  Number value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Writes a little-endian number over bytes that the caller has checked to be there.
template <class Number>
void store_little(std::uint8_t* to, Number value) {
  std::memcpy(to, &value, sizeof value);
}

/// Appends a little-endian number to a buffer.
template <class Number, class Buffer>
void append_little(Buffer& buffer, Number value) {
  const auto at = buffer.size();
  buffer.resize(at + sizeof value);
  std::memcpy(buffer.data() + at, &value, sizeof value);
}

/// Views text as bytes.
[[nodiscard]] inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// Views bytes as text.
[[nodiscard]] inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Rounds up to a multiple of `step`.
[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace chunkhit
