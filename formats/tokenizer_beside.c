/* Reads the files beside tokenizer.json (tokenizer_beside.h).
 *
 * These files are kept as JSON trees, into which the texts of tokens point. The source owns the trees. */
#include "formats/tokenizer_beside.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file_place.h"
#include "formats/checkpoint.h"
#include "formats/json_wide.h"

/* Holds one of the files; root is NULL if the file does not exist or is not needed. */
typedef struct beside_file {
    json_t *root;
    char *path;
} beside_file;

typedef struct beside {
    fr_tokenizer_source *source;
    beside_file config, map, added;
    const json_t *vocabulary; /* maps a token's text to its id, as in tokenizer.json's vocabulary */
    json_t *special;          /* a set of the texts of special tokens */
    json_t *index;            /* maps a token's text to its index in the source's list of added tokens */
    uint8_t *taken;           /* one bit for each id, set if a token has the id; NULL before the first use */
    size_t capacity;          /* capacity of the source's list of added tokens */
} beside;

static fr_text text_of(const json_t *string) {
    return (fr_text){json_string_value(string), json_string_length(string)};
}

static fr_status fail_memory(const beside *b, size_t bytes) {
    return fr_fail_memory(b->source->path, bytes);
}

/* ------------------------------------------------------------------------------------------------------------ files */

/* Reads a JSON file of the folder if it exists. b->source owns the parsed value. */
static fr_status read_file(beside *b, const char *folder, const char *name, beside_file *file) {
    file->path = fr_path_join(folder, name);
    if (!file->path) return fr_fail_memory(folder, strlen(folder));
    if (!fr_file_exists(file->path)) return FR_OK;
    FR_TRY(fr_json_read(file->path, FR_TOKENIZER_FILE_MAX, &file->root));
    bool kept = json_array_append_new(b->source->beside, file->root) == 0;
    if (!kept) file->root = NULL;
    if (!kept) return fail_memory(b, sizeof *file->root);
    return json_is_object(file->root) ? FR_OK : fr_fail(FR_INPUT, "%s is not a JSON object", file->path);
}

static fr_status read_files(beside *b, const char *folder) {
    json_t *decoder;
    FR_TRY(read_file(b, folder, "tokenizer_config.json", &b->config));
    b->source->config = b->config.root;
    FR_TRY(fr_json_object(b->config.root, "added_tokens_decoder", b->config.path, &decoder));
    if (decoder) return FR_OK;
    FR_TRY(read_file(b, folder, "special_tokens_map.json", &b->map));
    return read_file(b, folder, "added_tokens.json", &b->added);
}

/* ----------------------------------------------------------------------------------------------------- named tokens */

/* Reads a token that is given as a text or as an added token, {"content": text, ...}; NULL if there is none. */
static fr_status read_token(const json_t *value, const char *key, const char *where, const json_t **text) {
    *text = json_is_object(value) ? json_object_get(value, "content") : json_is_null(value) ? NULL : value;
    bool none = !*text && !json_is_object(value);
    return none || fr_json_is_text(*text) ? FR_OK : fr_fail(FR_INPUT, "%s: \"%s\" is not a string", where, key);
}

static fr_status name_token(beside *b, const json_t *value, const char *key, const char *where) {
    const json_t *text;
    FR_TRY(read_token(value, key, where, &text));
    if (text && json_object_set_new(b->source->named, key, json_copy((json_t *)text)) != 0)
        return fail_memory(b, json_string_length(text));
    return FR_OK;
}

static fr_status mark_special(beside *b, const json_t *text) {
    const char *bytes = json_string_value(text);
    if (bytes && *bytes && json_object_set_new(b->special, bytes, json_true()) != 0)
        return fail_memory(b, json_string_length(text));
    return FR_OK;
}

static bool is_name(const char *key) {
    size_t length = strlen(key);
    return length > 6 && strcmp(key + length - 6, "_token") == 0;
}

/* Reads further special tokens. In an array they have no names; in an object each key is a name. */
static fr_status read_list(beside *b, const beside_file *file, const char *key) {
    json_t *list = json_object_get(file->root, key), *value;
    const json_t *text;
    const char *name;
    size_t at;
    json_array_foreach (list, at, value) {
        FR_TRY(read_token(value, key, file->path, &text));
        FR_TRY(mark_special(b, text));
    }
    json_object_foreach (list, name, value)
        if (is_name(name)) FR_TRY(name_token(b, value, name, file->path));
    return FR_OK;
}

static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                    "pad_token", "cls_token", "mask_token"};

static bool is_own_name(const char *key) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(key, names[i]) == 0) return false;
    return is_name(key);
}

/* Reads "image_token" and any other token name that only this model has. "add_bos_token" is left out, because its value
 * is not a text. If both files name a token, the name in the configuration is used. */
static fr_status read_own_names(beside *b, const beside_file *file) {
    const char *key;
    json_t *value;
    json_object_foreach (file->root, key, value) {
        bool text = fr_json_is_text(value) || fr_json_is_text(json_object_get(value, "content"));
        bool named = file != &b->config && json_object_get(b->source->named, key);
        if (text && !named && is_own_name(key)) FR_TRY(name_token(b, value, key, file->path));
    }
    return FR_OK;
}

static fr_status read_names_of(beside *b, const beside_file *file) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        FR_TRY(name_token(b, json_object_get(file->root, names[i]), names[i], file->path));
    FR_TRY(read_list(b, file, "model_specific_special_tokens"));
    FR_TRY(read_own_names(b, file));
    FR_TRY(read_list(b, file, "extra_special_tokens"));
    return read_list(b, file, "additional_special_tokens");
}

static fr_status read_names(beside *b) {
    const char *name;
    json_t *text;
    FR_TRY(read_names_of(b, &b->config));
    FR_TRY(read_names_of(b, &b->map));
    json_object_foreach (b->source->named, name, text) FR_TRY(mark_special(b, text));
    b->source->begin = text_of(json_object_get(b->source->named, "bos_token"));
    b->source->end = text_of(json_object_get(b->source->named, "eos_token"));
    return FR_OK;
}

/* ----------------------------------------------------------------------------------------------------- added tokens */

static fr_status note_place(beside *b, const char *text, size_t place) {
    bool noted = json_object_set_new(b->index, text, json_integer((json_int_t)place)) == 0;
    return noted ? FR_OK : fail_memory(b, strlen(text));
}

static fr_status index_added(beside *b) {
    b->capacity = b->source->added_count;
    for (size_t i = 0; i < b->source->added_count; i++) FR_TRY(note_place(b, b->source->added[i].text.bytes, i));
    return FR_OK;
}

static bool take(beside *b, int32_t id) {
    uint8_t bit = (uint8_t)(1u << (id & 7)), *byte = &b->taken[id >> 3];
    bool was = *byte & bit;
    *byte |= bit;
    return was;
}

/* Marks an id as taken. *was becomes true if another token already has the id. */
static fr_status take_id(beside *b, int32_t id, bool *was) {
    const fr_tokenizer_source *source = b->source;
    if (!b->taken) {
        b->taken = calloc(FR_TOKEN_ID_MAX / 8 + 1, 1);
        if (!b->taken) return fail_memory(b, FR_TOKEN_ID_MAX / 8 + 1);
        for (size_t i = 0; i < source->vocabulary_count; i++) take(b, source->vocabulary[i].id);
        for (size_t i = 0; i < source->added_count; i++) take(b, source->added[i].id);
    }
    *was = take(b, id);
    return FR_OK;
}

static fr_status append(beside *b, const fr_added_entry *entry) {
    fr_tokenizer_source *source = b->source;
    if (source->added_count >= b->capacity) {
        size_t capacity = 2 * b->capacity + 64;
        fr_added_entry *grown = realloc(source->added, capacity * sizeof *grown);
        if (!grown) return fail_memory(b, capacity * sizeof *grown);
        source->added = grown;
        b->capacity = capacity;
    }
    FR_TRY(note_place(b, entry->text.bytes, source->added_count));
    source->added[source->added_count++] = *entry;
    return FR_OK;
}

/* Adds an entry to the source's list of added tokens. If the list already has an entry with this text, that entry keeps
 * its id and gets the given flags. Otherwise the new entry gets the id that its text has in the vocabulary. If the
 * vocabulary lacks the text, the new entry gets the given id, unless another token has that id. */
static fr_status add(beside *b, fr_added_entry entry) {
    const json_t *place = json_object_get(b->index, entry.text.bytes);
    const json_t *known = json_object_get(b->vocabulary, entry.text.bytes);
    bool taken = false;
    if (json_object_get(b->special, entry.text.bytes)) entry.special = true;
    if (place) {
        fr_added_entry *old = &b->source->added[json_integer_value(place)];
        entry.id = old->id;
        entry.text = old->text;
        *old = entry;
        return FR_OK;
    }
    if (known)
        entry.id = (int32_t)json_integer_value(known);
    else
        FR_TRY(take_id(b, entry.id, &taken));
    if (!taken) return append(b, &entry);
    fr_notes_add(&b->source->notes,
                 "%s: the added token \"%.99s\" beside it has the id %d, which another token has: it is "
                 "left out",
                 b->source->path, entry.text.bytes, entry.id);
    return FR_OK;
}

/* Reads the key of added_tokens_decoder, which must be digits only. */
static bool read_key(const char *key, int32_t *id) {
    size_t length = strspn(key, "0123456789");
    if (length == 0 || length > 8 || key[length]) return false;
    long value = strtol(key, NULL, 10);
    *id = (int32_t)value;
    return value <= FR_TOKEN_ID_MAX;
}

/* Reads an entry {"content", "special", ...}. `where` names the entry's file in error lines. An entry without "content"
 * is ignored. */
static fr_status read_entry(beside *b, const json_t *item, const char *where, int32_t id) {
    const json_t *text;
    fr_added_entry entry = {.id = id};
    FR_TRY(read_token(json_object_get(item, "content"), "content", where, &text));
    if (!text || json_string_length(text) == 0) return FR_OK;
    entry.text = text_of(text);
    FR_TRY(fr_json_bool(item, "special", false, where, &entry.special));
    FR_TRY(fr_json_bool(item, "lstrip", false, where, &entry.lstrip));
    FR_TRY(fr_json_bool(item, "rstrip", false, where, &entry.rstrip));
    FR_TRY(fr_json_bool(item, "single_word", false, where, &entry.single_word));
    FR_TRY(fr_json_bool(item, "normalized", !entry.special, where, &entry.normalized));
    return add(b, entry);
}

static fr_status read_decoder(beside *b) {
    const char *key;
    json_t *decoder = json_object_get(b->config.root, "added_tokens_decoder"), *item;
    json_object_foreach (decoder, key, item) {
        int32_t id;
        if (!read_key(key, &id) || !json_is_object(item))
            return fr_fail(FR_INPUT, "%s: added_tokens_decoder: \"%.99s\" is no id of a token", b->config.path, key);
        FR_TRY(read_entry(b, item, b->config.path, id));
    }
    return FR_OK;
}

/* Reads added_tokens.json. The file has no flags, so tokens that are also in tokenizer.json keep the flags from
 * there. */
static fr_status read_old_added(beside *b) {
    const char *text;
    json_t *value;
    json_object_foreach (b->added.root, text, value) {
        int64_t id;
        FR_TRY(fr_json_int(b->added.root, text, 0, FR_TOKEN_ID_MAX, FR_JSON_REQUIRED, b->added.path, &id));
        bool special = json_object_get(b->special, text) != NULL;
        if (*text && !json_object_get(b->index, text))
            FR_TRY(add(b, (fr_added_entry){.text = {text, strlen(text)}, .id = (int32_t)id, .normalized = !special}));
    }
    return FR_OK;
}

/* Adds the special tokens that are in the vocabulary but in no list of added tokens. */
static fr_status add_special(beside *b) {
    const char *text;
    json_t *value;
    json_object_foreach (b->special, text, value) {
        void *known = json_object_iter_at((json_t *)b->vocabulary, text);
        if (!known || json_object_get(b->index, text)) continue;
        /* points into the vocabulary, because b->special is freed before the source */
        const char *kept = json_object_iter_key(known);
        FR_TRY(add(b, (fr_added_entry){.text = {kept, strlen(kept)}}));
    }
    return FR_OK;
}

/* --------------------------------------------------------------------------------------------- flags, and all files */

/* Finds the id of a token's text. Returns -1 if there is none. */
static int32_t find_token(const beside *b, fr_text text) {
    const json_t *place = json_object_get(b->index, text.bytes), *known = json_object_get(b->vocabulary, text.bytes);
    if (place) return b->source->added[json_integer_value(place)].id;
    return known ? (int32_t)json_integer_value(known) : -1;
}

/* Applies the flag `key`. If the flag is true, the token's id is added to `ids`, the ids that are put before each text
 * (`before`) or after it. If the flag is false, the id is removed from them. */
static fr_status heed_flag(const beside *b, const char *key, fr_text token, int32_t *ids, size_t *count, bool before) {
    const json_t *flag = json_object_get(b->config.root, key);
    int32_t id = token.bytes ? find_token(b, token) : -1;
    if (!json_is_boolean(flag) || id < 0) return FR_OK;
    size_t place = 0;
    while (place < *count && ids[place] != id) place++;
    if (json_is_false(flag) && place < *count) {
        --*count;
        memmove(ids + place, ids + place + 1, (*count - place) * sizeof *ids);
    } else if (json_is_true(flag) && place == *count) {
        if (*count == FR_TEMPLATE_IDS_MAX)
            return fr_fail(FR_INPUT, "%s: \"%s\": a text has %d tokens before or after it at most", b->config.path, key,
                           FR_TEMPLATE_IDS_MAX);
        if (before) memmove(ids + 1, ids, *count * sizeof *ids);
        ids[before ? 0 : *count] = id;
        ++*count;
    }
    return FR_OK;
}

static fr_status read_all(beside *b, const char *folder) {
    if (!b->source->beside || !b->source->named || !b->special || !b->index) return fail_memory(b, sizeof(json_t));
    FR_TRY(read_files(b, folder));
    FR_TRY(read_names(b));
    FR_TRY(index_added(b));
    FR_TRY(read_decoder(b));
    FR_TRY(read_old_added(b));
    FR_TRY(add_special(b));
    fr_tokenizer_source *source = b->source;
    FR_TRY(heed_flag(b, "add_bos_token", source->begin, source->prefix, &source->prefix_count, true));
    return heed_flag(b, "add_eos_token", source->end, source->suffix, &source->suffix_count, false);
}

fr_status fr_tokenizer_beside_read(fr_tokenizer_source *source, const char *folder) {
    beside b = {.source = source, .special = json_object(), .index = json_object()};
    b.vocabulary = json_object_get(json_object_get(source->root, "model"), "vocab");
    source->beside = json_array();
    source->named = json_object();
    fr_status status = read_all(&b, folder);
    free(b.config.path);
    free(b.map.path);
    free(b.added.path);
    json_decref(b.special);
    json_decref(b.index);
    free(b.taken);
    return status;
}
