/* The families of targets, which families.def lists.
 *
 * In: an architecture's name, from config.json or GGUF, or files that have such a name. Out: the name's family, or an
 * error of two lines. The first line says that the family is unknown, and the second where the supported families are
 * listed. */
#ifndef FR_SRC_ENGINE_FAMILIES_FAMILIES_H
#define FR_SRC_ENGINE_FAMILIES_FAMILIES_H

#include "formats/checkpoint.h"
#include "src/engine/families/family.h"

/* fr_family_named finds the family of an architecture. If several families have this name in GGUF, it gives the first
 * one. fr_family_of finds the family of files. If several families have the same name, the file's keys decide. Both
 * give NULL if there is no such family. */
const fr_family *fr_family_named(const char *architecture);
const fr_family *fr_family_of(const fr_checkpoint *files);

/* Gives a family's name in GGUF, or its name in config.json if it has no form in GGUF. */
const char *fr_family_word(const fr_family *family);

/* Fails with an error that names the page of supported families. what: a description of the model; NULL if the model is
 * unknown. */
fr_status fr_family_refuse(const fr_checkpoint *files, const char *what);

/* Writes to `text` what is known about an architecture that can't be run, as an addition to an error line. The text
 * says what kind of model it is (one that drafts, draws, hears, sees or encodes), if the name or config.json shows
 * this. It also names the supported architecture with the most similar name. The text is empty if nothing is known. */
void fr_family_hint(const fr_checkpoint *files, char *text, size_t size);

#endif
