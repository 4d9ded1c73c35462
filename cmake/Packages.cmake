# The Debian packages: `cmake --build build/release --target package`, which writes them to build/release/packages.
# The day of the release, for the packages' changelog and the man pages.
file(STRINGS ${PROJECT_SOURCE_DIR}/lib/CHANGELOG.md heading REGEX "^## ${PROJECT_VERSION} \\(")
if(NOT heading MATCHES "\\((20[0-9][0-9]-[0-9][0-9]-[0-9][0-9])\\)$")
  message(FATAL_ERROR "lib/CHANGELOG.md: found '${heading}', expected '## ${PROJECT_VERSION} (YYYY-MM-DD)'")
endif()
set(CHUNKHIT_RELEASE_DATE ${CMAKE_MATCH_1})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS lib/CHANGELOG.md)
if(NOT PROJECT_IS_TOP_LEVEL OR NOT CHUNKHIT_INSTALL)
  return()
endif()

set(CPACK_PACKAGE_CONTACT "chunkhit maintainers <maintainers@chunkhit.example>" CACHE STRING
  "Maintainer of the packages")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
  WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian/staging.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
set(CPACK_DEBIAN_PACKAGE_SOURCE chunkhit)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)

set(about "Chunkhit packs image datasets and user-item ratings once, into HDF5 files or
zstd shards, and feeds them to training at memory speed.")

# What lintian may say: the packages are not for Debian's archive, and "libdeflate 1.14" of --version is no copy of zlib.
set(overrides "@name@: initial-upload-closes-no-bugs *\n")
set(overrides_of_code "${overrides}@name@: embedded-library zlib *\n")

# Defines the package `name` of a component. What is left of a package's fields is set by CPACK_DEBIAN_<COMPONENT>_….
function(define_package component name section summary words)
  string(TOUPPER ${component} COMPONENT)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${COMPONENT}_DESCRIPTION "${summary}\n${about}\n.\n${words}" PARENT_SCOPE)
  set(documents share/doc/${name})
  install(FILES cmake/debian/copyright DESTINATION ${documents} COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES lib/CHANGELOG.md DESTINATION ${documents} RENAME changelog COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES ${PROJECT_BINARY_DIR}/changelog.Debian DESTINATION ${documents} COMPONENT ${component}
    EXCLUDE_FROM_ALL)
  if(component MATCHES "commands|library")
    set(overrides "${overrides_of_code}")
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/overrides/${name} CONTENT "${overrides}" @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/overrides/${name} DESTINATION share/lintian/overrides COMPONENT ${component}
    EXCLUDE_FROM_ALL)
endfunction()

set(library libchunkhit${CHUNKHIT_SOVERSION})
define_package(commands chunkhit science "packs training data, and checks and times the packs"
  "This package has the commands, HDF5's zstd filter as a plug-in, and the
documentation of all packages with whole training programs.")
# The pages, in their folders, so that their links work; staging.cmake adds those to what is elsewhere.
set(documents share/doc/chunkhit)
file(GLOB guides RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/*.md
  ${PROJECT_SOURCE_DIR}/lib/python/*.md ${PROJECT_SOURCE_DIR}/tools/*.md)
foreach(page README.md ${guides} tests/failures/README.md tests/bench/README.md tests/bench/epoch.svg
    tests/bench/own_sizes.svg tests/bench/report.png tests/bench/sheet.png)
  cmake_path(GET page PARENT_PATH folder)
  install(FILES ${page} DESTINATION ${documents}/${folder} COMPONENT commands EXCLUDE_FROM_ALL)
endforeach()
install(DIRECTORY schemas DESTINATION ${documents} COMPONENT commands EXCLUDE_FROM_ALL)
install(DIRECTORY samples/ DESTINATION ${documents}/examples COMPONENT commands EXCLUDE_FROM_ALL USE_SOURCE_PERMISSIONS
  PATTERN __pycache__ EXCLUDE)
define_package(library ${library} libs "loaders and packers of training data - shared libraries"
  "This package has the shared libraries: libchunkhit reads packs as
batches, libchunkhit_pack packs.")
define_package(development libchunkhit-dev libdevel "loaders and packers of training data - development files"
  "This package has the headers, and the files for CMake and pkg-config.")
set(CPACK_COMPONENT_DEVELOPMENT_DEPENDS library)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS chunkhit)
foreach(component COMMANDS LIBRARY)
  set(CPACK_DEBIAN_${component}_PACKAGE_SHLIBDEPS ON)
  # Loaded when the first URL is opened.
  set(CPACK_DEBIAN_${component}_PACKAGE_RECOMMENDS "libcurl4, ca-certificates")
endforeach()
set(control ${PROJECT_BINARY_DIR}/${library})
file(CONFIGURE OUTPUT ${control}/triggers CONTENT "activate-noawait ldconfig\n")
file(CONFIGURE OUTPUT ${control}/shlibs CONTENT "libchunkhit ${CHUNKHIT_SOVERSION} ${library} (= ${version})
libchunkhit_pack ${CHUNKHIT_SOVERSION} ${library} (= ${version})\n")
# The trigger runs ldconfig. CPack adds scripts that run it, too, unless it is given others: these two do not exist, and
# are left out with a warning.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${control}/triggers ${control}/shlibs ${control}/none/postinst
  ${control}/none/postrm)

if(CHUNKHIT_PYTHON AND pybind11_FOUND)
  define_package(python python3-chunkhit python "loaders of training data for NumPy and PyTorch"
    "This package has the Python package: batches as NumPy arrays or PyTorch
tensors, without a copy.")
  set(CPACK_COMPONENT_PYTHON_DEPENDS library)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
  math(EXPR next_minor "${Python_VERSION_MINOR} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "python3 (>= 3.${Python_VERSION_MINOR}~), python3 (<< 3.${next_minor}), python3-numpy")
  # Charts and pages of reports, sheets and PNG files.
  set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "python3-jinja2, python3-matplotlib, python3-pil")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "chunkhit, python3-torch, python3-scipy")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/postinst
    ${PROJECT_SOURCE_DIR}/cmake/debian/prerm)
endif()

execute_process(COMMAND date -u -R -d ${CHUNKHIT_RELEASE_DATE} OUTPUT_VARIABLE CHUNKHIT_RELEASE_TIME
  OUTPUT_STRIP_TRAILING_WHITESPACE)
configure_file(cmake/debian/changelog.in changelog.Debian @ONLY)
include(CPack)
