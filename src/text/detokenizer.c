/* Ids to text, whole or as they come.
 *
 * In: ids of an fr_tokenizer. Out: the bytes they stand for. A tokenizer.json's decoder rewrites each token on its own
 * (▁ to a space, <0xNN> to a byte) before it joins them, so that each token is printed once, when the tokenizer is
 * opened; what is left to do is to hold back characters whose last bytes are still to come. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/unicode_form.h"
#include "src/text/byte_level.h"
#include "src/text/tokenizer_parts.h"

typedef struct fr_printed_token {
    uint32_t offset, length;
} fr_printed_token;

struct fr_decoder {
    const fr_tokenizer *tokenizer;
    bool print_special;
    size_t strips_left;
    size_t done, length; /* bytes[0, done) was handed out by the last call, bytes[done, length) is held back */
    char bytes[];        /* room for a held back character and the longest token */
};

#define MAX_HELD 3 /* a character of four bytes without its last */

/* ------------------------------------------------------------------------------------------------------------- open */

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte of "<0xNN>", -1 for other texts. */
static int fallback_byte(fr_text text) {
    if (text.length != 6 || memcmp(text.bytes, "<0x", 3) != 0 || text.bytes[5] != '>') return -1;
    int high = hex_digit(text.bytes[3]), low = hex_digit(text.bytes[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

/* What a decoder is made of: replacements, then one ByteFallback, ByteLevel, Fuse, and Strip, each of which may be
 * missing. */
typedef struct token_decoder {
    fr_ready_rules replacements;
    bool byte_fallback, byte_level;
} token_decoder;

static fr_status read_rules(fr_printed_tokens *printed, const fr_tokenizer_source *source, token_decoder *decoder) {
    fr_text_rules replacements = {.count = 0};
    fr_rule_kind last = FR_RULE_REPLACE;
    for (size_t i = 0; i < source->decoder.count; i++) {
        const fr_text_rule *rule = &source->decoder.items[i];
        bool repeated = rule->kind == last && rule->kind != FR_RULE_REPLACE;
        bool unfused = rule->kind == FR_RULE_STRIP && last != FR_RULE_FUSE;
        if (rule->kind < last || repeated || unfused)
            return fr_fail(FR_UNBUILT, "%s: a decoder in this order is not built yet", source->path);
        last = rule->kind;
        if (rule->kind == FR_RULE_REPLACE) replacements.items[replacements.count++] = *rule;
        if (rule->kind == FR_RULE_BYTE_FALLBACK) decoder->byte_fallback = true;
        if (rule->kind == FR_RULE_BYTE_LEVEL) decoder->byte_level = true;
        if (rule->kind != FR_RULE_STRIP) continue;
        printed->strip = strdup(rule->content.bytes);
        printed->strip_limit = rule->content.length > 0 ? (size_t)rule->start : 0;
        if (!printed->strip) return fr_fail_memory(source->path, rule->content.length);
    }
    if (source->decoder.count == 0) return fr_fail(FR_INPUT, "%s: \"decoder\" is missing", source->path);
    return fr_rules_open(&decoder->replacements, &replacements, source->path);
}

static fr_status print_tokens(fr_printed_tokens *printed, const fr_vocabulary *vocabulary, const token_decoder *decoder,
                              fr_rewrite_work *work, fr_text_buffer *all) {
    uint64_t allowance = fr_text_pattern_allowance(vocabulary->size * 16);
    for (size_t id = 0; id < vocabulary->size; id++) {
        if (!vocabulary->tokens[id].text) continue;
        fr_text text = {vocabulary->tokens[id].text, vocabulary->tokens[id].length};
        FR_TRY(fr_rules_rewrite(&decoder->replacements, true, &text, work, &allowance));
        int byte = decoder->byte_fallback ? fallback_byte(text) : -1;
        char raw = (char)byte;
        if (byte >= 0) text = (fr_text){&raw, 1};
        size_t offset = all->length, length;
        fr_text_append(all, text.bytes, text.length);
        FR_TRY(fr_text_check(all, "the decoder"));
        if (decoder->byte_level && fr_byte_level_read(text, all->bytes + offset, &length)) {
            all->length = offset + length;
            text.length = length;
        }
        printed->tokens[id] = (fr_printed_token){(uint32_t)offset, (uint32_t)text.length};
        if (text.length > printed->longest) printed->longest = text.length;
    }
    return FR_OK;
}

fr_status fr_printed_tokens_open(fr_printed_tokens *printed, const fr_vocabulary *vocabulary,
                                 const fr_tokenizer_source *source) {
    *printed = (fr_printed_tokens){.tokens = calloc(vocabulary->size + 1, sizeof *printed->tokens)};
    if (!printed->tokens) return fr_fail_memory(source->path, vocabulary->size * sizeof *printed->tokens);
    token_decoder decoder = {0};
    fr_rewrite_work work = {0};
    fr_text_buffer all = {0};
    fr_status status = read_rules(printed, source, &decoder);
    if (status == FR_OK) status = print_tokens(printed, vocabulary, &decoder, &work, &all);
    fr_rules_close(&decoder.replacements);
    fr_rewrite_work_free(&work);
    printed->bytes = all.bytes;
    return status;
}

const char *fr_printed_bytes(const fr_printed_tokens *printed, int32_t id, size_t *length) {
    *length = printed->tokens[id].length;
    return *length ? printed->bytes + printed->tokens[id].offset : "";
}

bool fr_printed_as_byte(const fr_printed_tokens *printed, const fr_token *token, int32_t id) {
    return printed->tokens[id].length == 1 && fallback_byte((fr_text){token->text, token->length}) >= 0;
}

void fr_printed_tokens_close(fr_printed_tokens *printed) {
    free(printed->tokens);
    free(printed->bytes);
    free(printed->strip);
    *printed = (fr_printed_tokens){0};
}

const char *fr_tokenizer_printed(const fr_tokenizer *tokenizer, int32_t id, size_t *length) {
    bool known = id >= 0 && (size_t)id < tokenizer->vocabulary.size && tokenizer->vocabulary.tokens[id].text;
    *length = known ? tokenizer->printed.tokens[id].length : 0;
    return *length ? tokenizer->printed.bytes + tokenizer->printed.tokens[id].offset : "";
}

/* ---------------------------------------------------------------------------------------------------------- decoder */

fr_status fr_decoder_new(const fr_tokenizer *tokenizer, bool print_special, fr_decoder **decoder) {
    if (decoder) *decoder = NULL;
    if (!decoder) return fr_fail_null("fr_decoder_new", "a place for the decoder");
    if (!tokenizer) return fr_fail_no_tokenizer("fr_decoder_new");
    size_t size = sizeof **decoder + MAX_HELD + tokenizer->printed.longest + 1;
    *decoder = malloc(size);
    if (!*decoder) return fr_fail_memory("a decoder", size);
    **decoder = (fr_decoder){
        .tokenizer = tokenizer, .print_special = print_special, .strips_left = tokenizer->printed.strip_limit};
    return FR_OK;
}

void fr_decoder_free(fr_decoder *decoder) {
    free(decoder);
}

size_t fr_decoder_longest(const fr_decoder *decoder) {
    return MAX_HELD + decoder->tokenizer->printed.longest;
}

void fr_decoder_restart(fr_decoder *decoder) {
    decoder->done = decoder->length = 0;
    decoder->strips_left = decoder->tokenizer->printed.strip_limit;
}

void fr_decoder_become(fr_decoder *decoder, const fr_decoder *of) {
    memcpy(decoder, of, sizeof *of + fr_decoder_longest(of));
}

/* How many bytes at the end are the beginning of a character that further bytes could complete. */
static size_t unfinished(const char *text, size_t length) {
    for (size_t n = 1; n <= MAX_HELD && n <= length; n++) {
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

/* Hands out all but the last `hold` bytes. */
static void hand_out(fr_decoder *decoder, size_t hold, const char **text, size_t *length) {
    decoder->done = decoder->length - hold;
    *text = decoder->bytes;
    *length = decoder->done;
    strip(decoder, text, length);
}

static void forget_done(fr_decoder *decoder) {
    decoder->length -= decoder->done;
    memmove(decoder->bytes, decoder->bytes + decoder->done, decoder->length);
    decoder->done = 0;
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
    const fr_printed_token *token = &tokenizer->printed.tokens[id];
    if (token->length > 0)
        memcpy(decoder->bytes + decoder->length, tokenizer->printed.bytes + token->offset, token->length);
    decoder->length += token->length;
    hand_out(decoder, unfinished(decoder->bytes, decoder->length), text, length);
    return FR_OK;
}

fr_status fr_decoder_finish(fr_decoder *decoder, const char **text, size_t *length) {
    if (!decoder || !text || !length) return fr_fail_null("fr_decoder_finish", "a decoder, a text and its length");
    forget_done(decoder);
    hand_out(decoder, 0, text, length);
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
