# What the system provides; nothing is downloaded.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)
# Debian's hdf5/serial/libhdf5.so is a link to a library in the system's folder. Linked by the link's name our binaries
# would hold a RUNPATH, to which CMake adds an empty element: the loader would search the working directory, where a
# dataset may hold a planted library.
get_target_property(hdf5_library hdf5::hdf5 IMPORTED_LOCATION)
file(REAL_PATH "${hdf5_library}" hdf5_library)
set_target_properties(hdf5::hdf5 PROPERTIES IMPORTED_LOCATION "${hdf5_library}")
find_package(JPEG REQUIRED)
find_package(TBB REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(hwy REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(DEFLATE REQUIRED IMPORTED_TARGET libdeflate)
pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive)
pkg_check_modules(EXIF REQUIRED IMPORTED_TARGET libexif)
pkg_check_modules(STB REQUIRED IMPORTED_TARGET stb)

pkg_check_modules(TURBOJPEG REQUIRED libturbojpeg)

set(CHUNKHIT_LIBRARIES
  "HDF5 ${HDF5_VERSION},libjpeg-turbo ${TURBOJPEG_VERSION},oneTBB ${TBB_VERSION},zstd ${ZSTD_VERSION},\
libdeflate ${DEFLATE_VERSION},xxHash ${XXHASH_VERSION},libarchive ${ARCHIVE_VERSION},zlib ${ZLIB_VERSION_STRING},libexif ${EXIF_VERSION},\
Highway ${hwy_VERSION},nlohmann-json ${nlohmann_json_VERSION},CLI11 ${CLI11_VERSION}")
