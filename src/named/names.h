/* Lists the names in a folder.
 *
 * In: a folder to which other programs write. Out: the sorted paths, relative to the folder, of its files or of its
 * folders. Anything that can't be read is skipped. */
#ifndef FR_SRC_NAMED_NAMES_H
#define FR_SRC_NAMED_NAMES_H

#include "forerun.h"

#define FR_NAMES_MAX 65536

typedef struct fr_names {
    char **items;
    size_t count, capacity;
} fr_names;

/* Lists the files of a folder and of folders below it, down to `depth` levels. Links to files are listed; links to
 * folders are not followed. */
fr_status fr_names_files(const char *folder, size_t depth, fr_names *names);

/* Lists the folders in a folder. */
fr_status fr_names_folders(const char *folder, fr_names *names);

fr_status fr_names_add(fr_names *names, const char *name);
void fr_names_free(fr_names *names);

#endif
