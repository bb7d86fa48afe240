/* Cuts a text into chunks, each of which is run by itself, by -c and --chunks.
 *
 * In: a model, the command line, the number of a text's ids. Out: the ids of a chunk and the number of chunks; or the
 * exit status after an error line. */
#ifndef FR_TOOLS_CLI_CHUNKS_H
#define FR_TOOLS_CLI_CHUNKS_H

#include "tools/cli/loaded.h"

/* Gives the number of ids of a chunk: -c (0: all of the model's positions), else 512, or fewer if the model has fewer
 * positions. */
size_t fr_chunks_ids(const fr_loaded *loaded, const fr_arguments *args);

/* Check that the model has enough positions for a chunk, and that the text of -f is at least one chunk long. Give the
 * exit status. */
int fr_chunks_check_model(const fr_loaded *loaded, size_t ids);
int fr_chunks_check_text(const fr_arguments *args, size_t count, size_t ids);

/* Gives the number of chunks to run: all of them, or at most --chunks. */
size_t fr_chunks_most(const fr_arguments *args, size_t chunks);

#endif
