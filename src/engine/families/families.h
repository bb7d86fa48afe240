/* The families of targets, which families.def lists.
 *
 * In: an architecture's name, from config.json or GGUF, or files that have one. Out: its family; or an error of two
 * lines: the family is unknown, and where the supported ones are listed. */
#ifndef FR_SRC_ENGINE_FAMILIES_FAMILIES_H
#define FR_SRC_ENGINE_FAMILIES_FAMILIES_H

#include "formats/checkpoint.h"
#include "src/engine/families/family.h"

/* fr_family_named finds the family of an architecture, the first one if several have the same name in GGUF.
 * fr_family_of finds the family of files; if several families have the same name, the keys decide. NULL if there is
 * none. */
const fr_family *fr_family_named(const char *architecture);
const fr_family *fr_family_of(const fr_checkpoint *files);

/* Gives a family's name in GGUF, or its name in config.json if it has no form in GGUF. */
const char *fr_family_word(const fr_family *family);

/* Fails, with the page that lists the supported families. what: the model's name in words; NULL if it is unknown. */
fr_status fr_family_refuse(const fr_checkpoint *files, const char *what);

/* Says in `text` more about an architecture that can't be run, for an error line. If the name or config.json shows it,
 * the text says what kind of model it is: one that drafts, draws, hears, sees or encodes. It also names the supported
 * architecture with the most similar name. The text is empty if there is nothing to say. */
void fr_family_hint(const fr_checkpoint *files, char *text, size_t size);

#endif
