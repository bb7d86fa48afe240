/* Lists the models of a server: the one of -m, those of a folder, or those of a list of names.
 *
 * In: the command line. Out: the name of each in requests, and its path. No model is opened yet. */
#ifndef FR_TOOLS_SERVE_CATALOG_H
#define FR_TOOLS_SERVE_CATALOG_H

#include "tools/cli/options.h"

typedef struct fr_catalog {
    struct fr_catalog_model {
        char *name, *path;
    } * list; /* [count] models of a folder sorted by name, of a list in its order */
    size_t count;
} fr_catalog;

/* Reads the catalog. Gives the exit status. The catalog must be freed in either case. */
int fr_catalog_read(fr_catalog *catalog, const fr_arguments *args);
void fr_catalog_free(fr_catalog *catalog);

#endif
