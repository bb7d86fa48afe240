/* Recognises incomplete files: those that a download or a clone leaves until it is done.
 *
 * In: a path, or the file that it names. Out: one error line, or FR_OK. Downloads are recognised by the names that
 * programs give them. curl and wget use the final name from the beginning, so an incomplete file of theirs is found
 * only when it is read, because its tensors end after the end of the file. */
#ifndef FR_FORMATS_DOWNLOAD_H
#define FR_FORMATS_DOWNLOAD_H

#include "forerun.h"

/* Fails if the path names an unfinished download, or if an unfinished download will become the file of that path. Call
 * this function before weights are opened. */
fr_status fr_download_check(const char *path);

/* Fails if the file is a Git LFS pointer: three lines of text that replace the real file in a clone. size: the file's
 * bytes. */
fr_status fr_download_check_pointer(const char *path, int fd, size_t size);

#endif
