/* Computes a model's fingerprint: see fingerprint.h. */
#include "src/engine/session/fingerprint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "formats/json_wide.h"

#define SAMPLES 4  /* number of samples of each tensor */
#define SAMPLE  64 /* bytes of each sample */

/* Hashes a text that comes in pieces. The result is the same as if the whole text were hashed at once. Bytes that do
 * not fill a word are kept until the next piece comes. */
typedef struct pieces {
    uint64_t hash;
    char word[sizeof(uint64_t)];
    size_t held;
} pieces;

static int add_piece(const char *bytes, size_t size, void *context) {
    pieces *p = context;
    for (size_t i = 0; i < size; i++) {
        p->word[p->held++] = bytes[i];
        if (p->held < sizeof p->word) continue;
        p->hash = fr_hash(p->hash, p->word, p->held);
        p->held = 0;
    }
    return 0;
}

/* Replaces numbers that are not finite by words, because jansson can't write them. Returns false if memory ran out. */
static bool spell_numbers(json_t *value) {
    bool good = true;
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *word = fr_json_not_finite(json_array_get(value, i));
        good &= word ? json_array_set_new(value, i, json_string(word)) == 0 : spell_numbers(json_array_get(value, i));
    }
    for (void *at = json_object_iter(value); at; at = json_object_iter_next(value, at)) {
        const char *word = fr_json_not_finite(json_object_iter_value(at));
        good &= word ? json_object_iter_set_new(value, at, json_string(word)) == 0
                     : spell_numbers(json_object_iter_value(at));
    }
    return good;
}

/* Hashes the text in pieces instead of calling json_dumps. If memory runs out, json_dumps of jansson 2.14 can lose a
 * part of the text without an error. */
static fr_status hash_config(const json_t *config, uint64_t *hash) {
    pieces p = {.hash = *hash};
    json_t *spelled = json_deep_copy(config);
    bool good = spelled && spell_numbers(spelled) &&
                json_dump_callback(spelled, add_piece, &p, JSON_COMPACT | JSON_SORT_KEYS) == 0;
    json_decref(spelled);
    if (!good) return fr_fail_memory("config.json", 0);
    *hash = fr_hash(p.hash, p.word, p.held);
    return FR_OK;
}

static void hash_metadata(const fr_gguf *gguf, uint64_t *hash) {
    size_t length = strlen(gguf->architecture);
    for (size_t i = 0; i < gguf->count; i++) {
        const fr_gguf_value *value = &gguf->values[i];
        if (value->key.length < length || memcmp(value->key.bytes, gguf->architecture, length) != 0) continue;
        *hash = fr_hash(*hash, value->key.bytes, value->key.length);
        *hash = fr_hash(*hash, value->data, value->bytes);
    }
}

/* Reads a sample of a tensor. If the tensor was read into memory, the sample is read from the file, because packing
 * has freed the bytes in memory. */
static fr_status read_sample(const fr_map *map, size_t at, uint8_t *bytes, size_t size) {
    if (map->fd < 0) {
        memcpy(bytes, map->bytes + at, size);
        return FR_OK;
    }
    if (pread(map->fd, bytes, size, (off_t)at) == (ssize_t)size) return FR_OK;
    return fr_fail(FR_INPUT, "%s: can't be read: %s", map->path, strerror(errno));
}

static fr_status hash_tensor(const fr_checkpoint *files, const fr_tensor *tensor, uint64_t *hash) {
    const fr_map *map = &files->files[tensor->file];
    const uint64_t type[2] = {tensor->type, tensor->packed};
    *hash = fr_hash(*hash, tensor->name, strlen(tensor->name));
    *hash = fr_hash(*hash, type, sizeof type);
    *hash = fr_hash(*hash, tensor->shape, tensor->dims * sizeof *tensor->shape);
    if (tensor->bytes == 0) return FR_OK;
    uint8_t bytes[SAMPLE];
    size_t begin = (size_t)((const uint8_t *)tensor->data - map->bytes), total = (size_t)tensor->bytes;
    size_t size = total < SAMPLE ? total : SAMPLE;
    for (size_t i = 0; i < SAMPLES; i++) {
        FR_TRY(read_sample(map, begin + (total - size) / (SAMPLES - 1) * i, bytes, size));
        *hash = fr_hash(*hash, bytes, size);
    }
    return FR_OK;
}

fr_status fr_fingerprint(const fr_model *model, uint64_t *fingerprint) {
    const fr_checkpoint *files = &model->files;
    /* version 1 counts as 0, because sessions were saved before versions were counted */
    uint64_t hash = FR_NUMERICS_VERSION - 1;
    if (files->gguf)
        hash_metadata(files->gguf, &hash);
    else
        FR_TRY(hash_config(files->config, &hash));
    /* The tensors of a quantized folder are hashed as they are stored, because the scales in them change answers
     * too. */
    const fr_tensors *stored = files->parts.count ? &files->parts : &files->tensors;
    for (size_t i = 0; i < stored->count; i++) FR_TRY(hash_tensor(files, &stored->items[i], &hash));
    for (size_t i = 0; i < files->tensors.count; i++) fr_weights_release(&model->weights, &files->tensors.items[i]);
    *fingerprint = hash;
    return FR_OK;
}
