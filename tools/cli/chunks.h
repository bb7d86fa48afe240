/* How a text is cut into chunks, each of which is run alone: what -c and --chunks say.
 *
 * In: a model, the command line, how many ids a text has. Out: ids of a chunk, how many chunks; or an exit status
 * behind its line. */
#ifndef FR_TOOLS_CLI_CHUNKS_H
#define FR_TOOLS_CLI_CHUNKS_H

#include "tools/cli/loaded.h"

/* Ids of a chunk: as -c says (0: all of the model's positions), else 512 or as many as the model has. */
size_t fr_chunks_ids(const fr_loaded *loaded, const fr_arguments *args);

/* Whether the model has positions for one; whether the text of -f is as long as one. */
int fr_chunks_check_model(const fr_loaded *loaded, size_t ids);
int fr_chunks_check_text(const fr_arguments *args, size_t count, size_t ids);

/* As many as there are, at most --chunks. */
size_t fr_chunks_most(const fr_arguments *args, size_t chunks);

#endif
