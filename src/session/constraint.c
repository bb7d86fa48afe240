/* A grammar in a session: see constraint.h. */
#include "src/session/constraint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define FREE         UINT32_MAX /* the state behind the end of a sequence */
#define FORCED_BYTES 128        /* that are looked ahead */

fr_status fr_constraint_set(fr_constraint *c, fr_grammar *grammar, const fr_model *model, size_t room) {
    fr_constraint set = {.grammar = grammar, .model = model, .begin = SIZE_MAX, .sweeps = SIZE_MAX};
    if (grammar) {
        set.states = malloc((room + 1) * sizeof *set.states);
        set.ids = malloc((room + 1) * sizeof *set.ids);
        if (!set.states || !set.ids) {
            fr_constraint_close(&set);
            return fr_fail_memory("a grammar's text", (room + 1) * (sizeof *set.states + sizeof *set.ids));
        }
    }
    fr_constraint_close(c);
    *c = set;
    return FR_OK;
}

void fr_constraint_close(fr_constraint *c) {
    free(c->states);
    free(c->ids);
    *c = (fr_constraint){0};
}

void fr_constraint_begin_text(fr_constraint *c) {
    c->begin = SIZE_MAX;
}

void fr_constraint_begin_at(fr_constraint *c, size_t position) {
    c->begin = position;
    c->known = 0;
}

static int32_t id_at(const fr_past *past, size_t position) {
    return position < past->length ? past->ids[position] : past->drafts[position - past->length];
}

static fr_status step(fr_constraint *c, uint32_t state, int32_t id, uint32_t *next) {
    *next = FREE;
    if (state == FREE) return FR_OK;
    if (fr_model_is_eos(c->model, id)) {
        if (!fr_grammar_ends(c->grammar, state)) *next = FR_STATE_DEAD;
        return FR_OK;
    }
    return fr_grammar_step(c->grammar, state, id, next);
}

/* The state behind past's ids and drafts; of what is known, what is still so is not looked at again. */
static fr_status follow(fr_constraint *c, const fr_past *past, uint32_t *state) {
    size_t end = past->length + past->drafted, kept = 0;
    fr_grammar_make_room(c->grammar);
    if (c->sweeps != fr_grammar_sweeps(c->grammar)) {
        FR_TRY(fr_grammar_begin(c->grammar, &c->states[0]));
        c->sweeps = fr_grammar_sweeps(c->grammar);
        c->known = 0;
    }
    if (c->begin > past->length) c->begin = past->length;
    while (kept < c->known && c->begin + kept < end && c->ids[kept] == id_at(past, c->begin + kept)) kept++;
    for (c->known = kept; c->begin + c->known < end; c->known++) {
        int32_t id = c->ids[c->known] = id_at(past, c->begin + c->known);
        FR_TRY(step(c, c->states[c->known], id, &c->states[c->known + 1]));
    }
    *state = c->states[c->known];
    return FR_OK;
}

fr_status fr_constraint_allows(fr_constraint *c, const fr_past *past, int32_t id, bool *allows) {
    uint32_t state, next;
    FR_TRY(follow(c, past, &state));
    FR_TRY(step(c, state, id, &next));
    *allows = next != FR_STATE_DEAD;
    return FR_OK;
}

fr_status fr_constraint_mask(fr_constraint *c, const fr_past *past, float *logits, size_t vocab) {
    uint32_t state;
    const uint64_t *bits;
    float ends[FR_MAX_EOS];
    const fr_model *model = c->model;
    FR_TRY(follow(c, past, &state));
    if (state == FREE) return FR_OK;
    FR_TRY(fr_grammar_mask(c->grammar, state, &bits));
    size_t known = fr_grammar_tree(c->grammar)->vocab;
    for (size_t i = 0; i < model->eos_count; i++) ends[i] = logits[model->eos[i]];
    for (size_t id = 0; id < vocab; id++)
        if (id >= known || !(bits[id / 64] >> (id % 64) & 1)) logits[id] = -INFINITY;
    bool may_end = fr_grammar_ends(c->grammar, state);
    for (size_t i = 0; i < model->eos_count; i++) logits[model->eos[i]] = may_end ? ends[i] : -INFINITY;
    return FR_OK;
}

fr_status fr_constraint_cut(fr_constraint *c, const fr_past *past, size_t *allowed) {
    fr_past before = *past;
    bool allows = true;
    for (before.drafted = 0; allows && before.drafted < past->drafted; before.drafted += allows)
        FR_TRY(fr_constraint_allows(c, &before, past->drafts[before.drafted], &allows));
    *allowed = before.drafted;
    return FR_OK;
}

/* A token as itself, or the tokens of a text up to one. The last of those may go on behind what is forced: it is left
 * out, unless it is all there is. */
static fr_status take_ids(const fr_constraint *c, const char *bytes, size_t length, size_t limit, int32_t *drafts,
                          size_t *count) {
    int32_t *ids;
    size_t there;
    const char *sign = memchr(bytes, FR_TOKEN_SIGN, length);
    if (sign) length = (size_t)(sign - bytes);
    if (sign == bytes) {
        drafts[0] = fr_token_signed((const uint8_t *)bytes);
        *count = 1;
        return FR_OK;
    }
    FR_TRY(fr_tokenize(c->model->tokenizer, bytes, length, false, false, &ids, &there));
    size_t taken = there > 1 ? there - 1 : there;
    *count = taken < limit ? taken : limit;
    memcpy(drafts, ids, *count * sizeof *drafts);
    fr_free(ids);
    return FR_OK;
}

/* A token as itself of which not all bytes are there. */
static bool begins_short(const char *bytes, size_t length) {
    return (uint8_t)*bytes == FR_TOKEN_SIGN && length < FR_TOKEN_SIZE;
}

fr_status fr_constraint_forced(fr_constraint *c, const fr_past *past, size_t limit, int32_t *drafts, size_t *count) {
    char bytes[FORCED_BYTES];
    size_t length;
    uint32_t state;
    *count = 0;
    FR_TRY(follow(c, past, &state));
    if (state == FREE || limit == 0) return FR_OK;
    FR_TRY(fr_grammar_forced(c->grammar, state, bytes, sizeof bytes, &length));
    return length && !begins_short(bytes, length) ? take_ids(c, bytes, length, limit, drafts, count) : FR_OK;
}
