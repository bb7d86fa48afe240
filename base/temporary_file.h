/* Writes a file that gets its final name only when it is complete. Until the file is synced and renamed, it has a
 * temporary name in the same folder.
 *
 * In: the final path of a file (base/file_place.h). Out: a file named ".forerun-" and six characters, locked (flock)
 * for as long as any descriptor of it is open. Runs that are killed leave such files without a lock, so the next run
 * that writes into the folder removes them. On a filesystem without locks the files stay. */
#ifndef FR_BASE_TEMPORARY_FILE_H
#define FR_BASE_TEMPORARY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Makes a temporary file in the folder of `place`; programs that this process starts do not inherit its descriptor.
 * `name` gets the file's path. Returns -1 with errno set on failure. */
int fr_temporary_open(const char *place, char *name, size_t size, mode_t mode);

/* Renames the file to its final path, durably: its bytes and its folder are synced. fd stays open and keeps the file
 * locked. Returns 0, or an errno. After an error the temporary name may still exist. */
int fr_temporary_keep(int fd, const char *name, const char *place);

#endif
