/* What the forerun command needs beyond forerun.h. No promise of stability. */
#ifndef FORERUN_LAB_H
#define FORERUN_LAB_H

#include "forerun.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes what a model or drafter folder is, and checks that it can be used: architecture, shapes, types, tokenizer,
 * memory a session would take. target: a folder to check a drafter against, or NULL. A folder that can't be used is
 * FR_INPUT with the reason in fr_last_error(). tensors: list every tensor too. */
fr_status fr_lab_inspect(const char *path, const char *target, const fr_options *options, bool tensors, FILE *out);

/* The instruction-set words, weakest first; NULL past the end. */
const char *fr_lab_isa_word(size_t index);

/* Whether this machine can run a word. */
bool fr_lab_isa_here(const char *word);

/* A drafter for tests and timing: proposes the ids of a known continuation, wrong at chosen depths.
 * ids: what the target is known to say after the first `start` tokens of the timeline (token at index i of the
 * timeline is ids[i]); copied. accept: a function of (round, depth from 0) that says whether this draft shall be
 * right. With a drafter, the drafter works as ever and its drafts are replaced, so a round costs what it costs. Call it
 * once, before the first prompt. */
typedef bool fr_lab_accept_fn(void *context, size_t round, size_t depth);
fr_status fr_lab_session_script(fr_session *session, const int32_t *ids, size_t count, fr_lab_accept_fn *accept,
                                void *context);

#ifdef __cplusplus
}
#endif
#endif
