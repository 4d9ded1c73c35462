// HDF5 files that the library reads through our descriptor; it tells where chunks lie without reading them.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/file.h"
#include "store/hdf5_handle.h"

namespace chunkhit {

/// Where a chunk's stored bytes lie. Bit i of the mask: filter i was left out.
struct Hdf5ChunkPlace {
  std::uint64_t offset = 0;
  std::uint64_t stored_bytes = 0;
  std::uint32_t filter_mask = 0;
};

struct ReadWatch;

/// An HDF5 file open for reading through `input`, which must outlive it. Closing it closes all that was
/// opened in it.
class Hdf5Source {
 public:
  Hdf5Source(const Hdf5Check& check, const InputFile& input);
  Hdf5Source(const Hdf5Source&) = delete;
  Hdf5Source& operator=(const Hdf5Source&) = delete;
  ~Hdf5Source();
  [[nodiscard]] hid_t file() const { return file_.get(); }
  [[nodiscard]] const Hdf5Check& check() const { return check_; }
  [[nodiscard]] std::uint64_t byte_count() const { return input_.byte_count(); }
  /// Where the HDF5 file ends, as its superblock says.
  [[nodiscard]] std::uint64_t end_address() const;
  /// Finds the chunk that begins at `first`, in logarithmic time; nothing where it was never written or the
  /// index is damaged, which the library does not tell apart: compare with H5Dget_num_chunks.
  /// H5Dget_chunk_info walks over all chunks before it, so that n chunks would take it n² / 2 steps.
  [[nodiscard]] std::optional<Hdf5ChunkPlace> find_chunk(hid_t dataset, std::span<const hsize_t> first);

 private:
  Hdf5Check check_;
  const InputFile& input_;
  std::unique_ptr<ReadWatch> watch_;
  ByteBuffer untouched_;  // HDF5 wants room for a chunk that is never read
  Hdf5Handle driver_;
  Hdf5Handle file_;
};

}  // namespace chunkhit
