/* Which weights these are: a hash of all bytes of a model's files.
 *
 * In: a model's path, as fr_model_open takes it. Out: the hash, SHA-256: of a file what sha256sum prints; of several,
 * shards or a folder's, what it prints of its own lines for them:
 *
 *     sha256sum NAME... | sha256sum
 *
 * run where they lie, in the order of their names' bytes. Of a folder these are the configuration, the tokenizer and
 * the weights that are read. */
#ifndef FR_TOOLS_SERVE_CONTENT_H
#define FR_TOOLS_SERVE_CONTENT_H

#include <stdbool.h>

#define FR_CONTENT_SIZE  65
#define FR_CONTENT_ERROR 256

/* Lower-case hexadecimal digits. False, and a line in `error` (which has room for FR_CONTENT_ERROR bytes), where a file
 * can't be read. `stop` is asked now and then: true ends it, with false and no line. */
bool fr_content_hash(const char *path, char hash[FR_CONTENT_SIZE], char *error, bool (*stop)(void *), void *context);

#endif
