/* Rotary positions as Llama's configurations have them, and as those of families do that aren't in rows yet. */
#ifndef FR_SRC_LLAMA_H
#define FR_SRC_LLAMA_H

#include "src/families/uniform.h"

/* Of JSON's, heads turn halves, of GGUF's pairs. usual_partial: the part of a head that turns where nothing says it. */
fr_status fr_llama_rope_from_json(fr_uniform_config *config, const json_t *root, double usual_partial,
                                  const char *where);
fr_status fr_llama_rope_from_gguf(fr_rope_spec *rope, fr_weights *weights);

#endif
