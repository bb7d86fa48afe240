/* Converts ids to text, all at once or one by one.
 *
 * In: ids of an fr_tokenizer. Out: their bytes. The bytes of each token were computed when the tokenizer was opened
 * (printed_tokens.c). The decoder holds back characters whose last bytes are still missing. It also holds back bytes
 * that depend on whether another token follows. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/unicode_form.h"
#include "src/language/tokenizer/tokenizer_parts.h"

#define HELD_MAX 3 /* limit on the bytes of an incomplete character: a character of four bytes may lack its last byte */

struct fr_decoder {
    const fr_tokenizer *tokenizer;
    bool print_special;
    bool started; /* a token was fed */
    /* the token that was fed last; its last bytes are printed when it is known whether another token follows; -1:
     * none */
    int32_t newest;
    unsigned form;       /* the form of `newest` */
    size_t strips_left;  /* how many times the beginning of the text may still be stripped */
    size_t done, length; /* the last call gave bytes[0, done) to the caller; bytes[done, length) are held back */
    char bytes[];        /* room for the bytes that are held back and for two tokens of the greatest length */
};

/* ---------------------------------------------------------------------------------------------------------- decoder */

/* Gives the number of bytes for which room is needed: those that may be held back, those of the newest token, and those
 * of the token before it. */
static size_t room_of(const fr_tokenizer *tokenizer) {
    const fr_printed_tokens *printed = &tokenizer->printed;
    size_t stop = printed->strip ? printed->strip_stop * strlen(printed->strip) : 0;
    return HELD_MAX + stop + 2 * printed->longest;
}

fr_status fr_decoder_new(const fr_tokenizer *tokenizer, bool print_special, fr_decoder **decoder) {
    if (decoder) *decoder = NULL;
    if (!decoder) return fr_fail_null("fr_decoder_new", "a place for the decoder");
    if (!tokenizer) return fr_fail_no_tokenizer("fr_decoder_new");
    size_t size = sizeof **decoder + room_of(tokenizer) + 1;
    *decoder = malloc(size);
    if (!*decoder) return fr_fail_memory("a decoder", size);
    **decoder = (fr_decoder){.tokenizer = tokenizer, .print_special = print_special};
    fr_decoder_restart(*decoder);
    return FR_OK;
}

void fr_decoder_free(fr_decoder *decoder) {
    free(decoder);
}

size_t fr_decoder_longest(const fr_decoder *decoder) {
    return room_of(decoder->tokenizer);
}

void fr_decoder_restart(fr_decoder *decoder) {
    decoder->done = decoder->length = 0;
    decoder->started = false;
    decoder->newest = -1;
    decoder->strips_left = decoder->tokenizer->printed.strip_limit;
}

void fr_decoder_follow(fr_decoder *decoder) {
    if (!decoder) return;
    decoder->started = true;
    decoder->strips_left = 0;
}

void fr_decoder_become(fr_decoder *decoder, const fr_decoder *of) {
    memcpy(decoder, of, sizeof *of + fr_decoder_longest(of));
}

/* Gives the number of bytes at the end of a text that begin an incomplete character. */
static size_t unfinished(const char *text, size_t length) {
    for (size_t n = 1; n <= HELD_MAX && n <= length; n++) {
        fr_character_bytes character = fr_first_character(text + length - n, n);
        if (character.there > 0) return character.there == n && n < character.whole ? n : 0;
    }
    return 0;
}

static void strip(fr_decoder *decoder, const char **text, size_t *length) {
    const char *content = decoder->tokenizer->printed.strip;
    while (decoder->strips_left > 0 && *length > 0) {
        size_t size = strlen(content);
        if (*length < size || memcmp(*text, content, size) != 0) {
            decoder->strips_left = 0;
            return;
        }
        *text += size;
        *length -= size;
        decoder->strips_left--;
    }
}

/* Gives the number of bytes at the end of a text that a Strip rule would remove if no more text followed. */
static size_t strippable(const fr_printed_tokens *printed, const char *text, size_t length) {
    size_t size = printed->strip ? strlen(printed->strip) : 0, held = 0;
    for (size_t i = 0; i < printed->strip_stop && held + size <= length; i++, held += size)
        if (memcmp(text + length - held - size, printed->strip, size) != 0) break;
    return held;
}

/* Gives all bytes except the last `hold` to the caller. If a Strip rule may still remove some bytes before these, they
 * are held back, too. */
static void hand_out(fr_decoder *decoder, size_t hold, const char **text, size_t *length) {
    decoder->done = decoder->length - hold;
    decoder->done -= strippable(&decoder->tokenizer->printed, decoder->bytes, decoder->done);
    *text = decoder->bytes;
    *length = decoder->done;
    strip(decoder, text, length);
}

static void forget_done(fr_decoder *decoder) {
    decoder->length -= decoder->done;
    memmove(decoder->bytes, decoder->bytes + decoder->done, decoder->length);
    decoder->done = 0;
}

static void append(fr_decoder *decoder, fr_text text) {
    memcpy(decoder->bytes + decoder->length, text.bytes, text.length);
    decoder->length += text.length;
}

/* Gives the number of a token's bytes that can be printed at once, because they do not depend on whether the token is
 * the last one. */
static size_t settled(const fr_printed_tokens *printed, int32_t id, unsigned form) {
    fr_text inside = fr_printed_text(printed, form, id), last = fr_printed_text(printed, form | FR_PRINT_LAST, id);
    size_t most = inside.length < last.length ? inside.length : last.length, same = 0;
    while (same < most && inside.bytes[same] == last.bytes[same]) same++;
    return same;
}

static void print_begin(fr_decoder *decoder, int32_t id) {
    const fr_printed_tokens *printed = &decoder->tokenizer->printed;
    unsigned form = decoder->started ? 0 : FR_PRINT_FIRST;
    fr_text text = fr_printed_text(printed, form, id);
    decoder->started = true;
    if (printed->tokens[form] != printed->tokens[form | FR_PRINT_LAST]) {
        text.length = settled(printed, id, form);
        decoder->newest = id;
        decoder->form = form;
    }
    append(decoder, text);
}

/* Prints the rest of the newest token. It is called when it is known whether that token is the last one. */
static void print_end(fr_decoder *decoder, unsigned last) {
    const fr_printed_tokens *printed = &decoder->tokenizer->printed;
    if (decoder->newest < 0) return;
    size_t same = settled(printed, decoder->newest, decoder->form);
    fr_text text = fr_printed_text(printed, decoder->form | last, decoder->newest);
    append(decoder, (fr_text){text.bytes + same, text.length - same});
    decoder->newest = -1;
}

fr_status fr_decoder_feed(fr_decoder *decoder, int32_t id, const char **text, size_t *length) {
    if (!decoder || !text || !length) return fr_fail_null("fr_decoder_feed", "a decoder, a text and its length");
    const fr_tokenizer *tokenizer = decoder->tokenizer;
    *text = "";
    *length = 0;
    if (id < 0 || (size_t)id >= tokenizer->vocabulary.size || !tokenizer->vocabulary.tokens[id].text)
        return fr_fail(FR_INPUT, "%d is not the id of a token", id);
    if (tokenizer->vocabulary.tokens[id].special && !decoder->print_special) return FR_OK;
    forget_done(decoder);
    print_end(decoder, 0);
    print_begin(decoder, id);
    hand_out(decoder, unfinished(decoder->bytes, decoder->length), text, length);
    return FR_OK;
}

fr_status fr_decoder_finish(fr_decoder *decoder, const char **text, size_t *length) {
    if (!decoder || !text || !length) return fr_fail_null("fr_decoder_finish", "a decoder, a text and its length");
    forget_done(decoder);
    print_end(decoder, FR_PRINT_LAST);
    hand_out(decoder, 0, text, length);
    decoder->length = decoder->done;
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------ whole texts */

static fr_status print_all(fr_decoder *decoder, const int32_t *ids, size_t count, fr_text_buffer *out) {
    const char *text;
    size_t length;
    for (size_t i = 0; i < count; i++) {
        FR_TRY(fr_decoder_feed(decoder, ids[i], &text, &length));
        fr_text_append(out, text, length);
    }
    FR_TRY(fr_decoder_finish(decoder, &text, &length));
    fr_text_append(out, text, length);
    return FR_OK;
}

fr_status fr_detokenize(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count, char **text, size_t *length) {
    if (!text || !length || (count && !ids)) return fr_fail_null("fr_detokenize", "ids, a text and its length");
    *text = NULL;
    *length = 0;
    if (!tokenizer) return fr_fail_no_tokenizer("fr_detokenize");
    fr_decoder *decoder;
    FR_TRY(fr_decoder_new(tokenizer, true, &decoder));
    fr_text_buffer out = {0};
    fr_status status = print_all(decoder, ids, count, &out);
    if (status == FR_OK) status = fr_text_take(&out, "a text", text, length);
    fr_text_free(&out);
    fr_decoder_free(decoder);
    return status;
}
