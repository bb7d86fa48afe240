/* Penalizes repetitions: see dry.h. */
#include "src/engine/session/dry.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "kernels/double_math.h"

#define FLOAT_MAX_LOG 88.7228391 /* logarithm of the largest float32; base^exponent must not exceed it */

void fr_dry_set(fr_dry *d, const fr_sampler_settings *settings) {
    *d = (fr_dry){.multiplier = settings->dry_multiplier,
                  .base = settings->dry_base,
                  .allowed = (size_t)settings->dry_allowed_length};
    if (d->multiplier <= 0) return;
    d->last_n = d->room = settings->dry_penalty_last_n < 0 ? SIZE_MAX : (size_t)settings->dry_penalty_last_n;
    if (d->base > 1.000001) d->most = (uint32_t)(FLOAT_MAX_LOG / fr_log_double(d->base));
}

void fr_dry_layout(fr_dry *d, fr_arena *arena, size_t vocab) {
    if (!d->last_n) return;
    d->shared = fr_arena_take(arena, d->room, sizeof *d->shared);
    d->repeats = fr_arena_take(arena, vocab, sizeof *d->repeats);
}

/* ------------------------------------------------------------------------------------------------ sequence breakers */

static fr_status add_tail(fr_dry *d, int32_t id, const int32_t *ids, size_t length) {
    length = fr_smaller(length, FR_DRY_TAIL_MAX);
    for (uint32_t t = d->first[id]; t; t = d->tails[t - 1].next) {
        const fr_dry_tail *tail = &d->tails[t - 1];
        if (tail->length == length && (!length || memcmp(tail->ids, ids, length * sizeof *ids) == 0)) return FR_OK;
    }
    if (d->tail_count == d->capacity) {
        size_t capacity = 2 * d->capacity + 64;
        fr_dry_tail *tails = realloc(d->tails, capacity * sizeof *tails);
        if (!tails) return fr_fail_memory("DRY's sequence breakers", capacity * sizeof *tails);
        d->tails = tails;
        d->capacity = capacity;
    }
    fr_dry_tail *tail = &d->tails[d->tail_count++];
    *tail = (fr_dry_tail){.next = d->first[id], .length = (uint32_t)length};
    if (length) memcpy(tail->ids, ids, length * sizeof *ids);
    d->first[id] = (uint32_t)d->tail_count;
    return FR_OK;
}

/* A text that breaks sequences. ids[n]: the tokens of the text after its first n bytes; NULL until they are needed. */
typedef struct breaker {
    const fr_tokenizer *tokenizer;
    const char *text;
    size_t length;
    int32_t *ids[FR_BREAKER_SIZE_MAX];
    size_t counts[FR_BREAKER_SIZE_MAX];
} breaker;

/* Adds a tail for token `id`, which ends with the first `taken` bytes of the breaker's text. The tail is the tokens of
 * the text's other bytes. */
static fr_status begins(fr_dry *d, breaker *b, int32_t id, size_t taken) {
    if (!b->ids[taken])
        FR_TRY(fr_tokenize(b->tokenizer, b->text + taken, b->length - taken, false, false, &b->ids[taken],
                           &b->counts[taken]));
    return add_tail(d, id, b->ids[taken], b->counts[taken]);
}

static bool contains(const char *text, size_t length, const breaker *b) {
    for (size_t at = 0; at + b->length <= length; at++)
        if (text[at] == *b->text && memcmp(text + at, b->text, b->length) == 0) return true;
    return false;
}

static fr_status try_token(fr_dry *d, breaker *b, int32_t id) {
    size_t length;
    const char *text = fr_tokenizer_printed(b->tokenizer, id, &length);
    if (contains(text, length, b)) return add_tail(d, id, NULL, 0);
    for (size_t taken = fr_smaller(length, b->length - 1); taken > 0; taken--)
        if (memcmp(text + length - taken, b->text, taken) == 0) FR_TRY(begins(d, b, id, taken));
    return FR_OK;
}

static fr_status add_breaker(fr_dry *d, const fr_tokenizer *tokenizer, const char *text, size_t vocab) {
    breaker b = {.tokenizer = tokenizer, .text = text, .length = strlen(text)};
    size_t count = fr_smaller(fr_tokenizer_count(tokenizer), vocab);
    fr_status status = FR_OK;
    for (size_t id = 0; id < count && status == FR_OK; id++) status = try_token(d, &b, (int32_t)id);
    for (size_t i = 0; i < b.length; i++) free(b.ids[i]);
    return status;
}

fr_status fr_dry_open(fr_dry *d, const fr_options *options, const fr_tokenizer *tokenizer, size_t vocab) {
    static const fr_breakers usual = {.texts = {"\n", ":", "\"", "*"}, .count = 4};
    const fr_breakers *breakers = options->breakers.given ? &options->breakers : &usual;
    if (!d->last_n || !breakers->count) return FR_OK;
    if (!tokenizer && breakers->given)
        return fr_fail(FR_INPUT, "dry-sequence-breaker: the model has no tokenizer to find them by");
    if (!tokenizer) return FR_OK;
    d->first = calloc(vocab, sizeof *d->first);
    if (!d->first) return fr_fail_memory("DRY's sequence breakers", vocab * sizeof *d->first);
    for (size_t i = 0; i < breakers->count; i++) FR_TRY(add_breaker(d, tokenizer, breakers->texts[i], vocab));
    return FR_OK;
}

void fr_dry_close(fr_dry *d) {
    free(d->first);
    free(d->tails);
    d->first = NULL;
    d->tails = NULL;
}

/* ------------------------------------------------------------------------------------------------------ repetitions */

/* Gives the i-th token before the draw; 0 is the last one. */
static int32_t back(const fr_past *past, size_t i) {
    return i < past->drafted ? past->drafts[past->drafted - 1 - i] : past->ids[past->length - 1 - (i - past->drafted)];
}

/* Counts the tokens before the draw that DRY looks back over. */
static size_t reach(const fr_dry *d, const fr_past *past) {
    return fr_smaller(fr_smaller(past->length + past->drafted, d->last_n), d->room);
}

static bool ends_with(const fr_past *past, const fr_dry_tail *tail, size_t at) {
    if (tail->length > at) return false;
    for (size_t i = 0; i < tail->length; i++)
        if (tail->ids[i] != back(past, at - 1 - i)) return false;
    return true;
}

/* Counts how many of the last n tokens come after the last text that breaks sequences. */
static size_t unbroken(const fr_dry *d, const fr_past *past, size_t n) {
    for (size_t at = 0; d->first && at < n; at++) {
        size_t longest = 0;
        bool breaks = false;
        for (uint32_t t = d->first[back(past, at)]; t; t = d->tails[t - 1].next) {
            if (!ends_with(past, &d->tails[t - 1], at)) continue;
            longest = fr_larger(longest, d->tails[t - 1].length);
            breaks = true;
        }
        if (breaks) return at - longest;
    }
    return n;
}

/* Sets shared[k], for 0 < k < n: the length of the longest run of tokens that ends k tokens before the draw and equals
 * the last tokens before the draw. This is the Z algorithm, which takes linear time. Tokens are counted backwards from
 * the draw. At each step, tokens left .. right - 1 are known to equal tokens 0 .. right - left - 1. */
static void count_shared(fr_dry *d, const fr_past *past, size_t n) {
    size_t left = 0, right = 0;
    for (size_t k = 1; k < n; k++) {
        size_t length = k < right ? fr_smaller(right - k, d->shared[k - left]) : 0;
        while (k + length < n && back(past, length) == back(past, k + length)) length++;
        d->shared[k] = (uint32_t)length;
        if (k + length <= right) continue;
        left = k;
        right = k + length;
    }
}

void fr_dry_count(fr_dry *d, const fr_past *past) {
    size_t n = reach(d, past);
    if (n <= d->allowed) return;
    size_t most = unbroken(d, past, n);
    if (most < d->allowed) return;
    count_shared(d, past, n);
    for (size_t k = 1; k < n; k++) {
        size_t length = fr_smaller(d->shared[k], most);
        uint32_t *repeats = &d->repeats[back(past, k - 1)];
        if (length >= d->allowed && *repeats <= length) *repeats = (uint32_t)length + 1;
    }
}

void fr_dry_forget(fr_dry *d, const fr_past *past) {
    for (size_t i = 0, n = reach(d, past); i < n; i++) d->repeats[back(past, i)] = 0;
}

static bool breaks_alone(const fr_dry *d, int32_t id) {
    for (uint32_t t = d->first ? d->first[id] : 0; t; t = d->tails[t - 1].next)
        if (d->tails[t - 1].length == 0) return true;
    return false;
}

double fr_dry_penalty(const fr_dry *d, int32_t id) {
    if (d->repeats[id] == 0 || breaks_alone(d, id)) return 0;
    size_t exponent = d->repeats[id] - 1 - d->allowed;
    if (d->most && exponent > d->most) exponent = d->most;
    double power = 1, square = d->base;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1) power *= square;
        if (exponent > 1) square *= square;
    }
    return d->multiplier * power;
}
