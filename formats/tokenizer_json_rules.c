/* Reads the stages of a tokenizer.json that consist of rules: normalizer, pre_tokenizer and decoder.
 *
 * In: JSON objects {"type": ..., members}, and a "Sequence" of them. Out: the rules of each stage in one list without
 * sequences. Each rule is of one of the few kinds in tokenizer_source.h. A type that does several things becomes
 * several rules. If no rule can express a type or a setting, the error line names it. */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/unicode_form.h"
#include "formats/json_member.h"
#include "formats/pre_tokenizers.h"
#include "formats/tokenizer_json_parts.h"

/* Describes the stage that is being read. */
typedef struct stage {
    fr_tokenizer_source *source;
    const char *key, *sequence, *where;
    fr_text_rules *rules;
    const struct rule_type *types;
} stage;

typedef struct rule_type {
    const char *name;
    fr_rule_kind kind;                               /* the kind of the only rule, for a type without members */
    fr_status (*read)(stage *s, const json_t *json); /* adds the rules of a type with members; NULL for a type without
                                                      * members */
} rule_type;

static fr_text text_of(const char *string) {
    return (fr_text){string, strlen(string)};
}

static fr_status add_rule(stage *s, fr_text_rule rule) {
    if (s->rules->count == FR_TEXT_RULES_MAX)
        return fr_fail(FR_INPUT, "%s: more than %d rules in \"%s\"", s->where, FR_TEXT_RULES_MAX, s->key);
    s->rules->items[s->rules->count++] = rule;
    return FR_OK;
}

static fr_status add_kind(stage *s, fr_rule_kind kind) {
    return add_rule(s, (fr_text_rule){.kind = kind});
}

static fr_status add_split(stage *s, fr_character_class characters, fr_split_behavior behavior) {
    return add_rule(s, (fr_text_rule){.kind = FR_RULE_SPLIT, .characters = characters, .behavior = behavior});
}

/* ---------------------------------------------------------------------------------------------------------- members */

/* Reads a member that is one character. */
static fr_status read_character(stage *s, const json_t *json, const char *key, fr_text *text) {
    FR_TRY(fr_member_required_text(json, key, s->where, text));
    fr_character_bytes first = fr_first_character(text->bytes, text->length);
    bool one = text->length > 0 && first.there == first.whole && first.whole == text->length;
    return one ? FR_OK : fr_fail(FR_INPUT, "%s: \"%s\" is not one character", s->where, key);
}

/* Reads the pattern: {"String": text} or {"Regex": text}. */
static fr_status read_pattern(stage *s, const json_t *json, fr_text_rule *rule) {
    json_t *pattern;
    FR_TRY(fr_json_object(json, "pattern", s->where, &pattern));
    fr_text string, regex;
    FR_TRY(fr_member_text(pattern, "String", s->where, &string));
    FR_TRY(fr_member_text(pattern, "Regex", s->where, &regex));
    rule->regex = regex.bytes != NULL;
    rule->pattern = rule->regex ? regex : string;
    if (!string.bytes == !regex.bytes || rule->pattern.length == 0)
        return fr_fail(FR_INPUT, "%s: \"pattern\" is neither {\"String\": text} nor {\"Regex\": text}", s->where);
    return FR_OK;
}

static fr_status read_behavior(stage *s, const json_t *json, fr_split_behavior fallback, bool required,
                               fr_split_behavior *behavior) {
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    fr_text name;
    *behavior = fallback;
    FR_TRY((required ? fr_member_required_text : fr_member_text)(json, "behavior", s->where, &name));
    if (!name.bytes) return FR_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!fr_text_is(name, names[i])) continue;
        *behavior = (fr_split_behavior)i;
        return FR_OK;
    }
    return fr_fail(FR_INPUT, "%s: \"behavior\": \"%s\" is not known", s->where, name.bytes);
}

/* ------------------------------------------------------------------------------------------------------ normalizers */

static fr_status read_prepend(stage *s, const json_t *json) {
    fr_text_rule rule = {.kind = FR_RULE_PREPEND};
    FR_TRY(fr_member_required_text(json, "prepend", s->where, &rule.content));
    return add_rule(s, rule);
}

static fr_status read_replace(stage *s, const json_t *json) {
    fr_text_rule rule = {.kind = FR_RULE_REPLACE};
    FR_TRY(fr_member_required_text(json, "content", s->where, &rule.content));
    FR_TRY(read_pattern(s, json, &rule));
    return add_rule(s, rule);
}

static fr_status read_trim(stage *s, const json_t *json) {
    fr_text_rule rule = {.kind = FR_RULE_TRIM};
    FR_TRY(fr_json_bool(json, "strip_left", true, s->where, &rule.left));
    FR_TRY(fr_json_bool(json, "strip_right", true, s->where, &rule.right));
    return add_rule(s, rule);
}

static fr_status read_bert_normalizer(stage *s, const json_t *json) {
    bool cleans, spaces, lowers, strips;
    FR_TRY(fr_json_bool(json, "clean_text", true, s->where, &cleans));
    FR_TRY(fr_json_bool(json, "handle_chinese_chars", true, s->where, &spaces));
    FR_TRY(fr_json_bool(json, "lowercase", true, s->where, &lowers));
    FR_TRY(fr_json_bool(json, "strip_accents", lowers, s->where, &strips));
    if (cleans) FR_TRY(add_kind(s, FR_RULE_CLEAN));
    if (spaces) FR_TRY(add_kind(s, FR_RULE_SPACE_CHINESE));
    if (strips) FR_TRY(add_kind(s, FR_RULE_NFD));
    if (strips) FR_TRY(add_kind(s, FR_RULE_DROP_NONSPACING));
    return lowers ? add_kind(s, FR_RULE_LOWERCASE) : FR_OK;
}

/* Reads the map of characters; the source owns its bytes. */
static fr_status read_precompiled(stage *s, const json_t *json) {
    fr_text text;
    size_t size;
    FR_TRY(fr_member_required_text(json, "precompiled_charsmap", s->where, &text));
    if (s->source->charsmap) return fr_fail(FR_UNBUILT, "%s: a second \"Precompiled\" is not built", s->where);
    s->source->charsmap = malloc(text.length + 1);
    if (!s->source->charsmap) return fr_fail_memory(s->where, text.length);
    if (!fr_base64_decode(text, s->source->charsmap, &size))
        return fr_fail(FR_INPUT, "%s: \"precompiled_charsmap\" is no base64", s->where);
    return add_rule(s, (fr_text_rule){.kind = FR_RULE_PRECOMPILED, .content = {s->source->charsmap, size}});
}

static const rule_type normalizers[] = {
    {"NFC", FR_RULE_NFC, NULL},
    {"NFD", FR_RULE_NFD, NULL},
    {"NFKC", FR_RULE_NFKC, NULL},
    {"NFKD", FR_RULE_NFKD, NULL},
    {"Lowercase", FR_RULE_LOWERCASE, NULL},
    {"StripAccents", FR_RULE_DROP_MARKS, NULL},
    {"Nmt", FR_RULE_NMT, NULL},
    {"ByteLevel", FR_RULE_BYTE_CHARACTERS, NULL},
    {"Prepend", 0, read_prepend},
    {"Replace", 0, read_replace},
    {"Strip", 0, read_trim},
    {"BertNormalizer", 0, read_bert_normalizer},
    {"Precompiled", 0, read_precompiled},
    {NULL, 0, NULL},
};

/* --------------------------------------------------------------------------------------------------- pre-tokenizers */

static fr_status read_split(stage *s, const json_t *json) {
    fr_text_rule rule = {.kind = FR_RULE_SPLIT};
    FR_TRY(read_pattern(s, json, &rule));
    FR_TRY(fr_json_bool(json, "invert", false, s->where, &rule.invert));
    FR_TRY(read_behavior(s, json, FR_SPLIT_REMOVED, true, &rule.behavior));
    return add_rule(s, rule);
}

/* Splits texts at digits: into runs of digits, or into single digits. */
static fr_status read_digits(stage *s, const json_t *json) {
    bool each;
    FR_TRY(fr_json_bool(json, "individual_digits", false, s->where, &each));
    return add_split(s, FR_CHARACTERS_NUMBER, each ? FR_SPLIT_ISOLATED : FR_SPLIT_CONTIGUOUS);
}

static fr_status read_punctuation(stage *s, const json_t *json) {
    fr_split_behavior behavior;
    FR_TRY(read_behavior(s, json, FR_SPLIT_ISOLATED, false, &behavior));
    return add_split(s, FR_CHARACTERS_PUNCTUATION, behavior);
}

static fr_status read_whitespace_split(stage *s, const json_t *json) {
    (void)json;
    return add_split(s, FR_CHARACTERS_SPACE, FR_SPLIT_REMOVED);
}

/* Splits into runs of word characters and runs of other characters that are not white space. */
static fr_status read_whitespace(stage *s, const json_t *json) {
    FR_TRY(read_whitespace_split(s, json));
    return add_split(s, FR_CHARACTERS_WORD, FR_SPLIT_CONTIGUOUS);
}

static fr_status read_bert_pieces(stage *s, const json_t *json) {
    FR_TRY(read_whitespace_split(s, json));
    return add_split(s, FR_CHARACTERS_PUNCTUATION, FR_SPLIT_ISOLATED);
}

static fr_status read_delimiter(stage *s, const json_t *json) {
    fr_text_rule rule = {.kind = FR_RULE_SPLIT, .behavior = FR_SPLIT_REMOVED};
    FR_TRY(read_character(s, json, "delimiter", &rule.pattern));
    return add_rule(s, rule);
}

static fr_status read_fixed_length(stage *s, const json_t *json) {
    fr_text_rule rule = {.kind = FR_RULE_CHUNK};
    FR_TRY(fr_json_size(json, "length", 1, INT32_MAX, 5, s->where, &rule.length));
    return add_rule(s, rule);
}

typedef enum prepend_scheme { ALWAYS, FIRST, NEVER, SCHEMES } prepend_scheme;

static fr_status read_scheme(stage *s, const json_t *json, prepend_scheme *scheme) {
    static const char *const names[SCHEMES] = {"always", "first", "never"};
    fr_text name;
    bool adds;
    *scheme = ALWAYS;
    FR_TRY(fr_member_text(json, "prepend_scheme", s->where, &name));
    if (name.bytes)
        for (*scheme = 0; *scheme < SCHEMES && !fr_text_is(name, names[*scheme]);) ++*scheme;
    if (*scheme == SCHEMES)
        return fr_fail(FR_INPUT, "%s: \"prepend_scheme\": \"%s\" is not known", s->where, name.bytes);
    FR_TRY(fr_json_bool(json, "add_prefix_space", true, s->where, &adds)); /* older files have this key in place of
                                                                            * prepend_scheme */
    if (!adds && name.bytes && *scheme != NEVER)
        return fr_fail(FR_INPUT, "%s: add_prefix_space does not go with prepend_scheme", s->where);
    if (!adds) *scheme = NEVER;
    return FR_OK;
}

static fr_status read_metaspace(stage *s, const json_t *json) {
    fr_text mark;
    prepend_scheme scheme;
    bool splits;
    FR_TRY(read_character(s, json, "replacement", &mark));
    FR_TRY(read_scheme(s, json, &scheme));
    FR_TRY(fr_json_bool(json, "split", true, s->where, &splits));
    FR_TRY(add_rule(s, (fr_text_rule){.kind = FR_RULE_REPLACE, .pattern = text_of(" "), .content = mark}));
    if (scheme != NEVER)
        FR_TRY(add_rule(s, (fr_text_rule){.kind = FR_RULE_PREFIX, .content = mark, .first = scheme == FIRST}));
    if (!splits) return FR_OK;
    return add_rule(s, (fr_text_rule){.kind = FR_RULE_SPLIT, .pattern = mark, .behavior = FR_SPLIT_MERGED_WITH_NEXT});
}

static fr_status read_byte_level(stage *s, const json_t *json) {
    bool prefix, splits;
    FR_TRY(fr_json_bool(json, "add_prefix_space", true, s->where, &prefix));
    FR_TRY(fr_json_bool(json, "use_regex", true, s->where, &splits));
    if (prefix) FR_TRY(add_rule(s, (fr_text_rule){.kind = FR_RULE_PREFIX, .content = text_of(" ")}));
    if (splits)
        FR_TRY(add_rule(s, (fr_text_rule){.kind = FR_RULE_SPLIT,
                                          .regex = true,
                                          .pattern = text_of(fr_gpt2_pieces),
                                          .behavior = FR_SPLIT_ISOLATED}));
    return add_kind(s, FR_RULE_BYTE_CHARACTERS);
}

static const rule_type pre_tokenizers[] = {
    {"Split", 0, read_split},
    {"ByteLevel", 0, read_byte_level},
    {"Metaspace", 0, read_metaspace},
    {"Digits", 0, read_digits},
    {"Punctuation", 0, read_punctuation},
    {"Whitespace", 0, read_whitespace},
    {"WhitespaceSplit", 0, read_whitespace_split},
    {"BertPreTokenizer", 0, read_bert_pieces},
    {"CharDelimiterSplit", 0, read_delimiter},
    {"FixedLength", 0, read_fixed_length},
    {NULL, 0, NULL},
};

/* Sets byte_level, which makes BPE work on bytes, if the last rule turns bytes into characters and no other rule does.
 * The rule is then removed, because BPE on bytes does not need it. */
static void take_bytes(fr_tokenizer_source *source) {
    fr_text_rules *rules = &source->pre_tokenizer;
    bool last = rules->count > 0 && rules->items[rules->count - 1].kind == FR_RULE_BYTE_CHARACTERS;
    for (size_t i = 0; i + 1 < rules->count && last; i++) last = rules->items[i].kind != FR_RULE_BYTE_CHARACTERS;
    for (size_t i = 0; i < source->normalizer.count && last; i++)
        last = source->normalizer.items[i].kind != FR_RULE_BYTE_CHARACTERS;
    if (!last || source->model != FR_MODEL_BPE || source->byte_fallback) return;
    source->byte_level = true;
    rules->count--;
}

/* --------------------------------------------------------------------------------------------------------- decoders */

static fr_status read_strip(stage *s, const json_t *json) {
    fr_text_rule rule = {.kind = FR_RULE_STRIP};
    FR_TRY(read_character(s, json, "content", &rule.content));
    FR_TRY(fr_json_size(json, "start", 0, INT32_MAX, 0, s->where, &rule.start));
    FR_TRY(fr_json_size(json, "stop", 0, INT32_MAX, 0, s->where, &rule.stop));
    return add_rule(s, rule);
}

static fr_status read_metaspace_decoder(stage *s, const json_t *json) {
    fr_text_rule rule = {.kind = FR_RULE_METASPACE};
    prepend_scheme scheme;
    FR_TRY(read_character(s, json, "replacement", &rule.pattern));
    FR_TRY(read_scheme(s, json, &scheme));
    rule.first = scheme != NEVER;
    return add_rule(s, rule);
}

static fr_status read_word_piece(stage *s, const json_t *json) {
    static const char *const closer[][2] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},    {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    fr_text_rule rule = {.kind = FR_RULE_WORD_PIECE};
    bool cleans;
    FR_TRY(fr_member_required_text(json, "prefix", s->where, &rule.content));
    FR_TRY(fr_json_bool(json, "cleanup", true, s->where, &cleans));
    FR_TRY(add_rule(s, rule));
    for (size_t i = 0; i < sizeof closer / sizeof *closer && cleans; i++)
        FR_TRY(add_rule(s, (fr_text_rule){.kind = FR_RULE_REPLACE,
                                          .pattern = text_of(closer[i][0]),
                                          .content = text_of(closer[i][1])}));
    return FR_OK;
}

static fr_status read_word_ends(stage *s, const json_t *json) {
    fr_text_rule rule = {.kind = FR_RULE_WORD_ENDS};
    FR_TRY(fr_member_required_text(json, "suffix", s->where, &rule.pattern));
    if (rule.pattern.length == 0) return fr_fail(FR_UNBUILT, "%s: an empty \"suffix\" is not built", s->where);
    return add_rule(s, rule);
}

static const rule_type decoders[] = {
    {"ByteLevel", FR_RULE_BYTE_LEVEL, NULL},
    {"ByteFallback", FR_RULE_BYTE_FALLBACK, NULL},
    {"Fuse", FR_RULE_FUSE, NULL},
    {"Replace", 0, read_replace},
    {"Strip", 0, read_strip},
    {"Metaspace", 0, read_metaspace_decoder},
    {"WordPiece", 0, read_word_piece},
    {"BPEDecoder", 0, read_word_ends},
    {NULL, 0, NULL},
};

/* ----------------------------------------------------------------------------------------------------------- stages */

/* Reads one rule, or a sequence of them. The limit on the depth of JSON also limits this recursion. */
static fr_status read_rule(stage *s, const json_t *json) {
    fr_text name;
    if (!json_is_object(json)) return fr_fail(FR_INPUT, "%s: a \"%s\" is not an object", s->where, s->key);
    FR_TRY(fr_member_required_text(json, "type", s->where, &name));
    for (const rule_type *type = s->types; type->name; type++)
        if (fr_text_is(name, type->name)) return type->read ? type->read(s, json) : add_kind(s, type->kind);
    if (!fr_text_is(name, "Sequence"))
        return fr_fail(FR_UNBUILT, "%s: %s \"%s\" is not built yet", s->where, s->key, name.bytes);
    json_t *sequence, *item;
    FR_TRY(fr_member_array(json, s->sequence, s->where, &sequence));
    if (!sequence) return fr_fail(FR_INPUT, "%s: \"%s\" is missing", s->where, s->sequence);
    size_t i;
    json_array_foreach (sequence, i, item) FR_TRY(read_rule(s, item));
    return FR_OK;
}

static fr_status read_stage(stage s) {
    const json_t *rule = json_object_get(s.source->root, s.key);
    return !rule || json_is_null(rule) ? FR_OK : read_rule(&s, rule);
}

fr_status fr_tokenizer_json_rules(fr_tokenizer_source *source) {
    const char *where = source->path;
    FR_TRY(read_stage((stage){source, "normalizer", "normalizers", where, &source->normalizer, normalizers}));
    FR_TRY(
        read_stage((stage){source, "pre_tokenizer", "pretokenizers", where, &source->pre_tokenizer, pre_tokenizers}));
    stage decoder = {source, "decoder", "decoders", where, &source->decoder, decoders};
    FR_TRY(read_stage(decoder));
    take_bytes(source);
    return json_is_object(json_object_get(source->root, "decoder")) ? FR_OK : add_kind(&decoder, FR_RULE_JOIN);
}
