/* A model's name, taken apart.
 *
 * In: what stands where a path could. Out: whether it is a name; its parts, of which none can lead out of a folder:
 * letters, digits, single points, hyphens and underscores, in a file's name slashes between. */
#ifndef FR_SRC_NAMED_MODEL_NAME_H
#define FR_SRC_NAMED_MODEL_NAME_H

#include "forerun.h"

#define FR_NAME_PART 128 /* bytes, a NUL among them */

typedef struct fr_model_name {
    bool ollama;
    char host[FR_NAME_PART];   /* ollama's: the registry */
    char org[FR_NAME_PART];    /* ORG, or ollama's namespace */
    char model[FR_NAME_PART];  /* NAME */
    char which[2 * FR_NAME_PART]; /* of its files: a type or a file's name, "" for none; ollama's tag */
} fr_model_name;

/* ORG/NAME, ORG/NAME:QUANT, ORG/NAME:FILE; ollama:NAME, ollama:NAME:TAG, ollama:HOST/NAMESPACE/NAME:TAG. */
bool fr_model_name_read(const char *text, fr_model_name *name);

/* A part as it may stand in a path. */
bool fr_model_name_part(const char *text, size_t length);

#endif
