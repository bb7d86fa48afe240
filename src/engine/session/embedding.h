/* Turns a text into one row: its hidden rows pooled and scaled to length 1.
 *
 * In: a session, ids. Out: [hidden] values. The rows are summed in doubles in their order, and the squares in the
 * order of the values, so neither the chunks nor the number of threads change a bit. */
#ifndef FR_SRC_ENGINE_SESSION_EMBEDDING_H
#define FR_SRC_ENGINE_SESSION_EMBEDDING_H

#include "src/engine/session/state.h"

/* Computes the row by FR_POOLING_MEAN, _CLS or _LAST. */
fr_status fr_embedding_of(fr_session *session, const int32_t *ids, size_t count, fr_pooling pooling, float *values);

#endif
