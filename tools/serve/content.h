/* Identifies a model's weights by a hash of all bytes of its files.
 *
 * In: a model's path, as fr_model_open takes it. Out: a SHA-256 hash. For one file it is the hash that sha256sum
 * prints. If there are several files (shards, or the files of a folder), sha256sum prints a line for each file. The
 * lines are put in the bytewise order of the files' names, and the hash of these lines is the result. In the files'
 * folder, this command gives it:
 *     sha256sum NAME... | sha256sum
 * A folder's files are the configuration, the tokenizer and the weights that are read. */
#ifndef FR_TOOLS_SERVE_CONTENT_H
#define FR_TOOLS_SERVE_CONTENT_H

#include <stdbool.h>

#define FR_CONTENT_SIZE  65
#define FR_CONTENT_ERROR 256

/* Writes the hash as lower-case hexadecimal digits. If a file can't be read, returns false, and `error`, which has
 * FR_CONTENT_ERROR bytes, gets the reason. `stop` is called from time to time. If it returns true, hashing ends, and
 * the function returns false without a reason. */
bool fr_content_hash(const char *path, char hash[FR_CONTENT_SIZE], char *error, bool (*stop)(void *), void *context);

#endif
