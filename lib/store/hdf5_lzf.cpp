#include "store/hdf5_lzf.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "chunkhit/error.h"
#include "codec/lzf.h"

namespace chunkhit {
namespace {

// More than any program makes a chunk (hdf5_csr_numbers.cpp has the same limit for a row's chunks).
constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{1} << 30;
// h5py's parameters: revision of the filter, version of LZF, bytes of a chunk before it was compressed.
constexpr std::size_t kChunkBytesIndex = 2;

void push_reason(const char* reason) {
  H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_PLINE, H5E_READERROR, "%s", reason);
}

/// Undoes a chunk; 0 where that fails, as HDF5 wants it. Shorter chunks than HDF5 expects would be read
/// beyond their end.
std::size_t undo_lzf(unsigned flags, std::size_t count, const unsigned* parameters, std::size_t bytes,
                     std::size_t* buffer_bytes, void** buffer) {
  if ((flags & H5Z_FLAG_REVERSE) == 0) return 0;
  void* raw = nullptr;
  try {
    const Bytes stored(static_cast<const std::uint8_t*>(*buffer), bytes);
    const std::uint64_t expected = count > kChunkBytesIndex ? parameters[kChunkBytesIndex] : 0;
    const std::uint64_t raw_bytes = expected > 0 ? expected : lzf_content_bytes(stored);
    if (raw_bytes == 0 || raw_bytes > kMaxChunkBytes)
      throw Error(ErrorCode::bad_data, "LZF stream: bad chunk size");
    raw = H5allocate_memory(raw_bytes, false);
    if (raw == nullptr) throw Error(ErrorCode::try_again, "LZF stream: no memory for a chunk");
    decode_lzf(stored, {static_cast<std::uint8_t*>(raw), raw_bytes});
    H5free_memory(*buffer);
    *buffer = raw;
    *buffer_bytes = raw_bytes;
    return raw_bytes;
  } catch (const Error& error) {
    push_reason(error.what());
    H5free_memory(raw);
    return 0;
  }
}

bool is_registered = false;

}  // namespace

bool undoes_lzf() { return is_registered; }

void register_lzf(const Hdf5Check& check) {
  const H5Z_class2_t filter{H5Z_CLASS_T_VERS, kLzfFilter, 0, 1, "lzf", nullptr, nullptr, undo_lzf};
  check(H5Zregister(&filter), "register LZF");
  is_registered = true;
}

}  // namespace chunkhit
