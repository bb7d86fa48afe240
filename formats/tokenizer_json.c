/* Reads tokenizer.json; tokenizer_json.h shows its structure.
 *
 * In: JSON trees from formats/json.h. Out: lists whose texts point into these trees. */
#include "formats/tokenizer_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file_place.h"
#include "formats/checkpoint.h"
#include "formats/json_member.h"
#include "formats/json_wide.h"
#include "formats/tokenizer_beside.h"
#include "formats/tokenizer_json_parts.h"

/* ---------------------------------------------------------------------------------------------------------- getters */

static fr_status read_id(const json_t *object, const char *key, const char *where, int32_t *id) {
    int64_t value;
    FR_TRY(fr_json_int(object, key, 0, FR_TOKEN_ID_MAX, FR_JSON_REQUIRED, where, &value));
    *id = (int32_t)value;
    return FR_OK;
}

static fr_status fail_list(const fr_tokenizer_source *json, size_t count) {
    return fr_fail_memory(json->path, (count + 1) * sizeof(fr_merge_entry));
}

/* ---------------------------------------------------------------------------------------------- model, added tokens */

static fr_status read_vocabulary(fr_tokenizer_source *json, json_t *vocabulary) {
    json->vocabulary = calloc(json_object_size(vocabulary) + 1, sizeof *json->vocabulary);
    if (!json->vocabulary) return fail_list(json, json_object_size(vocabulary));
    const char *key;
    json_t *value;
    json_object_foreach (vocabulary, key, value) {
        json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id > FR_TOKEN_ID_MAX)
            return fr_fail(FR_INPUT, "%s: the id of token \"%.99s\" is not a whole number from 0 to %d", json->path,
                           key, FR_TOKEN_ID_MAX);
        json->vocabulary[json->vocabulary_count++] = (fr_vocabulary_entry){{key, strlen(key)}, (int32_t)id};
    }
    return FR_OK;
}

/* Reads a merge: ["a", "b"], or "a b" in older files. */
static bool read_merge(const json_t *json, fr_merge_entry *merge) {
    if (json_is_array(json)) {
        const json_t *left = json_array_get(json, 0), *right = json_array_get(json, 1);
        *merge = (fr_merge_entry){fr_member_of(left), fr_member_of(right)};
        return json_array_size(json) == 2 && fr_json_is_text(left) && fr_json_is_text(right);
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
    json_array_foreach (merges, i, item) {
        const char *line = json_string_value(item);
        /* a merges.txt begins with this line, which the tokenizers library drops too */
        if (line && strncmp(line, "#version", 8) == 0) continue;
        if (!read_merge(item, &json->merges[json->merge_count++]))
            return fr_fail(FR_INPUT, "%s: merge %zu is neither [\"a\", \"b\"] nor \"a b\"", json->path, i);
    }
    return FR_OK;
}

/* Reads [["token", score], ...]; a token's id is its index in the list. */
static fr_status read_scored(fr_tokenizer_source *json, const json_t *list) {
    size_t count = json_array_size(list), i;
    json_t *item;
    json->vocabulary = calloc(count + 1, sizeof *json->vocabulary);
    json->scores = malloc((count + 1) * sizeof *json->scores);
    if (!json->vocabulary || !json->scores) return fail_list(json, count);
    if (count > FR_TOKEN_ID_MAX) return fr_fail(FR_INPUT, "%s: %zu tokens, which are too many", json->path, count);
    json_array_foreach (list, i, item) {
        const json_t *text = json_array_get(item, 0), *score = json_array_get(item, 1);
        if (json_array_size(item) != 2 || !fr_json_is_text(text) || !json_is_number(score))
            return fr_fail(FR_INPUT, "%s: token %zu is not [\"text\", score]", json->path, i);
        json->vocabulary[i] = (fr_vocabulary_entry){fr_member_of(text), (int32_t)i};
        json->scores[i] = json_number_value(score);
    }
    json->vocabulary_count = count;
    return FR_OK;
}

static fr_status read_unigram(fr_tokenizer_source *json, const json_t *model) {
    json_t *vocabulary;
    int64_t unknown;
    FR_TRY(fr_json_bool(model, "byte_fallback", false, json->path, &json->byte_fallback));
    FR_TRY(fr_member_array(model, "vocab", json->path, &vocabulary));
    if (!vocabulary) return fr_fail(FR_INPUT, "%s: the model lacks \"vocab\"", json->path);
    FR_TRY(read_scored(json, vocabulary));
    int64_t last = (int64_t)json->vocabulary_count - 1;
    FR_TRY(fr_json_int(model, "unk_id", 0, last, -1, json->path, &unknown));
    if (unknown >= 0) json->unknown = json->vocabulary[unknown].text;
    return FR_OK;
}

/* Reads the models WordPiece and WordLevel. */
static fr_status read_words(fr_tokenizer_source *json, const json_t *model) {
    json_t *vocabulary;
    int64_t most;
    FR_TRY(fr_member_required_text(model, "unk_token", json->path, &json->unknown));
    FR_TRY(fr_member_text(model, "continuing_subword_prefix", json->path, &json->inside_prefix));
    FR_TRY(fr_json_int(model, "max_input_chars_per_word", 0, INT32_MAX, 100, json->path, &most));
    json->max_word_characters = (size_t)most;
    FR_TRY(fr_json_object(model, "vocab", json->path, &vocabulary));
    if (!vocabulary) return fr_fail(FR_INPUT, "%s: the model lacks \"vocab\"", json->path);
    return read_vocabulary(json, vocabulary);
}

static fr_status read_bpe(fr_tokenizer_source *json, const json_t *model) {
    const char *where = json->path;
    json_t *vocabulary, *merges;
    double dropout;
    FR_TRY(fr_json_real(model, "dropout", 0, 0, 0, where, &dropout));
    FR_TRY(fr_member_text(model, "unk_token", where, &json->unknown));
    if (json->unknown.length == 0) json->unknown = (fr_text){0};
    FR_TRY(fr_member_text(model, "continuing_subword_prefix", where, &json->inside_prefix));
    FR_TRY(fr_member_text(model, "end_of_word_suffix", where, &json->end_suffix));
    FR_TRY(fr_json_bool(model, "fuse_unk", false, where, &json->fuse_unknown));
    FR_TRY(fr_json_bool(model, "byte_fallback", false, where, &json->byte_fallback));
    FR_TRY(fr_json_bool(model, "ignore_merges", false, where, &json->ignore_merges));
    FR_TRY(fr_json_object(model, "vocab", where, &vocabulary));
    FR_TRY(fr_member_array(model, "merges", where, &merges));
    if (!vocabulary || !merges) return fr_fail(FR_INPUT, "%s: the model lacks \"vocab\" or \"merges\"", where);
    FR_TRY(read_vocabulary(json, vocabulary));
    return read_merges(json, merges);
}

static const struct {
    const char *type;
    fr_model_kind kind;
    fr_status (*read)(fr_tokenizer_source *json, const json_t *model);
} models[] = {
    {"BPE", FR_MODEL_BPE, read_bpe},
    {"Unigram", FR_MODEL_UNIGRAM, read_unigram},
    {"WordPiece", FR_MODEL_WORD_PIECE, read_words},
    {"WordLevel", FR_MODEL_WORD_LEVEL, read_words},
};

/* Guesses the type of a model whose file does not give it, as old files do not. As in the tokenizers library, the guess
 * is the first type whose members the file has. */
static const char *guess_type(const json_t *model) {
    if (json_is_array(json_object_get(model, "vocab"))) return "Unigram";
    if (json_object_get(model, "merges")) return "BPE";
    const json_t *prefix = json_object_get(model, "continuing_subword_prefix");
    return prefix && json_object_get(model, "max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

static fr_status read_model(fr_tokenizer_source *json) {
    json_t *model;
    fr_text type;
    FR_TRY(fr_json_object(json->root, "model", json->path, &model));
    if (!model) return fr_fail(FR_INPUT, "%s: \"model\" is missing", json->path);
    FR_TRY(fr_member_text(model, "type", json->path, &type));
    if (!type.bytes) type = (fr_text){guess_type(model), strlen(guess_type(model))};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        if (!fr_text_is(type, models[i].type)) continue;
        json->model = models[i].kind;
        return models[i].read(json, model);
    }
    return fr_fail(FR_UNBUILT, "%s: model \"%s\" is not built yet", json->path, type.bytes);
}

static fr_status read_added_token(const fr_tokenizer_source *json, const json_t *item, size_t at,
                                  fr_added_entry *added) {
    if (!json_is_object(item)) return fr_fail(FR_INPUT, "%s: added token %zu is not an object", json->path, at);
    FR_TRY(fr_member_required_text(item, "content", json->path, &added->text));
    FR_TRY(read_id(item, "id", json->path, &added->id));
    FR_TRY(fr_json_bool(item, "special", false, json->path, &added->special));
    FR_TRY(fr_json_bool(item, "lstrip", false, json->path, &added->lstrip));
    FR_TRY(fr_json_bool(item, "rstrip", false, json->path, &added->rstrip));
    FR_TRY(fr_json_bool(item, "single_word", false, json->path, &added->single_word));
    return fr_json_bool(item, "normalized", true, json->path, &added->normalized);
}

static bool is_same(const fr_added_entry *a, const fr_added_entry *b) {
    return a->id == b->id && a->special == b->special && a->lstrip == b->lstrip && a->rstrip == b->rstrip &&
           a->single_word == b->single_word && a->normalized == b->normalized;
}

/* Reads the list of added tokens. `places` gets the index of each text in the list. As in the tokenizers library, a
 * token that is repeated exactly is added once. A token that is repeated with other flags is added again. The tokenizer
 * then refuses the second one. */
static fr_status read_added_list(fr_tokenizer_source *json, const json_t *list, json_t *places) {
    size_t i;
    json_t *item;
    json_array_foreach (list, i, item) {
        fr_added_entry *added = &json->added[json->added_count];
        FR_TRY(read_added_token(json, item, i, added));
        const json_t *place = json_object_get(places, added->text.bytes);
        if (place && is_same(&json->added[json_integer_value(place)], added)) continue;
        if (json_object_set_new(places, added->text.bytes, json_integer((json_int_t)json->added_count)) != 0)
            return fail_list(json, json_array_size(list));
        json->added_count++;
    }
    return FR_OK;
}

static fr_status read_added_tokens(fr_tokenizer_source *json) {
    json_t *list, *places = json_object();
    fr_status status = fr_member_array(json->root, "added_tokens", json->path, &list);
    json->added = calloc(json_array_size(list) + 1, sizeof *json->added);
    if (!json->added || !places) status = fail_list(json, json_array_size(list));
    if (status == FR_OK) status = read_added_list(json, list, places);
    json_decref(places);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- folder */

static fr_status read_tokenizer(fr_tokenizer_source *json, const char *folder) {
    bool older = !fr_file_exists(json->path) && fr_tokenizer_json_there(folder);
    FR_TRY(older ? fr_tokenizer_json_of_vocabulary(folder, &json->root)
                 : fr_json_read(json->path, FR_TOKENIZER_FILE_MAX, &json->root));
    if (older) { /* error lines then name the two files that were read instead */
        free(json->path);
        json->path = fr_path_join(folder, "vocab.json and merges.txt");
        if (!json->path) return fr_fail_memory(folder, strlen(folder));
    }
    if (!json_is_object(json->root)) return fr_fail(FR_INPUT, "%s is not a JSON object", json->path);
    FR_TRY(read_model(json));
    FR_TRY(read_added_tokens(json));
    FR_TRY(fr_tokenizer_json_rules(json));
    return fr_tokenizer_json_processor(json);
}

fr_status fr_tokenizer_json_open(fr_tokenizer_source *json, const char *folder) {
    *json = (fr_tokenizer_source){.path = fr_path_join(folder, "tokenizer.json")};
    fr_status status = json->path ? FR_OK : fr_fail_memory(folder, strlen(folder));
    if (status == FR_OK) status = read_tokenizer(json, folder);
    if (status == FR_OK) status = fr_tokenizer_beside_read(json, folder);
    if (status != FR_OK) fr_tokenizer_source_close(json);
    return status;
}
