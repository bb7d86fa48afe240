/* Implements the registry of process_registry.h by open file description locks (fcntl(2)), with one byte of a file for
 * each CPU. */
#include "base/process_registry.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/topology.h"

static const char *instead; /* a folder that replaces the user's folder, for tests; NULL if the user's folder is used */
static int file = -1;
static pid_t owner;            /* the process that opened `file`. A forked child inherits the locks and must not change
                                * them */
static bool mine[FR_CPUS_MAX]; /* CPUs that this process has locked */
static int taken;              /* number of CPUs in `mine`; when it becomes 0, the file is closed */

/* Opens a folder that belongs to the user and that no other user can write to. Returns -1 for any other folder. */
static int open_own(const char *path, bool make) {
    struct stat info;
    if (make && mkdir(path, 0700) < 0 && access(path, F_OK) < 0) return -1;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return -1;
    if (fstat(folder, &info) == 0 && info.st_uid == geteuid() && !(info.st_mode & 022)) return folder;
    close(folder);
    return -1;
}

static int open_folder(void) {
    char path[64];
    if (instead) return *instead ? open_own(instead, false) : -1;
    snprintf(path, sizeof path, "/run/user/%lu", (unsigned long)geteuid());
    int folder = open_own(path, false);
    if (folder >= 0) return folder;
    snprintf(path, sizeof path, "/tmp/forerun-%lu", (unsigned long)geteuid());
    return open_own(path, true);
}

/* Makes sure that this process has the record open. Returns true if the record is open. */
static bool opened(void) {
    if (file >= 0 && owner == getpid()) return true;
    if (file >= 0) close(file);
    file = -1;
    taken = 0;
    memset(mine, 0, sizeof mine);
    int folder = open_folder();
    if (folder < 0) return false;
    file = openat(folder, "forerun-cores", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    close(folder);
    owner = getpid();
    return file >= 0;
}

static struct flock byte_of(int cpu, short type) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = cpu, .l_len = 1};
}

bool fr_process_registry_has(int cpu) {
    struct flock lock = byte_of(cpu, F_WRLCK);
    return opened() && fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

void fr_process_registry_begin(void) {
    struct flock lock = byte_of(FR_CPUS_MAX, F_WRLCK);
    for (int i = 0; i < 100 && opened() && fcntl(file, F_OFD_SETLK, &lock) != 0; i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

void fr_process_registry_end(void) {
    struct flock lock = byte_of(FR_CPUS_MAX, F_UNLCK);
    if (file >= 0 && owner == getpid()) fcntl(file, F_OFD_SETLK, &lock);
}

void fr_process_registry_take(int cpu) {
    struct flock lock = byte_of(cpu, F_WRLCK);
    if (!opened() || fcntl(file, F_OFD_SETLK, &lock) != 0) return;
    taken += !mine[cpu];
    mine[cpu] = true;
}

void fr_process_registry_drop(int cpu) {
    struct flock lock = byte_of(cpu, F_UNLCK);
    if (file < 0 || owner != getpid()) return;
    if (mine[cpu]) fcntl(file, F_OFD_SETLK, &lock);
    taken -= mine[cpu];
    mine[cpu] = false;
    if (taken) return;
    close(file);
    file = -1;
}

void fr_process_registry_use(const char *folder) {
    instead = folder;
}
