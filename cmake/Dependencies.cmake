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
# Our entropy decoder stands behind libjpeg-turbo's internal interface (decode/jpeg_entropy.cpp). Without its header, or
# where it is another one, libjpeg-turbo decodes alone: slower, with the same pixels, as with
# -DCHUNKHIT_OWN_JPEG_ENTROPY=OFF.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_LIBRARIES JPEG::JPEG)
check_cxx_source_compiles("
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
#include <jpegint.h>
#include <type_traits>
static_assert(LIBJPEG_TURBO_VERSION_NUMBER >= 2000000, \"older ones pass over no MCU\");
static_assert(std::is_same_v<decltype(jpeg_entropy_decoder::decode_mcu), boolean (*)(j_decompress_ptr, JBLOCKROW*)>);
static_assert(offsetof(jpeg_entropy_decoder, decode_mcu) == sizeof(void*));
static_assert(std::is_same_v<JCOEF, short> && DCTSIZE2 == 64 && BITS_IN_JSAMPLE == 8);
int main() { return 0; }" CHUNKHIT_OWN_JPEG_ENTROPY)
unset(CMAKE_REQUIRED_LIBRARIES)
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
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp)
pkg_check_modules(PNG REQUIRED IMPORTED_TARGET libpng)
pkg_check_modules(TIFF REQUIRED IMPORTED_TARGET libtiff-4>=4.5)
# The headers only: libcurl is loaded when the first URL is opened (base/remote/curl.h).
pkg_check_modules(CURL REQUIRED libcurl>=7.85)
pkg_check_modules(INIH REQUIRED IMPORTED_TARGET inih)
pkg_check_modules(STB REQUIRED IMPORTED_TARGET stb)
# Further types of images, where their libraries are found. Without them such files are rejected by name.
option(CHUNKHIT_AVIF "Decode AVIF, where libavif is found" ON)
option(CHUNKHIT_JXL "Decode JPEG XL, where libjxl is found" ON)
if(CHUNKHIT_AVIF)
  pkg_check_modules(AVIF IMPORTED_TARGET libavif>=0.11)
endif()
if(CHUNKHIT_JXL)
  pkg_check_modules(JXL IMPORTED_TARGET libjxl>=0.7)
endif()

pkg_check_modules(TURBOJPEG REQUIRED libturbojpeg)
bundle_needs(hdf5::hdf5 -l:libsz.a -l:libaec.a ZLIB::ZLIB)
bundle_needs(PkgConfig::TIFF -l:libjbig.a -l:liblzma.a Lerc PkgConfig::WEBP PkgConfig::ZSTD PkgConfig::DEFLATE JPEG::JPEG ZLIB::ZLIB)
bundle_needs(PkgConfig::ARCHIVE -l:libbz2.a -l:liblzma.a nettle PkgConfig::ZSTD ZLIB::ZLIB)
bundle_needs(PkgConfig::PNG ZLIB::ZLIB)

set(CHUNKHIT_LIBRARIES
  "HDF5 ${HDF5_VERSION},libjpeg-turbo ${TURBOJPEG_VERSION},oneTBB ${TBB_VERSION},zstd ${ZSTD_VERSION},\
libdeflate ${DEFLATE_VERSION},xxHash ${XXHASH_VERSION},libarchive ${ARCHIVE_VERSION},zlib ${ZLIB_VERSION_STRING},libexif ${EXIF_VERSION},libwebp ${WEBP_VERSION},libpng ${PNG_VERSION},libtiff ${TIFF_VERSION},\
Highway ${hwy_VERSION},nlohmann-json ${nlohmann_json_VERSION},CLI11 ${CLI11_VERSION}")
foreach(type AVIF JXL)
  if(CHUNKHIT_${type} AND ${type}_FOUND)
    string(TOLOWER ${type} library)
    string(APPEND CHUNKHIT_LIBRARIES ",lib${library} ${${type}_VERSION}")
  endif()
endforeach()
