/* Identifies a model's weights by a hash of all bytes of its files.
 *
 * In: a model's path, as fr_model_open takes it. Out: a SHA-256 hash. For one file it is the hash that sha256sum
 * prints. For several files (shards, or the files of a folder) it is the hash of the lines that sha256sum prints for
 * them, in the bytewise order of their names. In their folder, this command gives it:
 *     sha256sum NAME... | sha256sum
 * A folder's files are the configuration, the tokenizer and the weights that are read. */
#ifndef FR_TOOLS_SERVE_CONTENT_H
#define FR_TOOLS_SERVE_CONTENT_H

#include <stdbool.h>

#define FR_CONTENT_SIZE  65
#define FR_CONTENT_ERROR 256

/* Writes the hash as lower-case hexadecimal digits. Returns false if a file can't be read; `error`, of
 * FR_CONTENT_ERROR bytes, then has the reason. `stop` is called from time to time. If it returns true, hashing ends,
 * and the function returns false without a reason. */
bool fr_content_hash(const char *path, char hash[FR_CONTENT_SIZE], char *error, bool (*stop)(void *), void *context);

#endif
