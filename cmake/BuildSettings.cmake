# How everything is compiled.
# A project that adds this one keeps its settings: what follows is for this folder and those below, and nothing is cached.
# What is asked for brings what it needs.
if(CHUNKHIT_TESTS)
  set(CHUNKHIT_TOOLS ON)
endif()
if(NOT DEFINED BUILD_SHARED_LIBS)
  set(BUILD_SHARED_LIBS ON)
elseif(NOT BUILD_SHARED_LIBS)
  set(CHUNKHIT_PYTHON OFF)  # the binding has sources of the library that a static one would give it twice
endif()
if(CHUNKHIT_TOOLS OR CHUNKHIT_PYTHON)
  set(CHUNKHIT_PACK ON)
endif()

# Debian's loader, pkg-config and CMake look for libraries there below /usr/local, too; so the packages for /usr are made
# of the same build.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_INSTALL_LIBDIR AND CMAKE_LIBRARY_ARCHITECTURE AND EXISTS /etc/debian_version)
  set(CMAKE_INSTALL_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE} CACHE PATH "Folder of the libraries, below the prefix")
endif()
if(CHUNKHIT_INSTALL OR CHUNKHIT_PYTHON)
  include(GNUInstallDirs)
endif()

# A loader that is not optimized is slow without a word.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
add_compile_options($<$<CONFIG:>:-O3> $<$<CONFIG:>:-DNDEBUG>)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()
# Most of a compilation is reading headers: several sources share it. OFF shows sources that lean on another one's includes
# (tests/style/alone.py).
option(CHUNKHIT_UNITY "Compile several sources at once" ON)
set(CMAKE_UNITY_BUILD ${CHUNKHIT_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)

add_library(chunkhit_settings INTERFACE)
# Contracted multiply-adds would round weights differently on machines that have them.
target_compile_options(chunkhit_settings INTERFACE
  -Wall -Wextra -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
# Fields that designated initializers leave out are value-initialized.
target_compile_options(chunkhit_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)
# In a joint source GCC takes the private types of a class's implementation for those of a header.
if(CHUNKHIT_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(chunkhit_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
# GCC 12 takes "text" + std::string for an overlapping copy (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(chunkhit_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

# The options of a project that adds this one are inherited: its warnings are not ours, and the library needs exceptions.
if(NOT PROJECT_IS_TOP_LEVEL)
  target_compile_options(chunkhit_settings INTERFACE -w $<$<COMPILE_LANGUAGE:CXX>:-fexceptions;-frtti>)
endif()

# Untrusted files are parsed: an overflow that no check caught ends the process before it can be used. The
# sanitizers check more, and know nothing of the C library's checking functions.
add_compile_options(-fstack-protector-strong)
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  add_compile_options($<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
endif()
# Function addresses are resolved before main and read-only from then on.
add_link_options(LINKER:-z,relro LINKER:-z,now)
if(PROJECT_IS_TOP_LEVEL)  # the answer is cached, and would change how other projects link
  include(CheckPIESupported)
  check_pie_supported()
endif()
