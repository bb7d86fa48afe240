/* Turns a published folder's tokenizer into GGUF metadata (formats/tokenizer_gguf.h has the keys).
 *
 * In: tokenizer.json and tokenizer_config.json, the configs' end-of-sequence ids, the chat template, and the kind of
 * tokenizer that the architecture has in GGUF. Out: the keys that llama.cpp's converter writes. Up to three ids that
 * end a text are written, as eos, eot and eom. Readers of the file know only the kind of the tokenizer, so a tokenizer
 * that differs from its kind is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/chat_source.h"
#include "formats/tokenizer_gguf.h"
#include "formats/tokenizer_json.h"
#include "src/convert/export.h"
#include "src/language/tokenizer/merge_scores.h"

#define ENDS_MAX 3

/* Kinds of tokens, with the numbers that llama.cpp gives them. */
typedef enum token_type { NORMAL = 1, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 } token_type;

typedef struct token {
    fr_text text; /* bytes NULL: no token has this id */
    token_type type;
    float score; /* the token's score in a unigram model */
} token;

/* ----------------------------------------------------------------------------------------------------------- tokens */

static bool is_byte(fr_text text) {
    return text.length == 6 && memcmp(text.bytes, "<0x", 3) == 0 && text.bytes[5] == '>' &&
           strspn(text.bytes + 3, "0123456789ABCDEFabcdef") == 2;
}

/* Returns true for control tokens that must be printed, because the program that parses a reply reads them. */
static bool is_shown(fr_text text) {
    static const char *const shown[] = {"<|channel>",       "<channel|>",       "<|tool_call>", "<tool_call|>",
                                        "<|tool_response>", "<tool_response|>", "<|\"|>"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (text.length == strlen(shown[i]) && memcmp(text.bytes, shown[i], text.length) == 0) return true;
    return false;
}

static fr_status place(const fr_tokenizer_source *source, token *tokens, size_t vocab, fr_text text, int32_t id,
                       token_type type) {
    if (id < 0 || (size_t)id >= vocab)
        return fr_fail(FR_INPUT, "%s: token id %d, and the embedding has %zu rows", source->path, id, vocab);
    tokens[id] = (token){text, type, tokens[id].score};
    return FR_OK;
}

/* Returns true if a reader that merges by scores makes the added token from its characters by merges. Such a token
 * keeps the type NORMAL, because llama.cpp prints tokens of other types unchanged, including U+2581 for a blank. */
static bool stays_normal(const fr_pre_tokenizer *kind, const token *tokens, const fr_added_entry *added) {
    return kind->pieces == FR_MODEL_SCORED_BPE && fr_added_by_merges(added->text, added->special) &&
           fr_text_same(tokens[added->id].text, added->text);
}

static fr_status collect(const fr_tokenizer_source *source, const fr_pre_tokenizer *kind, token *tokens, size_t vocab) {
    for (size_t i = 0; i < source->vocabulary_count; i++) {
        fr_text text = source->vocabulary[i].text;
        bool byte = !source->byte_level && is_byte(text);
        FR_TRY(place(source, tokens, vocab, text, source->vocabulary[i].id, byte ? BYTE : NORMAL));
        if (source->scores) tokens[source->vocabulary[i].id].score = (float)source->scores[i];
    }
    for (size_t i = 0; i < source->added_count; i++) {
        const fr_added_entry *added = &source->added[i];
        token_type type = added->special && !is_shown(added->text) ? CONTROL : USER_DEFINED;
        if (type == USER_DEFINED && (size_t)added->id < vocab && stays_normal(kind, tokens, added)) continue;
        FR_TRY(place(source, tokens, vocab, added->text, added->id, type));
    }
    return FR_OK;
}

/* Adds a token of WordPiece as llama.cpp has it. A token that begins a word gets U+2581 before it. A token inside a
 * word loses its "##". Control tokens are unchanged. */
static fr_status put_word(const fr_tokenizer_source *source, const token *word, fr_gguf_writer *writer) {
    static const char begin[] = FR_LOWER_BLOCK;
    size_t inside = strlen(FR_INSIDE_WORD), length = word->text.length;
    if (word->type == CONTROL || word->type == UNUSED) {
        fr_gguf_add_text(writer, word->text);
        return FR_OK;
    }
    if (length >= inside && memcmp(word->text.bytes, FR_INSIDE_WORD, inside) == 0) {
        fr_text rest = {word->text.bytes + inside, length - inside};
        if (rest.length == 0 || (rest.length >= 3 && memcmp(rest.bytes, begin, 3) == 0))
            return fr_fail(FR_UNBUILT, "%s: token \"%.*s\" has no form in GGUF", source->path, (int)length,
                           word->text.bytes);
        fr_gguf_add_text(writer, rest);
        return FR_OK;
    }
    char *joined = malloc(length + sizeof begin);
    if (!joined) return fr_fail_memory("a token", length);
    memcpy(joined, begin, sizeof begin - 1);
    memcpy(joined + sizeof begin - 1, word->text.bytes, length);
    fr_gguf_add_text(writer, (fr_text){joined, length + sizeof begin - 1});
    free(joined);
    return FR_OK;
}

/* Adds the tokens. Merges have ranks, but if the pieces are not bytes, llama.cpp needs scores as well. */
static fr_status put_tokens(const fr_tokenizer_source *source, const token *tokens, size_t vocab,
                            fr_gguf_writer *writer) {
    bool words = source->model == FR_MODEL_WORD_PIECE;
    fr_gguf_put_array(writer, "tokenizer.ggml.tokens", FR_GGUF_STRING, vocab);
    for (size_t id = 0; id < vocab; id++) {
        char unused[32];
        int length = snprintf(unused, sizeof unused, source->byte_level || words ? "[PAD%zu]" : "<unused-%zu>", id);
        const token padding = {{unused, (size_t)length}, UNUSED, 0},
                    *entry = tokens[id].text.bytes ? &tokens[id] : &padding;
        if (words)
            FR_TRY(put_word(source, entry, writer));
        else
            fr_gguf_add_text(writer, entry->text);
    }
    if (!source->byte_level && !words) {
        fr_gguf_put_array(writer, "tokenizer.ggml.scores", FR_GGUF_F32, vocab);
        for (size_t id = 0; id < vocab; id++) fr_gguf_add_f32(writer, source->scores ? tokens[id].score : -1000);
    }
    fr_gguf_put_array(writer, "tokenizer.ggml.token_type", FR_GGUF_I32, vocab);
    for (size_t id = 0; id < vocab; id++) fr_gguf_add_u32(writer, tokens[id].text.bytes ? tokens[id].type : UNUSED);
    return FR_OK;
}

static fr_status put_merges(const fr_tokenizer_source *source, fr_gguf_writer *writer) {
    fr_gguf_put_array(writer, "tokenizer.ggml.merges", FR_GGUF_STRING, source->merge_count);
    char *joined = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < source->merge_count; i++) {
        fr_text left = source->merges[i].left, right = source->merges[i].right;
        size_t length = left.length + 1 + right.length;
        if (length > capacity) {
            capacity = 2 * length;
            free(joined);
            joined = malloc(capacity);
        }
        if (!joined) return fr_fail_memory("a merge", capacity);
        memcpy(joined, left.bytes, left.length);
        joined[left.length] = ' ';
        memcpy(joined + left.length + 1, right.bytes, right.length);
        fr_gguf_add_text(writer, (fr_text){joined, length});
    }
    free(joined);
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------- single tokens */

/* Gives the id of the token with this text; -1 if there is none. */
static int64_t find_token(const token *tokens, size_t vocab, const char *text) {
    size_t length = strlen(text);
    for (size_t id = 0; id < vocab; id++)
        if (tokens[id].text.bytes && tokens[id].text.length == length &&
            memcmp(tokens[id].text.bytes, text, length) == 0)
            return (int64_t)id;
    return -1;
}

/* Gives the id of the token that the files in tokenizer.json's folder name under the key KIND_token; -1 if they name
 * none. */
static int64_t named_token(const fr_tokenizer_source *source, const token *tokens, size_t vocab, const char *kind) {
    char key[32];
    snprintf(key, sizeof key, "%s_token", kind);
    const char *text = json_string_value(json_object_get(source->named, key));
    return text ? find_token(tokens, vocab, text) : -1;
}

static void put_id(fr_gguf_writer *writer, const char *key, int64_t id) {
    if (id >= 0) fr_gguf_put_u32(writer, key, (uint32_t)id);
}

/* Reads the key KIND_token_id of config.json, or of its text part; -1 if it is missing. */
static fr_status configured_token(const fr_checkpoint *files, size_t vocab, const char *key, int64_t *id) {
    const json_t *text = json_object_get(files->config, "text_config");
    FR_TRY(fr_json_int(files->config, key, -1, (int64_t)vocab - 1, -1, files->path, id));
    if (*id >= 0 || !json_is_object(text)) return FR_OK;
    return fr_json_int(text, key, -1, (int64_t)vocab - 1, -1, files->path, id);
}

/* Adds the end-of-sequence ids of all configs. If the tokenizer's own end id is one of these ids, it comes first. If
 * there is only one id, it is written as both eos and eot. Without an eot, readers would search for further end tokens
 * by their texts. */
static fr_status put_ends(const fr_checkpoint *files, size_t vocab, int64_t own, fr_gguf_writer *writer) {
    static const char *const keys[ENDS_MAX] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                               "tokenizer.ggml.eom_token_id"};
    const json_t *text = json_object_get(files->config, "text_config");
    const json_t *sources[] = {files->generation, files->config, json_is_object(text) ? text : NULL};
    int32_t ids[ENDS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        if (sources[i])
            FR_TRY(
                fr_json_ids(sources[i], "eos_token_id", (int64_t)vocab - 1, files->path, NULL, ids, ENDS_MAX, &count));
    if (count == 0 && own < 0) return FR_OK;
    if (count == 0) ids[count++] = (int32_t)own;
    for (size_t i = 1; i < count; i++) {
        if (ids[i] != own) continue;
        ids[i] = ids[0];
        ids[0] = (int32_t)own;
    }
    put_id(writer, keys[0], ids[0]);
    put_id(writer, keys[1], ids[count > 1]);
    if (count > 2) put_id(writer, keys[2], ids[2]);
    return FR_OK;
}

static bool adds(const int32_t *ids, size_t count, int64_t id) {
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id) return true;
    return false;
}

/* Gives `id` if it is one of the ids that the tokenizer adds around a text; otherwise -1. */
static int64_t around(const int32_t *ids, size_t count, int64_t id) {
    return id >= 0 && adds(ids, count, id) ? id : -1;
}

/* Adds the special tokens. In tokenizers of GLM-4's kind, if the begin token or the unknown token is missing, the end
 * token is written in its place (conversion/glm.py). masks: the mask token's key has been written already. */
static fr_status put_specials(const fr_checkpoint *files, const fr_tokenizer_source *source,
                              const fr_pre_tokenizer *kind, bool masks, const token *tokens, size_t vocab,
                              fr_gguf_writer *writer) {
    int64_t begin = named_token(source, tokens, vocab, "bos"), end = named_token(source, tokens, vocab, "eos");
    int64_t unknown = named_token(source, tokens, vocab, "unk"), padding = named_token(source, tokens, vocab, "pad");
    /* text encoders name the tokens that they put around a text cls and sep */
    if (begin < 0) begin = around(source->prefix, source->prefix_count, named_token(source, tokens, vocab, "cls"));
    if (end < 0) end = around(source->suffix, source->suffix_count, named_token(source, tokens, vocab, "sep"));
    if (kind->end_for_all && begin < 0) begin = end;
    if (kind->end_for_all && unknown < 0) unknown = end;
    if (padding < 0) FR_TRY(configured_token(files, vocab, "pad_token_id", &padding));
    put_id(writer, "tokenizer.ggml.bos_token_id", begin);
    FR_TRY(put_ends(files, vocab, end, writer));
    put_id(writer, "tokenizer.ggml.unknown_token_id", unknown);
    put_id(writer, "tokenizer.ggml.padding_token_id", padding);
    if (!masks) put_id(writer, "tokenizer.ggml.mask_token_id", named_token(source, tokens, vocab, "mask"));
    fr_gguf_put_bool(writer, "tokenizer.ggml.add_bos_token", adds(source->prefix, source->prefix_count, begin));
    fr_gguf_put_bool(writer, "tokenizer.ggml.add_eos_token", adds(source->suffix, source->suffix_count, end));
    /* RoBERTa's tokenizers put two separators between the texts of a pair. Readers write the end token as the first
     * one, and need a key for the second one. */
    bool two = false;
    for (size_t i = 1; i < source->pair_count; i++) two |= source->pair[i].id >= 0 && source->pair[i - 1].id >= 0;
    if (two) put_id(writer, "tokenizer.ggml.seperator_token_id", end);
    fr_gguf_put_bool(writer, "tokenizer.ggml.add_sep_token", two);
    if (kind->pieces == FR_MODEL_BPE) fr_gguf_put_bool(writer, "tokenizer.ggml.add_space_prefix", false);
    return FR_OK;
}

/* Adds the chat templates. All but the default one are listed by name, as in llama.cpp's files. */
static fr_status put_templates(const char *folder, const json_t *config, fr_gguf_writer *writer) {
    fr_chat_sources chat;
    FR_TRY(fr_chat_sources_read_folder(&chat, folder, config));
    fr_status status = chat.error ? fr_fail(FR_INPUT, "%s", chat.error) : FR_OK;
    if (chat.any.text) fr_gguf_put_text(writer, "tokenizer.chat_template", (fr_text){chat.any.text, chat.any.length});
    if (chat.tools.text) {
        fr_gguf_put_array(writer, "tokenizer.chat_templates", FR_GGUF_STRING, 1);
        fr_gguf_add_text(writer, (fr_text){"tool_use", 8});
        fr_gguf_put_text(writer, "tokenizer.chat_template.tool_use", (fr_text){chat.tools.text, chat.tools.length});
    }
    fr_chat_sources_close(&chat);
    return status;
}

/* ------------------------------------------------------------------------------------------------- merges by scores */

/* Returns true if the rules put U+2581 before a text, as those of Llama 2 do. GGUF files have a key for this. */
static bool adds_space(const fr_tokenizer_source *source) {
    const fr_text_rules *rules = &source->normalizer;
    return rules->count && rules->items[0].kind == FR_RULE_PREPEND &&
           fr_text_is(rules->items[0].content, FR_LOWER_BLOCK);
}

/* Finds the kind of tokenizer for a source with merges whose GGUF file will have scores instead. Gemma's tokenizers
 * also cut texts at blanks. This cut is ignored, because their normalizer has replaced all blanks before. */
static const fr_pre_tokenizer *find_scored_kind(const fr_tokenizer_source *source) {
    fr_tokenizer_source compared = *source;
    fr_text_rules *before = &compared.normalizer;
    const fr_text_rule *cut = &source->pre_tokenizer.items[0];
    bool affixes = source->inside_prefix.length || source->end_suffix.length;
    bool blanks = source->pre_tokenizer.count == 1 && cut->kind == FR_RULE_SPLIT && !cut->regex && !cut->invert &&
                  fr_text_is(cut->pattern, " ");
    if (affixes) return NULL;
    if (blanks) compared.pre_tokenizer.count = 0;
    if (adds_space(source)) memmove(before->items, before->items + 1, --before->count * sizeof *before->items);
    compared.model = FR_MODEL_SCORED_BPE;
    return fr_tokenizer_gguf_suits(&compared, "llama", NULL);
}

/* Refuses added tokens that can't be expressed in files with scores. */
static fr_status check_added(const fr_tokenizer_source *source) {
    for (size_t i = 0; i < source->added_count; i++) {
        const fr_added_entry *added = &source->added[i];
        bool searched = added->normalized && fr_added_by_merges(added->text, added->special);
        if (searched || added->lstrip || added->rstrip || added->single_word)
            return fr_fail(FR_UNBUILT,
                           "%s: added token %d, \"%.99s\", is searched for in a way that has no form in GGUF",
                           source->path, added->id, added->text.bytes);
    }
    return FR_OK;
}

/* -------------------------------------------------------------------------------------------------------- WordPiece */

static bool has_rule(const fr_text_rules *rules, fr_rule_kind kind) {
    for (size_t i = 0; i < rules->count; i++)
        if (rules->items[i].kind == kind) return true;
    return false;
}

/* Finds the kind of tokenizer that cuts texts as the source does. With WordPiece, three of the normalizer's rules have
 * keys of their own in a GGUF file and do not belong to the kind, so they are left out of the comparison. These rules
 * must be the normalizer's last ones, in the order in which readers apply them. */
static const fr_pre_tokenizer *find_kind(const fr_tokenizer_source *source, const fr_tokenizer_form *form) {
    static const fr_rule_kind keyed[] = {FR_RULE_NFD, FR_RULE_DROP_NONSPACING, FR_RULE_LOWERCASE};
    fr_tokenizer_source compared = *source;
    fr_text_rules *rules = &compared.normalizer;
    if (source->model == FR_MODEL_BPE && strcmp(form->model, "llama") == 0) return find_scored_kind(source);
    if (source->model != FR_MODEL_WORD_PIECE) return fr_tokenizer_gguf_suits(source, form->model, form->pre);
    bool strips = has_rule(rules, FR_RULE_NFD);
    if (strips != has_rule(rules, FR_RULE_DROP_NONSPACING)) return NULL;
    for (size_t i = sizeof keyed / sizeof *keyed; i-- > 0;)
        if (rules->count && rules->items[rules->count - 1].kind == keyed[i]) rules->count--;
    if (!fr_text_is(source->inside_prefix, FR_INSIDE_WORD) || source->max_word_characters != 100) return NULL;
    return fr_tokenizer_gguf_suits(&compared, form->model, form->pre);
}

/* Adds the settings of WordPiece: the ids around a text, and two flags, one for lower case and one for dropped
 * accents. */
static fr_status put_word_settings(const fr_checkpoint *files, const fr_tokenizer_source *source, const token *tokens,
                                   size_t vocab, fr_gguf_writer *writer) {
    int64_t padding = named_token(source, tokens, vocab, "pad"), unknown = -1;
    for (size_t id = 0; id < vocab && unknown < 0; id++)
        if (tokens[id].text.bytes && fr_text_same(tokens[id].text, source->unknown)) unknown = (int64_t)id;
    if (source->prefix_count != 1 || source->suffix_count != 1 || unknown < 0)
        return fr_fail(FR_UNBUILT,
                       "%s: a tokenizer that does not put one id before and one after a text, or has no "
                       "unknown token, has no form in GGUF",
                       source->path);
    if (padding < 0) FR_TRY(configured_token(files, vocab, "pad_token_id", &padding));
    put_id(writer, "tokenizer.ggml.bos_token_id", source->prefix[0]);
    put_id(writer, "tokenizer.ggml.eos_token_id", source->suffix[0]);
    put_id(writer, "tokenizer.ggml.unknown_token_id", unknown);
    put_id(writer, "tokenizer.ggml.seperator_token_id", source->suffix[0]);
    put_id(writer, "tokenizer.ggml.padding_token_id", padding);
    put_id(writer, "tokenizer.ggml.mask_token_id", named_token(source, tokens, vocab, "mask"));
    fr_gguf_put_bool(writer, "tokenizer.ggml.add_bos_token", true);
    fr_gguf_put_bool(writer, "tokenizer.ggml.add_eos_token", true);
    fr_gguf_put_bool(writer, "tokenizer.ggml.add_sep_token", false);
    fr_gguf_put_bool(writer, "tokenizer.ggml.normalizer.lowercase", has_rule(&source->normalizer, FR_RULE_LOWERCASE));
    fr_gguf_put_bool(writer, "tokenizer.ggml.normalizer.strip_accents", has_rule(&source->normalizer, FR_RULE_NFD));
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------- the whole tokenizer */

/* Adds the settings of a unigram model, and SentencePiece's map of characters. A tokenizer without byte_fallback must
 * have no token whose text is like <0x0A>, because readers of the file would take such a token for a byte. */
static fr_status put_unigram(const fr_tokenizer_source *source, fr_gguf_writer *writer) {
    static const char map[] = "tokenizer.ggml.precompiled_charsmap";
    bool adds, removes, bytes = false;
    for (size_t i = 0; i < source->vocabulary_count; i++) bytes |= is_byte(source->vocabulary[i].text);
    if (!fr_tokenizer_gguf_suits_unigram(source, &adds, &removes) || (bytes && !source->byte_fallback))
        return fr_fail(FR_UNBUILT, "%s: writing a unigram tokenizer that prepares texts in this way is not built",
                       source->path);
    fr_gguf_put_bool(writer, "tokenizer.ggml.add_space_prefix", adds || removes);
    fr_gguf_put_bool(writer, "tokenizer.ggml.remove_extra_whitespaces", removes);
    for (size_t i = 0; i < source->normalizer.count; i++) {
        fr_text content = source->normalizer.items[i].content;
        if (source->normalizer.items[i].kind == FR_RULE_PRECOMPILED)
            fr_gguf_put_value(writer, &(fr_gguf_value){.key = {map, sizeof map - 1},
                                                       .type = FR_GGUF_ARRAY,
                                                       .element = FR_GGUF_U8,
                                                       .count = content.length,
                                                       .data = (const uint8_t *)content.bytes,
                                                       .bytes = content.length});
    }
    return FR_OK;
}

static fr_status put_all(const fr_checkpoint *files, fr_tokenizer_source *source, const fr_tokenizer_form *form,
                         token *tokens, size_t vocab, fr_gguf_writer *writer) {
    if (!tokens) return fr_fail_memory("tokens", vocab * sizeof *tokens);
    const fr_pre_tokenizer *kind = source->model == FR_MODEL_UNIGRAM && strcmp(form->model, "t5") == 0
                                       ? fr_pre_tokenizer_find((fr_text){"t5", 2}, (fr_text){"default", 7})
                                       : find_kind(source, form);
    if (!kind)
        return fr_fail(FR_UNBUILT, "%s: writing a tokenizer as GGUF that cuts texts otherwise than \"%s\" is not built",
                       source->path, form->pre ? form->pre : form->model);
    bool scored = kind->pieces == FR_MODEL_SCORED_BPE;
    if (scored) FR_TRY(check_added(source));
    if (scored) FR_TRY(fr_merge_scores(source));
    FR_TRY(collect(source, kind, tokens, vocab));
    fr_gguf_put_string(writer, "tokenizer.ggml.model", form->model);
    /* The name "roberta-bpe" also tells readers that two separators are between the texts of a pair, so it is kept. */
    bool roberta = form->pre && strcmp(form->pre, "roberta-bpe") == 0;
    if (form->pre) fr_gguf_put_string(writer, "tokenizer.ggml.pre", roberta ? form->pre : kind->names[0]);
    FR_TRY(put_tokens(source, tokens, vocab, writer));
    if (kind->pieces == FR_MODEL_WORD_PIECE) return put_word_settings(files, source, tokens, vocab, writer);
    if (scored)
        fr_gguf_put_bool(writer, "tokenizer.ggml.add_space_prefix", adds_space(source));
    else if (kind->pieces == FR_MODEL_UNIGRAM)
        FR_TRY(put_unigram(source, writer));
    else
        FR_TRY(put_merges(source, writer));
    FR_TRY(put_specials(files, source, kind, form->masks, tokens, vocab, writer));
    return put_templates(files->path, source->config, writer);
}

fr_status fr_export_tokenizer(const fr_checkpoint *files, const fr_tokenizer_form *form, size_t vocab,
                              fr_gguf_writer *writer) {
    bool there = fr_tokenizer_json_there(files->path);
    if (!there || form->counts_ids) fr_gguf_put_u32(writer, ".vocab_size", (uint32_t)vocab);
    if (!there) {
        fr_gguf_put_text(writer, "tokenizer.ggml.model", (fr_text){"none", 4});
        return FR_OK;
    }
    fr_tokenizer_source source;
    FR_TRY(fr_tokenizer_json_open(&source, files->path));
    token *tokens = calloc(vocab, sizeof *tokens);
    fr_tokenizer_form chosen = *form;
    if (!form->model && source.model == FR_MODEL_BPE && source.byte_level)
        chosen = (fr_tokenizer_form){.model = "gpt2", .pre = "roberta-bpe"};
    else if (!form->model)
        chosen = source.model == FR_MODEL_UNIGRAM ? (fr_tokenizer_form){.model = "t5", .pre = "default"}
                                                  : (fr_tokenizer_form){.model = "bert"};
    fr_status status = put_all(files, &source, &chosen, tokens, vocab, writer);
    free(tokens);
    fr_tokenizer_source_close(&source);
    return status;
}
