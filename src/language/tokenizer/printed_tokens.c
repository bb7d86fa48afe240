/* Computes in advance the bytes that each token prints.
 *
 * In: a decoder's rules and a vocabulary. Out: the bytes of each token. A decoder rewrites each token by itself (▁ to a
 * space, <0xNN> to a byte) and then joins the results. Some decoders treat the first or the last token of a text
 * differently; then each token has several forms. After the joining, a decoder may have a Strip rule. It is applied
 * while the text is decoded (detokenizer.c). */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/language/tokenizer/byte_level.h"
#include "src/language/tokenizer/tokenizer_parts.h"

/* limit on the characters that are held back because a Strip rule may remove them at the end */
#define STOP_MAX 16

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Gives the byte of a text "<0xNN>"; -1: the text has another form. */
static int fallback_byte(fr_text text) {
    if (text.length != 6 || memcmp(text.bytes, "<0x", 3) != 0 || text.bytes[5] != '>') return -1;
    int high = hex_digit(text.bytes[3]), low = hex_digit(text.bytes[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

/* ------------------------------------------------------------------------------------------------------------ rules */

/* The objects of a decoder's rules, in the order of its stages: single tokens as text, single tokens as bytes, the
 * joined text, or the joined text after a Strip rule. */
typedef enum decoding { TOKENS, BYTES, FUSED, STRIPPED } decoding;

static fr_status fail_order(const fr_tokenizer_source *source) {
    return fr_fail(FR_UNBUILT, "%s: a decoder in this order is not built yet", source->path);
}

static fr_status read_strip(fr_printed_tokens *printed, const fr_tokenizer_source *source, const fr_text_rule *rule) {
    if (rule->stop > STOP_MAX)
        return fr_fail(FR_UNBUILT, "%s: a Strip of more than %d characters at the end is not built", source->path,
                       STOP_MAX);
    printed->strip = strndup(rule->content.bytes, rule->content.length);
    if (!printed->strip) return fr_fail_memory(source->path, rule->content.length);
    printed->strip_limit = rule->content.length > 0 ? rule->start : 0;
    printed->strip_stop = rule->content.length > 0 ? rule->stop : 0;
    return FR_OK;
}

/* Gives the stage that follows a rule. Refuses a rule that is not allowed in the present stage. */
static fr_status next_stage(const fr_tokenizer_source *source, const fr_text_rule *rule, decoding *stage) {
    bool fuses = rule->kind == FR_RULE_FUSE || rule->kind == FR_RULE_BYTE_LEVEL;
    decoding before = *stage;
    if (rule->kind == FR_RULE_BYTE_FALLBACK)
        *stage = BYTES;
    else if (fuses)
        *stage = FUSED;
    else if (before == FUSED && rule->kind == FR_RULE_STRIP)
        *stage = STRIPPED;
    else if (before >= FUSED)
        return fail_order(source);
    if (before == BYTES && rule->kind != FR_RULE_METASPACE && rule->kind != FR_RULE_FUSE) return fail_order(source);
    return before == STRIPPED || (before == FUSED && *stage == BYTES) ||
                   (before == FUSED && rule->kind == FR_RULE_BYTE_LEVEL)
               ? fail_order(source)
               : FR_OK;
}

/* Separates the decoder's rules. Rules for single tokens go to by_token, rules for the whole text to `printed`. */
static fr_status read_rules(fr_printed_tokens *printed, const fr_tokenizer_source *source, fr_text_rules *by_token) {
    decoding stage = TOKENS;
    by_token->count = 0;
    for (size_t i = 0; i < source->decoder.count; i++) {
        const fr_text_rule *rule = &source->decoder.items[i];
        FR_TRY(next_stage(source, rule, &stage));
        if (stage == STRIPPED)
            FR_TRY(read_strip(printed, source, rule));
        else if (rule->kind != FR_RULE_FUSE)
            by_token->items[by_token->count++] = *rule;
    }
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------- rules for one token */

typedef struct printing {
    const fr_vocabulary *vocabulary;
    /* the rules as the source has them; rules.items[i] was prepared from plain->items[i] */
    const fr_text_rules *plain;
    fr_ready_rules rules;
    const fr_ready_rules *normalizer;
    /* [vocabulary size] true for an added token whose text the normalizer rewrites before it is printed */
    const bool *normalized;
    fr_rewrite_work work, names;
    uint64_t allowance;
    fr_text_buffer all;
} printing;

static fr_text space_unless(bool gone) {
    return (fr_text){" ", gone ? 0 : 1};
}

static fr_text strip_ends(const fr_text_rule *rule, fr_text text) {
    size_t size = rule->content.length;
    if (size == 0) return text;
    for (size_t i = 0; i < rule->start && text.length >= size; i++, text.bytes += size, text.length -= size)
        if (memcmp(text.bytes, rule->content.bytes, size) != 0) break;
    for (size_t i = 0; i < rule->stop && text.length >= size; i++, text.length -= size)
        if (memcmp(text.bytes + text.length - size, rule->content.bytes, size) != 0) break;
    return text;
}

/* Removes the prefix of a token such as "##ing". Puts a space before any other token. */
static fr_text join_word(const fr_text_rule *rule, fr_text text, fr_text_buffer *out) {
    fr_text prefix = rule->content;
    if (rule->kind == FR_RULE_WORD_PIECE && text.length >= prefix.length &&
        memcmp(text.bytes, prefix.bytes, prefix.length) == 0)
        return (fr_text){text.bytes + prefix.length, text.length - prefix.length};
    fr_text_append(out, " ", 1);
    return text;
}

/* Appends the bytes of a token's characters (byte_level.h). If some character is not that of a byte, appends the
 * token's text unchanged. */
static fr_status read_bytes(fr_text text, fr_text_buffer *out) {
    size_t from = out->length, length;
    fr_text_append(out, text.bytes, text.length);
    FR_TRY(fr_text_check(out, "the decoder"));
    if (fr_byte_level_read(text, out->bytes + from, &length))
        out->length = from + length;
    else
        memcpy(out->bytes + from, text.bytes, text.length);
    return FR_OK;
}

/* Applies rule number i to a token's text. */
static fr_status print_by(printing *p, size_t i, fr_text text, unsigned form, fr_text_buffer *out) {
    const fr_text_rule *plain = &p->plain->items[i];
    fr_ready_rule rule = p->rules.items[i];
    bool first = form & FR_PRINT_FIRST, last = form & FR_PRINT_LAST;
    size_t ignored = 0;
    char byte;
    switch (rule.kind) {
    case FR_RULE_METASPACE:
    case FR_RULE_WORD_ENDS:
        rule.content = rule.kind == FR_RULE_METASPACE ? space_unless(plain->first && first) : space_unless(last);
        rule.kind = FR_RULE_REPLACE;
        return fr_rule_rewrite(&rule, text, &ignored, &p->allowance, out);
    case FR_RULE_REPLACE: return fr_rule_rewrite(&rule, text, &ignored, &p->allowance, out);
    case FR_RULE_BYTE_LEVEL: return read_bytes(text, out);
    case FR_RULE_STRIP: text = strip_ends(plain, text); break;
    case FR_RULE_BYTE_FALLBACK:
        byte = (char)fallback_byte(text);
        if (fallback_byte(text) >= 0) text = (fr_text){&byte, 1};
        break;
    default:
        if (!first) text = join_word(plain, text, out);
    }
    fr_text_append(out, text.bytes, text.length);
    return fr_text_check(out, "the decoder");
}

/* Gives the text to which the rules are applied: the token's own text, or its normalized form. */
static fr_status name_token(printing *p, size_t id, fr_text *text) {
    size_t ignored = 0;
    *text = (fr_text){p->vocabulary->tokens[id].text, p->vocabulary->tokens[id].length};
    if (!p->normalized[id]) return FR_OK;
    return fr_rules_rewrite(p->normalizer, true, text, &ignored, &p->names, &p->allowance);
}

static fr_status print_token(printing *p, size_t id, unsigned form, fr_printed_token *printed) {
    fr_text text;
    FR_TRY(name_token(p, id, &text));
    for (size_t i = 0; i < p->rules.count; i++) {
        fr_text_buffer *out = &p->work.texts[text.bytes == p->work.texts[0].bytes];
        out->length = 0;
        FR_TRY(print_by(p, i, text, form, out));
        text = (fr_text){out->bytes, out->length};
    }
    *printed = (fr_printed_token){(uint32_t)p->all.length, (uint32_t)text.length};
    fr_text_append(&p->all, text.bytes, text.length);
    return fr_text_check(&p->all, "the decoder");
}

/* ------------------------------------------------------------------------------------------------------- all tokens */

static fr_status print_form(printing *p, unsigned form, fr_printed_tokens *printed) {
    size_t size = p->vocabulary->size;
    fr_printed_token *tokens = calloc(size + 1, sizeof *tokens);
    printed->tokens[form] = printed->owned[form] = tokens;
    if (!tokens) return fr_fail_memory("tokens as they are printed", size * sizeof *tokens);
    for (size_t id = 0; id < size; id++) {
        if (!p->vocabulary->tokens[id].text) continue;
        FR_TRY(print_token(p, id, form, &tokens[id]));
        if (tokens[id].length > printed->longest) printed->longest = tokens[id].length;
    }
    return FR_OK;
}

/* Computes all forms of the tokens. If no rule makes a difference between two forms, they share one table. */
static fr_status print_forms(printing *p, fr_printed_tokens *printed) {
    unsigned differ = 0;
    for (size_t i = 0; i < p->plain->count; i++) {
        fr_rule_kind kind = p->plain->items[i].kind;
        if (kind == FR_RULE_METASPACE || kind == FR_RULE_WORD_PIECE || kind == FR_RULE_JOIN) differ |= FR_PRINT_FIRST;
        if (kind == FR_RULE_WORD_ENDS) differ |= FR_PRINT_LAST;
    }
    for (unsigned form = 0; form < FR_PRINT_FORMS; form++) {
        if ((form & differ) == form)
            FR_TRY(print_form(p, form, printed));
        else
            printed->tokens[form] = printed->tokens[form & differ];
    }
    return FR_OK;
}

static fr_status mark_normalized(printing *p, const fr_tokenizer_source *source) {
    bool *normalized = calloc(p->vocabulary->size + 1, sizeof *normalized);
    p->normalized = normalized;
    if (!normalized) return fr_fail_memory(source->path, p->vocabulary->size);
    for (size_t i = 0; i < source->added_count; i++) normalized[source->added[i].id] = source->added[i].normalized;
    return FR_OK;
}

fr_status fr_printed_tokens_open(fr_printed_tokens *printed, const fr_vocabulary *vocabulary,
                                 const fr_ready_rules *normalizer, const fr_tokenizer_source *source) {
    *printed = (fr_printed_tokens){0};
    fr_text_rules by_token;
    printing p = {.vocabulary = vocabulary, .plain = &by_token, .normalizer = normalizer};
    p.allowance = fr_text_pattern_allowance(vocabulary->size * 16 * FR_PRINT_FORMS);
    fr_status status = read_rules(printed, source, &by_token);
    if (status == FR_OK) status = fr_rules_open(&p.rules, &by_token, source->path);
    if (status == FR_OK) status = mark_normalized(&p, source);
    if (status == FR_OK) status = print_forms(&p, printed);
    fr_rules_close(&p.rules);
    fr_rewrite_work_free(&p.work);
    fr_rewrite_work_free(&p.names);
    free((bool *)p.normalized);
    printed->bytes = p.all.bytes;
    return status;
}

void fr_printed_tokens_close(fr_printed_tokens *printed) {
    for (unsigned form = 0; form < FR_PRINT_FORMS; form++) free(printed->owned[form]);
    free(printed->bytes);
    free(printed->strip);
    *printed = (fr_printed_tokens){0};
}

fr_text fr_printed_text(const fr_printed_tokens *printed, unsigned form, int32_t id) {
    fr_printed_token token = printed->tokens[form][id];
    return (fr_text){token.length ? printed->bytes + token.offset : "", token.length};
}

const char *fr_printed_bytes(const fr_printed_tokens *printed, int32_t id, size_t *length) {
    fr_text text = fr_printed_text(printed, 0, id);
    *length = text.length;
    return text.bytes;
}

bool fr_printed_as_byte(const fr_printed_tokens *printed, const fr_token *token, int32_t id) {
    return printed->tokens[0][id].length == 1 && fallback_byte((fr_text){token->text, token->length}) >= 0;
}

const char *fr_tokenizer_printed(const fr_tokenizer *tokenizer, int32_t id, size_t *length) {
    bool known = id >= 0 && (size_t)id < tokenizer->vocabulary.size && tokenizer->vocabulary.tokens[id].text;
    *length = 0;
    return known ? fr_printed_bytes(&tokenizer->printed, id, length) : "";
}
