/* Finds stop strings: see stops.h. */
#include "src/engine/session/stops.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"

#define NO_TOKEN "\xef\xbf\xbd" /* U+FFFD, for an id that is no token */

/* Returns true if the string begins at `at` in the text. If in_part is true, a text that ends before the string is
 * complete also matches. */
static bool begins(const char *string, const char *text, size_t length, size_t at, bool in_part) {
    size_t whole = strlen(string), rest = length - at, compared = in_part && rest < whole ? rest : whole;
    return compared <= rest && memcmp(text + at, string, compared) == 0;
}

size_t fr_stop_find(const char *const *strings, size_t count, const char *text, size_t length, size_t from,
                    int *which) {
    size_t held = length;
    int unasked;
    which = which ? which : &unasked;
    *which = -1;
    if (!strings || !text) return length;
    for (size_t at = from; at < length; at++)
        for (size_t i = 0; i < count; i++) {
            if (begins(strings[i], text, length, at, false)) {
                *which = (int)i;
                return at;
            }
            if (at < held && begins(strings[i], text, length, at, true)) held = at;
        }
    return held;
}

void fr_stops_close(fr_stops *s) {
    for (size_t i = 0; i < s->count; i++) free(s->strings[i]);
    free(s->strings);
    fr_decoder_free(s->decoder);
    fr_text_free(&s->held);
    *s = (fr_stops){.which = -1};
}

static fr_status copy(fr_stops *s, const char *const *strings, size_t count) {
    s->strings = calloc(count, sizeof *s->strings);
    if (!s->strings) return fr_fail_memory("stop strings", count * sizeof *s->strings);
    for (; s->count < count; s->count++) {
        s->strings[s->count] = strdup(strings[s->count]);
        if (!s->strings[s->count]) return fr_fail_memory("stop strings", strlen(strings[s->count]));
    }
    return fr_decoder_new(s->tokenizer, false, &s->decoder);
}

/* Reserves room for all but the last byte of the longest string, and for a token after it. */
static fr_status reserve(fr_stops *s) {
    size_t room = fr_decoder_longest(s->decoder) + sizeof NO_TOKEN, longest = 0;
    for (size_t i = 0; i < s->count; i++) longest = fr_larger(longest, strlen(s->strings[i]));
    for (room += longest; room; room--) fr_text_append(&s->held, "", 1);
    s->held.length = 0;
    return fr_text_check(&s->held, "stop strings");
}

fr_status fr_stops_set(fr_stops *s, const fr_tokenizer *tokenizer, const char *const *strings, size_t count) {
    fr_stops new = {.tokenizer = tokenizer, .which = -1};
    fr_status status = count ? copy(&new, strings, count) : FR_OK;
    if (status == FR_OK && count) status = reserve(&new);
    fr_stops_close(status == FR_OK ? s : &new);
    if (status == FR_OK) *s = new;
    return status;
}

fr_status fr_stops_copy(fr_stops *s, const fr_stops *of) {
    FR_TRY(fr_stops_set(s, of->tokenizer, (const char *const *)of->strings, of->count));
    if (of->decoder) fr_decoder_become(s->decoder, of->decoder);
    fr_text_append(&s->held, of->held.bytes, of->held.length);
    s->before = of->before;
    s->which = of->which;
    return FR_OK;
}

void fr_stops_begin(fr_stops *s) {
    if (s->decoder) fr_decoder_restart(s->decoder);
    s->held.length = s->before = 0;
    s->which = -1;
}

bool fr_stops_feed(fr_stops *s, int32_t id) {
    const char *text;
    size_t length;
    if (!s->decoder || s->which >= 0) return false;
    bool known = fr_decoder_feed(s->decoder, id, &text, &length) == FR_OK;
    if (!known) fr_decoder_finish(s->decoder, &text, &length);
    fr_text_append(&s->held, text, length);
    if (!known) fr_text_append_string(&s->held, NO_TOKEN);
    if (s->held.length == 0) return false;
    size_t at = fr_stop_find((const char *const *)s->strings, s->count, s->held.bytes, s->held.length, 0, &s->which);
    s->before += at;
    s->held.length -= at;
    memmove(s->held.bytes, s->held.bytes + at, s->held.length);
    return s->which >= 0;
}
