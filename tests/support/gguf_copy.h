/* Copies GGUF files for suites, with the same metadata but other tensors.
 *
 * In: a file, and a function that adds the tensors. Out: a file. All functions end the test at any failure. */
#ifndef FR_TESTS_GGUF_COPY_H
#define FR_TESTS_GGUF_COPY_H

#include "formats/gguf_write.h"

/* Writes the tensors of a copy. It is called twice: first to declare the tensors, then (with `data`) to write their
 * data in the same order. all: the tensors of the original file. */
typedef void fr_gguf_copied(const fr_tensors *all, fr_gguf_writer *writer, bool data);

void fr_gguf_copy(const char *from, const char *to, fr_gguf_copied *copied);

/* Copies the file with an unknown key in place of `key`. `to` may be the same file as `from`. */
void fr_gguf_hide_key(const char *from, const char *to, const char *key);

#endif
