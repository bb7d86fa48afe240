/* Reads how a model's makers combine (pool) its rows into the embedding of a text.
 *
 * In: an opened model's files. Out: the pooling that the files name, or FR_POOLING_NONE if they name none. If a file
 * cannot be read, an error line. */
#ifndef FR_SRC_ENGINE_MODEL_POOLING_H
#define FR_SRC_ENGINE_MODEL_POOLING_H

#include "src/engine/model/model.h"

fr_status fr_model_read_pooling(fr_model *model);

#endif
