/* Gives the SHA-256 of one file and stores it, because it takes seconds to read gigabytes.
 *
 * In: a file. Out: its hash. The hash is stored in FILE.sha256 in the folder of the file. FILE.sha256 is a list that
 * sha256sum -c can read. If that list can't be written, or another program wrote it, the hash is stored in the user's
 * cache folder ($XDG_CACHE_HOME/forerun, ~/.cache/forerun). The list also has the file's size and time of change. The
 * stored hash is used only while the file's size and time of change are still those in the list. Small files are hashed
 * each time. */
#ifndef FR_TOOLS_SERVE_CONTENT_FILE_H
#define FR_TOOLS_SERVE_CONTENT_FILE_H

#include <stddef.h>

#include "tools/serve/content.h"

/* Settings of a run: a function that may stop the run, and memory for an error line. */
typedef struct fr_content_run {
    bool (*stop)(void *context); /* returns true to stop the run; NULL: nothing stops it */
    void *context;
    char *error; /* memory of FR_CONTENT_ERROR bytes for an error line, which is "" at first */
} fr_content_run;

bool fr_content_file(const fr_content_run *run, const char *path, char hash[FR_CONTENT_SIZE]);

/* Hashes bytes in memory. */
bool fr_content_bytes(const fr_content_run *run, const void *bytes, size_t size, char hash[FR_CONTENT_SIZE]);

/* Stores an error line in run->error, and returns false. */
bool fr_content_fail(const fr_content_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
