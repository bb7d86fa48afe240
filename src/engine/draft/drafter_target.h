/* Reads what the files of an EAGLE drafter or a block drafter say about its target, and checks it.
 *
 * In: a drafter's files, and the target that it is opened for. Out: FR_OK, or an error line with the drafter's value
 * and the target's. */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFTER_TARGET_H
#define FR_SRC_ENGINE_DRAFT_DRAFTER_TARGET_H

#include "src/engine/model/model.h"

/* The target that a drafter was made for, with the keys from which its width and its number of ids were read. */
typedef struct fr_drafter_target {
    const char *architecture; /* NULL: the drafter's files don't say it */
    const char *width_key, *vocab_key;
    size_t width, vocab;
    const fr_aux_layers *aux_layers;
} fr_drafter_target;

/* Reads the name of the target's architecture, which the speculators library writes as the verifier's; NULL:
 * config.json doesn't give it. Also refuses a name of the drafter's own architecture that is no word. */
fr_status fr_drafter_read_architecture(const json_t *config, const char *where, const char **architecture);

/* Checks that a number of the drafter equals the target's. */
fr_status fr_drafter_check_number(const fr_weights *weights, const char *what, size_t own, size_t targets);

/* Checks that the drafter was made for this target. */
fr_status fr_drafter_check_target(const fr_drafter_target *wanted, const fr_weights *weights, const fr_model *target);

/* Binds the array that gives the target's id for each of the drafter's `count` ids. No id of the target may occur
 * twice. Folders store the difference of the two ids, GGUF stores the target's id itself. */
fr_status fr_drafter_bind_ids(fr_weights *weights, const char *prefix, const char *name, size_t count, size_t vocab,
                              const int32_t **ids);

#endif
