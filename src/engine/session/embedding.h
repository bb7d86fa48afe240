/* Turns texts into rows: a text's hidden rows pooled and scaled to length 1.
 *
 * In: a session, ids. Out: [hidden] values for each text. The rows are summed in doubles in their order, and the
 * squares in the order of the values. So no bit depends on the chunks, on the number of threads, or on the texts that
 * are run beside a text. */
#ifndef FR_SRC_ENGINE_SESSION_EMBEDDING_H
#define FR_SRC_ENGINE_SESSION_EMBEDDING_H

#include "src/engine/session/state.h"
#include "src/engine/session/text_group.h"

/* Computes the row of one text. pooling: FR_POOLING_MEAN, FR_POOLING_CLS or FR_POOLING_LAST. */
fr_status fr_embedding_of(fr_session *session, const int32_t *ids, size_t count, fr_pooling pooling, float *values);

/* Computes the rows of several texts, [count, hidden], side by side: in the session, and in copies of it that are
 * opened in the free places of its engine and closed afterwards. The session must have no draft method; it is empty
 * afterwards. *done gets the number of texts whose rows are computed, which is `count` unless the call fails. */
fr_status fr_embedding_of_texts(fr_session *session, const fr_group_text *texts, size_t count, fr_pooling pooling,
                                float *values, size_t *done);

#endif
