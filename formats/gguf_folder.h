/* A folder that is no published one and has a GGUF file in it, as downloads leave it.
 *
 * In: a path. Out: the path of what is to be opened: that file, where it is the only one, of whatever number of parts;
 * otherwise the path itself. */
#ifndef FR_FORMATS_GGUF_FOLDER_H
#define FR_FORMATS_GGUF_FOLDER_H

#include "forerun.h"

/* *place: malloc'd. A folder with several is FR_INPUT, and the line names them. Vision towers and drafters count where
 * there is nothing else. */
fr_status fr_gguf_folder_place(const char *path, char **place);

#endif
