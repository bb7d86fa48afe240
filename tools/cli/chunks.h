/* Cuts a text into chunks as -c and --chunks say. Each chunk is run by itself.
 *
 * In: a model, the command line, and the number of ids of a text. Out: the number of ids in a chunk and the number of
 * chunks; or an error line and the exit status. */
#ifndef FR_TOOLS_CLI_CHUNKS_H
#define FR_TOOLS_CLI_CHUNKS_H

#include "tools/cli/loaded.h"

/* Gives the number of ids in a chunk. This is the number of -c, or 512 without -c, but at most the number of positions
 * of the model. -c 0 means all positions of the model. */
size_t fr_chunks_ids(const fr_loaded *loaded, const fr_arguments *args);

/* These functions check the chunks, and give the exit status. fr_chunks_check_model checks that a chunk fits into the
 * model's context. fr_chunks_check_text checks that the text of -f fills at least one chunk. */
int fr_chunks_check_model(const fr_loaded *loaded, size_t ids);
int fr_chunks_check_text(const fr_arguments *args, size_t count, size_t ids);

/* Gives the number of chunks to run: all of them, or at most --chunks. */
size_t fr_chunks_most(const fr_arguments *args, size_t chunks);

#endif
