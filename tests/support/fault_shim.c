// Preloaded into a command: makes the Nth call of one kind fail, come up short, or kill, stop or halt the
// process (SIGKILL, SIGTERM, SIGSTOP).
// FAULT=op:n[:errno|short|kill|stop|halt][:sticky] with op one of open openat2 (below a folder) mkdir write
// pwrite read pread readdir fsync link rename unlink rmdir close ftruncate; only files below FAULT_PATH.
// NO_FLOCK=1: every flock succeeds and locks nothing, as a file system shared with other machines may do.
// NO_TMPFILE=1: there are no files without a name, as on NFS.
// NO_LINKS=1: there are no hard links.
// DELAY_US=n: every open, stat and rename takes so many microseconds longer, as from a server.
// CLOCK_OFFSET=n: the clock of the day is n seconds ahead, as on a machine that is set wrongly.
// BAD_BYTE=offset: a pread that has it fails with EIO, as of a bad sector.
// OTHER_BYTE=offset[:n]: preads of it, from the nth on, give another byte, as of storage that changed.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static atomic_int calls;

static int below_path(const char* path) {
  const char* root = getenv("FAULT_PATH");
  return root != NULL && path != NULL && strncmp(path, root, strlen(root)) == 0;
}

static int fd_below_path(int fd) {
  char link[64];
  char path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return below_path(path);
}

/// 0: go on; -1: fail with errno set; 1: come up short.
static int error(const char* op) {
  const char* wanted = getenv("FAULT");
  const size_t length = strlen(op);
  if (wanted == NULL || strncmp(wanted, op, length) != 0 || wanted[length] != ':') return 0;
  char* rest = NULL;
  const long nth = strtol(wanted + length + 1, &rest, 10);
  const int call = atomic_fetch_add(&calls, 1) + 1;
  const int sticky = strstr(rest, ":sticky") != NULL;
  if (sticky ? call < nth : call != nth) return 0;
  if (strncmp(rest, ":kill", 5) == 0) kill(getpid(), SIGKILL);
  if (strncmp(rest, ":stop", 5) == 0) {
    kill(getpid(), SIGTERM);
    return 0;
  }
  if (strncmp(rest, ":halt", 5) == 0) {
    kill(getpid(), SIGSTOP);
    return 0;
  }
  if (strncmp(rest, ":short", 6) == 0) return 1;
  errno = *rest == ':' ? atoi(rest + 1) : EIO;
  return -1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void* data, size_t size) {
  const int what = fd_below_path(fd) ? error("write") : 0;
  return what < 0 ? -1 : NEXT(write)(fd, data, what > 0 && size > 1 ? size / 2 : size);
}

static ssize_t shimmed_pwrite(int fd, const void* data, size_t size, off64_t offset) {
  const int what = fd_below_path(fd) ? error("pwrite") : 0;
  return what < 0 ? -1 : NEXT(pwrite64)(fd, data, what > 0 && size > 1 ? size / 2 : size, offset);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  return shimmed_pwrite(fd, data, size, offset);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return shimmed_pwrite(fd, data, size, offset);
}

ssize_t read(int fd, void* data, size_t size) {
  const int what = fd_below_path(fd) ? error("read") : 0;
  return what < 0 ? -1 : NEXT(read)(fd, data, what > 0 && size > 1 ? size / 2 : size);
}

static int meets_bad_byte(size_t size, off64_t offset) {
  const char* bad = getenv("BAD_BYTE");
  if (bad == NULL || atoll(bad) < offset || atoll(bad) >= offset + (off64_t)size) return 0;
  errno = EIO;
  return 1;
}

static void change_byte(unsigned char* data, ssize_t got, off64_t offset) {
  static atomic_int reads;
  const char* other = getenv("OTHER_BYTE");
  if (other == NULL || got <= 0) return;
  char* rest = NULL;
  const off64_t at = strtoll(other, &rest, 10);
  if (at < offset || at >= offset + got) return;
  const int first = *rest == ':' ? atoi(rest + 1) : 1;
  if (atomic_fetch_add(&reads, 1) + 1 >= first) data[at - offset] ^= 4;
}

static ssize_t shimmed_pread(int fd, void* data, size_t size, off64_t offset) {
  const int is_below = fd_below_path(fd);
  if (is_below && meets_bad_byte(size, offset)) return -1;
  const int what = is_below ? error("pread") : 0;
  if (what < 0) return -1;
  const ssize_t got = NEXT(pread64)(fd, data, what > 0 && size > 1 ? size / 2 : size, offset);
  if (is_below) change_byte(data, got, offset);
  return got;
}
ssize_t pread(int fd, void* data, size_t size, off_t offset) { return shimmed_pread(fd, data, size, offset); }
ssize_t pread64(int fd, void* data, size_t size, off64_t offset) {
  return shimmed_pread(fd, data, size, offset);
}

static ssize_t shimmed_preadv(int fd, const struct iovec* pieces, int count, off64_t offset) {
  const int what = fd_below_path(fd) ? error("pread") : 0;
  return what < 0 ? -1 : NEXT(preadv64)(fd, pieces, what > 0 && count > 1 ? count / 2 : count, offset);
}
ssize_t preadv(int fd, const struct iovec* pieces, int count, off_t offset) {
  return shimmed_preadv(fd, pieces, count, offset);
}
ssize_t preadv64(int fd, const struct iovec* pieces, int count, off64_t offset) {
  return shimmed_preadv(fd, pieces, count, offset);
}

static void delay(const char* path) {
  const char* microseconds = getenv("DELAY_US");
  if (microseconds != NULL && below_path(path)) usleep((useconds_t)atoi(microseconds));
}

int stat(const char* path, struct stat* status) {
  delay(path);
  return NEXT(stat)(path, status);
}
int lstat(const char* path, struct stat* status) {
  delay(path);
  return NEXT(lstat)(path, status);
}
int fstatat(int folder, const char* path, struct stat* status, int flags) {
  delay(path);
  return NEXT(fstatat)(folder, path, status, flags);
}

int fsync(int fd) { return fd_below_path(fd) && error("fsync") < 0 ? -1 : NEXT(fsync)(fd); }
int rename(const char* from, const char* to) {
  delay(to);
  return below_path(from) && error("rename") < 0 ? -1 : NEXT(rename)(from, to);
}
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  delay(to);
  if (getenv("NO_LINKS") != NULL) {
    errno = EXDEV;
    return -1;
  }
  return below_path(to) && error("link") < 0 ? -1 : NEXT(linkat)(from_folder, from, to_folder, to, flags);
}
int unlink(const char* path) { return below_path(path) && error("unlink") < 0 ? -1 : NEXT(unlink)(path); }
int mkdir(const char* path, mode_t mode) {
  return below_path(path) && error("mkdir") < 0 ? -1 : NEXT(mkdir)(path, mode);
}
int rmdir(const char* path) { return below_path(path) && error("rmdir") < 0 ? -1 : NEXT(rmdir)(path); }
int flock(int fd, int operation) { return getenv("NO_FLOCK") != NULL ? 0 : NEXT(flock)(fd, operation); }
int ftruncate64(int fd, off64_t size) {
  return fd_below_path(fd) && error("ftruncate") < 0 ? -1 : NEXT(ftruncate64)(fd, size);
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int close(int fd) {
  if (!fd_below_path(fd) || error("close") >= 0) return NEXT(close)(fd);
  const int error = errno;
  NEXT(close)(fd);
  errno = error;
  return -1;
}

/// openat2 has no function of its own; its path counts as its folder's.
long syscall(long number, ...) {
  long argument[6];
  va_list arguments;
  va_start(arguments, number);
  for (int index = 0; index < 6; ++index) argument[index] = va_arg(arguments, long);
  va_end(arguments);
  if (number == SYS_openat2 && fd_below_path((int)argument[0]) && error("openat2") < 0) return -1;
  return NEXT(syscall)(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int result = NEXT(clock_gettime)(clock, now);
  const char* ahead = getenv("CLOCK_OFFSET");
  if (result == 0 && clock == CLOCK_REALTIME && ahead != NULL) now->tv_sec += atol(ahead);
  return result;
}
time_t time(time_t* seconds) {
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_REALTIME, &now);
  if (seconds != NULL) *seconds = now.tv_sec;
  return now.tv_sec;
}
int gettimeofday(struct timeval* restrict at, void* restrict zone) {
  (void)zone;
  struct timespec now = {0, 0};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return result;
}

struct dirent* readdir(DIR* folder) {
  return fd_below_path(dirfd(folder)) && error("readdir") < 0 ? NULL : NEXT(readdir)(folder);
}

static int shimmed_open(const char* path, int flags, mode_t mode) {
  delay(path);
  if ((flags & O_TMPFILE) == O_TMPFILE && getenv("NO_TMPFILE") != NULL) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return below_path(path) && error("open") < 0 ? -1 : NEXT(open64)(path, flags, mode);
}
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return shimmed_open(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return shimmed_open(path, flags, mode);
}
