/* Copies GGUF files for suites. A copy has the same metadata but other tensors.
 *
 * In: a file, and a function that adds the tensors. Out: a file. Any failure ends the test. */
#ifndef FR_TESTS_GGUF_COPY_H
#define FR_TESTS_GGUF_COPY_H

#include "formats/gguf_write.h"

/* Writes the tensors of a copy. It is called twice. The first call declares the tensors. In the second call `data` is
 * true, and it writes the tensors' data in the same order. `all` has the tensors of the original file. */
typedef void fr_gguf_copied(const fr_tensors *all, fr_gguf_writer *writer, bool data);

void fr_gguf_copy(const char *from, const char *to, fr_gguf_copied *copied);

/* Copies the file. In the copy, an unknown key replaces `key`. `to` may be the same file as `from`. */
void fr_gguf_hide_key(const char *from, const char *to, const char *key);

#endif
