# What the system provides; nothing is downloaded.
include(ReaderLibraries)
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
extern \"C\" void jpeg_gen_optimal_table(j_compress_ptr info, JHUFF_TBL* table, long counts[]);
int main() { jpeg_gen_optimal_table(nullptr, nullptr, nullptr); }" CHUNKHIT_OWN_JPEG_ENTROPY)
unset(CMAKE_REQUIRED_LIBRARIES)
find_package(nlohmann_json REQUIRED)
pkg_check_modules(TURBOJPEG REQUIRED libturbojpeg)
# The headers only: libcurl is loaded when the first URL is opened (base/remote/curl.h).
pkg_check_modules(CURL REQUIRED libcurl>=7.85)
set(libraries "HDF5 ${HDF5_VERSION}" "libjpeg-turbo ${TURBOJPEG_VERSION}" "zstd ${ZSTD_VERSION}" "libdeflate ${DEFLATE_VERSION}"
  "xxHash ${XXHASH_VERSION}" "Highway ${hwy_VERSION}" "nlohmann-json ${nlohmann_json_VERSION}")
if(CHUNKHIT_PACK)
  include(PackLibraries)
  list(APPEND libraries "oneTBB ${TBB_VERSION}" "libarchive ${ARCHIVE_VERSION}" "zlib ${ZLIB_VERSION_STRING}" "libexif ${EXIF_VERSION}"
    "libwebp ${WEBP_VERSION}" "libpng ${PNG_VERSION}" "libtiff ${TIFF_VERSION}" "simdjson ${SIMDJSON_VERSION}")
  bundle_needs(hdf5::hdf5 -l:libsz.a -l:libaec.a ZLIB::ZLIB)
  bundle_needs(PkgConfig::TIFF -l:libjbig.a -l:liblzma.a Lerc PkgConfig::WEBP PkgConfig::ZSTD PkgConfig::DEFLATE JPEG::JPEG ZLIB::ZLIB)
  bundle_needs(PkgConfig::ARCHIVE -l:libbz2.a -l:liblzma.a nettle PkgConfig::ZSTD ZLIB::ZLIB)
  bundle_needs(PkgConfig::PNG ZLIB::ZLIB)
endif()
foreach(type AVIF JXL)
  if(CHUNKHIT_PACK AND CHUNKHIT_${type} AND ${type}_FOUND)
    string(TOLOWER ${type} library)
    list(APPEND libraries "lib${library} ${${type}_VERSION}")
  endif()
endforeach()
if(CHUNKHIT_TOOLS)
  find_package(CLI11 REQUIRED)
  list(APPEND libraries "CLI11 ${CLI11_VERSION}")
endif()
list(JOIN libraries "," CHUNKHIT_LIBRARIES)
