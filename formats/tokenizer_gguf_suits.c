/* Finds the kind of a GGUF file's tokenizer that cuts texts as a source does (tokenizer_gguf.h).
 *
 * In: the rules of a tokenizer.json. Out: a row of the table of kinds whose rules are the same, even if they are
 * written differently. */
#include "formats/tokenizer_gguf.h"

#include <string.h>

static fr_text text_of(const char *string) {
    return (fr_text){string, strlen(string)};
}

/* Gives the next character of a regular expression. If the character is an escaped quote or line end, the function
 * gives the character itself. Other escapes keep their backslash. */
static int next_of_pattern(fr_text pattern, size_t *at) {
    unsigned char byte = (unsigned char)pattern.bytes[(*at)++];
    if (byte != '\\' || *at == pattern.length) return byte;
    unsigned char escaped = (unsigned char)pattern.bytes[(*at)++];
    return escaped == 'r' ? '\r' : escaped == 'n' ? '\n' : escaped == '"' ? '"' : '\\' << 8 | escaped;
}

/* Compares two patterns. Files write the same expression in several ways, so escapes are compared by the characters
 * that they mean. */
static bool same_pattern(const fr_text_rule *x, const fr_text_rule *y) {
    size_t a = 0, b = 0;
    if (!x->regex) return fr_text_same(x->pattern, y->pattern);
    while (a < x->pattern.length && b < y->pattern.length)
        if (next_of_pattern(x->pattern, &a) != next_of_pattern(y->pattern, &b)) return false;
    return a == x->pattern.length && b == y->pattern.length;
}

/* Gives the rule in its plain form: an expression that matches single digits is replaced by the class of characters
 * that "Digits" uses. */
static fr_text_rule plain(const fr_text_rule *rule) {
    fr_text_rule made = *rule;
    bool number = rule->regex && (fr_text_is(rule->pattern, "\\p{N}") || fr_text_is(rule->pattern, "\\p{N}{1}"));
    if (!number) return made;
    made.regex = false;
    made.pattern = (fr_text){0};
    made.characters = FR_CHARACTERS_NUMBER;
    return made;
}

static bool same_rule(fr_text_rule x, fr_text_rule y) {
    return x.kind == y.kind && x.regex == y.regex && x.characters == y.characters && x.behavior == y.behavior &&
           x.invert == y.invert && x.first == y.first && x.left == y.left && x.right == y.right &&
           x.length == y.length && fr_text_same(x.content, y.content) && same_pattern(&x, &y);
}

static bool same_rules(const fr_text_rules *a, const fr_text_rules *b) {
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++)
        if (!same_rule(plain(&a->items[i]), plain(&b->items[i]))) return false;
    return true;
}

static bool same_cut(const fr_pre_tokenizer *kind, const fr_tokenizer_source *source) {
    fr_tokenizer_source made = {0};
    fr_pre_tokenizer_apply(kind, &made);
    return made.model == source->model && made.byte_level == source->byte_level &&
           made.byte_fallback == source->byte_fallback && made.ignore_merges == source->ignore_merges &&
           same_rules(&made.normalizer, &source->normalizer) && same_rules(&made.pre_tokenizer, &source->pre_tokenizer);
}

const fr_pre_tokenizer *fr_tokenizer_gguf_suits(const fr_tokenizer_source *source, const char *model, const char *pre) {
    const fr_pre_tokenizer *kind = pre ? fr_pre_tokenizer_find(text_of(model), text_of(pre)) : NULL;
    if (kind && same_cut(kind, source)) return kind;
    for (size_t i = 0; (kind = fr_pre_tokenizer_at(i)); i++)
        if (fr_text_is(text_of(model), kind->model) && same_cut(kind, source)) return kind;
    return NULL;
}

bool fr_tokenizer_gguf_suits_unigram(const fr_tokenizer_source *source, bool *adds, bool *removes) {
    const fr_pre_tokenizer *kind = fr_pre_tokenizer_find(text_of("t5"), text_of("default"));
    const fr_text_rules *rules = &source->normalizer;
    const fr_text_rule *last = &rules->items[rules->count ? rules->count - 1 : 0];
    bool single = rules->count && last->kind == FR_RULE_REPLACE && last->regex && fr_text_is(last->pattern, " {2,}") &&
                  fr_text_is(last->content, " ");
    size_t others = rules->count - single;
    if (source->model != FR_MODEL_UNIGRAM || others > 1 || (others && rules->items[0].kind != FR_RULE_PRECOMPILED))
        return false;
    for (int settings = single ? 2 : 0; settings < 4; settings++) {
        fr_tokenizer_source made = {0};
        fr_pre_tokenizer_apply(kind, &made);
        *adds = settings & 1;
        *removes = settings & 2;
        fr_tokenizer_gguf_cut_unigram(&made.pre_tokenizer, *adds, *removes);
        if (same_rules(&made.pre_tokenizer, &source->pre_tokenizer)) return true;
    }
    return false;
}
