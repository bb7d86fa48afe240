/* Where a file lies that is about to be written.
 *
 * In: a path, which may be a symbolic link, to a file or to none yet. Out: the path of what it leads to. A file that is
 * written beside its place and renamed would otherwise replace the link. */
#ifndef FR_BASE_FILE_PLACE_H
#define FR_BASE_FILE_PLACE_H

/* The path with links at its end followed; free. NULL with errno set: no memory, or links that lead in a circle. */
char *fr_file_place(const char *path);

#endif
