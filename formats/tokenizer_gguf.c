/* Reads the tokenizer in GGUF metadata: see the header for its keys.
 *
 * In: metadata that formats/gguf.c has found whole. Out: lists whose merges point into the file, while tokens are
 * copied, all into one block, for the NUL behind them. */
#include "formats/tokenizer_gguf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/turn_tokens.h"

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4 };

static fr_text text_of(const char *string) {
    return (fr_text){string, strlen(string)};
}

/* words: NULL behind them. */
static bool is_one_of(fr_text text, const char *const *words) {
    for (; *words; words++)
        if (fr_text_is(text, *words)) return true;
    return false;
}

static int shown(fr_text text) {
    return text.length < 99 ? (int)text.length : 99;
}

/* Whether one of the tokens is known to end a turn in files of the kind. */
static fr_status has_ends(const fr_gguf *gguf, const fr_pre_tokenizer *kind, bool *has) {
    const fr_gguf_value *tokens;
    size_t at = 0;
    *has = false;
    FR_TRY(fr_gguf_array(gguf, "tokenizer.ggml.tokens", FR_GGUF_STRING, &tokens));
    for (size_t id = 0; tokens && id < tokens->count && !*has; id++)
        *has = is_one_of(fr_gguf_next(tokens, &at), fr_pre_tokenizer_ends(kind));
    return FR_OK;
}

static bool is_of(const fr_pre_tokenizer *kind, fr_text model, fr_text architecture) {
    if (!fr_text_is(model, kind->model)) return false;
    for (size_t i = 0; i < FR_MAX_ARCHITECTURES && kind->architectures[i]; i++)
        if (fr_text_is(architecture, kind->architectures[i])) return true;
    return false;
}

/* The kind in a file that leaves tokenizer.ggml.pre out: the architecture tells, and the tokens must agree, since
 * deepseek2 is two families, and models of other makers are called llama too. */
static fr_status assume_kind(const fr_gguf *gguf, fr_text model, const fr_pre_tokenizer **kind, fr_notes *notes) {
    for (size_t i = 0; (*kind = fr_pre_tokenizer_at(i)); i++) {
        bool has;
        if (!is_of(*kind, model, text_of(gguf->architecture))) continue;
        FR_TRY(has_ends(gguf, *kind, &has));
        if (!has) continue;
        fr_notes_add(notes,
                     "%s: key tokenizer.ggml.pre is missing: texts are cut as by \"%s\", since architecture \"%s\" "
                     "and the tokens go with that",
                     gguf->path, (*kind)->names[0], gguf->architecture);
        return FR_OK;
    }
    return fr_fail(FR_INPUT,
                   "%s: key tokenizer.ggml.pre is missing, and architecture \"%s\" with these tokens does not tell how "
                   "texts are cut",
                   gguf->path, gguf->architecture);
}

static fr_status find_kind(const fr_gguf *gguf, const fr_pre_tokenizer **kind, fr_notes *notes) {
    fr_text model, pre;
    char built[480];
    FR_TRY(fr_gguf_text(gguf, "tokenizer.ggml.model", &model));
    FR_TRY(fr_gguf_text(gguf, "tokenizer.ggml.pre", &pre));
    if (!model.bytes) return fr_fail(FR_INPUT, "%s: key tokenizer.ggml.model is missing", gguf->path);
    *kind = fr_pre_tokenizer_find(model, pre);
    if (*kind) return FR_OK;
    fr_pre_tokenizer_list(model, built, sizeof built);
    if (!*built)
        return fr_fail(FR_UNBUILT, "%s: tokenizer.ggml.model \"%.*s\" is not built yet", gguf->path, shown(model),
                       model.bytes);
    if (pre.length == 0) return assume_kind(gguf, model, kind, notes);
    return fr_fail(FR_UNBUILT, "%s: tokenizer.ggml.pre \"%.*s\" is not built yet; built are %s", gguf->path, shown(pre),
                   pre.bytes, built);
}

static fr_status fail_list(const fr_gguf *gguf, size_t count) {
    return fr_fail_memory(gguf->path, (count + 1) * sizeof(fr_merge_entry));
}

/* -------------------------------------------------------------------------------------------------------- the lists */

static fr_status read_tokens(fr_tokenizer_source *source, const fr_gguf *gguf) {
    const fr_gguf_value *tokens;
    FR_TRY(fr_gguf_array(gguf, "tokenizer.ggml.tokens", FR_GGUF_STRING, &tokens));
    if (!tokens) return fr_fail(FR_INPUT, "%s: key tokenizer.ggml.tokens is missing", gguf->path);
    if (tokens->count > FR_MAX_TOKEN_ID)
        return fr_fail(FR_INPUT, "%s: %llu tokens, and at most %d are read", gguf->path,
                       (unsigned long long)tokens->count, FR_MAX_TOKEN_ID);
    source->vocabulary = calloc(tokens->count + 1, sizeof *source->vocabulary);
    source->texts = malloc(tokens->bytes + 1); /* a length takes more bytes than a NUL */
    if (!source->vocabulary || !source->texts) return fail_list(gguf, tokens->count);
    char *copy = source->texts;
    size_t at = 0;
    for (size_t id = 0; id < tokens->count; id++) {
        fr_text text = fr_gguf_next(tokens, &at);
        if (memchr(text.bytes, 0, text.length))
            return fr_fail(FR_INPUT, "%s: token %zu has a zero byte in it", gguf->path, id);
        memcpy(copy, text.bytes, text.length);
        copy[text.length] = '\0';
        source->vocabulary[id] = (fr_vocabulary_entry){{copy, text.length}, (int32_t)id};
        copy += text.length + 1;
    }
    source->vocabulary_count = tokens->count;
    return FR_OK;
}

/* What a file says of its tokens, and what of that was not taken. */
typedef struct token_types {
    const fr_gguf_value *list; /* NULL: nothing */
    const fr_pre_tokenizer *kind;
    size_t retyped; /* tokens of turns that the list has as ordinary ones */
    int32_t first;
} token_types;

/* Whether a token is looked for before anything else; special: it opens or closes what is no text. Tokens that are
 * known to do that do it whatever the list says. */
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
        "%s: tokens that open or end turns are %s, \"%.*s\" (%d) the first of %zu: they are taken as ones that do",
        source->path, types->list ? "not typed so" : "of no type, as key tokenizer.ggml.token_type is missing",
        shown(text), text.bytes, types->first, types->retyped);
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
        if (is_added(&types, entry.text, entry.id, &entry.special)) source->added[source->added_count++] = entry;
    }
    note_types(source, &types);
    return FR_OK;
}

/* The space between the two is the first one that is not the left part's own first byte. */
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

/* Of each token; what is no number can't be compared. */
static fr_status read_scores(fr_tokenizer_source *source, const fr_gguf *gguf) {
    const fr_gguf_value *scores;
    size_t count = source->vocabulary_count;
    FR_TRY(fr_gguf_array(gguf, "tokenizer.ggml.scores", FR_GGUF_F32, &scores));
    if (!scores) return fr_fail(FR_INPUT, "%s: key tokenizer.ggml.scores is missing", gguf->path);
    if (scores->count != count)
        return fr_fail(FR_INPUT, "%s: %llu scores for %zu tokens", gguf->path, (unsigned long long)scores->count,
                       count);
    source->model = FR_MODEL_SCORED_BPE;
    source->scores = malloc((count + 1) * sizeof *source->scores);
    if (!source->scores) return fr_fail_memory(gguf->path, count * sizeof *source->scores);
    for (size_t id = 0; id < count; id++) {
        source->scores[id] = fr_gguf_f32(scores, id);
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

/* Ids of single tokens in files that name none: those that SentencePiece gives where it isn't told. */
enum { USUAL_UNKNOWN = 0, USUAL_BOS = 1, USUAL_EOS = 2 };

/* The same, or the fallback in files of a kind that has such. */
static fr_status read_id(const fr_gguf *gguf, const fr_pre_tokenizer *kind, const char *key, int32_t fallback,
                         size_t count, fr_notes *notes, int32_t *id) {
    bool unsaid = kind->fallback_ids && !fr_gguf_find(gguf, key);
    FR_TRY(fr_tokenizer_gguf_id(gguf, key, count, notes, id));
    if (unsaid && (size_t)fallback < count) *id = fallback;
    return FR_OK;
}

/* A token that the file names as the beginning or end of texts, and that no text has by chance, is a control token
 * whatever its type; -1: there is none. */
static void add_control(fr_tokenizer_source *source, int32_t id) {
    fr_text text = id < 0 ? (fr_text){"", 0} : source->vocabulary[id].text;
    size_t at = 0;
    if (text.length < 3 || !strchr("<[", text.bytes[0]) || !strchr(">]", text.bytes[text.length - 1])) return;
    while (at < source->added_count && source->added[at].id != id) at++;
    if (at == source->added_count) source->added[source->added_count++] = (fr_added_entry){.text = text, .id = id};
    source->added[at].special = true;
}

/* Named tokens for templates, as a folder has them; ids that no token has, and texts that are no UTF-8, name none. */
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

/* llama.cpp puts a bos before every Gemma 4 text whatever the file says: early conversions said false by mistake. */
static fr_status read_ids(fr_tokenizer_source *source, const fr_gguf *gguf, const fr_pre_tokenizer *kind) {
    int32_t begin, end, unknown;
    bool add_begin, add_end;
    size_t count = source->vocabulary_count;
    fr_notes *notes = &source->notes;
    FR_TRY(read_id(gguf, kind, "tokenizer.ggml.bos_token_id", USUAL_BOS, count, notes, &begin));
    FR_TRY(read_id(gguf, kind, "tokenizer.ggml.eos_token_id", USUAL_EOS, count, notes, &end));
    FR_TRY(read_id(gguf, kind, "tokenizer.ggml.unknown_token_id", USUAL_UNKNOWN, count, notes, &unknown));
    FR_TRY(fr_gguf_bool(gguf, "tokenizer.ggml.add_bos_token", kind->begins_unless_told, &add_begin));
    FR_TRY(fr_gguf_bool(gguf, "tokenizer.ggml.add_eos_token", false, &add_end));
    add_control(source, begin);
    add_control(source, end);
    if (unknown >= 0) source->unknown = source->vocabulary[unknown].text;
    if (begin >= 0) source->begin = source->vocabulary[begin].text;
    if (end >= 0) source->end = source->vocabulary[end].text;
    if (begin >= 0 && (add_begin || kind->begins)) source->prefix[source->prefix_count++] = begin;
    if (add_end && end >= 0) source->suffix[source->suffix_count++] = end;
    return name_tokens(source, gguf);
}

/* A space before each text, and gone again when it is printed. Of tokenizers whose pieces are bytes nobody reads that
 * key: llama.cpp puts the space in SentencePiece's texts, unless it is told not to. */
static fr_status read_space_prefix(fr_tokenizer_source *source, const fr_gguf *gguf, const fr_pre_tokenizer *kind) {
    fr_text_rules *before = &source->normalizer, *behind = &source->decoder;
    bool adds;
    FR_TRY(fr_gguf_bool(gguf, "tokenizer.ggml.add_space_prefix", kind->scored, &adds));
    if (!adds || source->byte_level) return FR_OK;
    if (!kind->scored)
        return fr_fail(FR_UNBUILT, "%s: key tokenizer.ggml.add_space_prefix is not built yet", gguf->path);
    memmove(before->items + 1, before->items, before->count++ * sizeof *before->items);
    before->items[0] = (fr_text_rule){.kind = FR_RULE_PREPEND, .content = text_of(" ")};
    behind->items[behind->count++] = (fr_text_rule){.kind = FR_RULE_STRIP, .content = text_of(" "), .start = 1};
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ whole */

bool fr_tokenizer_gguf_has(const fr_gguf *gguf) {
    return fr_gguf_find(gguf, "tokenizer.ggml.tokens") != NULL;
}

static fr_status read_all(fr_tokenizer_source *source, const fr_gguf *gguf) {
    const fr_pre_tokenizer *kind;
    if (!source->path) return fr_fail_memory("a path", strlen(gguf->path));
    FR_TRY(find_kind(gguf, &kind, &source->notes));
    FR_TRY(read_tokens(source, gguf));
    FR_TRY(read_added(source, gguf, kind));
    FR_TRY(kind->scored ? read_scores(source, gguf) : read_merges(source, gguf));
    FR_TRY(read_ids(source, gguf, kind));
    fr_pre_tokenizer_apply(kind, source);
    return read_space_prefix(source, gguf, kind);
}

fr_status fr_tokenizer_gguf_open(fr_tokenizer_source *source, const fr_gguf *gguf) {
    *source = (fr_tokenizer_source){.path = strdup(gguf->path)};
    fr_status status = read_all(source, gguf);
    if (status != FR_OK) fr_tokenizer_source_close(source);
    return status;
}

static fr_status add_end(const fr_gguf *gguf, int32_t id, int32_t *ids, size_t capacity, size_t *count) {
    for (size_t i = 0; i < *count; i++)
        if (ids[i] == id) return FR_OK;
    if (*count == capacity) return fr_fail(FR_INPUT, "%s: more than %zu ids end a text", gguf->path, capacity);
    ids[(*count)++] = id;
    return FR_OK;
}

static fr_status add_known_ends(const fr_gguf *gguf, size_t vocab, fr_notes *notes, int32_t *ids, size_t capacity,
                                size_t *count) {
    const fr_pre_tokenizer *kind;
    const fr_gguf_value *tokens;
    size_t at = 0;
    if (!fr_tokenizer_gguf_has(gguf)) return FR_OK;
    FR_TRY(find_kind(gguf, &kind, notes));
    FR_TRY(fr_gguf_array(gguf, "tokenizer.ggml.tokens", FR_GGUF_STRING, &tokens));
    bool unsaid = kind->fallback_ids && !fr_gguf_find(gguf, "tokenizer.ggml.eos_token_id");
    if (unsaid && USUAL_EOS < vocab) FR_TRY(add_end(gguf, USUAL_EOS, ids, capacity, count));
    for (size_t id = 0; id < tokens->count && id < vocab; id++)
        if (is_one_of(fr_gguf_next(tokens, &at), fr_pre_tokenizer_ends(kind)))
            FR_TRY(add_end(gguf, (int32_t)id, ids, capacity, count));
    return FR_OK;
}

fr_status fr_tokenizer_gguf_ends(const fr_gguf *gguf, size_t vocab, fr_notes *notes, int32_t *ids, size_t capacity,
                                 size_t *count) {
    enum { EOS, EOT, EOM, KEYS };
    static const char *const keys[KEYS] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                           "tokenizer.ggml.eom_token_id"};
    int32_t named[KEYS];
    for (size_t i = 0; i < KEYS; i++) {
        FR_TRY(fr_tokenizer_gguf_id(gguf, keys[i], vocab, notes, &named[i]));
        if (named[i] >= 0) FR_TRY(add_end(gguf, named[i], ids, capacity, count));
    }
    return named[EOT] >= 0 ? FR_OK : add_known_ends(gguf, vocab, notes, ids, capacity, count);
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

/* -------------------------------------------------------------------------------------------------------- comparing */

/* The next character of a regular expression: an escaped one that stands for itself, or for the end of a line, as
 * that; others with their backslash. */
static int next_of_pattern(fr_text pattern, size_t *at) {
    unsigned char byte = (unsigned char)pattern.bytes[(*at)++];
    if (byte != '\\' || *at == pattern.length) return byte;
    unsigned char escaped = (unsigned char)pattern.bytes[(*at)++];
    return escaped == 'r' ? '\r' : escaped == 'n' ? '\n' : escaped == '"' ? '"' : '\\' << 8 | escaped;
}

/* Files write one expression in several ways. */
static bool same_pattern(const fr_text_rule *x, const fr_text_rule *y) {
    size_t a = 0, b = 0;
    if (!x->regex) return fr_text_same(x->pattern, y->pattern);
    while (a < x->pattern.length && b < y->pattern.length)
        if (next_of_pattern(x->pattern, &a) != next_of_pattern(y->pattern, &b)) return false;
    return a == x->pattern.length && b == y->pattern.length;
}

static bool same_rules(const fr_text_rules *a, const fr_text_rules *b) {
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++) {
        const fr_text_rule *x = &a->items[i], *y = &b->items[i];
        if (x->kind != y->kind || x->regex != y->regex || !fr_text_same(x->content, y->content) ||
            !same_pattern(x, y) || x->behavior != y->behavior || x->invert != y->invert)
            return false;
    }
    return true;
}

static bool same_cut(const fr_pre_tokenizer *kind, const fr_tokenizer_source *source) {
    fr_tokenizer_source made = {0};
    fr_pre_tokenizer_apply(kind, &made);
    return made.byte_level == source->byte_level && made.byte_fallback == source->byte_fallback &&
           made.ignore_merges == source->ignore_merges && same_rules(&made.normalizer, &source->normalizer) &&
           same_rules(&made.pre_tokenizer, &source->pre_tokenizer);
}

const fr_pre_tokenizer *fr_tokenizer_gguf_suits(const fr_tokenizer_source *source, const char *model, const char *pre) {
    const fr_pre_tokenizer *kind = pre ? fr_pre_tokenizer_find(text_of(model), text_of(pre)) : NULL;
    if (kind && same_cut(kind, source)) return kind;
    for (size_t i = 0; (kind = fr_pre_tokenizer_at(i)); i++)
        if (fr_text_is(text_of(model), kind->model) && same_cut(kind, source)) return kind;
    return NULL;
}
