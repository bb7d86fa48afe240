/* Which mapped files there are, for fr_mapped_file (forerun.h), which a signal handler may ask.
 *
 * In: the bytes of each file while it is mapped, and its path. Out: the path, by an address among them. Files are
 * entered and taken out under a lock; who asks takes none. */
#ifndef FR_FORMATS_MAPPED_FILES_H
#define FR_FORMATS_MAPPED_FILES_H

#include "forerun.h"

/* path: the caller's, until the file is taken out. */
fr_status fr_mapped_files_enter(const uint8_t *bytes, size_t size, const char *path);

/* Call it before the bytes are unmapped. What was never entered is no mistake. */
void fr_mapped_files_leave(const uint8_t *bytes);

#endif
