/* The families of targets there are: families.def.
 *
 * In: an architecture's name, of config.json or of GGUF, or files that have one. Out: its family; or two lines that say
 * that there is none, and which there are. */
#ifndef FR_SRC_ENGINE_FAMILIES_FAMILIES_H
#define FR_SRC_ENGINE_FAMILIES_FAMILIES_H

#include "formats/checkpoint.h"
#include "src/engine/families/family.h"

/* NULL: no family's. Of several with one name in GGUF the first; of files, the one that their keys tell. */
const fr_family *fr_family_named(const char *architecture);
const fr_family *fr_family_of(const fr_checkpoint *files);

/* What a family is called: in GGUF, or in config.json if it has no form there. */
const char *fr_family_word(const fr_family *family);

/* Fails. what: the model's name in words, where there is one. */
fr_status fr_family_refuse(const fr_checkpoint *files, const char *what);

#endif
