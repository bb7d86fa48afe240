/* Names of what lies in a folder.
 *
 * In: a folder that other programs write to. Out: its files or folders by their paths inside it, sorted; what can't be
 * read is passed over. */
#ifndef FR_SRC_NAMED_NAMES_H
#define FR_SRC_NAMED_NAMES_H

#include "forerun.h"

#define FR_NAMES_MOST 65536

typedef struct fr_names {
    char **items;
    size_t count, capacity;
} fr_names;

/* Its files, links to files among them, of folders below it too, `depth` of them deep; folders behind links are not
 * gone into. */
fr_status fr_names_files(const char *folder, size_t depth, fr_names *names);

/* Its folders. */
fr_status fr_names_folders(const char *folder, fr_names *names);

fr_status fr_names_add(fr_names *names, const char *name);
void fr_names_free(fr_names *names);

#endif
