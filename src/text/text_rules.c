/* Normalizer and pre-tokenizer rules: see text_rules.h. */
#include "src/text/text_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/unicode_form.h"

static fr_status open_rule(fr_ready_rule *rule, const fr_text_rule *json, const char *where) {
    *rule = (fr_ready_rule){.kind = json->kind, .behavior = json->behavior, .invert = json->invert};
    rule->content = strdup(json->content.bytes ? json->content.bytes : "");
    if (!rule->content) return fr_fail_memory(where, json->content.length + 1);
    return json->pattern.bytes ? fr_text_pattern_open(&rule->pattern, json->pattern, json->regex, where) : FR_OK;
}

fr_status fr_rules_open(fr_ready_rules *rules, const fr_text_rules *json, const char *where) {
    *rules = (fr_ready_rules){0};
    for (size_t i = 0; i < json->count; i++) FR_TRY(open_rule(&rules->items[rules->count++], &json->items[i], where));
    return FR_OK;
}

void fr_rules_close(fr_ready_rules *rules) {
    for (size_t i = 0; i < rules->count; i++) {
        fr_text_pattern_close(&rules->items[i].pattern);
        free(rules->items[i].content);
    }
    *rules = (fr_ready_rules){0};
}

/* -------------------------------------------------------------------------------------------------------- rewriting */

typedef struct replacing {
    const char *text, *content;
    size_t content_length;
    fr_text_buffer *out;
} replacing;

static fr_status replace_stretch(void *context, size_t begin, size_t end, bool is_match) {
    const replacing *state = context;
    if (is_match)
        fr_text_append(state->out, state->content, state->content_length);
    else
        fr_text_append(state->out, state->text + begin, end - begin);
    return state->out->status == FR_OK ? FR_OK : fr_text_check(state->out, "normalizer");
}

static fr_status rewrite(const fr_ready_rule *rule, fr_text text, uint64_t *allowance, fr_text_buffer *out) {
    bool compatible = rule->kind == FR_RULE_NFKC || rule->kind == FR_RULE_NFKD;
    switch (rule->kind) {
    case FR_RULE_REPLACE: {
        replacing state = {text.bytes, rule->content, strlen(rule->content), out};
        return fr_text_pattern_walk(&rule->pattern, text.bytes, text.length, allowance, replace_stretch, &state);
    }
    case FR_RULE_PREPEND:
        fr_text_append_string(out, rule->content);
        fr_text_append(out, text.bytes, text.length);
        break;
    default:
        fr_unicode_form(text.bytes, text.length, rule->kind == FR_RULE_NFC || rule->kind == FR_RULE_NFKC, compatible,
                        out);
    }
    return fr_text_check(out, "normalizer");
}

fr_status fr_rules_rewrite(const fr_ready_rules *rules, bool begins, fr_text *text, fr_rewrite_work *work,
                           uint64_t *allowance) {
    for (size_t i = 0; i < rules->count && text->length > 0; i++) {
        if (rules->items[i].kind == FR_RULE_PREPEND && !begins) continue;
        fr_text_buffer *out = &work->texts[text->bytes == work->texts[0].bytes];
        out->length = 0;
        FR_TRY(rewrite(&rules->items[i], *text, allowance, out));
        *text = (fr_text){out->bytes, out->length};
    }
    return FR_OK;
}

void fr_rewrite_work_free(fr_rewrite_work *work) {
    fr_text_free(&work->texts[0]);
    fr_text_free(&work->texts[1]);
}

/* -------------------------------------------------------------------------------------------------------- splitting */

/* One rule at work on one text. The last piece is held back, as the next stretch may join it. */
typedef struct splitting {
    const fr_ready_rules *rules;
    size_t level;
    const char *text;
    uint64_t *allowance;
    fr_piece_fn *piece;
    void *context;
    size_t begin, end;  /* the piece held back */
    bool started, drop; /* there is one; it is not handed on */
    bool previous_matched;
} splitting;

static fr_status split_level(const splitting *upper, size_t level, const char *text, size_t length);

static fr_status flush(const splitting *state) {
    if (!state->started || state->drop || state->begin == state->end) return FR_OK;
    return split_level(state, state->level + 1, state->text + state->begin, state->end - state->begin);
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
    const fr_ready_rule *rule = &state->rules->items[state->level];
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

static fr_status split_level(const splitting *upper, size_t level, const char *text, size_t length) {
    if (level == upper->rules->count) return upper->piece(upper->context, text, length);
    const fr_text_pattern *pattern = &upper->rules->items[level].pattern;
    splitting state = {upper->rules, level, text, upper->allowance, upper->piece, upper->context, 0, 0, 0, 0, 0};
    FR_TRY(fr_text_pattern_walk(pattern, text, length, state.allowance, split_stretch, &state));
    return flush(&state);
}

fr_status fr_rules_split(const fr_ready_rules *rules, const char *text, size_t length, uint64_t *allowance,
                         fr_piece_fn *piece, void *context) {
    splitting top = {.rules = rules, .allowance = allowance, .piece = piece, .context = context};
    return length == 0 ? FR_OK : split_level(&top, 0, text, length);
}
