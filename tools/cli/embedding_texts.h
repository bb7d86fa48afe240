/* Reads the texts of embed and rerank, and opens what runs them.
 *
 * In: a checked command line. Out: texts, an embedder, an exit status. */
#ifndef FR_TOOLS_CLI_EMBEDDING_TEXTS_H
#define FR_TOOLS_CLI_EMBEDDING_TEXTS_H

#include "tools/cli/loaded.h"

/* The texts of a file, or of -p. */
typedef struct fr_texts {
    fr_prompt file; /* holds the bytes */
    fr_span *spans; /* [count] of its bytes */
    size_t count;
} fr_texts;

/* Reads the file of -f and cuts it where --embd-separator stands. A last text that is empty is none. */
int fr_texts_read(fr_texts *texts, const fr_arguments *args);
void fr_texts_free(fr_texts *texts);

/* Opens the model and an embedder on it. */
int fr_embedder_load(fr_loaded *loaded, fr_embedder **embedder, const fr_arguments *args);

/* Notes how many texts are cut, and to what. */
void fr_embedder_note_cut(const fr_embedder_text *texts, size_t count, const char *what, const fr_arguments *args);

/* Writes floats as their bytes, or as a number that reads back as the same float. */
void fr_floats_write(const float *values, size_t count);
void fr_float_print(float value);

#endif
