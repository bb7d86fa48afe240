/* Reads the texts of embed and rerank, and opens the embedder that runs them.
 *
 * In: a checked command line. Out: texts, an embedder, an exit status. */
#ifndef FR_TOOLS_CLI_EMBEDDING_TEXTS_H
#define FR_TOOLS_CLI_EMBEDDING_TEXTS_H

#include "tools/cli/loaded.h"

/* The texts of a file, or the one text of -p. */
typedef struct fr_texts {
    fr_prompt file; /* holds the bytes */
    fr_span *spans; /* [count] the range of each text in the file's bytes */
    size_t count;
} fr_texts;

/* Reads the file of -f and cuts it at each --embd-separator. If the last text is empty, it is left out. */
int fr_texts_read(fr_texts *texts, const fr_arguments *args);
void fr_texts_free(fr_texts *texts);

/* Opens the model and an embedder on it. */
int fr_embedder_load(fr_loaded *loaded, fr_embedder **embedder, const fr_arguments *args);

/* Notes how many texts were cut because they have more tokens than the model reads, and the length of the longest one.
 * what: the word for the texts in the note. */
void fr_embedder_note_cut(const fr_embedder_text *texts, size_t count, const char *what, const fr_arguments *args);

/* These functions write to standard output. fr_floats_write writes floats as bytes. fr_float_print writes a float as a
 * decimal number. If this number is read, it gives the same float. */
void fr_floats_write(const float *values, size_t count);
void fr_float_print(float value);

#endif
