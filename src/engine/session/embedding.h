/* Turns a text into a row for fr_session_embed: pools the text's hidden rows and scales the result to length 1.
 * Embedders (src/engine/embed) add the other steps that a model's makers use.
 *
 * In: a session, ids. Out: [hidden] values. The rows are added up as doubles, in their order. The squares are added up
 * in the order of the values. So no bit depends on the chunks or on the number of threads. */
#ifndef FR_SRC_ENGINE_SESSION_EMBEDDING_H
#define FR_SRC_ENGINE_SESSION_EMBEDDING_H

#include "src/engine/session/state.h"

/* pooling: FR_POOLING_MEAN, FR_POOLING_CLS or FR_POOLING_LAST. */
fr_status fr_embedding_of(fr_session *session, const int32_t *ids, size_t count, fr_pooling pooling, float *values);

#endif
