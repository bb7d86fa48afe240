/* Handles paths of files: joins them, follows their links, and tells if a file exists.
 *
 * In: a path, which may be a symbolic link, to a file that may not exist yet. Out: another path, or a yes or no. No
 * file is opened here. */
#ifndef FR_BASE_FILE_PLACE_H
#define FR_BASE_FILE_PLACE_H

#include <stdbool.h>

/* Gives "FOLDER/NAME", malloc'd; NULL when out of memory. */
char *fr_path_join(const char *folder, const char *name);

/* True if the name exists, even if it is a broken link or something unreadable. Reading it later then reports the
 * fault, so that a broken part of a model is not mistaken for a missing one. */
bool fr_file_exists(const char *path);

/* True if the name leads to an existing file or folder, also through links. */
bool fr_file_is_reached(const char *path);

/* Gives the path that results if the symbolic links at the end of `path` are followed. The caller frees it. A file that
 * is written under a temporary name and then renamed needs this path, because renaming to the original path would
 * replace the link. Returns NULL with errno set if memory is short or links lead in a circle. */
char *fr_file_place(const char *path);

/* True for a path that names an open descriptor, such as /dev/stdout and /dev/fd/3, also through links. The file of a
 * descriptor must be written in place, even if it is a regular file. */
bool fr_file_is_descriptor(const char *path);

#endif
