/* Applies the rules of normalizers and pre-tokenizers (text_rules.h). */
#include "src/language/tokenizer/text_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/unicode_form.h"

static fr_status open_pattern(fr_ready_rule *rule, const fr_text_rule *json, const char *where) {
    if (json->characters != FR_CHARACTERS_OF_PATTERN) rule->pattern.characters = json->characters;
    if (!json->pattern.bytes) return FR_OK;
    return fr_text_pattern_open(&rule->pattern, json->pattern, json->regex, json->own, where);
}

static fr_status open_rule(fr_ready_rule *rule, const fr_text_rule *json, const char *where) {
    *rule = (fr_ready_rule){.kind = json->kind,
                            .behavior = json->behavior,
                            .invert = json->invert,
                            .first = json->first,
                            .left = json->left,
                            .right = json->right,
                            .length = json->length};
    char *copy = malloc(json->content.length + 1);
    rule->content = (fr_text){copy, json->content.length};
    if (!copy) return fr_fail_memory(where, json->content.length + 1);
    if (json->content.length > 0) memcpy(copy, json->content.bytes, json->content.length);
    copy[json->content.length] = 0;
    if (json->kind == FR_RULE_PRECOMPILED) return fr_charsmap_open(&rule->charsmap, rule->content, where);
    return open_pattern(rule, json, where);
}

fr_status fr_rules_open(fr_ready_rules *rules, const fr_text_rules *json, const char *where) {
    *rules = (fr_ready_rules){0};
    for (size_t i = 0; i < json->count; i++) FR_TRY(open_rule(&rules->items[rules->count++], &json->items[i], where));
    return FR_OK;
}

void fr_rules_close(fr_ready_rules *rules) {
    for (size_t i = 0; i < rules->count; i++) {
        fr_text_pattern_close(&rules->items[i].pattern);
        free((char *)rules->items[i].content.bytes);
    }
    *rules = (fr_ready_rules){0};
}

/* -------------------------------------------------------------------------------------------------------- rewriting */

fr_status fr_rules_rewrite(const fr_ready_rules *rules, bool begins, fr_text *text, size_t *first,
                           fr_rewrite_work *work, uint64_t *allowance) {
    for (size_t i = 0; i < rules->count && text->length > 0; i++) {
        if (rules->items[i].kind == FR_RULE_PREPEND && !begins) continue;
        fr_text_buffer *out = &work->texts[text->bytes == work->texts[0].bytes];
        out->length = 0;
        FR_TRY(fr_rule_rewrite(&rules->items[i], *text, first, allowance, out));
        *text = (fr_text){out->bytes, out->length};
    }
    return FR_OK;
}

void fr_rewrite_work_free(fr_rewrite_work *work) {
    fr_text_free(&work->texts[0]);
    fr_text_free(&work->texts[1]);
}

void fr_split_work_free(fr_split_work *work) {
    for (size_t i = 0; i < FR_TEXT_RULES_MAX; i++) fr_text_free(&work->pieces[i]);
}

/* -------------------------------------------------------------------------------------------------------- splitting */

/* Holds everything that the rules need while they split a text. */
typedef struct split_run {
    const fr_ready_rules *rules;
    fr_split_work *work;
    uint64_t *allowance;
    fr_piece_fn *piece;
    void *context;
} split_run;

/* The state of one rule on one text. The last piece is held back, because the rule may join it with the text that
 * follows. */
typedef struct splitting {
    const split_run *run;
    size_t level; /* index of the rule */
    fr_text text;
    size_t first;      /* number of bytes of `text` that belong to the first character of the tokenizer's input */
    size_t begin, end; /* the piece that is held back */
    /* started: a piece is held back; drop: that piece will not be passed on */
    bool started, drop;
    bool previous_matched; /* the stretch before the present stretch is a match */
} splitting;

static fr_status split_level(const split_run *run, size_t level, fr_text text, size_t first);

static fr_status flush(const splitting *state) {
    if (!state->started || state->drop || state->begin == state->end) return FR_OK;
    fr_text piece = {state->text.bytes + state->begin, state->end - state->begin};
    size_t first = state->first > state->begin ? state->first - state->begin : 0;
    return split_level(state->run, state->level + 1, piece, first < piece.length ? first : piece.length);
}

static bool joins(fr_split_behavior behavior, bool previous_matched, bool is_match) {
    switch (behavior) {
    case FR_SPLIT_MERGED_WITH_PREVIOUS: return !previous_matched && is_match;
    case FR_SPLIT_MERGED_WITH_NEXT: return previous_matched && !is_match;
    case FR_SPLIT_CONTIGUOUS: return previous_matched == is_match;
    default: return false;
    }
}

static fr_status split_stretch(void *context, size_t begin, size_t end, bool found) {
    splitting *state = context;
    const fr_ready_rule *rule = &state->run->rules->items[state->level];
    bool is_match = found != rule->invert;
    if (!state->started || !joins(rule->behavior, state->previous_matched, is_match)) {
        FR_TRY(flush(state));
        state->begin = begin;
        state->drop = rule->behavior == FR_SPLIT_REMOVED && is_match;
    }
    state->end = end;
    state->started = true;
    state->previous_matched = is_match;
    return FR_OK;
}

/* Splits a text into pieces of `length` characters. A byte that is not UTF-8 counts as a character. */
static fr_status chunk(splitting *state, size_t length) {
    fr_text text = state->text;
    for (size_t at = 0; at < text.length; at = state->end) {
        state->begin = state->end = at;
        for (size_t i = 0; i < length && state->end < text.length; i++) {
            fr_character_bytes next = fr_first_character(text.bytes + state->end, text.length - state->end);
            state->end += next.there > 0 && next.there == next.whole ? next.whole : 1;
        }
        state->started = true;
        FR_TRY(flush(state));
    }
    return FR_OK;
}

static fr_status rewrite_piece(const split_run *run, size_t level, fr_text text, size_t first) {
    fr_text_buffer *out = &run->work->pieces[level];
    out->length = 0;
    FR_TRY(fr_rule_rewrite(&run->rules->items[level], text, &first, run->allowance, out));
    return out->length == 0 ? FR_OK : split_level(run, level + 1, (fr_text){out->bytes, out->length}, first);
}

static fr_status split_level(const split_run *run, size_t level, fr_text text, size_t first) {
    if (level == run->rules->count) return run->piece(run->context, text.bytes, text.length);
    const fr_ready_rule *rule = &run->rules->items[level];
    splitting state = {.run = run, .level = level, .text = text, .first = first};
    if (rule->kind == FR_RULE_CHUNK) return chunk(&state, rule->length);
    if (rule->kind != FR_RULE_SPLIT) return rewrite_piece(run, level, text, first);
    FR_TRY(fr_text_pattern_walk(&rule->pattern, text.bytes, text.length, run->allowance, split_stretch, &state));
    return flush(&state);
}

fr_status fr_rules_split(const fr_ready_rules *rules, fr_text text, size_t first, fr_split_work *work,
                         uint64_t *allowance, fr_piece_fn *piece, void *context) {
    split_run run = {rules, work, allowance, piece, context};
    return text.length == 0 ? FR_OK : split_level(&run, 0, text, first);
}
