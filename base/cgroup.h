/* Small files of /proc and of the control groups that this process is in, as numbers.
 *
 * In: files of the system, or of a folder that holds a made-up /proc and /sys. Out: the tightest limit of a kind.
 * Nothing here trusts a file: what is no limit is none. */
#ifndef FR_BASE_CGROUP_H
#define FR_BASE_CGROUP_H

#include "forerun.h"

/* All of folder/name as text. False when it can't be read or does not fit. Never waits, whatever the path names. */
bool fr_read_small(const char *folder, const char *name, char *text, size_t size);

/* What one group allows, by the files of its folder; 0: it has no limit. */
typedef uint64_t fr_cgroup_limit_fn(const char *folder);

/* The least that the groups of this process and those above them allow, 0: all have no limit. v2: of the one hierarchy
 * of version 2; v1: of `controller` in version 1. root: "" for this system. */
uint64_t fr_cgroup_least(const char *root, const char *controller, fr_cgroup_limit_fn *v2, fr_cgroup_limit_fn *v1);

#endif
