/* The families of targets, which families.def lists.
 *
 * In: an architecture's name, of config.json or of GGUF, or files that have one. Out: its family; or an error of two
 * lines: there is none, and these can be run. */
#ifndef FR_SRC_ENGINE_FAMILIES_FAMILIES_H
#define FR_SRC_ENGINE_FAMILIES_FAMILIES_H

#include "formats/checkpoint.h"
#include "src/engine/families/family.h"

/* Finds the family of an architecture, the first if several have one name in GGUF; or of files, by their keys if
 * several have one name. NULL: there is none. */
const fr_family *fr_family_named(const char *architecture);
const fr_family *fr_family_of(const fr_checkpoint *files);

/* Gives a family's name in GGUF, or in config.json if it has no form in GGUF. */
const char *fr_family_word(const fr_family *family);

/* Fails, with the list of families that can be run. what: the model's name in words; NULL: it is unknown. */
fr_status fr_family_refuse(const fr_checkpoint *files, const char *what);

#endif
