/* Where weights will lie: what of them takes memory of the process's own, what stays in mapped files, and what that
 * means where memory doesn't hold it all.
 *
 * In: bound weights, how much memory there is. Out: bytes; a verdict. A file's pages come and go with what is read; the
 * process's own have to stay, so that more of them than there is memory is refused before the system ends somebody. */
#ifndef FR_SRC_RESIDENCE_H
#define FR_SRC_RESIDENCE_H

#include "src/decoder/layer_spec.h"
#include "src/decoder/weights.h"

typedef struct fr_residence {
    uint64_t own;     /* copies: packed, transposed, decoded to float32, or read because nothing is mapped */
    uint64_t mapped;  /* read from files as it lies */
    uint64_t every;   /* of both, what every token reads: all but experts and tables */
    uint64_t stays;   /* what must stay in memory: that, and what else is the process's own */
    uint64_t experts; /* of both, stacks of which a token chooses some; */
    uint64_t token;   /* so much of them */
} fr_residence;

/* Of weights that are bound. experts: the mixture's sizes, NULL: none. */
fr_residence fr_weights_residence(const fr_weights *weights, const fr_experts_spec *experts);

/* Whether `available` bytes hold all of it, a sixteenth left to what sessions take. */
bool fr_residence_fits(const fr_residence *residence, uint64_t available);

/* Adds a note to weights that don't fit: what is read again and again, and what every token reads. */
void fr_residence_note(const fr_residence *residence, fr_weights *weights, uint64_t available);

/* FR_MEMORY where they don't hold the process's own part; the line names both sizes, and what to do. */
fr_status fr_residence_check(const fr_residence *residence, const fr_weights *weights, uint64_t available);

#endif
