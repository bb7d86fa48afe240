/* Converts text to ids, in the stages of a tokenizer.json:
 *
 *   text -> added tokens found in it -> normalizer on the stretches between -> added tokens found in its output
 *        -> pre-tokenizer: pieces -> the model's tokens of each -> ids that the post-processor adds
 *
 * In: a tokenizer's source (formats/tokenizer_source.h); texts of any bytes. Out: ids, equal to those of Hugging
 * Face's tokenizers for valid UTF-8. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/unicode_form.h"
#include "src/language/tokenizer/tokenizer_parts.h"

/* ---------------------------------------------------------------------------------------------------------- opening */

static fr_status copy_template(fr_tokenizer *tokenizer, const fr_tokenizer_source *source) {
    memcpy(tokenizer->prefix, source->prefix, sizeof source->prefix);
    memcpy(tokenizer->suffix, source->suffix, sizeof source->suffix);
    tokenizer->prefix_count = source->prefix_count;
    tokenizer->suffix_count = source->suffix_count;
    memcpy(tokenizer->pair, source->pair, sizeof source->pair);
    tokenizer->pair_count = source->pair_count;
    for (size_t i = 0; i < source->prefix_count + source->suffix_count; i++) {
        int32_t id = i < source->prefix_count ? source->prefix[i] : source->suffix[i - source->prefix_count];
        if ((size_t)id >= tokenizer->vocabulary.size || !tokenizer->vocabulary.tokens[id].text)
            return fr_fail(FR_INPUT, "%s: the post-processor adds the id %d, which no token has", source->path, id);
    }
    for (size_t i = 0; i < source->pair_count; i++) {
        int32_t id = source->pair[i].id;
        if (id >= 0 && ((size_t)id >= tokenizer->vocabulary.size || !tokenizer->vocabulary.tokens[id].text))
            return fr_fail(FR_INPUT, "%s: the post-processor adds the id %d, which no token has", source->path, id);
    }
    return FR_OK;
}

/* Adds a token that is searched for in normalized text. The token's own text is normalized first. */
static fr_status add_normalized(fr_tokenizer *tokenizer, const fr_added_entry *entry, const char *where) {
    fr_text text = entry->text;
    fr_rewrite_work work = {0};
    uint64_t allowance = fr_text_pattern_allowance(text.length);
    size_t first = 0;
    bool control = tokenizer->vocabulary.tokens[entry->id].control;
    fr_status status = fr_rules_rewrite(&tokenizer->normalizer, true, &text, &first, &work, &allowance);
    if (status == FR_OK) status = fr_added_tokens_add(&tokenizer->normalized, entry, text, control, where);
    fr_rewrite_work_free(&work);
    return status;
}

static fr_status add_added_tokens(fr_tokenizer *tokenizer, const fr_tokenizer_source *source) {
    for (size_t i = 0; i < source->added_count; i++) {
        const fr_added_entry *entry = &source->added[i];
        if (entry->normalized)
            FR_TRY(add_normalized(tokenizer, entry, source->path));
        else
            FR_TRY(fr_added_tokens_add(&tokenizer->raw, entry, entry->text,
                                       tokenizer->vocabulary.tokens[entry->id].control, source->path));
    }
    FR_TRY(fr_added_tokens_seal(&tokenizer->raw, source->path));
    return fr_added_tokens_seal(&tokenizer->normalized, source->path);
}

/* --------------------------------------------------------------------------------------------------- control tokens */

static void mark_control(void *vocabulary, int32_t id) {
    ((fr_vocabulary *)vocabulary)->tokens[id].control = true;
}

/* Returns true if a text may be a control token. White space and very short texts may not: some tokenizers have such
 * added tokens, but these never open a turn. */
static bool may_control(fr_text text) {
    size_t blanks = strspn(text.bytes, " \t\r\n");
    return text.length > 2 && blanks < text.length;
}

static fr_status mark_named(fr_tokenizer *tokenizer, const fr_tokenizer_source *source, fr_added_tokens *plain,
                            const fr_text *texts, size_t count) {
    for (size_t i = 0; i < source->added_count; i++) {
        const fr_added_entry *entry = &source->added[i];
        if (!entry->special && may_control(entry->text))
            FR_TRY(fr_added_tokens_add(plain, entry, entry->text, false, source->path));
    }
    fr_added_tokens_sort(plain);
    for (size_t i = 0; i < count; i++)
        fr_added_tokens_mentioned(plain, texts[i].bytes, texts[i].length, mark_control, &tokenizer->vocabulary);
    return FR_OK;
}

/* Marks added tokens as control tokens if they occur in one of the texts, which are the chat templates. They need not
 * be marked special. */
static fr_status find_control(fr_tokenizer *tokenizer, const fr_tokenizer_source *source, const fr_text *texts,
                              size_t count) {
    fr_added_tokens plain = {0};
    fr_status status = mark_named(tokenizer, source, &plain, texts, count);
    fr_added_tokens_close(&plain);
    return status;
}

/* ---------------------------------------------------------------------------------------------------- the tokenizer */

/* Copies a token's text; *copy is NULL if there is no such token. */
static fr_status copy_token(fr_text text, const char *name, char **copy) {
    *copy = text.bytes ? strndup(text.bytes, text.length) : NULL;
    return text.bytes && !*copy ? fr_fail_memory(name, text.length) : FR_OK;
}

fr_status fr_tokenizer_start(fr_tokenizer *tokenizer, const fr_tokenizer_source *source) {
    FR_TRY(fr_vocabulary_open(&tokenizer->vocabulary, source));
    FR_TRY(copy_token(source->begin, "bos_token", &tokenizer->begin));
    FR_TRY(copy_token(source->end, "eos_token", &tokenizer->end));
    tokenizer->named = json_incref(source->named);
    return FR_OK;
}

static fr_status open_model(fr_tokenizer *tokenizer, const fr_tokenizer_source *source) {
    const fr_vocabulary *vocabulary = &tokenizer->vocabulary;
    tokenizer->model = source->model;
    switch (source->model) {
    case FR_MODEL_SCORED_BPE: return fr_score_merges_open(&tokenizer->score_merges, vocabulary, source);
    case FR_MODEL_UNIGRAM: return fr_unigram_open(&tokenizer->unigram, vocabulary, source);
    case FR_MODEL_WORD_PIECE:
    case FR_MODEL_WORD_LEVEL: return fr_word_pieces_open(&tokenizer->word_pieces, vocabulary, source);
    default: return fr_bpe_open(&tokenizer->bpe, vocabulary, source);
    }
}

fr_status fr_tokenizer_finish(fr_tokenizer *tokenizer, const fr_tokenizer_source *source, const fr_text *texts,
                              size_t count) {
    FR_TRY(find_control(tokenizer, source, texts, count));
    FR_TRY(open_model(tokenizer, source));
    FR_TRY(fr_rules_open(&tokenizer->normalizer, &source->normalizer, source->path));
    FR_TRY(fr_rules_open(&tokenizer->pre_tokenizer, &source->pre_tokenizer, source->path));
    FR_TRY(add_added_tokens(tokenizer, source));
    FR_TRY(copy_template(tokenizer, source));
    FR_TRY(fr_printed_tokens_open(&tokenizer->printed, &tokenizer->vocabulary, &tokenizer->normalizer, source));
    fr_notes_copy(&tokenizer->notes, &source->notes);
    return FR_OK;
}

void fr_tokenizer_free(fr_tokenizer *tokenizer) {
    fr_vocabulary_close(&tokenizer->vocabulary);
    fr_bpe_close(&tokenizer->bpe);
    fr_score_merges_close(&tokenizer->score_merges);
    fr_unigram_close(&tokenizer->unigram);
    fr_word_pieces_close(&tokenizer->word_pieces);
    fr_added_tokens_close(&tokenizer->raw);
    fr_added_tokens_close(&tokenizer->normalized);
    fr_rules_close(&tokenizer->normalizer);
    fr_rules_close(&tokenizer->pre_tokenizer);
    fr_printed_tokens_close(&tokenizer->printed);
    free(tokenizer->begin);
    free(tokenizer->end);
    json_decref(tokenizer->named);
    fr_notes_free(&tokenizer->notes);
    free(tokenizer);
}

const fr_notes *fr_tokenizer_notes(const fr_tokenizer *tokenizer) {
    return &tokenizer->notes;
}

const char *fr_tokenizer_note(const fr_tokenizer *tokenizer, size_t index) {
    if (!tokenizer) return NULL;
    return fr_notes_line(&tokenizer->notes, index);
}

static const char *text_of(const fr_tokenizer *tokenizer, size_t id) {
    const fr_vocabulary *v = &tokenizer->vocabulary;
    return id < v->size && v->tokens[id].text ? v->tokens[id].text : "";
}

static bool is_text(const fr_tokenizer *tokenizer, size_t id) {
    fr_token_kind kind = fr_token_kind_of(tokenizer, (int32_t)id);
    return kind == FR_TOKEN_TEXT || kind == FR_TOKEN_BYTE;
}

bool fr_tokenizers_agree(const fr_tokenizer *one, const fr_tokenizer *other) {
    size_t size = one->vocabulary.size > other->vocabulary.size ? one->vocabulary.size : other->vocabulary.size;
    size_t texts = 0, differ = 0;
    for (size_t id = 0; id < size; id++) {
        bool either = is_text(one, id) || is_text(other, id);
        texts += either;
        differ += either && strcmp(text_of(one, id), text_of(other, id)) != 0;
    }
    return differ <= texts / 1000;
}

int32_t fr_tokenizer_id(const fr_tokenizer *tokenizer, const char *text) {
    return fr_vocabulary_find(&tokenizer->vocabulary, text, strlen(text));
}

const char *fr_tokenizer_begin(const fr_tokenizer *tokenizer) {
    return tokenizer->begin;
}

size_t fr_tokenizer_around(const fr_tokenizer *tokenizer, const int32_t **prefix, size_t *prefix_count,
                           const int32_t **suffix, size_t *suffix_count) {
    *prefix = tokenizer->prefix;
    *suffix = tokenizer->suffix;
    *prefix_count = tokenizer->prefix_count;
    *suffix_count = tokenizer->suffix_count;
    return tokenizer->prefix_count + tokenizer->suffix_count;
}

size_t fr_tokenizer_pair(const fr_tokenizer *tokenizer, const fr_pair_piece **pieces) {
    *pieces = tokenizer->pair;
    return tokenizer->pair_count;
}

bool fr_tokenizer_lowers(const fr_tokenizer *tokenizer) {
    bool lowers = false;
    for (size_t i = 0; i < tokenizer->normalizer.count; i++)
        lowers |= tokenizer->normalizer.items[i].kind == FR_RULE_LOWERCASE;
    return lowers;
}

int32_t fr_tokenizer_end(const fr_tokenizer *tokenizer) {
    return tokenizer->end ? fr_tokenizer_id(tokenizer, tokenizer->end) : -1;
}

/* --------------------------------------------------------------------------------------------------------- encoding */

/* The state of encoding one text. Each stage goes through a text and passes each stretch to the next stage by a
 * callback. */
typedef struct encoding {
    const fr_tokenizer *tokenizer;
    const char *text;
    fr_trust trust; /* the first trusted run that ends after the place that the encoding has reached */
    size_t first;   /* number of bytes of the present stretch that belong to the text's first character */
    bool foreign;   /* the present stretch has bytes that are not trusted */
    fr_rewrite_work rewrite;
    fr_split_work split;
    const char *stretch;   /* the present stretch, normalized */
    fr_text_buffer joined; /* a stretch that was joined from parts which were rewritten one by one */
    fr_span *spans;        /* the trusted parts of `joined`; there is room for as many as the whole text has */
    fr_bpe_work bpe;
    fr_score_work scored;
    fr_unigram_work unigram;
    uint64_t allowance;
    fr_id_list ids;
} encoding;

static fr_status encode_piece(void *context, const char *text, size_t length) {
    encoding *state = context;
    const fr_tokenizer *tokenizer = state->tokenizer;
    bool foreign = state->foreign;
    fr_id_list *ids = &state->ids;
    switch (tokenizer->model) {
    case FR_MODEL_SCORED_BPE:
        return fr_score_merges_encode(&tokenizer->score_merges, text, length, foreign, &state->scored, ids);
    case FR_MODEL_UNIGRAM: return fr_unigram_encode(&tokenizer->unigram, text, length, foreign, &state->unigram, ids);
    case FR_MODEL_WORD_PIECE:
    case FR_MODEL_WORD_LEVEL: return fr_word_pieces_encode(&tokenizer->word_pieces, text, length, foreign, ids);
    default: return fr_bpe_encode(&tokenizer->bpe, text, length, foreign, &state->bpe, ids);
    }
}

static fr_status encode_normalized(void *context, const char *text, size_t length, int32_t id) {
    encoding *state = context;
    if (id >= 0) return fr_ids_append(&state->ids, &id, 1);
    size_t at = (size_t)(text - state->stretch), first = state->first > at ? state->first - at : 0;
    if (first > length) first = length;
    return fr_rules_split(&state->tokenizer->pre_tokenizer, (fr_text){text, length}, first, &state->split,
                          &state->allowance, encode_piece, state);
}

/* Rewrites the trusted and the foreign parts of a stretch separately, so that neither kind changes the output of the
 * other. */
static fr_status rewrite_parts(encoding *state, size_t begin, size_t end, size_t *spans) {
    *spans = 0;
    state->joined.length = 0;
    if (!state->spans && !(state->spans = malloc(state->trust.count * sizeof *state->spans)))
        return fr_fail_memory("trusted spans", state->trust.count * sizeof *state->spans);
    for (size_t at = begin, stop; at < end; at = stop) {
        bool any = fr_trust_seek(&state->trust, at), trusted = any && state->trust.begin <= at;
        stop = trusted ? state->trust.end : any ? state->trust.begin : end;
        if (stop > end) stop = end;
        size_t from = state->joined.length;
        fr_text part = {state->text + at, stop - at};
        size_t first = from == 0 && state->first < part.length ? state->first : 0;
        FR_TRY(fr_rules_rewrite(&state->tokenizer->normalizer, from == 0, &part, &first, &state->rewrite,
                                &state->allowance));
        if (from == 0 && part.length > 0) state->first = first;
        fr_text_append(&state->joined, part.bytes, part.length);
        if (trusted) state->spans[(*spans)++] = (fr_span){from, from + part.length};
    }
    return fr_text_check(&state->joined, "normalizer");
}

static size_t first_length(fr_text text) {
    fr_character_bytes first = fr_first_character(text.bytes, text.length);
    return first.there > 0 ? first.there : 1;
}

static fr_status encode_raw(void *context, const char *text, size_t length, int32_t id) {
    encoding *state = context;
    const fr_added_tokens *added = &state->tokenizer->normalized;
    if (id >= 0) return fr_ids_append(&state->ids, &id, 1);
    size_t begin = (size_t)(text - state->text), end = begin + length, spans;
    bool any = fr_trust_seek(&state->trust, begin) && state->trust.begin < end;
    bool trusted = any && state->trust.begin <= begin && end <= state->trust.end;
    state->foreign = !trusted;
    state->first = begin == 0 ? first_length((fr_text){text, length}) : 0;
    if (any && !trusted && added->has_control) {
        FR_TRY(rewrite_parts(state, begin, end, &spans));
        state->stretch = state->joined.bytes;
        return fr_added_tokens_walk(added, state->joined.bytes, state->joined.length, fr_trust_of(state->spans, spans),
                                    encode_normalized, state);
    }
    fr_text rewritten = {text, length};
    FR_TRY(fr_rules_rewrite(&state->tokenizer->normalizer, true, &rewritten, &state->first, &state->rewrite,
                            &state->allowance));
    state->stretch = rewritten.bytes;
    fr_span whole = {0, rewritten.length};
    return fr_added_tokens_walk(added, rewritten.bytes, rewritten.length, fr_trust_of(&whole, trusted),
                                encode_normalized, state);
}

static fr_status encode(encoding *state, size_t length, bool add_special) {
    const fr_tokenizer *tokenizer = state->tokenizer;
    if (add_special) FR_TRY(fr_ids_append(&state->ids, tokenizer->prefix, tokenizer->prefix_count));
    FR_TRY(fr_added_tokens_walk(&tokenizer->raw, state->text, length, state->trust, encode_raw, state));
    return add_special ? fr_ids_append(&state->ids, tokenizer->suffix, tokenizer->suffix_count) : FR_OK;
}

static fr_status tokenize(const fr_tokenizer *tokenizer, const char *text, size_t length, fr_trust trust,
                          bool add_special, int32_t **ids, size_t *count) {
    *ids = NULL;
    *count = 0;
    if (length > FR_TEXT_MAX) return fr_fail(FR_INPUT, "a text of %zu bytes, and at most %zu", length, FR_TEXT_MAX);
    encoding state = {
        .tokenizer = tokenizer, .text = text, .trust = trust, .allowance = fr_text_pattern_allowance(length)};
    fr_status status = encode(&state, length, add_special);
    if (status == FR_OK && !state.ids.items && !(state.ids.items = malloc(sizeof *state.ids.items)))
        status = fr_fail_memory("token ids", sizeof *state.ids.items);
    fr_rewrite_work_free(&state.rewrite);
    fr_split_work_free(&state.split);
    fr_text_free(&state.joined);
    free(state.spans);
    fr_bpe_work_free(&state.bpe);
    fr_score_work_free(&state.scored);
    fr_unigram_work_free(&state.unigram);
    if (status != FR_OK) {
        free(state.ids.items);
        return status;
    }
    *ids = state.ids.items;
    *count = state.ids.count;
    return FR_OK;
}

fr_status fr_tokenize(const fr_tokenizer *tokenizer, const char *text, size_t length, bool add_special,
                      bool parse_special, int32_t **ids, size_t *count) {
    fr_span whole = {0, length};
    if (!ids || !count || (length && !text)) return fr_fail_null("fr_tokenize", "a text, ids and their count");
    *ids = NULL;
    *count = 0;
    if (!tokenizer) return fr_fail_no_tokenizer("fr_tokenize");
    return tokenize(tokenizer, text, length, fr_trust_of(&whole, parse_special), add_special, ids, count);
}

fr_status fr_marked_text_check(const fr_marked_text *text) {
    size_t end = 0;
    for (size_t i = 0; i < text->trusted_count; i++) {
        fr_span span = text->trusted[i];
        if (span.begin < end || span.end < span.begin || span.end > text->length)
            return fr_fail(FR_USAGE,
                           "marked text of %zu bytes: trusted span %zu, from %zu to %zu, is behind its end, or "
                           "out of order",
                           text->length, i, span.begin, span.end);
        end = span.end;
    }
    return FR_OK;
}

fr_status fr_tokenize_marked(const fr_tokenizer *tokenizer, const fr_marked_text *text, int32_t **ids, size_t *count) {
    if (!text || !ids || !count) return fr_fail_null("fr_tokenize_marked", "a text, ids and their count");
    *ids = NULL;
    *count = 0;
    if (!tokenizer) return fr_fail_no_tokenizer("fr_tokenize_marked");
    FR_TRY(fr_marked_text_check(text));
    return tokenize(tokenizer, text->text, text->length, fr_trust_of(text->trusted, text->trusted_count), false, ids,
                    count);
}
