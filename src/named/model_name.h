/* Splits a model's name into its parts.
 *
 * In: a text that may be a name or a path. Out: whether it is a name, and its parts. No part can lead out of a folder:
 * it has only letters, digits, single dots, hyphens and underscores, and in a file's name also slashes. */
#ifndef FR_SRC_NAMED_MODEL_NAME_H
#define FR_SRC_NAMED_MODEL_NAME_H

#include "forerun.h"

#define FR_NAME_PART 128 /* bytes, including the NUL */

typedef struct fr_model_name {
    bool ollama;
    char host[FR_NAME_PART];      /* the registry, for ollama's names */
    char org[FR_NAME_PART];       /* ORG, or ollama's namespace */
    char model[FR_NAME_PART];     /* NAME */
    char which[2 * FR_NAME_PART]; /* the file, by its type or its name; "": the name chooses no file. In ollama's names,
                                   * the tag. */
} fr_model_name;

/* Reads ORG/NAME, ORG/NAME:TYPE, ORG/NAME:FILE; ollama:NAME, ollama:NAME:TAG, ollama:HOST/NAMESPACE/NAME:TAG. If the
 * text has none of these forms, returns false. */
bool fr_model_name_read(const char *text, fr_model_name *name);

/* True if a text may be a part of a path. */
bool fr_model_name_part(const char *text, size_t length);

#endif
