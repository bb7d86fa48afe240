/* Tests shared prefixes. Timelines share pages, lose them and find them again in any order. A search must find all that
 * is stored, and only that.
 *
 * The tree of shared prefixes (the index) is compared with a model of it: a simple list of texts, each with the pages
 * that were stored with it. The pools are so small that the index gives up pages all the time. After every call the
 * model first drops the pages that the index has given up. Such a page has fewer holders in its pool than there are
 * timelines and texts of the model that have the page.
 *
 * Then three things must hold. Each page has one holder for each timeline and each text of the model that has it. A
 * text that was given up was unused, and unused for longer than any unused text that remains. A search in the tree
 * finds the same as a search through the list. Every row holds a digest of all ids up to it, so that a page of another
 * text is noticed. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sizes.h"
#include "src/engine/cache/kv_prefixes.h"
#include "tests/support/suite.h"

enum { PAGE = FR_KV_PAGE, BLOCKS = 10, CONTEXT = BLOCKS * PAGE, BATCH = 64, TIMELINES = 5, WORDS = 2, STEPS = 15000 };

typedef struct setting {
    const char *name;
    fr_kv_shape shapes[2];
    size_t layers, batch;
    bool drafts;
    size_t recurrent; /* number of additional layers, which have recurrent states (small_states) */
} setting;

static const fr_recurrent_shape small_states = {
    .heads = 1, .key_dim = 4, .value_dim = 4, .channels = 8, .conv_kernel = 4};

static const setting settings[] = {
    {"full and sliding", {{1, 2, 0, 0, 0, 0}, {1, 2, 100, 0, 0, 0}}, 2, BATCH, false, 0},
    {"a window of whole pages", {{1, 2, 128, 0, 0, 0}, {1, 2, 0, 0, 0, 0}}, 2, BATCH, false, 0},
    {"full and sliding, drafts", {{1, 2, 0, 0, 0, 0}, {1, 2, 100, 0, 0, 0}}, 2, BATCH, true, 0},
    {"full", {{1, 2, 0, 0, 0, 0}}, 1, BATCH, false, 0},
    {"full, drafts", {{1, 2, 0, 0, 0, 0}}, 1, BATCH, true, 0},
    {"sliding layers that let go of nothing", {{1, 2, 0, 0, 0, 0}, {1, 2, 100, 0, 0, 0}}, 2, CONTEXT, true, 0},
    {"sliding", {{1, 2, 100, 0, 0, 0}}, 1, BATCH, false, 0},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* The number of this test's drafter. It is needed because an engine may have several drafters. */
enum { DRAFTER = 1 };

static uint32_t state = 1;

static size_t below(size_t n) {
    state = state * 1664525u + 1013904223u;
    return (size_t)(((uint64_t)state * n) >> 32);
}

/* ----------------------------------------------------------------------------------------------------------- worlds */

typedef struct text {
    int32_t ids[CONTEXT];
    fr_kv_digest digests[BLOCKS];
} text;

typedef struct timeline {
    fr_kv kv, drafter, *drafters[FR_KV_DRAFTERS];
    fr_kv_path path;
    uint8_t *checkpoint[BLOCKS]; /* the sliding pages that the timeline's checkpoints hold */
    bool drafts;
    text says;
    size_t length; /* number of ids so far; `says` has the ids of the whole context */
    /* number of blocks of a prompt whose end must still be marked in the index; 0: there is no such prompt */
    size_t prompt;
} timeline;

/* An entry of the model: a text of whole blocks, and the pages of its last block. Only the last block may be shorter
 * than a page; it is then called a tail. */
typedef struct entry {
    text says;
    size_t blocks;
    /* Both are about the last block. count: number of its ids. run: number of its positions that were run */
    size_t count, run;
    uint8_t *page[FR_KV_KINDS], *drafter, *before; /* drafter: the drafter's page of the last block. before: the
                                                    * drafter's page of the block before the last; NULL: there is no
                                                    * such page */
    bool ends_prompt, gone, cached; /* cached: after the last call, only the index held the entry's page of full
                                     * layers */
    /* left: the time at which the last timeline stopped using the entry. alone: the time at which only the index held
     * the entry's sliding page. 0: this has not happened */
    size_t left, alone;
} entry;

enum { ENTRIES_MAX = 200 };

typedef struct world {
    const setting *set;
    bool full; /* true: some layers keep all positions. Then a missing page of these layers shows that the index has
                * given up the text */
    fr_arena arena;
    fr_kv kv, drafter;
    fr_kv_prefixes prefixes;
    timeline timelines[TIMELINES];
    entry entries[ENTRIES_MAX];
    size_t count, step;
    size_t found, refused, given_up, exchanged, tails;
} world;

static void layout(world *w, fr_arena *arena) {
    const setting *set = w->set;
    const fr_kv_types types = {FR_F32, FR_F32};
    const fr_kv_shape drafter_shape = {1, 2, 0, 0, 0, 0};
    const fr_kv_sizes sizes = {.context = CONTEXT,
                               .batch = set->batch,
                               .timelines = 2,
                               .checkpoints = set->recurrent,
                               .recurrent = &small_states,
                               .recurrent_count = set->recurrent};
    const fr_kv_sizes drafts = {.context = CONTEXT, .batch = CONTEXT, .timelines = 2, .pages = 2 * BLOCKS + 2};
    fr_kv_layout(&w->kv, arena, set->shapes, set->layers, types, sizes);
    fr_kv_layout(&w->drafter, arena, &drafter_shape, 1, types, drafts);
    const fr_kv *drafters[FR_KV_DRAFTERS] = {[DRAFTER] = &w->drafter};
    fr_kv_prefixes_layout(&w->prefixes, arena, &w->kv, set->drafts ? drafters : NULL);
    for (timeline *t = w->timelines; t < w->timelines + TIMELINES; t++) {
        fr_kv_layout_fork(&t->kv, arena, &w->kv);
        fr_kv_layout_fork(&t->drafter, arena, &w->drafter);
        fr_kv_path_layout(&t->path, arena, &w->kv);
    }
}

static world *open_world(const setting *set) {
    world *w = calloc(1, sizeof *w);
    fr_arena measured = {0};
    w->set = set;
    layout(w, &measured);
    ck_assert_int_eq(fr_arena_open(&w->arena, measured.used, "test"), FR_OK);
    layout(w, &w->arena);
    ck_assert_int_eq(fr_arena_check(&w->arena, "test"), FR_OK);
    fr_kv_prefixes_serve(&w->prefixes);
    w->full = w->kv.page_bytes[FR_KV_FULL] > 0;
    for (size_t i = 0; i < TIMELINES; i++) w->timelines[i].drafts = set->drafts && i > 0;
    return w;
}

static void close_world(world *w) {
    fr_arena_close(&w->arena);
    free(w);
}

static fr_kv *const *drafter_of(timeline *t) {
    t->drafters[DRAFTER] = &t->drafter;
    return t->drafts ? t->drafters : NULL;
}

/* Describes a text to the index. If all digests of a text are zero, the function passes NULL for the digests half of
 * the time. The index must treat NULL and zeros in the same way. */
static fr_kv_content content_of(const text *says) {
    static const text nothing;
    bool plain = memcmp(says->digests, nothing.digests, sizeof nothing.digests) == 0;
    return (fr_kv_content){.ids = says->ids, .digests = plain && below(2) ? NULL : says->digests};
}

static bool same_blocks(const text *a, const text *b, size_t blocks) {
    return memcmp(a->ids, b->ids, blocks * PAGE * sizeof *a->ids) == 0 &&
           memcmp(a->digests, b->digests, blocks * sizeof *a->digests) == 0;
}

/* ----------------------------------------------------------------------------------------------------------- stamps */

/* Computes the stamp of each position, which is a digest of all ids up to and including that position. All rows of the
 * position hold the stamp. */
static void stamp_text(const text *says, size_t length, uint64_t *stamps) {
    uint64_t stamp = 1;
    for (size_t p = 0; p < length; p++) {
        if (p % PAGE == 0) stamp = fr_hash(stamp, &says->digests[p / PAGE], sizeof says->digests[0]);
        stamps[p] = stamp = fr_hash(stamp, &says->ids[p], sizeof says->ids[p]);
    }
}

static void write_row(const fr_kv *kv, size_t layer, size_t position, uint64_t stamp) {
    memcpy(fr_kv_slot(&kv->layers[layer], &kv->layers[layer].k, 0, position), &stamp, sizeof stamp);
    memcpy(fr_kv_slot(&kv->layers[layer], &kv->layers[layer].v, 0, position), &stamp, sizeof stamp);
}

/* Checks the stamps of the first `rows` rows of a layer's page. */
static void check_page(const fr_kv_layer *layer, const uint8_t *page, const uint64_t *stamps, size_t rows) {
    for (size_t r = 0; r < rows; r++)
        if (memcmp(page + layer->k.at + r * layer->k.bytes, &stamps[r], sizeof *stamps) != 0 ||
            memcmp(page + layer->v.at + r * layer->v.bytes, &stamps[r], sizeof *stamps) != 0)
            ck_abort_msg("row %zu of a page is of another text", r);
}

static void check_table(const fr_kv_layer *layer, const uint64_t *stamps, size_t from, size_t length) {
    for (size_t p = from / PAGE * PAGE; p < length; p += PAGE)
        check_page(layer, layer->pages[p / PAGE], stamps + p, fr_smaller(PAGE, length - p));
}

/* Checks all pages of a timeline. A drafter's row also depends on the next id, so it holds the stamp of the next
 * position. */
static void check_timeline(const timeline *t) {
    uint64_t stamps[CONTEXT + 1];
    stamp_text(&t->says, t->length, stamps);
    for (size_t i = 0; i < t->kv.count; i++)
        check_table(&t->kv.layers[i], stamps, t->kv.layers[i].kind == FR_KV_SLIDING ? t->kv.from : 0, t->kv.length);
    ck_assert(fr_kv_holds_lookback(&t->kv, t->kv.length));
    ck_assert_uint_le(t->drafter.length, t->length);
    check_table(&t->drafter.layers[0], stamps + 1, 0, t->drafter.length);
}

/* Checks the pages of an entry. Pages that only the index holds are checked too. */
static void check_entry(const world *w, const entry *e) {
    uint64_t stamps[CONTEXT];
    size_t at = (e->blocks - 1) * PAGE;
    stamp_text(&e->says, at + e->count, stamps);
    for (size_t i = 0; i < w->kv.count; i++) {
        const uint8_t *page = e->page[w->kv.layers[i].kind];
        if (page) check_page(&w->kv.layers[i], page, stamps + at, e->run);
    }
    if (e->drafter) check_page(&w->drafter.layers[0], e->drafter, stamps + at + 1, e->count - 1);
    if (e->before) check_page(&w->drafter.layers[0], e->before, stamps + at - PAGE + 1, PAGE);
}

/* ------------------------------------------------------------------------------------------------------------ model */

static bool is_whole(const entry *e) {
    return e->run == PAGE;
}

static entry *entry_of(world *w, const text *says, size_t blocks) {
    for (entry *e = w->entries; e < w->entries + w->count; e++)
        if (e->blocks == blocks && is_whole(e) && same_blocks(&e->says, says, blocks)) return e;
    return NULL;
}

static bool stands_in(const timeline *t, const entry *e) {
    return is_whole(e) && t->path.length >= e->blocks && same_blocks(&t->says, &e->says, e->blocks);
}

/* Counts the ids at the beginning of the entry's last block that the text has too. Returns 0 if the text differs from
 * the entry in an earlier block. */
static size_t shared_in(const entry *e, const text *says, size_t count) {
    size_t first = (e->blocks - 1) * PAGE, n = 0;
    if (first >= count || !same_blocks(&e->says, says, e->blocks - 1)) return 0;
    if (memcmp(&e->says.digests[e->blocks - 1], &says->digests[e->blocks - 1], sizeof *says->digests) != 0) return 0;
    while (n < e->count && first + n < count && e->says.ids[first + n] == says->ids[first + n]) n++;
    return n;
}

static bool is_stood_in(const world *w, const entry *e) {
    for (const timeline *t = w->timelines; t < w->timelines + TIMELINES; t++)
        if (stands_in(t, e)) return true;
    return false;
}

static size_t children(const world *w, const entry *e) {
    size_t count = 0;
    for (const entry *c = w->entries; c < w->entries + w->count; c++)
        count += is_whole(e) && c->blocks == e->blocks + 1 && same_blocks(&c->says, &e->says, e->blocks);
    return count;
}

/* Returns true if the entry's page is worth keeping. A prompt may start again at the end of an earlier prompt, or at a
 * branch. Then it needs the pages of the window before that place. The index gives up such pages last. */
static bool is_kept(const world *w, const entry *e) {
    size_t window = fr_kv_blocks(w->kv.window + 1);
    for (const entry *q = w->entries; q < w->entries + w->count; q++) {
        bool behind = is_whole(e) && q->blocks > e->blocks && q->blocks < e->blocks + window &&
                      same_blocks(&q->says, &e->says, e->blocks);
        if ((q == e || behind) && (q->ends_prompt || children(w, q) > 1)) return true;
    }
    return false;
}

enum { POOLS = 3 }; /* the target's pool of full pages, the target's pool of sliding pages, and the drafter's pool */

static fr_kv_pages *pool_of(const world *w, size_t pool) {
    return pool < FR_KV_KINDS ? &w->kv.pages[pool] : &w->drafter.pages[FR_KV_FULL];
}

static void count_page(const fr_kv_pages *pool, const uint8_t *page, uint32_t *holders) {
    if (page) holders[(size_t)(page - pool->data) / pool->bytes]++;
}

/* For each page of a pool, counts the timelines that have the page in their tables. */
static void count_tables(const world *w, size_t pool, uint32_t *holders) {
    for (const timeline *t = w->timelines; t < w->timelines + TIMELINES; t++)
        for (size_t b = 0; b < t->kv.blocks; b++) {
            uint8_t **table = pool < FR_KV_KINDS ? t->kv.table[pool] : t->drafter.table[FR_KV_FULL];
            count_page(pool_of(w, pool), table[b], holders);
            if (pool == FR_KV_SLIDING) count_page(pool_of(w, pool), t->checkpoint[b], holders);
        }
}

static uint32_t of_page(const fr_kv_pages *pool, const uint32_t *counts, const uint8_t *page) {
    return counts[(size_t)(page - pool->data) / pool->bytes];
}

typedef struct counts {
    uint32_t tables[POOLS][8 * BLOCKS];
} counts;

static bool held_by_index(const world *w, const counts *c, fr_kv_kind kind, const uint8_t *page) {
    const fr_kv_pages *pool = pool_of(w, kind);
    return of_page(pool, pool->holders, page) > of_page(pool, c->tables[kind], page);
}

static bool is_alone(const world *w, fr_kv_kind kind, const uint8_t *page) {
    return page && of_page(pool_of(w, kind), pool_of(w, kind)->holders, page) == 1;
}

/* `world` is the model. Removes the drafter pages from it that the index has dropped. An entry shares its drafter page
 * with one of its children. If that child is given up, the index may drop the entry's page too. */
static void learn_drafters(world *w, const counts *c) {
    const fr_kv_pages *pool = pool_of(w, FR_KV_KINDS);
    uint32_t holders[8 * BLOCKS];
    memcpy(holders, c->tables[FR_KV_KINDS], sizeof holders);
    for (const entry *e = w->entries; e < w->entries + w->count; e++)
        count_page(pool, e->drafter, holders), count_page(pool, e->before, holders);
    for (entry *e = w->entries; e < w->entries + w->count; e++)
        if (e->drafter && of_page(pool, pool->holders, e->drafter) < of_page(pool, holders, e->drafter))
            e->drafter = NULL;
}

/* Checks the drafter page of each entry that has children. If every child has a page `before`, the entry's drafter page
 * must be the page `before` of one of these children. So each target page has at most one drafter page, and each leaf
 * has one more. */
static void check_drafters(const world *w) {
    for (const entry *e = w->entries; e < w->entries + w->count; e++) {
        bool theirs = !e->drafter || children(w, e) == 0;
        for (const entry *q = w->entries; q < w->entries + w->count; q++)
            theirs |= (!q->before || q->before == e->drafter) && q->blocks == e->blocks + 1 &&
                      same_blocks(&q->says, &e->says, e->blocks);
        ck_assert_msg(theirs, "a page of a child that went is still there");
    }
}

/* Finds the entries that have lost pages, and removes these pages from the model. */
static size_t learn(world *w, const counts *c, size_t *last_left, size_t *last_alone, bool *kept_went) {
    size_t given_up = 0;
    for (entry *e = w->entries; w->full && e < w->entries + w->count; e++) {
        e->gone = !held_by_index(w, c, FR_KV_FULL, e->page[FR_KV_FULL]);
        if (!e->gone) continue;
        ck_assert_msg(!is_stood_in(w, e), "a node went in which a timeline stands");
        *last_left = fr_larger(*last_left, e->left);
        given_up++;
    }
    size_t kept = 0;
    for (size_t i = 0; i < w->count; i++)
        if (!w->entries[i].gone) w->entries[kept++] = w->entries[i];
    w->count = kept;
    if (w->full) learn_drafters(w, c);
    for (entry *e = w->entries; e < w->entries + w->count; e++) {
        uint8_t **page = &e->page[FR_KV_SLIDING];
        if (!*page || held_by_index(w, c, FR_KV_SLIDING, *page)) continue;
        bool worth = is_kept(w, e);
        /* Pages that are worth keeping are given up after all others. In each of the two groups, the page that was
         * unused for the longest time goes first */
        if (worth && !*kept_went) *last_alone = 0;
        *kept_went |= worth;
        if (*kept_went == worth) *last_alone = fr_larger(*last_alone, e->alone);
        *page = NULL;
        e->alone = 0;
        given_up++;
    }
    return given_up;
}

/* Checks the order in which entries were given up: no remaining entry may have been unused for longer than an entry
 * that was given up. */
static void check_order(const world *w, size_t last_left, size_t last_alone, bool kept_went) {
    for (const entry *e = w->entries; e < w->entries + w->count; e++) {
        if (e->left < last_left && !is_stood_in(w, e) && children(w, e) == 0 && e->cached)
            ck_abort_msg("a leaf is left that was used before one that went");
        if (!last_alone || !is_alone(w, FR_KV_SLIDING, e->page[FR_KV_SLIDING]) || !e->alone) continue;
        if (kept_went && !is_kept(w, e)) ck_abort_msg("a window went that is worth keeping, another didn't");
        if (is_kept(w, e) == kept_went && e->alone < last_alone)
            ck_abort_msg("a window is left that was used before one that went");
    }
}

static void check_holders(const world *w, const counts *c) {
    for (size_t pool = 0; pool < POOLS; pool++) {
        const fr_kv_pages *pages = pool_of(w, pool);
        uint32_t holders[8 * BLOCKS];
        size_t free_pages = 0;
        memcpy(holders, c->tables[pool], sizeof holders);
        for (const entry *e = w->entries; e < w->entries + w->count; e++) {
            if (pool < FR_KV_KINDS)
                count_page(pages, e->page[pool], holders);
            else
                count_page(pages, e->drafter, holders), count_page(pages, e->before, holders);
        }
        for (size_t i = 0; i < pages->count; i++) {
            if (pages->holders[i] != holders[i])
                ck_abort_msg("page %zu of pool %zu: %u holders, %u are known", i, pool, pages->holders[i], holders[i]);
            free_pages += holders[i] == 0;
        }
        ck_assert_uint_eq(pages->free_count, free_pages);
    }
}

static void check_use(const world *w, const counts *c) {
    fr_kv_use use = {0}, told = fr_kv_prefixes_use(&w->prefixes, &w->kv);
    for (size_t kind = 0; kind < FR_KV_KINDS; kind++)
        for (size_t i = 0; i < w->kv.pages[kind].count; i++) {
            size_t bytes = w->kv.pages[kind].bytes;
            use.used += c->tables[kind][i] > 0 ? bytes : 0;
            use.shared += c->tables[kind][i] > 1 ? bytes : 0;
            use.cached += !c->tables[kind][i] && w->kv.pages[kind].holders[i] ? bytes : 0;
        }
    ck_assert_uint_eq(told.used, use.used);
    ck_assert_uint_eq(told.shared, use.shared);
    ck_assert_uint_eq(told.cached, use.cached);
}

/* Notes for each entry since when no timeline uses it. The entries of one text become unused at the same time. Of
 * these, the entry with the most blocks counts as unused for the longest time, so it is given up first. */
static void note_times(world *w) {
    for (entry *e = w->entries; e < w->entries + w->count; e++) {
        if (is_stood_in(w, e))
            e->left = 0;
        else if (!e->left)
            e->left = w->step * (BLOCKS + 1) + BLOCKS - e->blocks;
        e->cached = is_alone(w, FR_KV_FULL, e->page[FR_KV_FULL]);
        if (!is_alone(w, FR_KV_SLIDING, e->page[FR_KV_SLIDING]))
            e->alone = 0;
        else if (!e->alone)
            e->alone = w->step;
    }
}

typedef enum event { CALL, CLAIM, DRAFTER_CLAIM } event;

/* Checks, after each call, everything that must always hold. */
static void check_world(world *w, event what) {
    counts c = {0};
    size_t last_left = 0, last_alone = 0;
    bool kept_went = false;
    w->step++;
    for (size_t pool = 0; pool < POOLS; pool++) count_tables(w, pool, c.tables[pool]);
    size_t given_up = learn(w, &c, &last_left, &last_alone, &kept_went);
    ck_assert(what != CALL || given_up == 0);
    w->given_up += given_up;
    for (const entry *e = w->entries; w->full && e < w->entries + w->count; e++)
        if (e->blocks > 1 && !entry_of(w, &e->says, e->blocks - 1)) ck_abort_msg("a node is there without its parent");
    if (what == CLAIM && w->full) check_order(w, last_left, last_alone, kept_went);
    if (w->full) check_holders(w, &c);
    if (w->full) check_drafters(w);
    if (w->full) check_use(w, &c);
    note_times(w);
    if (w->step % 16) return;
    for (const timeline *t = w->timelines; t < w->timelines + TIMELINES; t++) check_timeline(t);
    for (const entry *e = w->entries; e < w->entries + w->count; e++) check_entry(w, e);
}

/* Returns true if a prompt can start at `length` with the pages of this entry. `length` must be within the entry's last
 * block. Each block before the last one must have an entry of a whole block. */
static bool serves(world *w, const entry *e, const text *says, size_t count, size_t length, bool drafts) {
    size_t needed = length - (e->blocks - 1) * PAGE, first = length > w->kv.window ? length - w->kv.window : 0;
    if (shared_in(e, says, count) < needed + drafts || e->run < needed) return false;
    if (drafts && (!e->drafter || (e->blocks > 1 && !e->before))) return false;
    if (w->kv.window && !e->page[FR_KV_SLIDING]) return false;
    for (size_t b = 1; b < e->blocks; b++) {
        const entry *whole = entry_of(w, says, b);
        if (!whole || (drafts && b > 1 && !whole->before)) return false;
        if (w->kv.window && b * PAGE > first && !whole->page[FR_KV_SLIDING]) return false;
    }
    return true;
}

/* Finds the longest prefix that can be used. It tries every length with every entry. */
static size_t naive_find(world *w, const text *says, size_t count, bool drafts) {
    for (size_t length = count - 1; length > 0; length--)
        for (const entry *e = w->entries; e < w->entries + w->count; e++)
            if (e->blocks == fr_kv_blocks(length) && serves(w, e, says, count, length, drafts)) return length;
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------ calls */

static entry *add_entry(world *w, const text *says, size_t blocks, size_t count, size_t run) {
    ck_assert_uint_lt(w->count, ENTRIES_MAX);
    entry *e = &w->entries[w->count++];
    *e = (entry){.says = *says, .blocks = blocks, .count = count, .run = run};
    return e;
}

/* In the model, the first ids of entry number `newer` may also be listed as a tail (an incomplete block). Removes all
 * such tails from the model. Returns the position of entry number `newer` after the removal. */
static entry *forget_tails(world *w, size_t newer) {
    const entry of = w->entries[newer];
    size_t kept = 0, at = 0;
    for (size_t i = 0; i < w->count; i++) {
        const entry *e = &w->entries[i];
        size_t ids = (of.blocks - 1) * PAGE + of.count;
        if (i != newer && !is_whole(e) && e->blocks == of.blocks && e->run <= of.run && e->count <= of.count &&
            shared_in(e, &of.says, ids) == e->count)
            continue;
        if (i == newer) at = kept;
        w->entries[kept++] = *e;
    }
    w->count = kept;
    return &w->entries[at];
}

static entry *owner_of(world *w, fr_kv_kind kind, const uint8_t *page) {
    for (entry *e = w->entries; page && e < w->entries + w->count; e++)
        if (e->page[kind] == page) return e;
    return NULL;
}

/* Offers the last, incomplete block of a text to the index as a tail. If the index must accept the tail, adds it to the
 * model too. */
static void offer(world *w, timeline *t) {
    size_t block = t->path.length, first = block * PAGE, end = t->kv.length;
    bool fits, covered = false, drafts = t->drafts;
    uint8_t **table = t->kv.table[FR_KV_FULL];
    if (drafts) end = fr_smaller(t->length, fr_smaller(t->kv.length, t->drafter.length) + 1);
    fits = end > first + drafts && fr_smaller(end, t->kv.length) < first + PAGE && end <= first + PAGE;
    if (fits && w->kv.window) fits = t->kv.table[FR_KV_SLIDING][block] && first >= t->kv.from;
    for (fr_kv_kind kind = 0; fits && kind < FR_KV_KINDS; kind++) fits = !owner_of(w, kind, t->kv.table[kind][block]);
    uint32_t node =
        fr_kv_prefixes_add_tail(&w->prefixes, &t->path, &t->kv, drafter_of(t), content_of(&t->says), t->length);
    if (w->full)
        ck_assert_msg((node != 0) == fits, "a tail of %zu positions is %s", t->kv.length - first,
                      fits ? "left out" : "there");
    for (entry *e = w->entries; w->full && fits && e < w->entries + w->count; e++) {
        bool covers = e->blocks == block + 1 && shared_in(e, &t->says, end) == end - first &&
                      e->run >= fr_smaller(end, t->kv.length) - first && (!w->kv.window || e->page[FR_KV_SLIDING]) &&
                      (!drafts || (e->drafter && (block == 0 || e->before)));
        if (!covers) continue;
        covered = true;
        if (!is_whole(e) && e->count == end - first) e->left = 0;
    }
    if (w->full && fits && !covered) {
        entry *e = add_entry(w, &t->says, block + 1, end - first, fr_smaller(end, t->kv.length) - first);
        entry *parent = block ? entry_of(w, &t->says, block) : NULL;
        e->page[FR_KV_FULL] = table[block];
        e->page[FR_KV_SLIDING] = w->kv.window ? t->kv.table[FR_KV_SLIDING][block] : NULL;
        e->ends_prompt = true;
        if (drafts) e->drafter = t->drafter.table[FR_KV_FULL][block];
        if (drafts && parent) parent->drafter = e->before = t->drafter.table[FR_KV_FULL][block - 1];
        forget_tails(w, w->count - 1);
        w->tails++;
    }
    check_world(w, CALL);
}

static void share(world *w, timeline *t, bool prompt_end) {
    size_t before = t->path.length;
    uint8_t *had[FR_KV_KINDS][BLOCKS];
    for (size_t kind = 0; kind < FR_KV_KINDS; kind++) memcpy(had[kind], t->kv.table[kind], sizeof had[kind]);
    fr_kv_prefixes_add(&w->prefixes, &t->path, &t->kv, drafter_of(t), content_of(&t->says), prompt_end);
    for (size_t b = before; w->full && b < t->path.length; b++) {
        entry *e = entry_of(w, &t->says, b + 1), *parent;
        if (!e) e = add_entry(w, &t->says, b + 1, PAGE, PAGE);
        e = forget_tails(w, (size_t)(e - w->entries));
        parent = b ? entry_of(w, &t->says, b) : NULL;
        for (size_t kind = 0; kind < FR_KV_KINDS; kind++) {
            if (!had[kind][b] || (kind == FR_KV_SLIDING && b * PAGE < t->kv.from)) continue;
            w->exchanged += e->page[kind] && e->page[kind] != had[kind][b];
            if (!e->page[kind]) e->page[kind] = had[kind][b];
            ck_assert_ptr_eq(t->kv.table[kind][b], e->page[kind]);
        }
        if (!t->drafts) continue;
        if (!e->drafter && children(w, e) == 0) e->drafter = t->drafter.table[FR_KV_FULL][b];
        if (!parent) continue;
        if (!e->before) e->before = t->drafter.table[FR_KV_FULL][b - 1];
        ck_assert_ptr_eq(t->drafter.table[FR_KV_FULL][b - 1], e->before);
        parent->drafter = e->before;
    }
    if (prompt_end) t->prompt = t->kv.length / PAGE;
    if (w->full && t->prompt && t->prompt <= t->path.length) {
        entry_of(w, &t->says, t->prompt)->ends_prompt = true;
        t->prompt = 0;
    }
    size_t complete = t->kv.length / PAGE;
    if (t->drafts) complete = fr_smaller(complete, (t->drafter.length + 1) / PAGE);
    if (w->full) ck_assert_uint_ge(t->path.length, complete);
    check_world(w, CALL);
}

static void cut(world *w, timeline *t, size_t length) {
    if (!fr_kv_holds_lookback(&t->kv, length)) length = 0;
    fr_kv_rewind(&t->kv, length);
    if (t->drafter.length > length) fr_kv_rewind(&t->drafter, length);
    fr_kv_path_cut(&w->prefixes, &t->path, length);
    if (t->prompt > length / PAGE) t->prompt = 0;
    check_world(w, CALL);
}

static void vary(text *says, size_t length) {
    size_t other = below(length);
    if (below(2)) says->ids[other] = 7;
    if (below(2)) says->digests[other / PAGE].bytes[below(32)] = 1;
}

/* Makes a text from a few different blocks, so that a block often occurs more than once, after different other
 * blocks. */
static text new_text(size_t length) {
    text says = {0};
    for (size_t b = 0; b < BLOCKS; b++) {
        int32_t word = (int32_t)below(WORDS);
        for (size_t i = 0; i < PAGE; i++) says.ids[b * PAGE + i] = word * 100 + (int32_t)i;
    }
    vary(&says, length);
    return says;
}

static void check_find(world *w, const text *says, size_t length) {
    for (size_t drafts = 0; w->full && drafts <= w->set->drafts; drafts++)
        ck_assert_uint_eq(fr_kv_prefixes_find(&w->prefixes, content_of(says), length, (unsigned)drafts << DRAFTER),
                          naive_find(w, says, length, drafts));
}

static void begin(world *w, timeline *t) {
    cut(w, t, 0);
    t->length = 1 + below(CONTEXT);
    if (below(4) == 0) t->length = PAGE * (1 + below(BLOCKS));
    t->says = new_text(t->length);
    check_find(w, &t->says, t->length);
    size_t found = fr_kv_prefixes_find(&w->prefixes, content_of(&t->says), t->length, (unsigned)t->drafts << DRAFTER);
    ck_assert_uint_lt(found, t->length);
    if (!found || below(8) == 0) return;
    fr_kv_prefixes_take(&w->prefixes, &t->path, &t->kv, drafter_of(t), content_of(&t->says), found);
    ck_assert_uint_eq(t->kv.length, found);
    ck_assert_uint_eq(t->path.length, found / PAGE);
    ck_assert_uint_ge(t->kv.from, fr_kv_held_from(&t->kv, 0, found + 1));
    entry *last = owner_of(w, FR_KV_FULL, t->kv.table[FR_KV_FULL][fr_kv_blocks(found) - 1]);
    for (size_t b = 2; t->drafts && b <= fr_kv_blocks(found); b++) {
        entry *parent = entry_of(w, &t->says, b - 1), *next = b > found / PAGE ? last : entry_of(w, &t->says, b);
        if (parent && !parent->drafter) parent->drafter = next->before;
    }
    if (w->full) last->left = (w->step + 1) * (BLOCKS + 1) + BLOCKS;
    check_timeline(t);
    check_world(w, CALL);
    w->found++;
}

/* Checks that a call was refused because a pool has no free page: all pages of the pool must be in the timelines'
 * tables. */
static void check_refusal(world *w, const fr_kv *kv) {
    bool drafter = kv->pages == w->drafter.pages, exhausted = false;
    for (size_t kind = 0; kind < FR_KV_KINDS; kind++) {
        size_t which = drafter ? (size_t)FR_KV_KINDS : kind;
        const fr_kv_pages *pool = pool_of(w, which);
        uint32_t tables[8 * BLOCKS] = {0};
        count_tables(w, which, tables);
        bool all = pool->free_count == 0;
        for (size_t i = 0; i < pool->count; i++) all = all && tables[i];
        exhausted |= pool->count && all;
    }
    ck_assert(exhausted);
    w->refused++;
}

static bool claim(world *w, timeline *t, fr_kv *kv, size_t rows, event what) {
    bool got = fr_kv_claim(kv, rows) == FR_OK;
    if (!got && w->full) check_refusal(w, kv);
    check_world(w, what);
    if (got) return true;
    t->length = 0;
    cut(w, t, 0);
    return false;
}

static void follow(world *w, timeline *t) {
    uint64_t stamps[CONTEXT];
    size_t first = t->drafter.length, end = fr_smaller(t->kv.length, t->length - 1);
    if (!t->drafts || end <= first || !claim(w, t, &t->drafter, end - first, DRAFTER_CLAIM)) return;
    stamp_text(&t->says, end + 1, stamps);
    for (size_t p = first; p < end; p++) write_row(&t->drafter, 0, p, stamps[p + 1]);
    fr_kv_commit(&t->drafter, end);
}

static void go_on(world *w, timeline *t) {
    uint64_t stamps[CONTEXT];
    size_t count = fr_smaller(1 + below(BATCH), t->length - t->kv.length);
    if (count == 0 || !claim(w, t, &t->kv, count, CLAIM)) return;
    stamp_text(&t->says, t->kv.length + count, stamps);
    for (size_t p = t->kv.length; p < t->kv.length + count; p++)
        for (size_t i = 0; i < t->kv.count; i++) write_row(&t->kv, i, p, stamps[p]);
    fr_kv_commit(&t->kv, t->kv.length + count);
    share(w, t, t->kv.length == t->length || below(8) == 0);
    if (below(3)) follow(w, t);
}

static void fork_another(world *w, const timeline *t) {
    timeline *fork = &w->timelines[below(TIMELINES)];
    if (fork == t) return;
    cut(w, fork, 0);
    fr_kv_fork(&fork->kv, &t->kv);
    if (fork->drafts && t->drafts) fr_kv_fork(&fork->drafter, &t->drafter);
    fork->says = t->says;
    fork->length = t->length;
    share(w, fork, false);
}

static void drop_checkpoint(world *w, timeline *t) {
    fr_kv_pages_drop(&w->kv.pages[FR_KV_SLIDING], t->checkpoint, 0, BLOCKS);
}

static void note_checkpoint(world *w, timeline *t) {
    drop_checkpoint(w, t);
    if (below(2))
        fr_kv_pages_hold(&w->kv.pages[FR_KV_SLIDING], t->checkpoint, t->kv.table[FR_KV_SLIDING], t->kv.from / PAGE,
                         fr_kv_blocks(t->kv.length));
    check_world(w, CALL);
}

static void say_otherwise(world *w, timeline *t) {
    size_t length = below(t->kv.length + 1);
    cut(w, t, length);
    text other = new_text(t->length);
    size_t from = t->kv.length, block = fr_kv_blocks(from);
    /* the drafter made its row at the last position from the next id too; this id changes here, so the row is
     * dropped */
    if (t->drafter.length >= from && from > 0) fr_kv_rewind(&t->drafter, from - 1);
    memcpy(t->says.ids + from, other.ids + from, (CONTEXT - from) * sizeof *other.ids);
    memcpy(t->says.digests + block, other.digests + block, (BLOCKS - block) * sizeof *other.digests);
    check_world(w, CALL);
}

static void act(world *w) {
    timeline *t = &w->timelines[below(TIMELINES)];
    size_t what = below(40);
    if (t->length == 0 || what == 0)
        begin(w, t);
    else if (what == 1)
        say_otherwise(w, t);
    else if (what == 2)
        fork_another(w, t);
    else if (what == 3)
        note_checkpoint(w, t);
    else if (what == 4)
        cut(w, t, 0);
    else if (what < 9)
        offer(w, t);
    else
        go_on(w, t);
}

static size_t take_all(fr_kv_pages *pages) {
    size_t taken = 0;
    while (fr_kv_pages_take(pages)) taken++;
    return taken;
}

/* Ends all timelines and removes everything from the index. Then every page must be free. */
static void end(world *w) {
    for (timeline *t = w->timelines; t < w->timelines + TIMELINES; t++) {
        drop_checkpoint(w, t);
        cut(w, t, 0);
    }
    fr_kv_use use = fr_kv_prefixes_use(&w->prefixes, &w->kv);
    ck_assert_uint_eq(use.used, 0);
    ck_assert_uint_gt(use.cached, 0);
    for (size_t pool = POOLS; pool-- > 0;) {
        fr_kv_pages *pages = pool_of(w, pool);
        ck_assert_uint_eq(take_all(pages), pages->count);
    }
}

START_TEST(any_order_finds_what_was_written) {
    world *w = open_world(&settings[_i]);
    state = (uint32_t)_i + 1;
    while (w->step < STEPS) act(w);
    ck_assert_msg(w->found > 50 && (w->refused > 5 || !w->full), "%s: %zu found, %zu refused", w->set->name, w->found,
                  w->refused);
    if (w->full)
        ck_assert_msg(w->given_up > 100 && w->exchanged > 50 && w->tails > 100, "%zu, %zu, %zu", w->given_up,
                      w->exchanged, w->tails);
    end(w);
    close_world(w);
}
END_TEST

/* ------------------------------------------------------------------------------------------------ single situations */

/* Runs the drafter at every position that the target has run and whose next id the text already has. */
static void run_pairs(timeline *t) {
    uint64_t stamps[CONTEXT];
    size_t first = t->drafter.length, end = fr_smaller(t->kv.length, t->length - 1);
    ck_assert_msg(fr_kv_claim(&t->drafter, end - first) == FR_OK, "%s", fr_last_error());
    stamp_text(&t->says, end + 1, stamps);
    for (size_t p = first; p < end; p++) write_row(&t->drafter, 0, p, stamps[p + 1]);
    fr_kv_commit(&t->drafter, end);
}

/* Runs the text up to `length` on the timeline, and adds its blocks to the index. */
static void run(world *w, timeline *t, size_t length) {
    t->length = length;
    while (t->kv.length < length) {
        size_t count = fr_smaller(BATCH, length - t->kv.length);
        ck_assert_msg(fr_kv_claim(&t->kv, count) == FR_OK, "%s", fr_last_error());
        uint64_t stamps[CONTEXT];
        stamp_text(&t->says, t->kv.length + count, stamps);
        for (size_t p = t->kv.length; p < t->kv.length + count; p++)
            for (size_t i = 0; i < t->kv.count; i++) write_row(&t->kv, i, p, stamps[p]);
        fr_kv_commit(&t->kv, t->kv.length + count);
        if (t->drafts) run_pairs(t);
        fr_kv_prefixes_add(&w->prefixes, &t->path, &t->kv, drafter_of(t), content_of(&t->says), t->kv.length == length);
    }
}

static void leave(world *w, timeline *t) {
    fr_kv_reset(&t->kv);
    fr_kv_reset(&t->drafter);
    fr_kv_path_cut(&w->prefixes, &t->path, 0);
}

static text plain_text(int32_t first) {
    text says = {0};
    for (size_t i = 0; i < CONTEXT; i++) says.ids[i] = first + (int32_t)i;
    return says;
}

/* The pool has pages for two timelines, and two timelines fill it. One timeline is truncated in the middle of a page
 * that the index also holds. When the timeline writes there again, it needs a copy of that page. To make room for the
 * copy, the index must give up another page. */
START_TEST(what_only_the_index_holds_is_no_obstacle) {
    for (size_t i = 0; i < SETTINGS; i++) {
        world *w = open_world(&settings[i]);
        for (size_t n = 0; n < 2; n++) {
            w->timelines[n].says = plain_text((int32_t)n * 1000);
            run(w, &w->timelines[n], CONTEXT);
        }
        timeline *t = &w->timelines[0];
        fr_kv_rewind(&t->kv, CONTEXT - 10);
        fr_kv_path_cut(&w->prefixes, &t->path, CONTEXT - 10);
        t->says.ids[CONTEXT - 5] = -1;
        run(w, t, CONTEXT);
        check_timeline(t);
        check_timeline(&w->timelines[1]);
        ck_assert_uint_eq(t->path.length, BLOCKS);
        close_world(w);
    }
}
END_TEST

/* One timeline holds a text. Other timelines start from the beginning of this text and end again, one after the other.
 * Each starts at an earlier position than the one before. When they end, their drafter pages must become free, or the
 * pool would run out of pages. */
START_TEST(branches_leave_no_pages_behind) {
    world *w = open_world(&settings[4]);
    timeline *t = &w->timelines[1], *other = &w->timelines[2];
    t->says = plain_text(0);
    run(w, t, CONTEXT);
    for (size_t blocks = BLOCKS - 2; blocks > 0; blocks--) {
        other->says = plain_text(0);
        for (size_t p = blocks * PAGE; p < CONTEXT; p++) other->says.ids[p] += 1000;
        size_t found = fr_kv_prefixes_find(&w->prefixes, content_of(&other->says), CONTEXT, 1u << DRAFTER);
        ck_assert_uint_eq(found, blocks * PAGE - 1);
        fr_kv_prefixes_take(&w->prefixes, &other->path, &other->kv, drafter_of(other), content_of(&other->says), found);
        run(w, other, (blocks + 1) * PAGE + 1);
        check_timeline(other);
        leave(w, other);
    }
    other->says = plain_text(5000);
    run(w, other, CONTEXT);
    check_timeline(other);
    check_timeline(t);
    close_world(w);
}
END_TEST

/* A new prompt can start at the end of an earlier prompt, even if other texts have since used all pages of the sliding
 * layers. */
START_TEST(a_prompts_end_outlives_what_was_passed) {
    world *w = open_world(&settings[_i]);
    timeline *t = &w->timelines[0], *other = &w->timelines[1];
    t->says = plain_text(0);
    run(w, t, 5 * PAGE + 7);
    run(w, t, CONTEXT);
    leave(w, t);
    for (int32_t n = 1; n < 6; n++) {
        other->says = plain_text(0);
        for (size_t p = 5 * PAGE + 7; p < CONTEXT; p++) other->says.ids[p] += 1000 * n;
        size_t found = fr_kv_prefixes_find(&w->prefixes, content_of(&other->says), CONTEXT, 0);
        /* of a prompt's pages, those in the sliding window before its end are kept longest, in whole blocks */
        ck_assert(found >= 5 * PAGE && found <= 5 * PAGE + 7);
        ck_assert_uint_eq(fr_kv_prefixes_find(&w->prefixes, content_of(&other->says), 5 * PAGE, 0), 5 * PAGE - 1);
        fr_kv_prefixes_take(&w->prefixes, &other->path, &other->kv, NULL, content_of(&other->says), found);
        run(w, other, CONTEXT);
        check_timeline(other);
        leave(w, other);
    }
    close_world(w);
}
END_TEST

/* A session is saved in the middle of a page. After it is restored, its sliding layers lack the first half of that
 * page. Such a page must not enter the index. */
START_TEST(a_page_begun_in_the_middle_stays_out) {
    world *w = open_world(&settings[0]);
    timeline *t = &w->timelines[0];
    t->says = plain_text(0);
    t->kv.from = 10;
    run(w, t, 2 * PAGE);
    ck_assert_uint_eq(t->path.length, 2);
    ck_assert_uint_eq(fr_kv_prefixes_find(&w->prefixes, content_of(&t->says), CONTEXT, 0), 0);
    close_world(w);
}
END_TEST

/* Runs two texts, one after the other, and truncates each to LEFT_AT ids afterwards. The two texts differ only after
 * LEFT_AT. For each text the index keeps a point at LEFT_AT. A point is a position at which the index holds the
 * recurrent states. The two points share one page of states. Returns this page. */
enum { LEFT_AT = 40 };
static uint8_t *leave_a_text(world *w, timeline *t, text says[2]) {
    uint8_t *states = NULL;
    for (size_t n = 0; n < 2; n++) {
        says[n] = plain_text(0);
        says[n].ids[LEFT_AT + 5] = -(int32_t)n;
        t->says = says[n];
        run(w, t, PAGE);
        if (!states) states = fr_kv_pages_take(w->kv.recurrent.pages);
        fr_kv_prefixes_add_point(&w->prefixes, &t->path, 0, LEFT_AT, states, false);
        fr_kv_rewind(&t->kv, LEFT_AT);
        fr_kv_path_cut(&w->prefixes, &t->path, LEFT_AT);
    }
    return states;
}

/* Two points share one page of states. A point is a position whose recurrent states the index holds. The index must be
 * able to give up both points. If no timeline holds the page then, it must be free. If a timeline holds it, that
 * timeline is the only holder, so it may write the page in place. */
START_TEST(states_of_branches_are_given_up) {
    const setting recurrent = {"recurrent", {{1, 2, 0, 0, 0, 0}}, 1, BATCH, false, 1};
    world *w = open_world(&recurrent);
    timeline *t = &w->timelines[0];
    fr_kv_pages *pages = w->kv.recurrent.pages;
    text says[2];
    uint8_t *states = leave_a_text(w, t, says), *base = states;
    for (size_t n = 0; n < 2; n++)
        ck_assert_uint_eq(fr_kv_prefixes_find(&w->prefixes, content_of(&says[n]), CONTEXT, 0), LEFT_AT);
    fr_recurrent_return(&t->kv.recurrent, states, LEFT_AT);
    fr_kv_pages_drop(pages, &states, 0, 1);
    if (_i == 0) leave(w, t);
    ck_assert_uint_eq(take_all(pages), pages->count - (_i == 1));
    if (_i == 1) {
        ck_assert_msg(fr_recurrent_claim(&t->kv.recurrent, LEFT_AT) == FR_OK, "%s", fr_last_error());
        ck_assert_ptr_eq(t->kv.recurrent.base, base);
    }
    ck_assert_uint_eq(fr_kv_prefixes_find(&w->prefixes, content_of(&says[0]), CONTEXT, 0), 0);
    close_world(w);
}
END_TEST

/* A point is a position whose recurrent states the index holds, so that a prompt can start there. Some drafters make
 * their row of a position from the id at the next position too. The row before a point then depends on the id at the
 * point. So a prompt may start at the point only if it has the same id at that position. */
START_TEST(a_point_is_for_its_next_id) {
    const setting recurrent = {"recurrent, drafts", {{1, 2, 0, 0, 0, 0}}, 1, BATCH, true, 1};
    world *w = open_world(&recurrent);
    timeline *t = &w->timelines[1];
    t->says = plain_text(0);
    run(w, t, PAGE + 10);
    uint8_t *states = fr_kv_pages_take(w->kv.recurrent.pages);
    uint32_t tail =
        fr_kv_prefixes_add_tail(&w->prefixes, &t->path, &t->kv, drafter_of(t), content_of(&t->says), t->length);
    for (size_t i = 0; i < 2; i++) {
        size_t at = i ? PAGE + 4 : LEFT_AT;
        fr_kv_prefixes_add_point(&w->prefixes, &t->path, tail, at, states, false);
        for (size_t differs = at - 1; differs <= at + 1; differs++) {
            text says = plain_text(0);
            says.ids[differs] = -1;
            size_t with = fr_kv_prefixes_find(&w->prefixes, content_of(&says), CONTEXT, 1u << DRAFTER);
            size_t without = fr_kv_prefixes_find(&w->prefixes, content_of(&says), CONTEXT, 0);
            ck_assert_uint_eq(with, differs > at ? at : i ? LEFT_AT : 0);
            ck_assert_uint_eq(without, differs >= at ? at : i ? LEFT_AT : 0);
        }
    }
    run(w, t, 2 * PAGE + 1); /* the tail becomes a whole block, and its point is kept */
    ck_assert_uint_eq(fr_kv_prefixes_find(&w->prefixes, content_of(&t->says), CONTEXT, 0), PAGE + 4);
    close_world(w);
}
END_TEST

/* Points are positions whose recurrent states the index holds. Some points are added as spare. The index must give up
 * all spare points before any other point, even if the other points have been unused for longer. */
START_TEST(spare_points_go_first) {
    const setting recurrent = {"recurrent", {{1, 2, 0, 0, 0, 0}}, 1, BATCH, false, 1};
    world *w = open_world(&recurrent);
    timeline *t = &w->timelines[0];
    t->says = plain_text(0);
    run(w, t, 2 * PAGE);
    for (size_t i = 0; i < 2; i++) {
        uint8_t *states = fr_kv_pages_take(w->kv.recurrent.pages);
        fr_kv_prefixes_add_point(&w->prefixes, &t->path, 0, i ? PAGE + 1 : LEFT_AT, states, i == 1);
        fr_kv_pages_drop(w->kv.recurrent.pages, &states, 0, 1);
    }
    size_t free_pages = w->kv.recurrent.pages->free_count;
    ck_assert_uint_eq(fr_kv_prefixes_spare_states(&w->prefixes), free_pages + 1);
    for (size_t i = 0; i <= free_pages; i++) ck_assert_ptr_nonnull(fr_kv_pages_take(w->kv.recurrent.pages));
    ck_assert_uint_eq(fr_kv_prefixes_find(&w->prefixes, content_of(&t->says), CONTEXT, 0), LEFT_AT);
    ck_assert_uint_eq(fr_kv_prefixes_spare_states(&w->prefixes), 0);
    close_world(w);
}
END_TEST

/* All blocks of this test have the same hash, as an attacker could arrange by choosing the ids. The index keeps only a
 * few blocks with the same hash, so that a search stays fast. */
START_TEST(colliding_blocks_are_few) {
    enum { COLLIDING = 40 };
    const setting roomy = {"roomy", {{1, 2, 0, 0, 0, 0}}, 1, BATCH, false, 0};
    world *w = open_world(&roomy);
    timeline *t = &w->timelines[0];
    size_t found = 0;
    for (int32_t n = 0; n < COLLIDING; n++) {
        text says = {.ids = {n, 5}};
        uint64_t word, hash, first, zero = 0;
        memcpy(&word, says.ids, sizeof word);
        hash = fr_hash(0, &word, sizeof word);
        first = fr_hash(0, &zero, sizeof zero);
        word = hash ^ first; /* with this word as ids 2 and 3, the hash is the same for every n */
        memcpy(says.ids + 2, &word, sizeof word);
        t->says = says;
        run(w, t, PAGE + 1);
        check_timeline(t);
        found += fr_kv_prefixes_find(&w->prefixes, content_of(&says), PAGE + 1, 0) == PAGE;
        ck_assert_uint_le(t->path.length, 1);
        leave(w, t);
    }
    ck_assert_uint_eq(found, 16);
    close_world(w);
}
END_TEST

FR_SUITE("kv_prefixes") {
    TCase *any = tcase_create("any"), *directed = tcase_create("directed");
    tcase_set_timeout(any, 120);
    tcase_add_loop_test(any, any_order_finds_what_was_written, 0, SETTINGS);
    tcase_add_test(directed, what_only_the_index_holds_is_no_obstacle);
    tcase_add_test(directed, branches_leave_no_pages_behind);
    tcase_add_loop_test(directed, a_prompts_end_outlives_what_was_passed, 0, 2);
    tcase_add_test(directed, a_page_begun_in_the_middle_stays_out);
    tcase_add_loop_test(directed, states_of_branches_are_given_up, 0, 2);
    tcase_add_test(directed, a_point_is_for_its_next_id);
    tcase_add_test(directed, spare_points_go_first);
    tcase_add_test(directed, colliding_blocks_are_few);
    suite_add_tcase(suite, any);
    suite_add_tcase(suite, directed);
}
