/* Reads small files of /proc, and the limits of the control groups that this process is in.
 *
 * In: files of the system, or of a folder with a made-up /proc and /sys. Out: for memory or for processors, the
 * smallest limit of all these groups. The files are not trusted: text that is not a number counts as no limit. */
#ifndef FR_BASE_CGROUP_H
#define FR_BASE_CGROUP_H

#include "forerun.h"

/* Reads all of folder/name as text. Returns false if the file can't be read or does not fit. Never blocks, even if the
 * path names a pipe. */
bool fr_read_small(const char *folder, const char *name, char *text, size_t size);

/* Reads the limit of one group from the files of its folder; 0 means that the group has no limit. */
typedef uint64_t fr_cgroup_limit_fn(const char *folder);

/* Gives the smallest limit of this process's groups and of the groups above them, or 0 if none has a limit. v2 reads
 * the limit of a group of cgroup version 2, and v1 the limit of a group of version 1 with this controller. root: ""
 * for this system. */
uint64_t fr_cgroup_least(const char *root, const char *controller, fr_cgroup_limit_fn *v2, fr_cgroup_limit_fn *v1);

#endif
