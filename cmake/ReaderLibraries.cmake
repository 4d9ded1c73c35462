# The libraries that chunkhit::chunkhit links; installed with a static one, which leaves them to the program.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)
# Debian's hdf5/serial/libhdf5.so is a link to a library in the system's folder. Linked by the link's name our binaries
# would hold a RUNPATH, to which CMake adds an empty element: the loader would search the working directory, where a
# dataset may hold a planted library.
get_target_property(hdf5_library hdf5::hdf5 IMPORTED_LOCATION)
if(hdf5_library)
  file(REAL_PATH "${hdf5_library}" hdf5_library)
  set_target_properties(hdf5::hdf5 PROPERTIES IMPORTED_LOCATION "${hdf5_library}")
endif()
find_package(JPEG REQUIRED)
find_package(hwy REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(DEFLATE REQUIRED IMPORTED_TARGET libdeflate)
pkg_check_modules(INIH REQUIRED IMPORTED_TARGET inih)
