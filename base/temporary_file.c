/* Makes temporary files, and removes those that killed runs left: see temporary_file.h. */
#include "base/temporary_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define BEGINNING ".forerun-"
#define ENDING    "XXXXXX"

/* Counts the bytes of the path's folder, including the slash after it. 0 means the working directory. */
static int folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash + 1 - path) : 0;
}

static int open_folder(const char *path) {
    char folder[PATH_MAX];
    int length = folder_length(path);
    snprintf(folder, sizeof folder, "%.*s", length ? length : 1, length ? path : ".");
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Removes a temporary file of this user that no process has locked. A process that creates such a file locks it, and
 * then checks that the name still refers to the file. So it notices if the file was removed here before it was
 * locked. */
static void remove_abandoned(int folder, const char *name) {
    struct stat info;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool ours = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid();
    if (ours && flock(fd, LOCK_EX | LOCK_NB) == 0) unlinkat(folder, name, 0);
    if (fd >= 0) close(fd);
}

static void remove_all_abandoned(const char *place) {
    int fd = open_folder(place);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (!entries && fd >= 0) close(fd);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        size_t length = strlen(entry->d_name), beginning = sizeof BEGINNING - 1;
        if (length == beginning + sizeof ENDING - 1 && strncmp(entry->d_name, BEGINNING, beginning) == 0)
            remove_abandoned(dirfd(entries), entry->d_name);
    }
    if (entries) closedir(entries);
}

int fr_temporary_open(const char *place, char *name, size_t size, mode_t mode) {
    remove_all_abandoned(place);
    for (;;) {
        struct stat info;
        int length = snprintf(name, size, "%.*s" BEGINNING ENDING, folder_length(place), place);
        errno = ENAMETOOLONG;
        int fd = length < 0 || (size_t)length >= size ? -1 : mkostemp(name, O_CLOEXEC);
        if (fd < 0) return -1;
        flock(fd, LOCK_EX); /* waits if another run found the file unlocked and is about to remove it */
        bool kept = fstat(fd, &info) != 0 || info.st_nlink > 0;
        if (kept) fchmod(fd, mode);
        if (kept) return fd;
        close(fd);
    }
}

/* Syncs the folder of a path. The call succeeds even if the filesystem cannot sync folders, or if the folder is
 * writable but not readable. */
static int sync_folder(const char *place) {
    int fd = open_folder(place), error = 0;
    if (fd >= 0 && fsync(fd) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP) error = errno;
    if (fd >= 0) close(fd);
    return error;
}

int fr_temporary_keep(int fd, const char *name, const char *place) {
    if (fsync(fd) != 0 || rename(name, place) != 0) return errno;
    return sync_folder(place);
}
