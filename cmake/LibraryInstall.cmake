# What is installed of the libraries: they, their headers, and the files for find_package and pkg-config.
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/chunkhit)
set(libraries chunkhit)
if(CHUNKHIT_PACK)
  list(APPEND libraries chunkhit_pack)
endif()
install(TARGETS ${libraries} EXPORT chunkhit
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILE_SET cuda_headers DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
if(TARGET hdf5_zstd_plugin)
  install(TARGETS hdf5_zstd_plugin LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/chunkhit/hdf5-plugins COMPONENT commands)
endif()

install(EXPORT chunkhit NAMESPACE chunkhit:: FILE chunkhitTargets.cmake DESTINATION ${config_folder} COMPONENT development)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/chunkhitConfigVersion.cmake COMPATIBILITY SameMinorVersion)
list(TRANSFORM libraries REPLACE "^chunkhit_" "" OUTPUT_VARIABLE components)
list(JOIN components ", " components)
configure_file(cmake/chunkhitConfig.cmake.in chunkhitConfig.cmake @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/chunkhitConfig.cmake ${PROJECT_BINARY_DIR}/chunkhitConfigVersion.cmake
  DESTINATION ${config_folder} COMPONENT development)

# The same for pkg-config; the files find their prefix from where they are. A static library names what it links.
set(links_of_chunkhit "")
set(links_of_chunkhit_pack chunkhit)
set(CHUNKHIT_PC_LIBS "")
if(NOT BUILD_SHARED_LIBS)
  install(FILES cmake/ReaderLibraries.cmake cmake/PackLibraries.cmake DESTINATION ${config_folder} COMPONENT development)
  set(links_of_chunkhit "hdf5 libdeflate libhwy libjpeg libxxhash libzstd inih")
  string(APPEND links_of_chunkhit_pack " libarchive libexif libpng libtiff-4 libwebp simdjson stb tbb zlib")
  foreach(type AVIF JXL)
    if(CHUNKHIT_${type} AND ${type}_FOUND)
      string(TOLOWER ${type} library)
      string(APPEND links_of_chunkhit_pack " lib${library}")
    endif()
  endforeach()
  set(CHUNKHIT_PC_LIBS "-lstdc++ -lm -ldl -pthread")
endif()
set(description_of_chunkhit "Reads packs of training data as batches")
set(description_of_chunkhit_pack "Packs training data")
file(RELATIVE_PATH CHUNKHIT_PREFIX_OF_PC "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
foreach(CHUNKHIT_PC_NAME IN LISTS libraries)
  set(CHUNKHIT_PC_DESCRIPTION ${description_of_${CHUNKHIT_PC_NAME}})
  set(CHUNKHIT_PC_REQUIRES ${links_of_${CHUNKHIT_PC_NAME}})
  configure_file(cmake/library.pc.in ${CHUNKHIT_PC_NAME}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${CHUNKHIT_PC_NAME}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()
