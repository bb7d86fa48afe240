/* What architecture a file is of, and which are known: of drafters; of models and drafters that are not built
 * (FR_UNBUILT, as against files that nobody can make sense of). The targets' are in the families' own lists (model.h).
 *
 * In: a folder or a GGUF file. Out: a name; what is known of it. */
#ifndef FR_SRC_ENGINE_FAMILIES_ARCHITECTURE_H
#define FR_SRC_ENGINE_FAMILIES_ARCHITECTURE_H

#include "formats/checkpoint.h"

/* Gives the first architecture name in config.json; without one, the name that its model_type stands for
 * (model_types.def), or an unknown model_type itself; for GGUF, the metadata's; "" if there is none. */
const char *fr_checkpoint_architecture(const fr_checkpoint *files);

/* Gives the "model_type" of a config.json that names no architecture, or else that of its text_config; NULL: it names
 * one, or has no model_type. */
const char *fr_checkpoint_model_type(const fr_checkpoint *files);

/* Whether a name is one of a NULL-terminated list. */
bool fr_architecture_in(const char *const *names, const char *architecture);

/* The names of drafters, NULL past the last. */
const char *fr_drafter_architecture(size_t index);

/* Whether they are of a Gemma 4 assistant; of EAGLE-3; of EAGLE-1. EAGLE's drafters are published under a target's
 * architecture too: their tensors tell. */
bool fr_is_assistant(const fr_checkpoint *files);
bool fr_is_eagle3(const fr_checkpoint *files);
bool fr_is_eagle(const fr_checkpoint *files);

/* Whether they are a folder of Gemma 4's 12B or its assistant, whose configurations have defaults of their own. */
bool fr_is_gemma4_unified(const fr_checkpoint *files);

/* Whether they are of a target's MTP layer alone, behind layers that another file has: GGUF's mtp-*.gguf. */
bool fr_is_mtp(const fr_checkpoint *files);

/* Whether they are of some draft method's weights. */
bool fr_is_drafter(const fr_checkpoint *files);

/* Fails where the architecture is known and nothing is behind it yet. */
fr_status fr_check_built(const fr_checkpoint *files);

/* fr_checkpoint_open; a folder is refused by its config.json alone, before its weights are looked at. */
fr_status fr_open_files(fr_checkpoint *files, const char *path, bool use_mmap);

#endif
