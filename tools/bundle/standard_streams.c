/* The standard streams for archives that are linked with --wrap: objects of this library, set before any
 * other code of it. */
#include <stdio.h>

#define STREAM(name)          \
  extern FILE* __real_##name; \
  __attribute__((visibility("hidden"))) FILE* __wrap_##name
STREAM(stdin);
STREAM(stdout);
STREAM(stderr);

__attribute__((constructor(101))) static void find_standard_streams(void) {
  __wrap_stdin = __real_stdin;
  __wrap_stdout = __real_stdout;
  __wrap_stderr = __real_stderr;
}
