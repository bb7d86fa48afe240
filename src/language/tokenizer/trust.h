/* Finds the bytes of a text in which control tokens may be found: those of a chat template, and not those of messages.
 *
 * In: the spans of an fr_marked_text. Out: the runs of trusted bytes, from left to right. Spans that touch are joined
 * to one run. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_TRUST_H
#define FR_SRC_LANGUAGE_TOKENIZER_TRUST_H

#include "forerun.h"

/* A position among the runs of trusted bytes. It moves from run to run. A copy of it moves independently. */
typedef struct fr_trust {
    const fr_span *spans; /* in order, without overlaps */
    size_t count;
    size_t next;       /* index of the first span after the present run */
    size_t begin, end; /* the present run */
} fr_trust;

static inline fr_trust fr_trust_of(const fr_span *spans, size_t count) {
    return (fr_trust){.spans = spans, .count = count};
}

/* Moves to the next run. If there is no next run, the present run becomes empty, and the function returns false. */
static inline bool fr_trust_next(fr_trust *trust) {
    const fr_span *spans = trust->spans;
    while (trust->next < trust->count && spans[trust->next].begin == spans[trust->next].end) trust->next++;
    if (trust->next == trust->count) {
        trust->begin = trust->end;
        return false;
    }
    trust->begin = spans[trust->next].begin;
    do trust->end = spans[trust->next++].end;
    while (trust->next < trust->count && spans[trust->next].begin == trust->end);
    return true;
}

/* Moves to the first run that ends after `at`. That run contains `at` or begins after it. Returns false if there is no
 * such run. */
static inline bool fr_trust_seek(fr_trust *trust, size_t at) {
    while (trust->end <= at)
        if (!fr_trust_next(trust)) return false;
    return true;
}

#endif
