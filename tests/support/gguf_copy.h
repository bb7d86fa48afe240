/* Copies GGUF files for suites: the same metadata, with other tensors.
 *
 * In: a file, and a function that adds the tensors. Out: a file. All functions end the test on any failure. */
#ifndef FR_TESTS_GGUF_COPY_H
#define FR_TESTS_GGUF_COPY_H

#include "formats/gguf_write.h"

/* Called twice with the file's tensors: first to add the tensors of the copy, then to write their data in the same
 * order. */
typedef void fr_gguf_copied(const fr_tensors *all, fr_gguf_writer *writer, bool data);

void fr_gguf_copy(const char *from, const char *to, fr_gguf_copied *copied);

/* Writes the file again, perhaps in its own place, with an unknown key instead of that one. */
void fr_gguf_hide_key(const char *from, const char *to, const char *key);

#endif
