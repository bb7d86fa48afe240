/* Files that have not come whole: what a download or a clone leaves in their place until it is done.
 *
 * In: a path, or the file behind it. Out: one line that says so, or FR_OK. It is known by names: those that programs
 * give what they are at (curl's and wget's keep the final one; tensors beyond the end tell of those). */
#ifndef FR_FORMATS_DOWNLOAD_H
#define FR_FORMATS_DOWNLOAD_H

#include "forerun.h"

/* Before weights are opened: whether the path is of an unfinished download, or one lies in its place. */
fr_status fr_download_check(const char *path);

/* Whether a file of that size is a Git LFS pointer, three lines of text that stand for the file in a clone. */
fr_status fr_download_check_pointer(const char *path, int fd, size_t size);

#endif
