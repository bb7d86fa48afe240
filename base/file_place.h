/* Where a file lies that is about to be written.
 *
 * In: a path, which may be a symbolic link, to a file or to none yet. Out: the path of what it leads to. A file that is
 * written beside its place and renamed would otherwise replace the link. */
#ifndef FR_BASE_FILE_PLACE_H
#define FR_BASE_FILE_PLACE_H

#include <stdbool.h>

/* The path with links at its end followed; free. NULL with errno set: no memory, or links that lead in a circle. */
char *fr_file_place(const char *path);

/* True for a path that names an open descriptor, as /dev/stdout and /dev/fd/3 do, perhaps through links: the open file
 * is to be written in place, even if it is a regular file. */
bool fr_file_is_descriptor(const char *path);

#endif
