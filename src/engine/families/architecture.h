/* Gives the architecture of a file, and recognizes drafters, and models and drafters that are known but not built
 * (FR_UNBUILT, unlike unknown files). The names of targets are in the families' own lists (family.h).
 *
 * In: a folder or a GGUF file. Out: a name; the kind of file. */
#ifndef FR_SRC_ENGINE_FAMILIES_ARCHITECTURE_H
#define FR_SRC_ENGINE_FAMILIES_ARCHITECTURE_H

#include "formats/checkpoint.h"

/* Gives the first architecture name in config.json; without one, the name that its model_type stands for
 * (model_types.def), or an unknown model_type itself; for GGUF, the metadata's; "" if there is none. */
const char *fr_checkpoint_architecture(const fr_checkpoint *files);

/* Gives the "model_type" of a config.json that names no architecture, or else that of its text_config; NULL: it names
 * one, or has no model_type. */
const char *fr_checkpoint_model_type(const fr_checkpoint *files);

/* Returns true if a name is one of a NULL-terminated list. */
bool fr_architecture_in(const char *const *names, const char *architecture);

/* Gives the names of drafters' architectures, NULL past the last. */
const char *fr_drafter_architecture(size_t index);

/* Returns true if the files are of a Gemma 4 assistant; of EAGLE-3; of EAGLE-1. EAGLE's drafters are published under a
 * target's architecture too, so their tensors are looked at. */
bool fr_is_assistant(const fr_checkpoint *files);
bool fr_is_eagle3(const fr_checkpoint *files);
bool fr_is_eagle(const fr_checkpoint *files);

/* Returns true for a folder of Gemma 4's 12B or its assistant, whose configurations have defaults of their own. */
bool fr_is_gemma4_unified(const fr_checkpoint *files);

/* Returns true for a file of a target's MTP layer alone, GGUF's mtp-*.gguf; the layers before it are in another
 * file. */
bool fr_is_mtp(const fr_checkpoint *files);

/* Returns true if the files are weights of some draft method. */
bool fr_is_drafter(const fr_checkpoint *files);

/* Fails if the architecture is known but not built yet. */
fr_status fr_check_built(const fr_checkpoint *files);

/* Opens files as fr_checkpoint_open does, but first refuses a folder by its config.json alone if that suffices. */
fr_status fr_open_files(fr_checkpoint *files, const char *path, bool use_mmap);

#endif
