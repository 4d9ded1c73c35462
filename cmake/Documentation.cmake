# The target docs: the pages and the API as one site, build/release/site/index.html. Its parts are checked while it is built:
# comments of headers that do not parse, and links to what is not there, are errors.
find_package(Doxygen QUIET)
find_program(MKDOCS mkdocs)
if(Doxygen_FOUND)
  set(DOXYGEN_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/docs)
  set(DOXYGEN_PROJECT_NAME chunkhit)
  set(DOXYGEN_STRIP_FROM_PATH ${PROJECT_SOURCE_DIR}/lib/include)
  set(DOXYGEN_JAVADOC_AUTOBRIEF YES)
  set(DOXYGEN_EXTRACT_ALL YES)
  set(DOXYGEN_MACRO_EXPANSION YES)
  set(DOXYGEN_EXPAND_ONLY_PREDEF YES)
  set(DOXYGEN_PREDEFINED CHUNKHIT_API= CHUNKHIT_HOST_DEVICE= __global__=)
  set(DOXYGEN_WARN_AS_ERROR FAIL_ON_WARNINGS)
  set(DOXYGEN_QUIET YES)
  doxygen_add_docs(api_docs ${PROJECT_SOURCE_DIR}/lib/include/chunkhit)
endif()
if(Doxygen_FOUND AND MKDOCS AND TARGET chunkhit_python AND TARGET flag_pages)
  set(pages ${PROJECT_BINARY_DIR}/site_pages)
  add_custom_target(docs
    COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${PROJECT_BINARY_DIR}/lib/python PYTHONDONTWRITEBYTECODE=1
      ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/site_pages.py ${PROJECT_SOURCE_DIR} ${pages}
      ${PROJECT_BINARY_DIR}/docs/html ${PROJECT_BINARY_DIR}/tools/markdown
    COMMAND ${CMAKE_COMMAND} -E env CHUNKHIT_PAGES=${pages} CHUNKHIT_SITE=${PROJECT_BINARY_DIR}/site
      ${MKDOCS} build --strict --quiet --clean -f ${PROJECT_SOURCE_DIR}/mkdocs.yml
    VERBATIM)
  add_dependencies(docs api_docs chunkhit_python flag_pages)
endif()
