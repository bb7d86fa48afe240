/* A library that is preloaded to make one system call fail (see tests/failing_calls/run).
 *
 * In: FR_FAIL=NAME:N selects the N-th call of the function NAME, counted from 1. FR_FAIL_COUNTS=PATH names a file; at
 * the end, the number of calls of each function is written to it. Out: the selected call sets errno and returns the
 * value that it returns when the system reports a failure. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* The names of the functions, and the error that each reports. */
/* clang-format off */
#define CALLS(CALL)                                                                                                  \
    CALL(open, EACCES) CALL(openat, EACCES) CALL(fopen, EACCES) CALL(opendir, EACCES) CALL(mkostemp, ENOSPC)         \
    CALL(read, EIO) CALL(pread, EIO) CALL(write, ENOSPC) CALL(mmap, ENOMEM) CALL(fstat, EIO) CALL(stat, EACCES)      \
    CALL(lstat, EACCES) CALL(access, EACCES) CALL(fsync, EIO) CALL(rename, EACCES) CALL(ftruncate, EIO)              \
    CALL(dup, EMFILE) CALL(flock, ENOLCK) CALL(socket, EMFILE) CALL(bind, EADDRINUSE) CALL(listen, EADDRINUSE)       \
    CALL(accept4, EMFILE) CALL(epoll_create1, EMFILE) CALL(epoll_ctl, ENOMEM) CALL(epoll_wait, EINTR)                \
    CALL(recv, ECONNRESET) CALL(send, EPIPE) CALL(pthread_create, EAGAIN) CALL(readlink, EIO) CALL(statfs, EIO)
/* clang-format on */

enum {
#define ENTRY(name, error) CALL_##name,
    CALLS(ENTRY)
#undef ENTRY
        COUNT
};

static const struct {
    const char *name;
    int error;
} calls[COUNT] = {
#define ENTRY(name, error) {#name, error},
    CALLS(ENTRY)
#undef ENTRY
};

static atomic_ulong made[COUNT];

/* Counts the call. Returns true if it is the call that must fail. */
static int fails(int call) {
    const char *order = getenv("FR_FAIL"), *colon = order ? strrchr(order, ':') : NULL;
    unsigned long number = 1 + atomic_fetch_add(&made[call], 1);
    size_t length = strlen(calls[call].name);
    if (!colon || (size_t)(colon - order) != length || strncmp(order, calls[call].name, length) != 0) return 0;
    if (strtoul(colon + 1, NULL, 10) != number) return 0;
    errno = calls[call].error;
    return 1;
}

__attribute__((destructor)) static void tell(void) {
    const char *path = getenv("FR_FAIL_COUNTS");
    char line[64];
    if (!path) return;
    unsetenv("FR_FAIL");
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (size_t i = 0; fd >= 0 && i < COUNT; i++) {
        int length = snprintf(line, sizeof line, "%s %lu\n", calls[i].name, atomic_load(&made[i]));
        if (write(fd, line, (size_t)length) != length) break;
    }
    if (fd >= 0) close(fd);
}

#define NEXT(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

/* Defines a replacement for a function. If the call is selected, the replacement fails. Otherwise it passes its
 * arguments on to the original function. */
#define FAILING(type, name, none, parameters, arguments)           \
    type name parameters {                                         \
        return fails(CALL_##name) ? (none) : NEXT(name) arguments; \
    }

#define MODE(flags)                        \
    mode_t mode = 0;                       \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list more;                      \
        va_start(more, flags);             \
        mode = va_arg(more, mode_t);       \
        va_end(more);                      \
    }

int open(const char *path, int flags, ...) {
    MODE(flags)
    return fails(CALL_open) ? -1 : NEXT(open)(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    MODE(flags)
    return fails(CALL_openat) ? -1 : NEXT(openat)(folder, path, flags, mode);
}

FAILING(FILE *, fopen, NULL, (const char *path, const char *mode), (path, mode))
FAILING(DIR *, opendir, NULL, (const char *path), (path))
FAILING(int, mkostemp, -1, (char *name, int flags), (name, flags))
FAILING(ssize_t, read, -1, (int fd, void *bytes, size_t size), (fd, bytes, size))
FAILING(ssize_t, pread, -1, (int fd, void *bytes, size_t size, off_t at), (fd, bytes, size, at))

/* A write of eight bytes is treated as a write to an eventfd, which wakes another thread. The system never lets such a
 * write fail. libmicrohttpd would end the process if it failed. So such writes are not counted and never fail. */
ssize_t write(int fd, const void *bytes, size_t size) {
    return size != sizeof(uint64_t) && fails(CALL_write) ? -1 : NEXT(write)(fd, bytes, size);
}

FAILING(void *, mmap, MAP_FAILED, (void *at, size_t size, int protection, int flags, int fd, off_t offset),
        (at, size, protection, flags, fd, offset))
FAILING(int, fstat, -1, (int fd, struct stat *info), (fd, info))
FAILING(int, stat, -1, (const char *path, struct stat *info), (path, info))
FAILING(int, lstat, -1, (const char *path, struct stat *info), (path, info))
FAILING(ssize_t, readlink, -1, (const char *path, char *named, size_t size), (path, named, size))
FAILING(int, statfs, -1, (const char *path, struct statfs *info), (path, info))
FAILING(int, access, -1, (const char *path, int mode), (path, mode))
FAILING(int, fsync, -1, (int fd), (fd))
FAILING(int, rename, -1, (const char *from, const char *to), (from, to))
FAILING(int, ftruncate, -1, (int fd, off_t size), (fd, size))
FAILING(int, dup, -1, (int fd), (fd))
FAILING(int, flock, -1, (int fd, int operation), (fd, operation))
FAILING(int, socket, -1, (int domain, int type, int protocol), (domain, type, protocol))
FAILING(int, bind, -1, (int fd, const struct sockaddr *address, socklen_t size), (fd, address, size))
FAILING(int, listen, -1, (int fd, int backlog), (fd, backlog))
FAILING(int, accept4, -1, (int fd, struct sockaddr *address, socklen_t *size, int flags), (fd, address, size, flags))
FAILING(int, epoll_create1, -1, (int flags), (flags))

/* Removing a descriptor from an epoll set never fails, so such a call is not counted. */
int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event) {
    return operation != EPOLL_CTL_DEL && fails(CALL_epoll_ctl) ? -1 : NEXT(epoll_ctl)(epoll, operation, fd, event);
}

FAILING(int, epoll_wait, -1, (int epoll, struct epoll_event *events, int most, int timeout),
        (epoll, events, most, timeout))
FAILING(ssize_t, recv, -1, (int fd, void *bytes, size_t size, int flags), (fd, bytes, size, flags))
FAILING(ssize_t, send, -1, (int fd, const void *bytes, size_t size, int flags), (fd, bytes, size, flags))
FAILING(int, pthread_create, EAGAIN,
        (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context),
        (thread, attributes, run, context))
