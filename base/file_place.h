/* Handles paths of files: joins them, follows their links, and tells if a file exists.
 *
 * In: a path, which may be a symbolic link, to a file that may not exist yet. Out: another path, or a yes or no. No
 * file is opened here. */
#ifndef FR_BASE_FILE_PLACE_H
#define FR_BASE_FILE_PLACE_H

#include <stdbool.h>

/* Gives "FOLDER/NAME", malloc'd; NULL when out of memory. */
char *fr_path_join(const char *folder, const char *name);

/* True if the name exists, even as a broken link or as something unreadable. Reading it then reports the fault, so
 * that a broken part of a model is not mistaken for a missing one. */
bool fr_file_exists(const char *path);

/* True if the name leads to an existing file or folder, also through links. */
bool fr_file_is_reached(const char *path);

/* Gives the path with the symbolic links at its end followed, for the caller to free. A file that is written under a
 * temporary name and then renamed needs this, because renaming to the original path would replace the link. Returns
 * NULL with errno set if memory is short or links lead in a circle. */
char *fr_file_place(const char *path);

/* True for a path that names an open descriptor, as /dev/stdout and /dev/fd/3 do, also through links. Such an open
 * file must be written in place, even if it is a regular file. */
bool fr_file_is_descriptor(const char *path);

#endif
