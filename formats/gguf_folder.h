/* Finds the only GGUF file of a folder.
 *
 * In: a path. Out: the path to open, which usually is the given path. If the given path is a folder with one GGUF file
 * and no published weights, the path to open is that file. If the model has several GGUF parts, the path to open is the
 * first part. */
#ifndef FR_FORMATS_GGUF_FOLDER_H
#define FR_FORMATS_GGUF_FOLDER_H

#include "forerun.h"

/* Gives the path to open, malloc'd, as *place. Fails with FR_INPUT if the folder has several GGUF files; the error line
 * names them. Vision towers and drafters count only if there is no other GGUF file. */
fr_status fr_gguf_folder_place(const char *path, char **place);

#endif
