/* Reads which ids end a sequence and which are never drawn.
 *
 * In: an opened model's files and tokenizer. Out: the model's lists of these ids, or an error line. */
#ifndef FR_SRC_ENGINE_MODEL_ENDS_H
#define FR_SRC_ENGINE_MODEL_ENDS_H

#include "src/engine/model/model.h"

fr_status fr_model_read_ends(fr_model *model);

#endif
