/* Models and drafters that are known and not built: FR_UNBUILT, as against files that nobody can make sense of.
 *
 * In: a folder or a GGUF file. Out: FR_OK where its architecture is not one of them, else FR_UNBUILT. */
#ifndef FR_SRC_UNBUILT_H
#define FR_SRC_UNBUILT_H

#include "formats/checkpoint.h"

fr_status fr_check_built(const fr_checkpoint *files);

/* fr_checkpoint_open; a folder is refused by its config.json alone, before its weights are looked at. */
fr_status fr_open_files(fr_checkpoint *files, const char *path, bool use_mmap);

#endif
