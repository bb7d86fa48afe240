/* Finds the nodes at which tokens have a character that is not of a class (slice_stops.h). */
#include "src/language/grammar/slice_stops.h"

#include <stdlib.h>
#include <string.h>

#include "src/language/grammar/cursor.h"
#include "src/language/grammar/token_tree.h"

static const uint8_t LENGTHS[FR_SLICE_LENGTHS] = {4, 8, 16, 32, FR_STOP_TEXTS_MAX, FR_SLICE_UNBOUND};

int fr_slice_of_length(size_t characters) {
    int index = FR_SLICE_LENGTHS - 1;
    while (index >= 0 && LENGTHS[index] > characters) index--;
    return index;
}

size_t fr_slice_length(int index) {
    return LENGTHS[index];
}

uint8_t fr_slice_class_of(uint32_t code) {
    if (code >= 'a' && code <= 'z') return 0;
    if ((code >= 'A' && code <= 'Z') || (code >= '0' && code <= '9') || code == '-' || code == '_') return 1;
    return code < ' ' || code == '"' || code == '\\' || code == 0x7F ? FR_NO_CLASS : 2;
}

/* --------------------------------------------------------------------------------------------------------- lists */

static fr_status make_room(void *items, size_t size, size_t count) {
    void **at = items;
    if (count & (count - 1)) return FR_OK;
    size_t wanted = count ? 2 * count : 1;
    void *grown = realloc(*at, wanted * size);
    if (!grown) return fr_fail_memory("a tree of tokens", wanted * size);
    *at = grown;
    return FR_OK;
}

static fr_status add_stop(fr_slice_stops *s, fr_slice_stop stop) {
    FR_TRY(make_room(&s->stops, sizeof *s->stops, s->count));
    s->stops[s->count++] = stop;
    return FR_OK;
}

/* Adds a node to the list `longer` of each slice length that equals this number of characters. */
static fr_status add_longer(fr_slice_stops *s, uint32_t node, size_t characters) {
    for (int k = 0; k < FR_SLICE_LENGTHS; k++) {
        size_t length = LENGTHS[k] < FR_STOP_TEXTS_MAX ? LENGTHS[k] : FR_STOP_TEXTS_MAX;
        if (characters != length) continue;
        FR_TRY(make_room(&s->longer[k], sizeof *s->longer[k], s->longer_count[k]));
        s->longer[k][s->longer_count[k]++] = node;
    }
    return FR_OK;
}

static int by_group(const void *one, const void *other) {
    const fr_slice_stop *a = one, *b = other;
    if (a->behind != b->behind) return a->behind < b->behind ? -1 : 1;
    if (a->bytes[0] != b->bytes[0]) return a->bytes[0] < b->bytes[0] ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

static fr_status group(fr_slice_stops *s) {
    if (s->count) qsort(s->stops, s->count, sizeof *s->stops, by_group);
    for (uint32_t i = 0; i < s->count; i++) {
        const fr_slice_stop *stop = &s->stops[i];
        fr_stop_group *last = s->group_count ? &s->groups[s->group_count - 1] : NULL;
        if (!last || last->behind != stop->behind || last->byte != stop->bytes[0]) {
            FR_TRY(make_room(&s->groups, sizeof *s->groups, s->group_count));
            last = &s->groups[s->group_count++];
            *last = (fr_stop_group){.first = i, .behind = stop->behind, .byte = stop->bytes[0]};
        }
        last->end = i + 1;
    }
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------- characters */

/* Says what a byte does. INSIDE: it completes a character of the class. WITHIN: it is a part of such a character.
 * OUTSIDE: it belongs to no character of the class. */
typedef enum progress { INSIDE, WITHIN, OUTSIDE } progress;

static size_t length_by_lead(uint8_t byte) {
    return byte < 0x80                   ? 1
           : byte >= 0xC2 && byte < 0xE0 ? 2
           : byte >= 0xE0 && byte < 0xF0 ? 3
           : byte >= 0xF0 && byte < 0xF5 ? 4
                                         : 0;
}

static progress look(const uint8_t *bytes, size_t count, int class) {
    fr_cursor c = {{(const char *)bytes, count}, 0};
    uint32_t code;
    size_t length = length_by_lead(bytes[0]);
    if (length == 0 || (length > 1 && class < 2)) return OUTSIDE;
    if (count > 1 && (bytes[count - 1] & 0xC0) != 0x80) return OUTSIDE;
    if (count < length) return WITHIN;
    return fr_cursor_take_character(&c, &code) && fr_slice_class_of(code) <= class ? INSIDE : OUTSIDE;
}

/* A place in the tree: the number of characters of the class on the way to a node, and the bytes read so far of the
 * next character. */
typedef struct place {
    uint8_t characters, count, bytes[4];
} place;

/* Visits a node. Computes its place *own from its parent's. Adds a stop if the text leaves the class at this node.
 * *next: the node to visit next. */
static fr_status visit(fr_slice_stops *s, const fr_token_node *nodes, uint32_t i, int class, const place *parent,
                       place *own, uint32_t *next) {
    *own = *parent;
    own->bytes[own->count++] = nodes[i].byte;
    progress is = look(own->bytes, own->count, class);
    fr_slice_stop stop = {.node = i, .behind = own->characters, .count = own->count, .whole = is == OUTSIDE};
    memcpy(stop.bytes, own->bytes, sizeof stop.bytes);
    *next = is == OUTSIDE ? nodes[i].end : i + 1;
    if (is == OUTSIDE || (is == WITHIN && nodes[i].id >= 0)) return add_stop(s, stop);
    if (is == WITHIN) return FR_OK;
    own->count = 0;
    own->characters++;
    if (own->characters == FR_STOP_TEXTS_MAX) *next = nodes[i].end;
    return nodes[i].end > i + 1 ? add_longer(s, i, own->characters) : FR_OK;
}

fr_status fr_slice_stops_make(fr_slice_stops *s, const fr_token_tree *tree, uint32_t node, int class) {
    place places[FR_TREE_DEPTH_MAX + 1];
    const fr_token_node *nodes = tree->nodes;
    places[nodes[node].depth] = (place){0};
    for (uint32_t i = node + 1; i < nodes[node].end;) {
        place *own = &places[nodes[i].depth];
        FR_TRY(visit(s, nodes, i, class, own - 1, own, &i));
    }
    return group(s);
}

void fr_slice_stops_free(fr_slice_stops *s) {
    free(s->stops);
    free(s->groups);
    for (int k = 0; k < FR_SLICE_LENGTHS; k++) free(s->longer[k]);
}
