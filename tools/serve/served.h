/* A model brought into memory for a server, and out of it (models.h). */
#ifndef FR_TOOLS_SERVE_SERVED_H
#define FR_TOOLS_SERVE_SERVED_H

#include "tools/serve/models.h"

/* Opens model, drafter, engine and scheduler; hashes its weights meanwhile. `served` has its name, path and args. Gives
 * the exit status, after a line on standard error. */
int fr_served_load(fr_served *served, fr_tally *tally, void (*wake)(void *), void *context);
void fr_served_unload(fr_served *served);

/* The same of a rank that nobody asks, without a scheduler, to the end of rank 0's. */
int fr_served_follow(fr_served *served);

/* About how many bytes it takes, and how many there are. */
bool fr_served_fits(const fr_served *served);

#endif
