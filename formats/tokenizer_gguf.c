/* Reads the tokenizer in GGUF metadata; tokenizer_gguf.h lists the keys.
 *
 * In: metadata that formats/gguf.c has found to be inside the file. Out: lists. Merges point into the file. The texts
 * of tokens are copied into one block, because each text needs a NUL after it. */
#include "formats/tokenizer_gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/turn_tokens.h"

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4 };

static fr_text text_of(const char *string) {
    return (fr_text){string, strlen(string)};
}

/* Returns true if the text is one of `words`, a list that ends with NULL. */
static bool is_one_of(fr_text text, const char *const *words) {
    for (; *words; words++)
        if (fr_text_is(text, *words)) return true;
    return false;
}

static int shown(fr_text text) {
    return text.length < 99 ? (int)text.length : 99;
}

/* Sets *has if the file has one of the tokens that end a turn in files of this kind. */
static fr_status has_ends(const fr_gguf *gguf, const fr_pre_tokenizer *kind, bool *has) {
    const fr_gguf_value *tokens;
    size_t at = 0;
    *has = false;
    FR_TRY(fr_gguf_array(gguf, "tokenizer.ggml.tokens", FR_GGUF_STRING, &tokens));
    for (size_t id = 0; tokens && id < tokens->count && !*has; id++)
        *has = is_one_of(fr_gguf_next(tokens, &at), kind->ends);
    return FR_OK;
}

static bool is_of(const fr_pre_tokenizer *kind, fr_text model, fr_text architecture) {
    if (!fr_text_is(model, kind->model)) return false;
    for (size_t i = 0; i < FR_ARCHITECTURES_MAX && kind->architectures[i]; i++)
        if (fr_text_is(architecture, kind->architectures[i])) return true;
    return false;
}

/* Chooses a kind by the architecture, for a file without tokenizer.ggml.pre. The architecture alone does not determine
 * the kind: two families have the architecture deepseek2, and models of several makers have the architecture llama. So
 * the file must also have the tokens of the kind. */
static fr_status assume_kind(const fr_gguf *gguf, fr_text model, const fr_pre_tokenizer **kind, fr_notes *notes) {
    for (size_t i = 0; (*kind = fr_pre_tokenizer_at(i)); i++) {
        bool has;
        if (!(*kind)->ends || !is_of(*kind, model, text_of(gguf->architecture))) continue;
        FR_TRY(has_ends(gguf, *kind, &has));
        if (!has) continue;
        fr_notes_add(notes,
                     "%s: key tokenizer.ggml.pre is missing: texts are cut as by \"%s\", since architecture \"%s\" "
                     "and the tokens go with that",
                     gguf->path, (*kind)->names[0], gguf->architecture);
        return FR_OK;
    }
    return fr_fail_about(FR_OPT_TOKENIZER_PRE, FR_INPUT,
                         "%s: key tokenizer.ggml.pre is missing, and architecture \"%s\" with these tokens does not "
                         "tell how texts are cut",
                         gguf->path, gguf->architecture);
}

/* Reports that the table has no kind with this model and name, and lists the names that the model's kinds have. */
static fr_status fail_pre(fr_text model, const char *format, const char *where, fr_text pre) {
    char built[256];
    fr_pre_tokenizer_list(model, built, sizeof built);
    fr_fail_about(FR_OPT_TOKENIZER_PRE, FR_UNBUILT, format, where, shown(pre), pre.bytes);
    return fr_fail_also(FR_UNBUILT, "built are %s", built);
}

/* Finds the kind of the file's tokenizer. `chosen` replaces the name in the file; "" keeps it. */
static fr_status find_kind(const fr_gguf *gguf, const char *chosen, const fr_pre_tokenizer **kind, fr_notes *notes) {
    fr_text model, pre, choice = text_of(chosen);
    FR_TRY(fr_gguf_text(gguf, "tokenizer.ggml.model", &model));
    FR_TRY(fr_gguf_text(gguf, "tokenizer.ggml.pre", &pre));
    if (!model.bytes) return fr_fail(FR_INPUT, "%s: key tokenizer.ggml.model is missing", gguf->path);
    if (!fr_pre_tokenizer_has_model(model))
        return fr_fail(FR_UNBUILT, "%s: tokenizer.ggml.model \"%.*s\" is not built yet", gguf->path, shown(model),
                       model.bytes);
    *kind = choice.length ? fr_pre_tokenizer_named(model, choice) : fr_pre_tokenizer_find(model, pre);
    if (*kind) return FR_OK;
    if (choice.length)
        return fail_pre(model, "%s: tokenizer-pre \"%.*s\" goes with another tokenizer.ggml.model", gguf->path, choice);
    if (pre.length == 0) return assume_kind(gguf, model, kind, notes);
    return fail_pre(model, "%s: tokenizer.ggml.pre \"%.*s\" is not known", gguf->path, pre);
}

static fr_status fail_list(const fr_gguf *gguf, size_t count) {
    return fr_fail_memory(gguf->path, (count + 1) * sizeof(fr_merge_entry));
}

/* -------------------------------------------------------------------------------------------------------- the lists */

enum { SPELLING = sizeof "[EMPTY_16777215]" }; /* size of the longest name that `spell` makes, including its NUL */

/* Writes a token as it is published. For WordPiece, llama.cpp's converter puts U+2581 before tokens that begin words,
 * and removes the "##" of tokens inside words. This function undoes these two changes. A token without a text gets the
 * name that llama.cpp gives it. */
static fr_text spell(fr_text text, size_t id, bool of_words, char *copy) {
    if (text.length == 0) return (fr_text){copy, (size_t)snprintf(copy, SPELLING, "[EMPTY_%zu]", id)};
    size_t block = strlen(FR_LOWER_BLOCK);
    bool begins = text.length >= block && memcmp(text.bytes, FR_LOWER_BLOCK, block) == 0;
    size_t before = of_words && !begins ? strlen(FR_INSIDE_WORD) : 0, skipped = of_words && begins ? block : 0;
    memcpy(copy, FR_INSIDE_WORD, before);
    memcpy(copy + before, text.bytes + skipped, text.length - skipped);
    size_t length = before + text.length - skipped;
    copy[length] = '\0';
    return (fr_text){copy, length};
}

static fr_status read_tokens(fr_tokenizer_source *source, const fr_gguf *gguf, const fr_pre_tokenizer *kind) {
    const fr_gguf_value *tokens, *types;
    FR_TRY(fr_gguf_array(gguf, "tokenizer.ggml.tokens", FR_GGUF_STRING, &tokens));
    FR_TRY(fr_gguf_array(gguf, "tokenizer.ggml.token_type", FR_GGUF_I32, &types));
    if (!tokens) return fr_fail(FR_INPUT, "%s: key tokenizer.ggml.tokens is missing", gguf->path);
    if (tokens->count == 0) return fr_fail(FR_INPUT, "%s: key tokenizer.ggml.tokens is empty", gguf->path);
    if (tokens->count > FR_TOKEN_ID_MAX)
        return fr_fail(FR_INPUT, "%s: %llu tokens, and at most %d are read", gguf->path,
                       (unsigned long long)tokens->count, FR_TOKEN_ID_MAX);
    source->vocabulary = calloc(tokens->count + 1, sizeof *source->vocabulary);
    source->texts = malloc(tokens->bytes + tokens->count * SPELLING);
    if (!source->vocabulary || !source->texts) return fail_list(gguf, tokens->count);
    char *copy = source->texts;
    size_t at = 0;
    for (size_t id = 0; id < tokens->count; id++) {
        fr_text text = fr_gguf_next(tokens, &at);
        if (memchr(text.bytes, 0, text.length))
            return fr_fail(FR_INPUT, "%s: token %zu has a zero byte in it", gguf->path, id);
        bool control = types && id < types->count && fr_gguf_i32(types, id) == CONTROL;
        text = spell(text, id, kind->pieces == FR_MODEL_WORD_PIECE && !control, copy);
        source->vocabulary[id] = (fr_vocabulary_entry){text, (int32_t)id};
        copy += text.length + 1;
    }
    source->vocabulary_count = tokens->count;
    return FR_OK;
}

/* Holds the types of tokens that the file gives, and how many of them were corrected. */
typedef struct token_types {
    const fr_gguf_value *list; /* NULL if the file has no types */
    const fr_pre_tokenizer *kind;
    size_t retyped; /* tokens that open or end turns although the file gives them the type of normal tokens */
    int32_t first;  /* id of the first retyped token */
} token_types;

/* Returns true if a token is searched for in texts before the texts are cut into pieces. *special becomes true if the
 * token is a control token. Tokens that are known to open or close a turn count as control tokens, whatever type the
 * file gives them. */
static bool is_added(token_types *types, fr_text text, int32_t id, bool *special) {
    int32_t type = types->list ? fr_gguf_i32(types->list, (size_t)id) : NORMAL;
    fr_turn_token turn = fr_turn_token_of(text);
    bool said = type >= UNKNOWN && type <= USER_DEFINED, control = type == UNKNOWN || type == CONTROL;
    bool meant = types->kind->shown && is_one_of(text, types->kind->shown);
    bool looks = turn == FR_TURN_CONTROL || (!types->list && turn == FR_TURN_NONE && fr_looks_like_turn_token(text));
    *special = control || looks || (said && meant);
    bool retyped = (looks && !control && !meant) || (turn == FR_TURN_SHOWN && !said);
    if (retyped && types->retyped++ == 0) types->first = id;
    return said || retyped;
}

static void note_types(fr_tokenizer_source *source, const token_types *types) {
    if (types->retyped == 0) return;
    fr_text text = source->vocabulary[types->first].text;
    fr_notes_add(
        &source->notes,
        "%s: tokens that open or end turns are %s: \"%.*s\" (%d) is the first of %zu. They are taken as control tokens",
        source->path,
        types->list ? "not typed as control tokens" : "of no type, as key tokenizer.ggml.token_type is missing",
        shown(text), text.bytes, types->first, types->retyped);
}

/* Sets whether an added token takes in the blanks beside it. GGUF files have no flags for this. In Phi-3 all tokens
 * except three take in the blanks after them. In XLM-RoBERTa the mask takes in the blanks before it. */
static void set_strips(fr_added_entry *entry, const fr_gguf *gguf, const fr_pre_tokenizer *kind) {
    static const char *const exact[] = {"<s>", "<unk>", "<|endoftext|>", NULL};
    bool phi3 = kind->pieces == FR_MODEL_SCORED_BPE && strcmp(gguf->architecture, "phi3") == 0;
    entry->rstrip = phi3 && !is_one_of(entry->text, exact);
    entry->lstrip = kind->pieces == FR_MODEL_UNIGRAM && fr_text_is(entry->text, "<mask>");
}

static fr_status read_added(fr_tokenizer_source *source, const fr_gguf *gguf, const fr_pre_tokenizer *kind) {
    token_types types = {.kind = kind};
    size_t count = source->vocabulary_count;
    FR_TRY(fr_gguf_array(gguf, "tokenizer.ggml.token_type", FR_GGUF_I32, &types.list));
    if (types.list && types.list->count != count)
        return fr_fail(FR_INPUT, "%s: %llu token types for %zu tokens", gguf->path,
                       (unsigned long long)types.list->count, count);
    source->added = calloc(count + 1, sizeof *source->added);
    if (!source->added) return fail_list(gguf, count);
    for (size_t id = 0; id < count; id++) {
        fr_added_entry entry = {.text = source->vocabulary[id].text, .id = (int32_t)id};
        set_strips(&entry, gguf, kind);
        if (is_added(&types, entry.text, entry.id, &entry.special)) source->added[source->added_count++] = entry;
    }
    note_types(source, &types);
    return FR_OK;
}

/* Reads the merges. The two parts of a merge are separated by a space. The left part may itself begin with a space, so
 * the separator is the first space after the first byte. */
static fr_status read_merges(fr_tokenizer_source *source, const fr_gguf *gguf) {
    const fr_gguf_value *merges;
    FR_TRY(fr_gguf_array(gguf, "tokenizer.ggml.merges", FR_GGUF_STRING, &merges));
    if (!merges) return fr_fail(FR_INPUT, "%s: key tokenizer.ggml.merges is missing", gguf->path);
    source->merges = calloc(merges->count + 1, sizeof *source->merges);
    if (!source->merges) return fail_list(gguf, merges->count);
    size_t at = 0;
    for (size_t i = 0; i < merges->count; i++) {
        fr_text text = fr_gguf_next(merges, &at);
        const char *space = text.length > 1 ? memchr(text.bytes + 1, ' ', text.length - 1) : NULL;
        if (!space) return fr_fail(FR_INPUT, "%s: merge %zu is not \"left right\"", gguf->path, i);
        size_t left = (size_t)(space - text.bytes);
        source->merges[i] = (fr_merge_entry){{text.bytes, left}, {space + 1, text.length - left - 1}};
    }
    source->merge_count = merges->count;
    return FR_OK;
}

/* Reads the score of each token. NaN is refused because it can't be compared. */
static fr_status read_scores(fr_tokenizer_source *source, const fr_gguf *gguf) {
    const fr_gguf_value *scores;
    size_t count = source->vocabulary_count;
    scores = fr_gguf_find(gguf, "tokenizer.ggml.scores");
    bool whole = scores && scores->type == FR_GGUF_ARRAY && scores->element == FR_GGUF_I32;
    if (!whole) FR_TRY(fr_gguf_array(gguf, "tokenizer.ggml.scores", FR_GGUF_F32, &scores));
    if (!scores) return fr_fail(FR_INPUT, "%s: key tokenizer.ggml.scores is missing", gguf->path);
    if (scores->count != count)
        return fr_fail(FR_INPUT, "%s: %llu scores for %zu tokens", gguf->path, (unsigned long long)scores->count,
                       count);
    source->scores = malloc((count + 1) * sizeof *source->scores);
    if (!source->scores) return fr_fail_memory(gguf->path, count * sizeof *source->scores);
    for (size_t id = 0; id < count; id++) {
        source->scores[id] = whole ? fr_gguf_i32(scores, id) : fr_gguf_f32(scores, id);
        if (isnan(source->scores[id]))
            return fr_fail(FR_INPUT, "%s: the score of token %zu is no number", gguf->path, id);
    }
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------- single tokens */

fr_status fr_tokenizer_gguf_id(const fr_gguf *gguf, const char *key, size_t count, fr_notes *notes, int32_t *id) {
    int64_t value;
    *id = -1;
    if (!fr_gguf_find(gguf, key)) return FR_OK;
    FR_TRY(fr_gguf_int(gguf, key, INT64_MIN, INT64_MAX, 0, &value));
    if (value >= 0 && value < (int64_t)count)
        *id = (int32_t)value;
    else
        fr_notes_add(notes, "%s: key %s is %lld, which no token has: it is left out", gguf->path, key,
                     (long long)value);
    return FR_OK;
}

/* Reads an id. If the key is missing and the kind has default ids, the id is `fallback`. */
static fr_status read_id(const fr_gguf *gguf, const fr_pre_tokenizer *kind, const char *key, int32_t fallback,
                         size_t count, fr_notes *notes, int32_t *id) {
    bool unsaid = kind->ids.some && !fr_gguf_find(gguf, key);
    FR_TRY(fr_tokenizer_gguf_id(gguf, key, count, notes, id));
    if (unsaid && fallback < (int32_t)count) *id = fallback;
    return FR_OK;
}

/* Makes the token that the file names as bos or eos a control token, whatever its type in the file is. This is done
 * only for texts such as <s> or [SEP], because people may write other texts by chance. id -1: there is no such
 * token. */
static void add_control(fr_tokenizer_source *source, int32_t id) {
    fr_text text = id < 0 ? (fr_text){"", 0} : source->vocabulary[id].text;
    size_t at = 0;
    if (text.length < 3 || !strchr("<[", text.bytes[0]) || !strchr(">]", text.bytes[text.length - 1])) return;
    while (at < source->added_count && source->added[at].id != id) at++;
    if (at == source->added_count) source->added[source->added_count++] = (fr_added_entry){.text = text, .id = id};
    source->added[at].special = true;
}

/* Gives tokens the names by which templates refer to them, as a folder does. A name is left out if its id has no token
 * or if the token's text is not UTF-8. */
static fr_status name_tokens(fr_tokenizer_source *source, const fr_gguf *gguf) {
    static const char *const keys[][2] = {{"pad_token", "tokenizer.ggml.padding_token_id"},
                                          {"sep_token", "tokenizer.ggml.seperator_token_id"},
                                          {"cls_token", "tokenizer.ggml.cls_token_id"},
                                          {"mask_token", "tokenizer.ggml.mask_token_id"}};
    source->named = json_object();
    if (!source->named) return fr_fail_memory(gguf->path, sizeof(json_t));
    json_object_set_new(source->named, "unk_token", json_stringn(source->unknown.bytes, source->unknown.length));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        size_t id;
        int64_t last = (int64_t)source->vocabulary_count - 1;
        if (fr_gguf_size(gguf, keys[i][1], 0, last, FR_GGUF_REQUIRED, &id) != FR_OK) continue;
        fr_text text = source->vocabulary[id].text;
        json_object_set_new(source->named, keys[i][0], json_stringn(text.bytes, text.length));
    }
    return FR_OK;
}

/* Sets the template for pairs of texts. GGUF has none, so the template is the one of the models' makers. In BERT the
 * second text has token type 1. RoBERTa and XLM-RoBERTa, which is a unigram model, have two separators between the
 * texts. */
static fr_status put_pair(fr_tokenizer_source *source, const fr_gguf *gguf, const fr_pre_tokenizer *kind) {
    fr_text pre;
    if (source->prefix_count != 1 || source->suffix_count != 1) return FR_OK;
    uint8_t second = kind->pieces == FR_MODEL_WORD_PIECE;
    const fr_pair_piece pieces[] = {{source->prefix[0], 0}, {FR_PAIR_FIRST, 0},       {source->suffix[0], 0},
                                    {source->suffix[0], 0}, {FR_PAIR_SECOND, second}, {source->suffix[0], second}};
    FR_TRY(fr_gguf_text(gguf, "tokenizer.ggml.pre", &pre));
    bool two = kind->pieces == FR_MODEL_UNIGRAM || (pre.bytes && fr_text_is(pre, "roberta-bpe"));
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        if (two || i != 3) source->pair[source->pair_count++] = pieces[i];
    return FR_OK;
}

/* Reads the ids of single tokens, and the ids that are put before and after a text. A bos is put before every Gemma 4
 * text whatever the file says, as llama.cpp does, because early conversions said false by mistake. */
static fr_status read_ids(fr_tokenizer_source *source, const fr_gguf *gguf, const fr_pre_tokenizer *kind) {
    int32_t begin, end, unknown, part;
    bool add_begin, add_end;
    size_t count = source->vocabulary_count;
    fr_notes *notes = &source->notes;
    FR_TRY(read_id(gguf, kind, "tokenizer.ggml.bos_token_id", kind->ids.begin, count, notes, &begin));
    FR_TRY(read_id(gguf, kind, "tokenizer.ggml.eos_token_id", kind->ids.end, count, notes, &end));
    FR_TRY(read_id(gguf, kind, "tokenizer.ggml.unknown_token_id", kind->ids.unknown, count, notes, &unknown));
    FR_TRY(fr_gguf_bool(gguf, "tokenizer.ggml.add_bos_token", kind->begins_unless_told, &add_begin));
    FR_TRY(read_id(gguf, kind, "tokenizer.ggml.seperator_token_id", kind->ids.part, count, notes, &part));
    FR_TRY(fr_gguf_bool(gguf, "tokenizer.ggml.add_eos_token", kind->ends_unless_told, &add_end));
    add_control(source, begin);
    add_control(source, end);
    if (unknown >= 0) source->unknown = source->vocabulary[unknown].text;
    if (begin >= 0) source->begin = source->vocabulary[begin].text;
    if (end >= 0) source->end = source->vocabulary[end].text;
    if (begin >= 0 && (add_begin || kind->begins)) source->prefix[source->prefix_count++] = begin;
    if (kind->parts && part >= 0) source->suffix[source->suffix_count++] = part;
    if (add_end && end >= 0 && !kind->parts) source->suffix[source->suffix_count++] = end;
    FR_TRY(put_pair(source, gguf, kind));
    return name_tokens(source, gguf);
}

/* -------------------------------------------------------------------------------------------------------- settings */

static void put(fr_text_rules *rules, fr_text_rule rule) {
    rules->items[rules->count++] = rule;
}

/* Adds rules that remove blanks at both ends and reduce each run of blanks to one. */
static void put_blanks(fr_text_rules *rules) {
    put(rules, (fr_text_rule){.kind = FR_RULE_TRIM, .left = true, .right = true});
    put(rules,
        (fr_text_rule){.kind = FR_RULE_REPLACE, .pattern = text_of(" {2,}"), .regex = true, .content = text_of(" ")});
}

/* Adds the rule that puts a space before each text, and the rule that removes this space from the output. For
 * SentencePiece, llama.cpp adds both rules if the file's key add_space_prefix is true or missing. For tokenizers whose
 * pieces are bytes, it ignores the key. llama.cpp always keeps runs of blanks in SentencePiece's texts. Here a run
 * becomes one blank if the key remove_extra_whitespaces is true, as in SentencePiece itself. */
static fr_status read_spaces(fr_tokenizer_source *source, const fr_gguf *gguf, const fr_pre_tokenizer *kind) {
    bool adds, removes, scored = kind->pieces == FR_MODEL_SCORED_BPE;
    fr_text_rules before = {0}, *behind = &source->decoder;
    FR_TRY(fr_gguf_bool(gguf, "tokenizer.ggml.add_space_prefix", scored, &adds));
    FR_TRY(fr_gguf_bool(gguf, "tokenizer.ggml.remove_extra_whitespaces", false, &removes));
    if (source->byte_level) return FR_OK;
    if (adds && !scored)
        return fr_fail(FR_UNBUILT, "%s: key tokenizer.ggml.add_space_prefix is not built yet", gguf->path);
    if (removes && scored) put_blanks(&before);
    if (adds) put(&before, (fr_text_rule){.kind = FR_RULE_PREPEND, .content = text_of(" ")});
    if (adds) put(behind, (fr_text_rule){.kind = FR_RULE_STRIP, .content = text_of(" "), .start = 1});
    for (size_t i = 0; i < source->normalizer.count; i++) put(&before, source->normalizer.items[i]);
    source->normalizer = before;
    return FR_OK;
}

/* Reads SentencePiece's map of characters; the source keeps a copy of its bytes. */
static fr_status read_charsmap(fr_tokenizer_source *source, const fr_gguf *gguf) {
    static const char key[] = "tokenizer.ggml.precompiled_charsmap";
    const fr_gguf_value *map = fr_gguf_find(gguf, key);
    if (!map) return FR_OK;
    FR_TRY(fr_gguf_array(gguf, key, map->element == FR_GGUF_I8 ? FR_GGUF_I8 : FR_GGUF_U8, &map));
    if (map->count == 0) return FR_OK;
    source->charsmap = malloc(map->count);
    if (!source->charsmap) return fr_fail_memory(gguf->path, map->count);
    memcpy(source->charsmap, map->data, map->count);
    put(&source->normalizer, (fr_text_rule){.kind = FR_RULE_PRECOMPILED, .content = {source->charsmap, map->count}});
    return FR_OK;
}

void fr_tokenizer_gguf_cut_unigram(fr_text_rules *rules, bool adds, bool removes) {
    const fr_text_rule mark = rules->items[0];
    rules->count = 0;
    if (removes)
        put(rules,
            (fr_text_rule){.kind = FR_RULE_SPLIT, .characters = FR_CHARACTERS_SPACE, .behavior = FR_SPLIT_REMOVED});
    put(rules, mark);
    if (adds || removes) put(rules, (fr_text_rule){.kind = FR_RULE_PREFIX, .content = mark.content});
    if (removes)
        put(rules,
            (fr_text_rule){.kind = FR_RULE_SPLIT, .pattern = mark.content, .behavior = FR_SPLIT_MERGED_WITH_NEXT});
}

static fr_status read_unigram(fr_tokenizer_source *source, const fr_gguf *gguf) {
    bool adds, removes;
    FR_TRY(fr_gguf_bool(gguf, "tokenizer.ggml.add_space_prefix", false, &adds));
    FR_TRY(fr_gguf_bool(gguf, "tokenizer.ggml.remove_extra_whitespaces", false, &removes));
    FR_TRY(read_charsmap(source, gguf));
    fr_tokenizer_gguf_cut_unigram(&source->pre_tokenizer, adds, removes);
    source->decoder.items[0].first = adds || removes;
    return FR_OK;
}

static fr_status read_words(fr_tokenizer_source *source, const fr_gguf *gguf, bool strips) {
    bool lowers;
    FR_TRY(fr_gguf_bool(gguf, "tokenizer.ggml.normalizer.lowercase", strips, &lowers));
    FR_TRY(fr_gguf_bool(gguf, "tokenizer.ggml.normalizer.strip_accents", strips && lowers, &strips));
    if (strips) put(&source->normalizer, (fr_text_rule){.kind = FR_RULE_NFD});
    if (strips) put(&source->normalizer, (fr_text_rule){.kind = FR_RULE_DROP_NONSPACING});
    if (lowers) put(&source->normalizer, (fr_text_rule){.kind = FR_RULE_LOWERCASE});
    return FR_OK;
}

/* Reads those settings in the file that change the rules of its kind of tokenizer. */
static fr_status read_settings(fr_tokenizer_source *source, const fr_gguf *gguf, const fr_pre_tokenizer *kind) {
    if (kind->pieces == FR_MODEL_UNIGRAM) return read_unigram(source, gguf);
    if (kind->pieces == FR_MODEL_WORD_PIECE) return read_words(source, gguf, true);
    if (fr_text_is(text_of(kind->model), "whitespace")) return read_words(source, gguf, false);
    return read_spaces(source, gguf, kind);
}

/* ---------------------------------------------------------------------------------------------- the whole tokenizer */

bool fr_tokenizer_gguf_has(const fr_gguf *gguf) {
    return fr_gguf_find(gguf, "tokenizer.ggml.tokens") != NULL;
}

static fr_status read_all(fr_tokenizer_source *source, const fr_gguf *gguf, const char *pre) {
    const fr_pre_tokenizer *kind;
    if (!source->path) return fr_fail_memory("a path", strlen(gguf->path));
    FR_TRY(find_kind(gguf, pre, &kind, &source->notes));
    FR_TRY(read_tokens(source, gguf, kind));
    FR_TRY(read_added(source, gguf, kind));
    if (kind->pieces == FR_MODEL_BPE) FR_TRY(read_merges(source, gguf));
    if (kind->pieces == FR_MODEL_SCORED_BPE || kind->pieces == FR_MODEL_UNIGRAM) FR_TRY(read_scores(source, gguf));
    FR_TRY(read_ids(source, gguf, kind));
    fr_pre_tokenizer_apply(kind, source);
    return read_settings(source, gguf, kind);
}

fr_status fr_tokenizer_gguf_open(fr_tokenizer_source *source, const fr_gguf *gguf, const char *pre) {
    *source = (fr_tokenizer_source){.path = strdup(gguf->path)};
    fr_status status = read_all(source, gguf, pre);
    if (status != FR_OK) fr_tokenizer_source_close(source);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------ ends */

typedef struct end_list {
    const fr_gguf *gguf;
    size_t vocab;
    int32_t *ids;
    size_t capacity, *count;
} end_list;

static fr_status add_end(const end_list *ends, int32_t id) {
    for (size_t i = 0; i < *ends->count; i++)
        if (ends->ids[i] == id) return FR_OK;
    if (*ends->count == ends->capacity)
        return fr_fail(FR_INPUT, "%s: more than %zu ids end a text", ends->gguf->path, ends->capacity);
    ends->ids[(*ends->count)++] = id;
    return FR_OK;
}

/* Records which of "<|return|>", "<|call|>" and "<|flush|>" a vocabulary has. In vocabularies with these tokens, such
 * as those of gpt-oss and Solar, "<|end|>" ends only a part of a reply, not the text. */
typedef struct handing_on {
    bool returns, calls, flushes;
} handing_on;

static bool hands_on(const handing_on *seen) {
    return seen->calls && (seen->returns || seen->flushes);
}

static void see(handing_on *seen, fr_text text) {
    seen->returns |= fr_text_is(text, "<|return|>");
    seen->calls |= fr_text_is(text, "<|call|>") || fr_text_is(text, "<|calls|>");
    seen->flushes |= fr_text_is(text, "<|flush|>");
}

/* Returns true for an "</s>" that ends texts. Some vocabularies use "</s>" for struck-out text, so it ends texts only
 * if its type is control. */
static bool is_typed_end(const fr_gguf_value *types, size_t id, fr_text text) {
    return types && id < types->count && fr_text_is(text, "</s>") && fr_gguf_i32(types, id) == CONTROL;
}

/* Adds the tokens whose texts end a text in any model, and the tokens of `own`, a list of texts that ends with NULL. */
static fr_status add_by_text(const end_list *ends, const char *const *own) {
    const fr_gguf_value *tokens, *types;
    handing_on seen = {0};
    int32_t part = -1;
    size_t at = 0;
    FR_TRY(fr_gguf_array(ends->gguf, "tokenizer.ggml.tokens", FR_GGUF_STRING, &tokens));
    FR_TRY(fr_gguf_array(ends->gguf, "tokenizer.ggml.token_type", FR_GGUF_I32, &types));
    for (size_t id = 0; id < tokens->count && id < ends->vocab; id++) {
        fr_text text = fr_gguf_next(tokens, &at);
        see(&seen, text);
        if (fr_text_is(text, "<|end|>"))
            part = (int32_t)id;
        else if (fr_ends_texts(text) || is_typed_end(types, id, text) || (own && is_one_of(text, own)))
            FR_TRY(add_end(ends, (int32_t)id));
    }
    return part >= 0 && !hands_on(&seen) ? add_end(ends, part) : FR_OK;
}

static fr_status add_known(const end_list *ends, const char *pre, bool turns, fr_notes *notes) {
    const fr_pre_tokenizer *kind;
    if (!fr_tokenizer_gguf_has(ends->gguf)) return FR_OK;
    FR_TRY(find_kind(ends->gguf, pre, &kind, notes));
    bool unsaid = kind->ids.some && !fr_gguf_find(ends->gguf, "tokenizer.ggml.eos_token_id");
    if (unsaid && kind->ids.end >= 0 && (size_t)kind->ids.end < ends->vocab) FR_TRY(add_end(ends, kind->ids.end));
    return add_by_text(ends, turns ? kind->ends : NULL);
}

fr_status fr_tokenizer_gguf_ends(const fr_gguf *gguf, const char *pre, size_t vocab, fr_notes *notes, int32_t *ids,
                                 size_t capacity, size_t *count) {
    enum { EOS, EOT, EOM, FIM_PAD, FIM_REP, FIM_SEP, KEYS };
    static const char *const keys[KEYS] = {
        [EOS] = "tokenizer.ggml.eos_token_id",         [EOT] = "tokenizer.ggml.eot_token_id",
        [EOM] = "tokenizer.ggml.eom_token_id",         [FIM_PAD] = "tokenizer.ggml.fim_pad_token_id",
        [FIM_REP] = "tokenizer.ggml.fim_rep_token_id", [FIM_SEP] = "tokenizer.ggml.fim_sep_token_id"};
    const end_list ends = {gguf, vocab, ids, capacity, count};
    int32_t named[KEYS];
    for (size_t i = 0; i < KEYS; i++) {
        FR_TRY(fr_tokenizer_gguf_id(gguf, keys[i], vocab, notes, &named[i]));
        if (named[i] >= 0) FR_TRY(add_end(&ends, named[i]));
    }
    return add_known(&ends, pre, named[EOT] < 0, notes);
}

fr_status fr_tokenizer_gguf_suppressed(const fr_gguf *gguf, size_t vocab, int32_t *ids, size_t capacity,
                                       size_t *count) {
    const fr_gguf_value *list;
    *count = 0;
    FR_TRY(fr_gguf_array(gguf, FR_KEY_SUPPRESSED, FR_GGUF_I32, &list));
    if (!list) return FR_OK;
    if (list->count > capacity)
        return fr_fail(FR_INPUT, "%s: key " FR_KEY_SUPPRESSED " has %llu ids, and at most %zu are read", gguf->path,
                       (unsigned long long)list->count, capacity);
    for (size_t i = 0; i < list->count; i++) {
        int32_t id = fr_gguf_i32(list, i);
        if (id >= 0 && (size_t)id < vocab) ids[(*count)++] = id;
    }
    return FR_OK;
}
