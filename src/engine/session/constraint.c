/* Applies a grammar to a session: see constraint.h. */
#include "src/engine/session/constraint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define FREE         UINT32_MAX /* the state after the end of a sequence, where every id is allowed */
#define FORCED_BYTES 128        /* the most bytes of forced text that are looked up */
/* If at most one id in this many is allowed, the allowed ids are listed as candidates. Otherwise the other ids are
 * masked in the row. */
#define FEW          8

fr_status fr_constraint_set(fr_constraint *c, fr_grammar *grammar, const fr_model *model, size_t vocab, size_t room) {
    fr_constraint set = {.grammar = grammar, .model = model, .begin = SIZE_MAX, .sweeps = SIZE_MAX};
    if (grammar) {
        size_t words = vocab / 64 + 1;
        set.states = malloc((room + 1) * sizeof *set.states);
        set.ids = malloc((room + 1) * sizeof *set.ids);
        set.allowed = malloc(words * sizeof *set.allowed);
        if (!set.states || !set.ids || !set.allowed) {
            fr_constraint_close(&set);
            return fr_fail_memory("a grammar's text", (room + 1) * (sizeof *set.states + sizeof *set.ids) + words * 8);
        }
    }
    fr_constraint_close(c);
    *c = set;
    return FR_OK;
}

void fr_constraint_close(fr_constraint *c) {
    free(c->states);
    free(c->ids);
    free(c->allowed);
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

/* The members states, known, first and sweeps of fr_constraint have the following meaning. states[i] is the grammar's
 * state after the first i ids of the text, for i from 0 to `known`. To make room, the grammar may drop states from its
 * table; this is called a sweep. After a sweep only states[first] and later ones are in the table. `sweeps` is the
 * grammar's number of sweeps when these members were last set. If the grammar's number differs, all of states may have
 * been dropped. */

/* Makes room in the grammar's table of states and keeps the last state, even if all others are dropped. */
static fr_status make_room(fr_constraint *c) {
    uint32_t *last = &c->states[c->known], kept = *last == FREE ? FR_STATE_DEAD : *last;
    FR_TRY(fr_grammar_make_room(c->grammar, &kept));
    if (c->sweeps == fr_grammar_sweeps(c->grammar)) return FR_OK;
    c->sweeps = fr_grammar_sweeps(c->grammar);
    c->first = c->known;
    if (*last != FREE) *last = kept;
    return FR_OK;
}

/* Finds the state after the ids and drafts of `past`. The states after some of the first ids are known already, so the
 * search begins after the last of these. */
static fr_status follow(fr_constraint *c, const fr_past *past, uint32_t *state) {
    size_t end = past->length + past->drafted, kept = 0;
    if (c->begin > past->length) c->begin = past->length;
    while (kept < c->known && c->begin + kept < end && c->ids[kept] == id_at(past, c->begin + kept)) kept++;
    if (c->sweeps != fr_grammar_sweeps(c->grammar) || kept < c->first) {
        c->known = c->first = kept = 0;
        FR_TRY(fr_grammar_begin(c->grammar, &c->states[0]));
        c->sweeps = fr_grammar_sweeps(c->grammar);
    }
    c->known = kept;
    FR_TRY(make_room(c));
    while (c->begin + c->known < end) {
        int32_t id = c->ids[c->known] = id_at(past, c->begin + c->known);
        FR_TRY(step(c, c->states[c->known], id, &c->states[c->known + 1]));
        c->known++;
        FR_TRY(make_room(c));
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

/* ------------------------------------------------------------------------------------------------------------ masks */

/* Fills c->allowed with the grammar's mask of a state over `vocab` ids. Ids that end a sequence are allowed if the
 * text may end there. */
static fr_status find_allowed(fr_constraint *c, uint32_t state, size_t vocab) {
    const uint64_t *bits;
    size_t words = (vocab + 63) / 64, known = (fr_grammar_tree(c->grammar)->vocab + 63) / 64;
    FR_TRY(fr_grammar_mask(c->grammar, state, &bits));
    if (known > words) known = words;
    memcpy(c->allowed, bits, known * sizeof *bits);
    memset(c->allowed + known, 0, (words - known) * sizeof *bits);
    if (vocab % 64) c->allowed[words - 1] &= (UINT64_C(1) << vocab % 64) - 1;
    bool may_end = fr_grammar_ends(c->grammar, state);
    for (size_t i = 0; i < c->model->eos_count; i++) {
        uint64_t *word = &c->allowed[c->model->eos[i] / 64], bit = UINT64_C(1) << c->model->eos[i] % 64;
        *word = may_end ? *word | bit : *word & ~bit;
    }
    return FR_OK;
}

/* Returns true if at most `most` bits are set. */
static bool are_few(const uint64_t *words, size_t count, size_t most) {
    size_t found = 0;
    for (size_t i = 0; i < count && found <= most; i++)
        if (words[i]) found += (size_t)__builtin_popcountll(words[i]);
    return found <= most;
}

/* Gathers the logits and ids of the allowed candidates and returns their number. `row` may lie in `logits`, because
 * each logit is read before its place is overwritten. */
static size_t gather(const uint64_t *words, size_t count, const float *row, float *logits, int32_t *ids) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        for (uint64_t rest = words[i]; rest; rest &= rest - 1) {
            size_t id = 64 * i + (size_t)__builtin_ctzll(rest);
            logits[kept] = row[id];
            ids[kept++] = (int32_t)id;
        }
    return kept;
}

/* Maps four bits of the grammar's mask to four masks of 32 bits, one for each of four logits. If a logit's bit is set,
 * all bits of the logit's 32-bit mask are set, otherwise none. */
static const uint32_t STAYS[16][4] = {
#define LANES(bits) \
    { -(bits & 1u), -(bits >> 1 & 1u), -(bits >> 2 & 1u), -(bits >> 3 & 1u) }
    LANES(0u), LANES(1u), LANES(2u),  LANES(3u),  LANES(4u),  LANES(5u),  LANES(6u),  LANES(7u),
    LANES(8u), LANES(9u), LANES(10u), LANES(11u), LANES(12u), LANES(13u), LANES(14u), LANES(15u),
#undef LANES
};

#define BITS_OF_NEVER 0xFF800000u /* -infinity */

/* Copies 64 logits. A logit whose bit in `word` is not set becomes -infinity. */
static void put_some(uint64_t word, const float *row, float *logits) {
    uint32_t lanes[64];
    memcpy(lanes, row, sizeof lanes);
    for (int i = 0; i < 64; i += 4, word >>= 4) {
        const uint32_t *stays = STAYS[word & 15];
        for (int j = 0; j < 4; j++) lanes[i + j] = (lanes[i + j] & stays[j]) | (BITS_OF_NEVER & ~stays[j]);
    }
    memcpy(logits, lanes, sizeof lanes);
}

static void put_row(const uint64_t *words, size_t vocab, const float *row, float *logits) {
    for (size_t i = 0; i < vocab / 64; i++, row += 64, logits += 64) {
        if (words[i] == UINT64_MAX)
            memmove(logits, row, 64 * sizeof *row);
        else if (words[i])
            put_some(words[i], row, logits);
        else
            for (int j = 0; j < 64; j++) logits[j] = -INFINITY;
    }
    for (size_t j = 0; j < vocab % 64; j++) logits[j] = words[vocab / 64] >> j & 1 ? row[j] : -INFINITY;
}

fr_status fr_constraint_mask(fr_constraint *c, const fr_past *past, fr_scores *scores, float *logits, int32_t *ids) {
    uint32_t state;
    const size_t vocab = scores->count, words = (vocab + 63) / 64;
    FR_TRY(follow(c, past, &state));
    if (state == FREE) return FR_OK;
    FR_TRY(find_allowed(c, state, vocab));
    if (ids && are_few(c->allowed, words, vocab / FEW)) {
        *scores = (fr_scores){logits, ids, gather(c->allowed, words, scores->logits, logits, ids), NULL};
        return FR_OK;
    }
    const int64_t *best = scores->best;
    if (best && *best >= 0 && !(c->allowed[*best / 64] >> *best % 64 & 1)) best = NULL;
    put_row(c->allowed, vocab, scores->logits, logits);
    *scores = (fr_scores){logits, NULL, vocab, best};
    return FR_OK;
}

/* ----------------------------------------------------------------------------------------------------------- drafts */

fr_status fr_constraint_cut(fr_constraint *c, const fr_past *past, size_t *allowed) {
    fr_past before = *past;
    bool allows = true;
    for (before.drafted = 0; allows && before.drafted < past->drafted; before.drafted += allows) {
        fr_status status = fr_constraint_allows(c, &before, past->drafts[before.drafted], &allows);
        /* FR_INPUT: it takes too much work to find the ids that may follow this draft, so the drafts after it are left
         * out. If the target itself reaches this position, the target's own row reports the failure */
        if (status == FR_INPUT) break;
        FR_TRY(status);
    }
    *allowed = before.drafted;
    return FR_OK;
}

/* Makes drafts of forced bytes. If the bytes begin with a token that the grammar names by its id, this token is the
 * only draft. Otherwise the text before the first such token is tokenized. The last token of this text may continue
 * past the forced bytes. So the last token is left out, unless it is the only one. */
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

/* Returns true if the bytes begin with a token that the grammar names by its id, but end before the id is complete. */
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
    fr_status status = fr_grammar_forced(c->grammar, state, bytes, sizeof bytes, &length);
    if (status == FR_INPUT)
        return FR_OK; /* FR_INPUT: finding the forced bytes takes too much work, so none are used
                                           * as drafts */
    FR_TRY(status);
    return length && !begins_short(bytes, length) ? take_ids(c, bytes, length, limit, drafts, count) : FR_OK;
}
