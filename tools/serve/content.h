/* Which weights these are: a hash of all bytes of a model's files.
 *
 * In: a model's path, as fr_model_open takes it. Out: the hash, SHA-256, which is kept beside the file (FILE.sha256) or,
 * where that can't be written, in the user's cache folder, with the file's size and time, and read again from there
 * while those are the same. */
#ifndef FR_TOOLS_SERVE_CONTENT_H
#define FR_TOOLS_SERVE_CONTENT_H

#include <stdbool.h>

#define FR_CONTENT_SIZE 65

/* Lower-case hexadecimal digits. False, and a line in `error` (which has room for 256 bytes), where a file can't be
 * read. `stop` is asked now and then: true ends it, with false and no line. */
bool fr_content_hash(const char *path, char hash[FR_CONTENT_SIZE], char *error, bool (*stop)(void *), void *context);

#endif
