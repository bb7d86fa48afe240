/* Reads vocab.json and merges.txt, which older folders have in place of tokenizer.json: see tokenizer_json_parts.h.
 *
 * In: both files, and tokenizer_config.json, whose tokenizer_class determines how texts are cut. Out: the JSON tree
 * that transformers would write as tokenizer.json. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file_place.h"
#include "formats/checkpoint.h"
#include "formats/json.h"
#include "formats/map.h"
#include "formats/tokenizer_beside.h"
#include "formats/tokenizer_json.h"
#include "formats/tokenizer_json_parts.h"

/* Members of a tokenizer.json that say how texts are cut, for each tokenizer class in the list `classes`. %s is
 * replaced by the value of add_prefix_space. */
static const char gpt2[] = "{\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": %s, "
                           "\"trim_offsets\": true, \"use_regex\": true}, \"decoder\": {\"type\": \"ByteLevel\"}}";
static const char qwen2[] =
    "{\"normalizer\": {\"type\": \"NFC\"}, \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": "
    "\"Split\", \"pattern\": {\"Regex\": "
    "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+"
    "[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}, \"behavior\": \"Isolated\", \"invert\": false}, "
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": %s, \"trim_offsets\": true, \"use_regex\": false}]}, "
    "\"decoder\": {\"type\": \"ByteLevel\"}}";

static const struct {
    const char *name, *rules;
} classes[] = {{"GPT2Tokenizer", gpt2},        {"GPT2TokenizerFast", gpt2}, {"CodeGenTokenizer", gpt2},
               {"CodeGenTokenizerFast", gpt2}, {"Qwen2Tokenizer", qwen2},   {"Qwen2TokenizerFast", qwen2}};

static bool has_file(const char *folder, const char *name) {
    char *path = fr_path_join(folder, name);
    bool there = path && fr_file_exists(path);
    free(path);
    return there;
}

bool fr_tokenizer_json_there(const char *folder) {
    return has_file(folder, "tokenizer.json") || (has_file(folder, "vocab.json") && has_file(folder, "merges.txt"));
}

/* Reads a JSON object of the folder. */
static fr_status read_object(const char *folder, const char *name, json_t **object) {
    char *path = fr_path_join(folder, name);
    if (!path) return fr_fail_memory(folder, strlen(folder));
    fr_status status = fr_json_read(path, FR_TOKENIZER_FILE_MAX, object);
    if (status == FR_OK && !json_is_object(*object)) status = fr_fail(FR_INPUT, "%s is not a JSON object", path);
    free(path);
    return status;
}

/* Reads the lines of merges.txt that have a merge. */
static fr_status read_lines(const char *folder, json_t *merges) {
    char *path = fr_path_join(folder, "merges.txt"), *text = NULL;
    size_t size;
    if (!path) return fr_fail_memory(folder, strlen(folder));
    fr_status status = fr_read_text(path, FR_TOKENIZER_FILE_MAX, &text, &size);
    for (size_t at = 0, line = 1; status == FR_OK && at < size; line++) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - text) - at : size - at, kept = length;
        if (kept && text[at + kept - 1] == '\r') kept--;
        json_t *item = kept ? json_stringn(text + at, kept) : NULL;
        if (kept && !item)
            status = fr_fail(FR_INPUT, "%s: line %zu is no UTF-8", path, line);
        else if (kept && json_array_append_new(merges, item) != 0)
            status = fr_fail_memory(path, size);
        at += length + 1;
    }
    free(text);
    free(path);
    return status;
}

/* Gives the members of a tokenizer.json for the tokenizer class that tokenizer_config.json names. If no class is named,
 * gives the members for GPT-2's class. */
static fr_status make_rules(const json_t *config, const char *folder, json_t **rules) {
    const char *class = json_string_value(json_object_get(config, "tokenizer_class")), *form = class ? NULL : gpt2;
    char text[1024];
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (class && strcmp(class, classes[i].name) == 0) form = classes[i].rules;
    if (!form)
        return fr_fail(FR_UNBUILT, "%s: tokenizer_class %.60s without a tokenizer.json is not built", folder, class);
    bool spaced = json_is_true(json_object_get(config, "add_prefix_space"));
    const char *value = strstr(form, "%s");
    int length =
        snprintf(text, sizeof text, "%.*s%s%s", (int)(value - form), form, spaced ? "true" : "false", value + 2);
    return fr_json_parse(text, (size_t)length, folder, rules);
}

/* Adds the end-of-text token as a special token, as the tokenizer classes of this file do. If tokenizer_config.json
 * names the bos, eos and unk tokens, nothing is added. */
static int add_end(const json_t *config, const json_t *vocabulary, json_t *root) {
    static const char end[] = "<|endoftext|>";
    const json_t *id = json_object_get(vocabulary, end);
    json_t *added = json_array();
    bool named = json_object_get(config, "bos_token") && json_object_get(config, "eos_token") &&
                 json_object_get(config, "unk_token");
    int failed = json_object_set_new(root, "added_tokens", added);
    if (failed || named || !json_is_integer(id)) return failed;
    return json_array_append_new(added, json_pack("{s:s, s:I, s:b, s:b}", "content", end, "id", json_integer_value(id),
                                                  "special", 1, "normalized", 0));
}

fr_status fr_tokenizer_json_of_vocabulary(const char *folder, json_t **root) {
    json_t *config = NULL, *vocabulary = NULL, *merges = json_array();
    fr_status status = merges ? FR_OK : fr_fail_memory(folder, sizeof *merges);
    *root = NULL;
    if (status == FR_OK && has_file(folder, "tokenizer_config.json"))
        status = read_object(folder, "tokenizer_config.json", &config);
    if (status == FR_OK) status = make_rules(config, folder, root);
    if (status == FR_OK) status = read_object(folder, "vocab.json", &vocabulary);
    if (status == FR_OK) status = read_lines(folder, merges);
    if (status == FR_OK && add_end(config, vocabulary, *root) != 0) status = fr_fail_memory(folder, sizeof *root);
    if (status == FR_OK &&
        json_object_set_new(*root, "model",
                            json_pack("{s:s, s:O, s:O}", "type", "BPE", "vocab", vocabulary, "merges", merges)) != 0)
        status = fr_fail_memory(folder, sizeof *root);
    json_decref(config);
    json_decref(vocabulary);
    json_decref(merges);
    return status;
}
