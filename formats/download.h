/* Recognises files that are not complete: what a download or a clone leaves in their place until it is done.
 *
 * In: a path, or the file that it names. Out: one error line, or FR_OK. Downloads are recognised by the names that
 * programs give them. curl and wget use the final name from the beginning; those files are found because tensors lie
 * beyond the end. */
#ifndef FR_FORMATS_DOWNLOAD_H
#define FR_FORMATS_DOWNLOAD_H

#include "forerun.h"

/* Fails if the path names an unfinished download, or if one lies where the file should be. Call it before weights are
 * opened. */
fr_status fr_download_check(const char *path);

/* Fails if the file of that size is a Git LFS pointer: three lines of text that stand for the file in a clone. */
fr_status fr_download_check_pointer(const char *path, int fd, size_t size);

#endif
