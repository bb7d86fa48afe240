/* Gives the architecture of a file. Recognizes drafters, and models and drafters that are known but not supported
 * (FR_UNBUILT, unlike unknown files). The names of targets are in the families' own lists (family.h).
 *
 * In: a folder or a GGUF file. Out: a name; the kind of file. */
#ifndef FR_SRC_ENGINE_FAMILIES_ARCHITECTURE_H
#define FR_SRC_ENGINE_FAMILIES_ARCHITECTURE_H

#include "formats/checkpoint.h"

/* Gives the first architecture name in config.json. Without one, gives the name that its model_type stands for
 * (model_types.def), or an unknown model_type itself. For GGUF, gives the metadata's name. "" if there is none. */
const char *fr_checkpoint_architecture(const fr_checkpoint *files);

/* For a config.json without an architecture name, gives its "model_type", or else that of its text_config. NULL if it
 * names an architecture, or has no model_type. */
const char *fr_checkpoint_model_type(const fr_checkpoint *files);

/* Returns true if a name is one of a NULL-terminated list. */
bool fr_architecture_in(const char *const *names, const char *architecture);

/* Gives the names of drafters' architectures, NULL past the last. */
const char *fr_drafter_architecture(size_t index);

/* Return true if the files are a Gemma 4 assistant, an EAGLE-3 drafter or an EAGLE-1 drafter. EAGLE's drafters are
 * also published under a target's architecture, so their tensors are checked. */
bool fr_is_assistant(const fr_checkpoint *files);
bool fr_is_eagle3(const fr_checkpoint *files);
bool fr_is_eagle(const fr_checkpoint *files);

/* Returns true if the files are of a block drafter: DFlash, DFlash2 or DSpark. */
bool fr_is_block_drafter(const fr_checkpoint *files);

/* Returns true for a folder of Gemma 4's 12B or of its assistant, whose configurations have different defaults. */
bool fr_is_gemma4_unified(const fr_checkpoint *files);

/* Returns true for a file that has only a target's MTP layer, GGUF's mtp-*.gguf; the layers before it are in another
 * file. */
bool fr_is_mtp(const fr_checkpoint *files);

/* Returns true if the files are weights for any draft method. */
bool fr_is_drafter(const fr_checkpoint *files);

/* Fails if the architecture is known but not supported yet. */
fr_status fr_check_built(const fr_checkpoint *files);

/* Opens files as fr_checkpoint_open does, but first refuses a folder if its config.json alone is reason enough. */
fr_status fr_open_files(fr_checkpoint *files, const char *path, bool use_mmap);

/* Opens a target's files as fr_open_files does. A folder of a drafter is refused by its config.json, before weights
 * are looked for. */
fr_status fr_open_model_files(fr_checkpoint *files, const char *path, bool use_mmap);

/* Fails if the files are a drafter's; the error line says which target it wants, if its config.json does. */
fr_status fr_refuse_drafter(const fr_checkpoint *files);

#endif
