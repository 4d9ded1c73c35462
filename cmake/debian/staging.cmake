# Run by CPack over what is staged below /usr: moves files of `cmake --install` to where Debian's packages have them.
foreach(program dpkg-shlibdeps file gzip)  # without the first two CPack would leave out dependencies
  find_program(${program} ${program} REQUIRED)
endforeach()
set(staged ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
file(GLOB folder ${staged}/python/usr/lib/python3.*)
if(folder)
  file(RENAME ${folder} ${staged}/python/usr/lib/python3)
endif()
file(GLOB folders ${staged}/*/usr/share/zsh)
foreach(folder IN LISTS folders)
  file(RENAME ${folder}/site-functions ${folder}/vendor-completions)
endforeach()

# pkg-config leaves out the flags of the system's folders where it knows them as such.
file(GLOB files ${staged}/development/usr/lib/*/pkgconfig/*.pc)
foreach(file IN LISTS files)
  file(READ ${file} text)
  string(REGEX REPLACE "^prefix=[^\n]*" "prefix=/usr" text "${text}")
  file(WRITE ${file} "${text}")
endforeach()

# The loader finds libraries in /usr/lib by itself.
file(GLOB_RECURSE libraries ${staged}/*.so ${staged}/*.so.*)
foreach(library IN LISTS libraries)
  if(NOT IS_SYMLINK ${library})
    file(RPATH_REMOVE FILE ${library})
  endif()
endforeach()

file(GLOB_RECURSE texts ${staged}/*.1 ${staged}/*/changelog ${staged}/*/changelog.Debian)
foreach(text IN LISTS texts)
  execute_process(COMMAND gzip -9nf ${text} COMMAND_ERROR_IS_FATAL ANY)
endforeach()

# Policy has samples in a folder of this name; headers are in libchunkhit-dev.
set(documents ${staged}/commands/usr/share/doc/chunkhit)
if(EXISTS ${documents})
  file(CREATE_LINK examples ${documents}/samples SYMBOLIC)
  file(CREATE_LINK ../../../../include ${documents}/lib/include SYMBOLIC)
endif()
