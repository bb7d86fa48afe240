/* Splits a model's name into its parts.
 *
 * In: a text that may be a name or a path. Out: true if it is a name, and the name's parts. No part can lead out of a
 * folder, because it has only letters, digits, single dots, hyphens and underscores. A file's name may also have
 * slashes. */
#ifndef FR_SRC_NAMED_MODEL_NAME_H
#define FR_SRC_NAMED_MODEL_NAME_H

#include "forerun.h"

#define FR_NAME_PART 128 /* bytes, including the NUL */

typedef struct fr_model_name {
    bool ollama;
    char host[FR_NAME_PART];  /* the registry, for ollama's names */
    char org[FR_NAME_PART];   /* ORG, or ollama's namespace */
    char model[FR_NAME_PART]; /* NAME */
    /* the type or the name that chooses a file; "": the name chooses no file. In ollama's names, it is the tag. */
    char which[2 * FR_NAME_PART];
} fr_model_name;

/* Reads a name of one of these forms: ORG/NAME, ORG/NAME:TYPE, ORG/NAME:FILE, ollama:NAME, ollama:NAME:TAG,
 * ollama:HOST/NAMESPACE/NAME:TAG. Returns false if the text has none of them. */
bool fr_model_name_read(const char *text, fr_model_name *name);

/* Returns true if a text may be a part of a path. */
bool fr_model_name_part(const char *text, size_t length);

#endif
