/* Lists the mapped files for fr_mapped_file (forerun.h), which a signal handler may call.
 *
 * In: the bytes of each file while it is mapped, and its path. Out: the path of the file that contains an address.
 * Files are added and removed under a lock; the search takes no lock. */
#ifndef FR_FORMATS_MAPPED_FILES_H
#define FR_FORMATS_MAPPED_FILES_H

#include "forerun.h"

/* Adds a file to the list. `path` is not copied, and must stay valid until the file is removed. */
fr_status fr_mapped_files_enter(const uint8_t *bytes, size_t size, const char *path);

/* Removes a file from the list. Call it before the bytes are unmapped. Bytes that were never added are ignored. */
void fr_mapped_files_leave(const uint8_t *bytes);

#endif
