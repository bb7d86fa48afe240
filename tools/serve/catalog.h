/* Lists the models of a server: the model of -m, the models in a folder, or the models in a list of names.
 *
 * In: the command line. Out: for each model its path and the name by which requests ask for it. No model is opened
 * yet. */
#ifndef FR_TOOLS_SERVE_CATALOG_H
#define FR_TOOLS_SERVE_CATALOG_H

#include "tools/cli/options.h"

typedef struct fr_catalog {
    struct fr_catalog_model {
        char *name, *path;
    } * list; /* [count] models from a folder are sorted by name; models from a list keep the list's order */
    size_t count;
} fr_catalog;

/* Reads the list of models. Gives the exit status. Even after an error the catalog must be freed. */
int fr_catalog_read(fr_catalog *catalog, const fr_arguments *args);
void fr_catalog_free(fr_catalog *catalog);

#endif
