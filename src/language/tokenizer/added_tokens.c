/* Finds added tokens in a text (added_tokens.h). */
#include "src/language/tokenizer/added_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/unicode_form.h"

/* ------------------------------------------------------------------------------------------------- building the set */

fr_status fr_added_tokens_add(fr_added_tokens *set, const fr_added_entry *entry, fr_text text, bool control,
                              const char *where) {
    if (text.length == 0 || text.length > FR_ADDED_LENGTH_MAX)
        return fr_fail(FR_INPUT, "%s: the added token %d has %zu bytes, not 1 to %d", where, entry->id, text.length,
                       FR_ADDED_LENGTH_MAX);
    if ((set->count & (set->count - 1)) == 0) { /* the list is full, because capacities are powers of two */
        size_t capacity = set->count ? 2 * set->count : 1;
        fr_added_token *items = realloc(set->items, capacity * sizeof *items);
        if (!items) return fr_fail_memory(where, capacity * sizeof *items);
        set->items = items;
    }
    char *copy = malloc(text.length + 1);
    if (!copy) return fr_fail_memory(where, text.length + 1);
    memcpy(copy, text.bytes, text.length);
    copy[text.length] = 0;
    set->items[set->count++] =
        (fr_added_token){copy, text.length, entry->id, entry->lstrip, entry->rstrip, entry->single_word, control};
    set->has_control |= control;
    return FR_OK;
}

static int compare(const void *a, const void *b) {
    const fr_added_token *left = a, *right = b;
    size_t common = left->length < right->length ? left->length : right->length;
    int order = memcmp(left->text, right->text, common);
    return order ? order : (left->length > right->length) - (left->length < right->length);
}

void fr_added_tokens_sort(fr_added_tokens *set) {
    if (set->count > 0) qsort(set->items, set->count, sizeof *set->items, compare);
    for (size_t i = 0; i < set->count; i++) set->first[(unsigned char)set->items[i].text[0] + 1] = i + 1;
    for (size_t b = 1; b < 257; b++)
        if (set->first[b] < set->first[b - 1]) set->first[b] = set->first[b - 1];
}

fr_status fr_added_tokens_seal(fr_added_tokens *set, const char *where) {
    fr_added_tokens_sort(set);
    for (size_t i = 1; i < set->count; i++)
        if (compare(&set->items[i - 1], &set->items[i]) == 0)
            return fr_fail(FR_INPUT, "%s: two added tokens are \"%.99s\"", where, set->items[i].text);
    return FR_OK;
}

void fr_added_tokens_close(fr_added_tokens *set) {
    for (size_t i = 0; i < set->count; i++) free(set->items[i].text);
    free(set->items);
    *set = (fr_added_tokens){0};
}

/* --------------------------------------------------------------------------------------------------------- matching */

/* Finds the first of items[low, high) whose byte number `depth` is at least `byte`. The texts of all these items are
 * longer than `depth`, and their first `depth` bytes are equal. */
static size_t lower_bound(const fr_added_token *items, size_t low, size_t high, size_t depth, unsigned byte) {
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((unsigned char)items[middle].text[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A search for tokens at the beginning of a text. It keeps the range of tokens in the sorted list that begin with the
 * bytes read so far. Each further byte makes that range smaller. If a token ends at the present byte, it is the first
 * of the range. */
typedef struct prefix_search {
    const fr_added_tokens *set;
    const unsigned char *text;
    size_t length, depth, low, high;
} prefix_search;

static prefix_search begin_search(const fr_added_tokens *set, const unsigned char *text, size_t length) {
    return (prefix_search){set, text, length, 0, set->first[text[0]], set->first[text[0] + 1]};
}

/* Gives the next token of the search, which is longer than the token before; NULL: there is none. */
static const fr_added_token *longer(prefix_search *search) {
    const fr_added_token *items = search->set->items;
    while (search->depth < search->length) {
        while (search->low < search->high && items[search->low].length == search->depth) search->low++;
        if (search->low == search->high) break;
        if (search->depth > 0) {
            unsigned byte = search->text[search->depth];
            search->high = lower_bound(items, search->low, search->high, search->depth, byte + 1u);
            search->low = lower_bound(items, search->low, search->high, search->depth, byte);
        }
        search->depth++;
        if (search->low < search->high && items[search->low].length == search->depth) return &items[search->low];
    }
    return NULL;
}

typedef enum wanted { ANY, ORDINARY } wanted;

/* Gives the longest token at the beginning of a text; NULL: there is none. */
static const fr_added_token *longest(const fr_added_tokens *set, const unsigned char *text, size_t length,
                                     wanted which) {
    const fr_added_token *best = NULL;
    prefix_search search = begin_search(set, text, length);
    for (const fr_added_token *token; (token = longer(&search));)
        if (which == ANY || !token->control) best = token;
    return best;
}

void fr_added_tokens_mentioned(const fr_added_tokens *set, const char *text, size_t length, fr_mention_fn *mention,
                               void *context) {
    for (size_t at = 0; at < length; at++) {
        prefix_search search = begin_search(set, (const unsigned char *)text + at, length - at);
        for (const fr_added_token *token; (token = longer(&search));) mention(context, token->id);
    }
}

static bool stands_alone(const unsigned char *bytes, size_t length, size_t begin, size_t end) {
    size_t n;
    const char *text = (const char *)bytes;
    int32_t before = fr_character_before(text, begin, &n), behind = fr_character_at(text, end, length, &n);
    return !(before >= 0 && fr_is_word(before)) && !(behind >= 0 && fr_is_word(behind));
}

/* ---------------------------------------------------------------------------------------------------------- walking */

/* A search for control tokens in the trusted runs of a text, from its beginning to its end. */
typedef struct claims {
    const fr_added_tokens *set;
    const unsigned char *text;
    fr_trust trust;
    size_t at;                   /* offset within the run */
    const fr_added_token *token; /* the token that was found; NULL: there are no more, and `begin` is the end of the
                                  * text */
    size_t begin;
    bool stands; /* false: the token must be a single word, but a word character is next to it, so it is skipped */
    bool none;   /* there are no control tokens to find */
} claims;

/* Finds the next control token in the run. Returns false if there are no more. */
static bool find_claim(claims *state) {
    const unsigned char *run = state->text + state->trust.begin;
    size_t length = state->trust.end - state->trust.begin;
    while (state->at < length) {
        size_t at = state->at;
        const fr_added_token *token = longest(state->set, run + at, length - at, ANY);
        state->at += token ? token->length : 1;
        if (!token || !token->control) continue;
        state->token = token;
        state->begin = state->trust.begin + at;
        state->stands = !token->single_word || stands_alone(run, length, at, at + token->length);
        return true;
    }
    return false;
}

static void next_claim(claims *state, size_t length) {
    if (!state->none) {
        do {
            if (find_claim(state)) return;
            state->at = 0;
        } while (fr_trust_next(&state->trust));
    }
    state->token = NULL;
    state->begin = length;
}

/* Walks over the text's tokens. A token with rstrip includes the white space after its text. After such a token, the
 * search continues at the end of the token's own text, and not after that white space, as in the reference
 * implementation. If a token is found within that white space, it is skipped. space_end stores the end of the white
 * space, so that the walk takes linear time. */
fr_status fr_added_tokens_walk(const fr_added_tokens *set, const char *text, size_t length, fr_trust trust,
                               fr_added_fn *stretch, void *context) {
    const unsigned char *bytes = (const unsigned char *)text;
    bool whole = fr_trust_seek(&trust, 0) && trust.begin == 0 && trust.end >= length;
    wanted which = whole ? ANY : ORDINARY; /* if all bytes are trusted, control tokens and other tokens are found in one
                                            * search */
    claims control = {.set = set, .text = bytes, .trust = trust, .none = whole || !set->has_control};
    size_t done = 0, space_end = 0;
    next_claim(&control, length);
    for (size_t at = 0; set->count > 0 && at < length;) {
        bool claimed = control.token && at == control.begin, stands = control.stands;
        const fr_added_token *token = claimed ? control.token : longest(set, bytes + at, control.begin - at, which);
        if (!token) {
            at++;
            continue;
        }
        size_t begin = at, end = at + token->length;
        at = end;
        if (claimed)
            next_claim(&control, length);
        else
            stands = !token->single_word || stands_alone(bytes, length, begin, end);
        if (!stands) continue;
        if (token->lstrip) begin = begin < done ? done : fr_skip_space_back(text, begin, done);
        if (token->rstrip) {
            if (end >= space_end) space_end = fr_skip_space(text, end, length);
            end = space_end;
        }
        if (begin >= end)
            continue; /* this token is white space that already belongs to an earlier token, so it is skipped */
        if (begin > done) FR_TRY(stretch(context, text + done, begin - done, -1));
        FR_TRY(stretch(context, text + begin, end - begin, token->id));
        done = end;
    }
    return length > done ? stretch(context, text + done, length - done, -1) : FR_OK;
}
