/* Finds tokens by id and by text (vocabulary.h). */
#include "src/language/tokenizer/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

/* A slot of the hash table. It stores a part of the hash as `tag`, so that texts seldom have to be compared. */
typedef struct fr_vocabulary_slot {
    uint32_t tag;
    uint32_t next_id; /* 1 + the id; 0: the slot is empty */
} vocabulary_slot;

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u; /* 2^64 / golden ratio, odd */
    return hash ^ hash >> 32;
}

static uint64_t hash_text(const char *text, size_t length) {
    uint64_t hash = mix(0, length), word;
    for (; length >= sizeof word; text += sizeof word, length -= sizeof word) {
        memcpy(&word, text, sizeof word);
        hash = mix(hash, word);
    }
    for (word = 0; length > 0; text++, length--) word = word << 8 | (unsigned char)*text;
    return mix(hash, word);
}

/* Finds the slot of a text. If the text is missing, finds the empty slot for it. A lookup visits at most FR_PROBES_MAX
 * slots; NULL: neither slot is among them. */
static vocabulary_slot *find_slot(const fr_vocabulary *vocabulary, const char *text, size_t length, uint32_t *tag) {
    uint64_t hash = hash_text(text, length);
    *tag = (uint32_t)(hash >> 32);
    for (size_t probe = 0; probe < FR_PROBES_MAX; probe++) {
        vocabulary_slot *slot = &vocabulary->slots[(hash + probe) & vocabulary->slot_mask];
        if (slot->next_id == 0) return slot;
        if (slot->tag != *tag) continue;
        const fr_token *token = &vocabulary->tokens[slot->next_id - 1];
        if (token->length == length && memcmp(token->text, text, length) == 0) return slot;
    }
    return NULL;
}

int32_t fr_vocabulary_find(const fr_vocabulary *vocabulary, const char *text, size_t length) {
    uint32_t tag;
    const vocabulary_slot *slot = find_slot(vocabulary, text, length, &tag);
    return slot ? (int32_t)slot->next_id - 1 : -1;
}

int32_t fr_vocabulary_find_in_model(const fr_vocabulary *vocabulary, const char *text, size_t length) {
    int32_t id = fr_vocabulary_find(vocabulary, text, length);
    return id >= 0 && vocabulary->tokens[id].in_model ? id : -1;
}

static fr_status add(fr_vocabulary *vocabulary, fr_text text, int32_t id, char **free_text, const char *where) {
    fr_token *token = &vocabulary->tokens[id];
    if (token->text)
        return fr_fail(FR_INPUT, "%s: id %d is both \"%.99s\" and \"%.99s\"", where, id, token->text, text.bytes);
    uint32_t tag;
    vocabulary_slot *slot = find_slot(vocabulary, text.bytes, text.length, &tag);
    if (!slot) return fr_fail(FR_INPUT, "%s: too many tokens collide with \"%.99s\"", where, text.bytes);
    if (slot->next_id) /* in GGUF a text may have two ids, but in JSON it may not */
        return fr_fail(FR_INPUT, "%s: \"%.99s\" has the ids %u and %d", where, text.bytes, slot->next_id - 1, id);
    *slot = (vocabulary_slot){tag, (uint32_t)id + 1};
    *token = (fr_token){.text = *free_text, .length = (uint32_t)text.length};
    memcpy(*free_text, text.bytes, text.length + 1);
    *free_text += text.length + 1;
    if (token->length > vocabulary->longest) vocabulary->longest = token->length;
    return FR_OK;
}

/* Adds an added token. The vocabulary may already contain the token, with the same id. */
static fr_status add_added(fr_vocabulary *vocabulary, const fr_added_entry *added, char **free_text,
                           const char *where) {
    int32_t id = fr_vocabulary_find(vocabulary, added->text.bytes, added->text.length);
    if (id >= 0 && id != added->id)
        return fr_fail(FR_INPUT, "%s: \"%.99s\" has the ids %d and %d", where, added->text.bytes, id, added->id);
    if (id < 0) FR_TRY(add(vocabulary, added->text, added->id, free_text, where));
    fr_token *token = &vocabulary->tokens[added->id];
    token->added = true;
    token->special |= added->special;
    token->control |= added->special;
    return FR_OK;
}

static fr_status allocate(fr_vocabulary *vocabulary, const fr_tokenizer_source *source) {
    size_t count = source->vocabulary_count + source->added_count, text_bytes = 0, slots = fr_hash_table_size(count);
    for (size_t i = 0; i < count; i++) {
        bool own = i < source->vocabulary_count;
        const fr_added_entry *added = own ? NULL : &source->added[i - source->vocabulary_count];
        size_t id = (size_t)(own ? source->vocabulary[i].id : added->id);
        text_bytes += (own ? source->vocabulary[i].text.length : added->text.length) + 1;
        if (id >= vocabulary->size) vocabulary->size = id + 1;
    }
    vocabulary->tokens = calloc(vocabulary->size + 1, sizeof *vocabulary->tokens);
    vocabulary->texts = malloc(text_bytes + 1);
    vocabulary->slots = calloc(slots, sizeof *vocabulary->slots);
    vocabulary->slot_mask = slots - 1;
    if (vocabulary->tokens && vocabulary->texts && vocabulary->slots) return FR_OK;
    return fr_fail_memory("the vocabulary", vocabulary->size * sizeof(fr_token) + text_bytes);
}

fr_status fr_vocabulary_open(fr_vocabulary *vocabulary, const fr_tokenizer_source *source) {
    *vocabulary = (fr_vocabulary){0};
    FR_TRY(allocate(vocabulary, source));
    char *free_text = vocabulary->texts;
    for (size_t i = 0; i < source->vocabulary_count; i++) {
        const fr_vocabulary_entry *entry = &source->vocabulary[i];
        FR_TRY(add(vocabulary, entry->text, entry->id, &free_text, source->path));
        vocabulary->tokens[entry->id].in_model = true;
    }
    for (size_t i = 0; i < source->added_count; i++)
        FR_TRY(add_added(vocabulary, &source->added[i], &free_text, source->path));
    return FR_OK;
}

void fr_vocabulary_close(fr_vocabulary *vocabulary) {
    free(vocabulary->tokens);
    free(vocabulary->texts);
    free(vocabulary->slots);
    *vocabulary = (fr_vocabulary){0};
}
