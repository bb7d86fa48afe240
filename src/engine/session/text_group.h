/* Runs several texts side by side in the forwards of one engine, each text in a session of its own.
 *
 * In: sessions of one engine without a draft method, texts as ids. Out: calls of a sink with each text's hidden rows,
 * or with the logits after its last id. The texts end in their order. Many short texts fill a forward together, so the
 * weights are read once for all of them. A text's results do not depend on the other texts (batch.h). */
#ifndef FR_SRC_ENGINE_SESSION_TEXT_GROUP_H
#define FR_SRC_ENGINE_SESSION_TEXT_GROUP_H

#include "src/engine/session/state.h"

/* The most sessions of a group. A usual forward has 64 or 256 rows, and 32 texts of 8 tokens have 256 rows. */
enum { FR_TEXT_GROUP_MAX = 32 };

typedef struct fr_text_group {
    fr_session *sessions[FR_TEXT_GROUP_MAX];
    size_t count; /* number of sessions, and the most texts that are run at the same time; at least 1 */
} fr_text_group;

/* A text as ids, at least one. */
typedef struct fr_group_text {
    const int32_t *ids;
    size_t count;
} fr_group_text;

/* Gets `count` further rows of a text, [count, width]. If logits were asked for, this is the text's single row of
 * logits. Otherwise these are hidden rows, in their order, in one or more calls. A text gets all its rows before the
 * next text gets any. */
typedef fr_status fr_group_fn(void *context, size_t text, const float *rows, size_t count, size_t width);

/* Runs the texts. If logits is true, the sink gets logits, otherwise hidden rows. If a text fails, the texts before it
 * have been given to the sink, and the texts after it have not. Afterwards the sessions are empty. */
fr_status fr_text_group_run(const fr_text_group *group, const fr_group_text *texts, size_t count, bool logits,
                            fr_group_fn *sink, void *context);

#endif
