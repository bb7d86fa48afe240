/* One file's SHA-256, and what is kept of it, as gigabytes take seconds to read.
 *
 * In: a file. Out: its hash, which is kept beside it in FILE.sha256 or, where that can't be written or is somebody
 * else's, in the user's cache folder ($XDG_CACHE_HOME/forerun, ~/.cache/forerun), with the file's size and time; and
 * believed while those are the same. It is a list as sha256sum -c takes it. Small files are read each time. */
#ifndef FR_TOOLS_SERVE_CONTENT_FILE_H
#define FR_TOOLS_SERVE_CONTENT_FILE_H

#include <stddef.h>

#include "tools/serve/content.h"

/* How a hash is going: whom to ask whether to stop, and where a failure's line goes. */
typedef struct fr_content_run {
    bool (*stop)(void *context); /* NULL: nobody is asked */
    void *context;
    char *error; /* FR_CONTENT_ERROR bytes, "" as it begins */
} fr_content_run;

bool fr_content_file(const fr_content_run *run, const char *path, char hash[FR_CONTENT_SIZE]);

/* The same of bytes in memory. */
bool fr_content_bytes(const fr_content_run *run, const void *bytes, size_t size, char hash[FR_CONTENT_SIZE]);

/* Writes a failure's line; gives false. */
bool fr_content_fail(const fr_content_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
