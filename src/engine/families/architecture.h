/* Gives the architecture of a file. Recognizes drafters. Recognizes models and drafters that are known but not
 * supported, and refuses them with FR_UNBUILT, unlike unknown files. The names of targets are in the families' own
 * lists (family.h).
 *
 * In: a folder or a GGUF file. Out: a name; the kind of file. */
#ifndef FR_SRC_ENGINE_FAMILIES_ARCHITECTURE_H
#define FR_SRC_ENGINE_FAMILIES_ARCHITECTURE_H

#include "formats/checkpoint.h"

/* Gives the first architecture name in config.json. If there is none, gives the name that the model_type stands for
 * (model_types.def), or the model_type itself if it is unknown. For GGUF, gives the name in the metadata. Gives "" if
 * there is none of these. */
const char *fr_checkpoint_architecture(const fr_checkpoint *files);

/* If config.json names no architecture, gives its "model_type", or else the model_type of its text_config. Gives NULL
 * if config.json names an architecture or has no model_type. */
const char *fr_checkpoint_model_type(const fr_checkpoint *files);

/* Returns true if the list has this name. NULL ends the list. */
bool fr_architecture_in(const char *const *names, const char *architecture);

/* Gives the names of drafters' architectures, and NULL past the last one. */
const char *fr_drafter_architecture(size_t index);

/* Return true if the files are a Gemma 4 assistant, an EAGLE-3 drafter or an EAGLE-1 drafter. EAGLE's drafters are also
 * published under the name of a target's architecture, so their tensors are checked. */
bool fr_is_assistant(const fr_checkpoint *files);
bool fr_is_eagle3(const fr_checkpoint *files);
bool fr_is_eagle(const fr_checkpoint *files);

/* Returns true if the files are of a block drafter: DFlash, DFlash2 or DSpark. */
bool fr_is_block_drafter(const fr_checkpoint *files);

/* Returns true for a folder of Gemma 4's 12B or of its assistant, whose configurations have different defaults. */
bool fr_is_gemma4_unified(const fr_checkpoint *files);

/* Returns true for a file that has only a target's MTP layer (in GGUF: mtp-*.gguf). The other layers are in another
 * file. */
bool fr_is_mtp(const fr_checkpoint *files);

/* Returns true if the files are a drafter of any draft method. */
bool fr_is_drafter(const fr_checkpoint *files);

/* Fails if the architecture is known but not supported yet. */
fr_status fr_check_built(const fr_checkpoint *files);

/* Opens files as fr_checkpoint_open does, but first refuses a folder if its config.json alone shows that it can't be
 * used. */
fr_status fr_open_files(fr_checkpoint *files, const char *path, bool use_mmap);

/* Opens a target's files as fr_open_files does. A drafter's folder is refused by its config.json, before its weights
 * are searched for. */
fr_status fr_open_model_files(fr_checkpoint *files, const char *path, bool use_mmap);

/* Fails if the files are a drafter's. The error line names the target for which the drafter was made, if config.json
 * names it. */
fr_status fr_refuse_drafter(const fr_checkpoint *files);

#endif
