// h5py's filter LZF, which stock HDF5 lacks.
#pragma once

#include <hdf5.h>

#include "store/hdf5_handle.h"

namespace chunkhit {

inline constexpr H5Z_filter_t kLzfFilter = 32000;

/// Makes HDF5 undo LZF in this process from now on; it writes none. Whatever filter of this number another
/// library registered is replaced: only for child processes that read one file.
void register_lzf(const Hdf5Check& check);

/// Whether register_lzf was called in this process.
[[nodiscard]] bool undoes_lzf();

}  // namespace chunkhit
