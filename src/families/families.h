/* The families of targets there are: families.def.
 *
 * In: an architecture's name, of config.json or of GGUF. Out: its family; or two lines that say that there is none, and
 * which there are. */
#ifndef FR_SRC_FAMILIES_H
#define FR_SRC_FAMILIES_H

#include "formats/checkpoint.h"
#include "src/families/family.h"

/* NULL: no family's. */
const fr_family *fr_family_of(const char *architecture);

/* Fails. what: the model's name in words, where there is one. */
fr_status fr_family_refuse(const fr_checkpoint *files, const char *what);

#endif
