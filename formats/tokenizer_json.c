/* Reads tokenizer.json: see the header for its shape.
 *
 * In: JSON trees from formats/json.h. Out: lists whose texts point into these trees. */
#include "formats/tokenizer_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/checkpoint.h"
#include "formats/pre_tokenizers.h"
#include "formats/tokenizer_beside.h"

/* ---------------------------------------------------------------------------------------------------------- getters */

static fr_text text_of(const json_t *string) {
    return (fr_text){json_string_value(string), json_string_length(string)};
}

/* A member string; missing or null leaves bytes NULL. */
static fr_status read_text(const json_t *object, const char *key, const char *where, fr_text *text) {
    const char *bytes;
    FR_TRY(fr_json_text(object, key, where, &bytes));
    *text = bytes ? text_of(json_object_get(object, key)) : (fr_text){0};
    return FR_OK;
}

static fr_status read_required_text(const json_t *object, const char *key, const char *where, fr_text *text) {
    FR_TRY(read_text(object, key, where, text));
    return text->bytes ? FR_OK : fr_fail(FR_INPUT, "%s: \"%s\" is missing", where, key);
}

/* A member array; missing or null gives NULL. */
static fr_status read_array(const json_t *object, const char *key, const char *where, json_t **array) {
    *array = json_object_get(object, key);
    if (json_is_null(*array)) *array = NULL;
    if (*array && !json_is_array(*array)) return fr_fail(FR_INPUT, "%s: \"%s\" is not an array", where, key);
    return FR_OK;
}

static fr_status read_id(const json_t *object, const char *key, const char *where, int32_t *id) {
    int64_t value;
    FR_TRY(fr_json_int(object, key, 0, FR_MAX_TOKEN_ID, FR_JSON_REQUIRED, where, &value));
    *id = (int32_t)value;
    return FR_OK;
}

static fr_status fail_list(const fr_tokenizer_source *json, size_t count) {
    return fr_fail_memory(json->path, (count + 1) * sizeof(fr_merge_entry));
}

/* ------------------------------------------------------------------------------------------------------------ rules */

enum { NORMALIZER = 1, PRE_TOKENIZER = 2, DECODER = 4 };

typedef struct rule_stage {
    int bit;
    const char *key, *sequence;
} rule_stage;

static const rule_stage normalizer = {NORMALIZER, "normalizer", "normalizers"};
static const rule_stage pre_tokenizer = {PRE_TOKENIZER, "pre_tokenizer", "pretokenizers"};
static const rule_stage decoder = {DECODER, "decoder", "decoders"};

static const struct {
    const char *type;
    int stages;
    fr_rule_kind kind;
} rule_kinds[] = {
    {"NFC", NORMALIZER, FR_RULE_NFC},
    {"NFD", NORMALIZER, FR_RULE_NFD},
    {"NFKC", NORMALIZER, FR_RULE_NFKC},
    {"NFKD", NORMALIZER, FR_RULE_NFKD},
    {"Prepend", NORMALIZER, FR_RULE_PREPEND},
    {"Replace", NORMALIZER | DECODER, FR_RULE_REPLACE},
    {"Split", PRE_TOKENIZER, FR_RULE_SPLIT},
    {"Digits", PRE_TOKENIZER, FR_RULE_SPLIT},
    {"ByteFallback", DECODER, FR_RULE_BYTE_FALLBACK},
    {"Fuse", DECODER, FR_RULE_FUSE},
    {"Strip", DECODER, FR_RULE_STRIP},
    {"ByteLevel", DECODER, FR_RULE_BYTE_LEVEL},
};

/* {"String": text} or {"Regex": text}. */
static fr_status read_pattern(const json_t *json, const char *where, fr_text_rule *rule) {
    json_t *pattern;
    FR_TRY(fr_json_object(json, "pattern", where, &pattern));
    fr_text string, regex;
    FR_TRY(read_text(pattern, "String", where, &string));
    FR_TRY(read_text(pattern, "Regex", where, &regex));
    rule->regex = regex.bytes != NULL;
    rule->pattern = rule->regex ? regex : string;
    if (!string.bytes == !regex.bytes || rule->pattern.length == 0)
        return fr_fail(FR_INPUT, "%s: \"pattern\" is neither {\"String\": text} nor {\"Regex\": text}", where);
    return FR_OK;
}

static fr_status read_split(const json_t *json, const char *where, fr_text_rule *rule) {
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    FR_TRY(read_pattern(json, where, rule));
    FR_TRY(fr_json_bool(json, "invert", false, where, &rule->invert));
    fr_text behavior;
    FR_TRY(read_required_text(json, "behavior", where, &behavior));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!fr_text_is(behavior, names[i])) continue;
        rule->behavior = (fr_split_behavior)i;
        return FR_OK;
    }
    return fr_fail(FR_INPUT, "%s: \"behavior\": \"%s\" is not known", where, behavior.bytes);
}

static fr_status read_strip(const json_t *json, const char *where, fr_text_rule *rule) {
    int64_t stop;
    FR_TRY(read_required_text(json, "content", where, &rule->content));
    FR_TRY(fr_json_int(json, "start", 0, INT32_MAX, 0, where, &rule->start));
    return fr_json_int(json, "stop", 0, 0, 0, where, &stop); /* the end of a text that streams is not known */
}

/* Runs of digits by themselves, or each digit. */
static fr_status read_digits(const json_t *json, const char *where, fr_text_rule *rule) {
    bool each;
    FR_TRY(fr_json_bool(json, "individual_digits", false, where, &each));
    rule->pattern = (fr_text){"\\p{N}", 5};
    rule->regex = true;
    rule->behavior = each ? FR_SPLIT_ISOLATED : FR_SPLIT_CONTIGUOUS;
    return FR_OK;
}

static fr_status read_rule_members(const json_t *json, fr_text type, const char *where, fr_text_rule *rule) {
    switch (rule->kind) {
    case FR_RULE_PREPEND: return read_required_text(json, "prepend", where, &rule->content);
    case FR_RULE_REPLACE:
        FR_TRY(read_required_text(json, "content", where, &rule->content));
        return read_pattern(json, where, rule);
    case FR_RULE_SPLIT:
        return fr_text_is(type, "Digits") ? read_digits(json, where, rule) : read_split(json, where, rule);
    case FR_RULE_STRIP: return read_strip(json, where, rule);
    default: return FR_OK;
    }
}

/* Zeroes, at the end of the rules; NULL: there is no room. */
static fr_text_rule *new_rule(fr_text_rules *rules) {
    return rules->count < FR_MAX_TEXT_RULES ? &rules->items[rules->count++] : NULL;
}

static fr_status fail_rules(const rule_stage *stage, const char *where) {
    return fr_fail(FR_INPUT, "%s: more than %d rules in \"%s\"", where, FR_MAX_TEXT_RULES, stage->key);
}

static fr_status add_rule(const json_t *json, fr_text type, const rule_stage *stage, const char *where,
                          fr_text_rules *rules) {
    for (size_t i = 0; i < sizeof rule_kinds / sizeof *rule_kinds; i++) {
        if (!(rule_kinds[i].stages & stage->bit) || !fr_text_is(type, rule_kinds[i].type)) continue;
        fr_text_rule *rule = new_rule(rules);
        if (!rule) return fail_rules(stage, where);
        rule->kind = rule_kinds[i].kind;
        return read_rule_members(json, type, where, rule);
    }
    return fr_fail(FR_UNBUILT, "%s: %s \"%s\" is not built yet", where, stage->key, type.bytes);
}

/* The pre-tokenizer that makes bytes of the pieces: the last one, and nothing more. */
static fr_status read_byte_level(fr_tokenizer_source *json, const json_t *rule, fr_text_rules *rules) {
    bool prefix, splits;
    FR_TRY(fr_json_bool(rule, "add_prefix_space", true, json->path, &prefix));
    FR_TRY(fr_json_bool(rule, "use_regex", true, json->path, &splits));
    if (prefix)
        return fr_fail(FR_UNBUILT, "%s: pre_tokenizer \"ByteLevel\" with add_prefix_space is not built yet",
                       json->path);
    json->byte_level = true;
    if (!splits) return FR_OK;
    fr_text_rule *split = new_rule(rules);
    if (!split) return fail_rules(&pre_tokenizer, json->path);
    *split = (fr_text_rule){.kind = FR_RULE_SPLIT, .regex = true, .behavior = FR_SPLIT_ISOLATED};
    split->pattern = (fr_text){fr_gpt2_pieces, strlen(fr_gpt2_pieces)};
    return FR_OK;
}

/* One rule, or a sequence of them (its depth is the JSON's, which is limited). */
static fr_status read_rule(fr_tokenizer_source *source, const json_t *json, const rule_stage *stage,
                           fr_text_rules *rules) {
    const char *where = source->path;
    if (!json_is_object(json)) return fr_fail(FR_INPUT, "%s: a \"%s\" is not an object", where, stage->key);
    fr_text type;
    FR_TRY(read_required_text(json, "type", where, &type));
    if (stage == &pre_tokenizer && source->byte_level)
        return fr_fail(FR_UNBUILT, "%s: a pre_tokenizer behind \"ByteLevel\" is not built yet", where);
    if (stage == &pre_tokenizer && fr_text_is(type, "ByteLevel")) return read_byte_level(source, json, rules);
    if (!fr_text_is(type, "Sequence")) return add_rule(json, type, stage, where, rules);
    json_t *sequence, *item;
    FR_TRY(read_array(json, stage->sequence, where, &sequence));
    if (!sequence) return fr_fail(FR_INPUT, "%s: \"%s\" is missing", where, stage->sequence);
    size_t i;
    json_array_foreach(sequence, i, item) FR_TRY(read_rule(source, item, stage, rules));
    return FR_OK;
}

static fr_status read_stage(fr_tokenizer_source *json, const rule_stage *stage, fr_text_rules *rules) {
    const json_t *rule = json_object_get(json->root, stage->key);
    return !rule || json_is_null(rule) ? FR_OK : read_rule(json, rule, stage, rules);
}

/* --------------------------------------------------------------------------------------------------- post-processor */

static fr_status add_template_ids(const json_t *specials, fr_text name, const char *where, int32_t *ids,
                                  size_t *count) {
    json_t *special, *list, *item;
    FR_TRY(fr_json_object(specials, name.bytes, where, &special));
    FR_TRY(read_array(special, "ids", where, &list));
    if (!list) return fr_fail(FR_INPUT, "%s: the post-processor's \"%s\" has no \"ids\"", where, name.bytes);
    size_t i;
    json_array_foreach(list, i, item) {
        json_int_t id = json_is_integer(item) ? json_integer_value(item) : -1;
        if (id < 0 || id > FR_MAX_TOKEN_ID || *count == FR_MAX_TEMPLATE_IDS)
            return fr_fail(FR_INPUT, "%s: the post-processor's \"%s\" has bad or too many \"ids\"", where, name.bytes);
        ids[(*count)++] = (int32_t)id;
    }
    return FR_OK;
}

/* [special tokens..., the text, special tokens...] */
static fr_status read_template(fr_tokenizer_source *json, const json_t *single, const json_t *specials) {
    const char *where = json->path;
    bool text_seen = false;
    size_t i;
    json_t *item;
    json_array_foreach(single, i, item) {
        json_t *special, *sequence;
        fr_text name;
        FR_TRY(fr_json_object(item, "SpecialToken", where, &special));
        FR_TRY(fr_json_object(item, "Sequence", where, &sequence));
        if (!special == !sequence) return fr_fail(FR_INPUT, "%s: \"single\" has a piece of no known kind", where);
        FR_TRY(read_required_text(special ? special : sequence, "id", where, &name));
        if (special) {
            FR_TRY(add_template_ids(specials, name, where, text_seen ? json->suffix : json->prefix,
                                    text_seen ? &json->suffix_count : &json->prefix_count));
        } else if (text_seen || !fr_text_is(name, "A")) {
            return fr_fail(FR_INPUT, "%s: \"single\" is more than one text", where);
        }
        text_seen |= sequence != NULL;
    }
    return text_seen ? FR_OK : fr_fail(FR_INPUT, "%s: \"single\" leaves the text out", where);
}

/* ByteLevel changes where tokens begin in the text, not their ids. */
static fr_status read_processor(fr_tokenizer_source *json, const json_t *processor) {
    json_t *single, *specials, *sequence, *item;
    fr_text type;
    size_t i;
    FR_TRY(read_required_text(processor, "type", json->path, &type));
    if (fr_text_is(type, "ByteLevel")) return FR_OK;
    if (fr_text_is(type, "Sequence")) {
        FR_TRY(read_array(processor, "processors", json->path, &sequence));
        json_array_foreach(sequence, i, item) FR_TRY(read_processor(json, item));
        return FR_OK;
    }
    if (!fr_text_is(type, "TemplateProcessing"))
        return fr_fail(FR_UNBUILT, "%s: post_processor \"%s\" is not built yet", json->path, type.bytes);
    FR_TRY(read_array(processor, "single", json->path, &single));
    FR_TRY(fr_json_object(processor, "special_tokens", json->path, &specials));
    return read_template(json, single, specials);
}

static fr_status read_post_processor(fr_tokenizer_source *json) {
    json_t *processor;
    FR_TRY(fr_json_object(json->root, "post_processor", json->path, &processor));
    return processor ? read_processor(json, processor) : FR_OK;
}

/* ---------------------------------------------------------------------------------------------- model, added tokens */

static fr_status read_vocabulary(fr_tokenizer_source *json, json_t *vocabulary) {
    json->vocabulary = calloc(json_object_size(vocabulary) + 1, sizeof *json->vocabulary);
    if (!json->vocabulary) return fail_list(json, json_object_size(vocabulary));
    const char *key;
    json_t *value;
    json_object_foreach(vocabulary, key, value) {
        json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id > FR_MAX_TOKEN_ID)
            return fr_fail(FR_INPUT, "%s: the id of token \"%.99s\" is not a whole number from 0 to %d", json->path,
                           key, FR_MAX_TOKEN_ID);
        json->vocabulary[json->vocabulary_count++] = (fr_vocabulary_entry){{key, strlen(key)}, (int32_t)id};
    }
    return FR_OK;
}

/* ["a", "b"], or, in older files, "a b". */
static bool read_merge(const json_t *json, fr_merge_entry *merge) {
    if (json_is_array(json)) {
        const json_t *left = json_array_get(json, 0), *right = json_array_get(json, 1);
        *merge = (fr_merge_entry){text_of(left), text_of(right)};
        return json_array_size(json) == 2 && json_is_string(left) && json_is_string(right);
    }
    const char *text = json_string_value(json), *space = text ? strchr(text, ' ') : NULL;
    if (!space || strchr(space + 1, ' ')) return false;
    *merge = (fr_merge_entry){{text, (size_t)(space - text)}, {space + 1, strlen(space + 1)}};
    return true;
}

static fr_status read_merges(fr_tokenizer_source *json, const json_t *merges) {
    json->merges = calloc(json_array_size(merges) + 1, sizeof *json->merges);
    if (!json->merges) return fail_list(json, json_array_size(merges));
    size_t i;
    json_t *item;
    json_array_foreach(merges, i, item) {
        if (!read_merge(item, &json->merges[i]))
            return fr_fail(FR_INPUT, "%s: merge %zu is neither [\"a\", \"b\"] nor \"a b\"", json->path, i);
    }
    json->merge_count = json_array_size(merges);
    return FR_OK;
}

/* Settings that would change ids, and that no published tokenizer of this kind sets. */
static fr_status refuse_unbuilt(const json_t *model, const char *where) {
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (size_t i = 0; i < sizeof affixes / sizeof *affixes; i++) {
        fr_text affix;
        FR_TRY(read_text(model, affixes[i], where, &affix));
        if (affix.length > 0) return fr_fail(FR_UNBUILT, "%s: \"%s\" is not built yet", where, affixes[i]);
    }
    double dropout;
    return fr_json_real(model, "dropout", 0, 0, 0, where, &dropout);
}

static fr_status read_model(fr_tokenizer_source *json) {
    const char *where = json->path;
    json_t *model, *vocabulary, *merges;
    fr_text type;
    FR_TRY(fr_json_object(json->root, "model", where, &model));
    if (!model) return fr_fail(FR_INPUT, "%s: \"model\" is missing", where);
    FR_TRY(read_required_text(model, "type", where, &type));
    if (!fr_text_is(type, "BPE")) return fr_fail(FR_UNBUILT, "%s: model \"%s\" is not built yet", where, type.bytes);
    FR_TRY(refuse_unbuilt(model, where));
    FR_TRY(read_text(model, "unk_token", where, &json->unknown));
    FR_TRY(fr_json_bool(model, "fuse_unk", false, where, &json->fuse_unknown));
    FR_TRY(fr_json_bool(model, "byte_fallback", false, where, &json->byte_fallback));
    FR_TRY(fr_json_bool(model, "ignore_merges", false, where, &json->ignore_merges));
    FR_TRY(fr_json_object(model, "vocab", where, &vocabulary));
    FR_TRY(read_array(model, "merges", where, &merges));
    if (!vocabulary || !merges) return fr_fail(FR_INPUT, "%s: the model lacks \"vocab\" or \"merges\"", where);
    FR_TRY(read_vocabulary(json, vocabulary));
    return read_merges(json, merges);
}

static fr_status read_added_tokens(fr_tokenizer_source *json) {
    json_t *list, *item;
    FR_TRY(read_array(json->root, "added_tokens", json->path, &list));
    json->added = calloc(json_array_size(list) + 1, sizeof *json->added);
    if (!json->added) return fail_list(json, json_array_size(list));
    size_t i;
    json_array_foreach(list, i, item) {
        fr_added_entry *added = &json->added[json->added_count++];
        if (!json_is_object(item)) return fr_fail(FR_INPUT, "%s: added token %zu is not an object", json->path, i);
        FR_TRY(read_required_text(item, "content", json->path, &added->text));
        FR_TRY(read_id(item, "id", json->path, &added->id));
        FR_TRY(fr_json_bool(item, "special", false, json->path, &added->special));
        FR_TRY(fr_json_bool(item, "lstrip", false, json->path, &added->lstrip));
        FR_TRY(fr_json_bool(item, "rstrip", false, json->path, &added->rstrip));
        FR_TRY(fr_json_bool(item, "single_word", false, json->path, &added->single_word));
        FR_TRY(fr_json_bool(item, "normalized", true, json->path, &added->normalized));
    }
    return FR_OK;
}

/* ----------------------------------------------------------------------------------------------------------- folder */

static fr_status read_tokenizer(fr_tokenizer_source *json) {
    FR_TRY(fr_json_read(json->path, FR_TOKENIZER_FILE_LIMIT, &json->root));
    if (!json_is_object(json->root)) return fr_fail(FR_INPUT, "%s is not a JSON object", json->path);
    FR_TRY(read_model(json));
    FR_TRY(read_added_tokens(json));
    FR_TRY(read_stage(json, &normalizer, &json->normalizer));
    FR_TRY(read_stage(json, &pre_tokenizer, &json->pre_tokenizer));
    FR_TRY(read_stage(json, &decoder, &json->decoder));
    return read_post_processor(json);
}

fr_status fr_tokenizer_json_open(fr_tokenizer_source *json, const char *folder) {
    *json = (fr_tokenizer_source){.path = fr_path_join(folder, "tokenizer.json")};
    fr_status status = json->path ? FR_OK : fr_fail_memory(folder, strlen(folder));
    if (status == FR_OK) status = read_tokenizer(json);
    if (status == FR_OK) status = fr_tokenizer_beside_read(json, folder);
    if (status != FR_OK) fr_tokenizer_source_close(json);
    return status;
}
