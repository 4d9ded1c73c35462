# For cmake/bundle.py: all that the Python package and the commands share is one library, with the static archives of other
# libraries inside. Their names are hidden, so that no other copy in the process, h5py's or Pillow's, is mistaken for them.
option(CHUNKHIT_BUNDLE "Build libchunkhit_bundle, which needs few other libraries" OFF)
if(CHUNKHIT_BUNDLE)
  list(PREPEND CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(HDF5_USE_STATIC_LIBRARIES ON)
  # Debian's archive of xxHash has no function that chooses by the CPU. What is under the LGPL stays replaceable.
  find_library(pkgcfg_lib_XXHASH_xxhash libxxhash.so REQUIRED)
  find_library(pkgcfg_lib_EXIF_exif libexif.so REQUIRED)
endif()

# Adds what a static archive needs, which its shared library would name itself.
function(bundle_needs target)
  if(CHUNKHIT_BUNDLE)
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${ARGN})
  endif()
endfunction()
