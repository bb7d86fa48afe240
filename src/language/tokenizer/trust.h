/* Which bytes of a text come from an author who may write control tokens: a chat template, not what people say in it.
 *
 * In: the spans of an fr_marked_text. Out: the runs of trusted bytes, from left to right, neighbouring spans joined. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_TRUST_H
#define FR_SRC_LANGUAGE_TOKENIZER_TRUST_H

#include "forerun.h"

/* Where the reading of the spans is; a copy reads them from there on again. */
typedef struct fr_trust {
    const fr_span *spans; /* in order, none overlaps the one before */
    size_t count;
    size_t next;       /* the first span that is not in the run yet */
    size_t begin, end; /* the run */
} fr_trust;

static inline fr_trust fr_trust_of(const fr_span *spans, size_t count) {
    return (fr_trust){.spans = spans, .count = count};
}

/* Moves on to the next run; false: there is none, and the run is empty. */
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

/* Moves on to the first run that ends behind `at`, so that it has `at` or begins behind it; false: none does. */
static inline bool fr_trust_seek(fr_trust *trust, size_t at) {
    while (trust->end <= at)
        if (!fr_trust_next(trust)) return false;
    return true;
}

#endif
