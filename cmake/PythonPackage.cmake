# The Python package is built where pybind11 is, for the interpreter that Debian's python3-* packages serve.
if(CHUNKHIT_PYTHON)
  if(NOT Python_EXECUTABLE AND EXISTS /usr/bin/python3)
    set(Python_EXECUTABLE /usr/bin/python3)
  endif()
  find_package(Python QUIET COMPONENTS Interpreter Development.Module)
  find_package(pybind11 QUIET CONFIG)
  # Before 2.12 it reads NumPy 2's types as NumPy 1 lays them out: arrays of other sizes, without an error.
  if(pybind11_FOUND AND pybind11_VERSION VERSION_LESS 2.12)
    execute_process(COMMAND ${Python_EXECUTABLE} -c "import numpy; print(numpy.__version__)" OUTPUT_VARIABLE numpy
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(numpy VERSION_GREATER_EQUAL 2)
      message(FATAL_ERROR "Python package: found pybind11 ${pybind11_VERSION} (${pybind11_DIR}) and NumPy ${numpy} of "
        "${Python_EXECUTABLE}, expected pybind11 2.12 or newer with NumPy 2. Set pybind11_DIR to a newer one, "
        "Python_EXECUTABLE to an interpreter with NumPy 1, or CHUNKHIT_PYTHON to OFF.")
    endif()
  endif()
  if(pybind11_FOUND)
    message(STATUS "Python package: for ${Python_EXECUTABLE}")
  else()
    message(STATUS "Python package: not built, pybind11 (python3-pybind11, pybind11-dev) or python3-dev is missing")
  endif()
endif()
