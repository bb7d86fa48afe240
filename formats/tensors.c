/* Keeps a growing list of tensors with a hash table of their names.
 *
 * In: tensors, one at a time. Out: lookup by name. A lookup takes constant time, even if a hostile file chose the
 * names. */
#include "formats/tensors.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"

#define FIRST_CAPACITY ((size_t)256)

/* Returns the slot of the index where the search for a name begins. The hash is a polynomial in a secret number, modulo
 * 2^61 - 1: any two names have equal values with a probability below length / 2^60. The value is multiplied by a secret
 * odd number, and the top bits of the product are the slot, so that slots are used evenly. */
static size_t slot_of(const fr_tensors *tensors, const char *name) {
    const uint64_t prime = ((uint64_t)1 << 61) - 1;
    uint64_t hash = 0;
    for (; *name; name++) {
        unsigned __int128 next = (unsigned __int128)hash * tensors->keys[0] + (unsigned char)*name;
        hash = (uint64_t)(next & prime) + (uint64_t)(next >> 61); /* the sum is equal to `next` modulo the prime, and
                                                                   * below 2^62 */
    }
    return (size_t)(hash * tensors->keys[1] >> (64 - __builtin_ctzll(tensors->index_size)));
}

/* Gives the slot of the index that holds the name, or the empty slot where the name would be added. At least half of
 * the slots are empty. */
static size_t find_slot(const fr_tensors *tensors, const char *name) {
    size_t slot = slot_of(tensors, name);
    while (tensors->index[slot] && strcmp(tensors->items[tensors->index[slot] - 1].name, name) != 0)
        slot = (slot + 1) & (tensors->index_size - 1);
    return slot;
}

/* Chooses the secret keys. Without a random source they keep fixed values. A hostile file could then make lookups slow,
 * but could do no other harm. */
static void choose_keys(fr_tensors *tensors) {
    uint64_t *keys = tensors->keys;
    if (getrandom(keys, sizeof tensors->keys, GRND_NONBLOCK) != (ssize_t)sizeof tensors->keys) {
        keys[0] = 0x9E3779B97F4A7C15;
        keys[1] = 0xD1B54A32D192ED03;
    }
    keys[0] = keys[0] >> 4 | 1 << 8; /* the key is below the hash's prime, and not small */
    keys[1] |= 1;
}

/* Doubles the list and the index. The list's length is limited because an entry of the index has 32 bits. */
static fr_status grow(fr_tensors *tensors) {
    size_t capacity = tensors->capacity ? 2 * tensors->capacity : FIRST_CAPACITY;
    if (capacity > UINT32_MAX / 2) return fr_fail(FR_INPUT, "more than %zu tensors", tensors->capacity);
    fr_tensor *items = realloc(tensors->items, capacity * sizeof *items);
    if (items) tensors->items = items;
    uint32_t *index = calloc(2 * capacity, sizeof *index);
    if (!items || !index) {
        free(index);
        return fr_fail_memory("a list of tensors", capacity * sizeof *items);
    }
    free(tensors->index);
    tensors->index = index;
    tensors->index_size = 2 * capacity;
    tensors->capacity = capacity;
    if (tensors->count == 0) choose_keys(tensors);
    for (size_t i = 0; i < tensors->count; i++) index[find_slot(tensors, items[i].name)] = (uint32_t)i + 1;
    return FR_OK;
}

fr_status fr_tensors_add(fr_tensors *tensors, const fr_tensor *tensor, const char *where) {
    if (tensors->count == tensors->capacity) FR_TRY(grow(tensors));
    size_t slot = find_slot(tensors, tensor->name);
    if (tensors->index[slot]) return fr_fail(FR_INPUT, "%s: tensor %s was there before", where, tensor->name);
    const char *type_name = tensor->type_name ? tensor->type_name : fr_dtype_name(tensor->type);
    size_t name_size = strlen(tensor->name) + 1, type_size = strlen(type_name) + 1;
    char *names = malloc(name_size + type_size);
    if (!names) return fr_fail_memory("a tensor's name", name_size + type_size);
    memcpy(names, tensor->name, name_size);
    memcpy(names + name_size, type_name, type_size);
    fr_tensor *item = &tensors->items[tensors->count++];
    *item = *tensor;
    item->name = names;
    item->type_name = names + name_size;
    tensors->index[slot] = (uint32_t)tensors->count;
    return FR_OK;
}

const fr_tensor *fr_tensors_find(const fr_tensors *tensors, const char *name) {
    if (tensors->count == 0) return NULL;
    uint32_t found = tensors->index[find_slot(tensors, name)];
    return found ? &tensors->items[found - 1] : NULL;
}

void fr_tensors_free(fr_tensors *tensors) {
    for (size_t i = 0; i < tensors->count; i++) free((char *)(uintptr_t)tensors->items[i].name);
    free(tensors->items);
    free(tensors->index);
    *tensors = (fr_tensors){0};
}
