/* Finds the only GGUF file of a folder.
 *
 * In: a path. Out: the path to open: if it is a folder without published weights and with one GGUF file, in however
 * many parts, that file (the first part); otherwise the path itself. */
#ifndef FR_FORMATS_GGUF_FOLDER_H
#define FR_FORMATS_GGUF_FOLDER_H

#include "forerun.h"

/* Gives the path to open, malloc'd, as *place. A folder with several GGUF files is FR_INPUT, and the line names them.
 * Vision towers and drafters count only if there is no other GGUF file. */
fr_status fr_gguf_folder_place(const char *path, char **place);

#endif
