/* Lays out the key/value cache and moves its frontier: see kv.h. */
#include "src/engine/cache/kv.h"

#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/sizes.h"
#include "kernels/turbo.h"

static const struct {
    const char *word;
    fr_dtype type;
} cached[FR_CACHED_TYPES] = {{"f32", FR_F32},   {"f16", FR_F16},       {"bf16", FR_BF16},    {"q8_0", FR_Q8_0},
                             {"q4_0", FR_Q4_0}, {"turbo4", FR_TURBO4}, {"turbo3", FR_TURBO3}};

const char *fr_kv_type_word(size_t index) {
    return index < FR_CACHED_TYPES ? cached[index].word : NULL;
}

fr_dtype fr_kv_type(size_t index) {
    return index < FR_CACHED_TYPES ? cached[index].type : FR_DTYPE_COUNT;
}

size_t fr_kv_type_index(fr_dtype type) {
    size_t index = 0;
    while (index < FR_CACHED_TYPES && cached[index].type != type) index++;
    return index;
}

fr_dtype fr_kv_type_from_word(const char *word) {
    size_t index = 0;
    while (index < FR_CACHED_TYPES && strcasecmp(word, cached[index].word) != 0) index++;
    return fr_kv_type(index);
}

void fr_kv_store(const fr_kernels *kernels, fr_dtype type, void *slot, float *head, size_t n) {
    if (fr_turbo(type)) {
        fr_turbo_rotate(kernels, head, n);
        fr_turbo_store(type, slot, head, n);
    } else
        kernels->kv_store[type](slot, head, n);
}

static fr_status check_rows(const char *what, fr_dtype type, size_t width) {
    if (width % fr_dtype_block(type) == 0) return FR_OK;
    return fr_fail(FR_INPUT, "%s of type %s need heads that are multiples of %zu wide, this model has some of %zu",
                   what, fr_kv_type_word(fr_kv_type_index(type)), fr_dtype_block(type), width);
}

/* Checks the type of values only where values are stored. Latent values are not stored: they are read from the keys'
 * rows. */
fr_status fr_kv_check(const fr_kv_shape *shapes, size_t count, fr_kv_types types) {
    for (size_t i = 0; i < count; i++) {
        size_t latent = shapes[i].latent;
        if (latent && fr_turbo(types.k))
            return fr_fail(FR_INPUT, "latents can't be cached as %s, only keys and values of heads can",
                           fr_kv_type_word(fr_kv_type_index(types.k)));
        FR_TRY(check_rows("keys", types.k, shapes[i].head_dim));
        FR_TRY(latent ? check_rows("latent values", types.k, latent)
                      : check_rows("values", types.v, shapes[i].head_dim));
    }
    return FR_OK;
}

fr_kv_types fr_kv_drafter_types(const fr_kv_shape *shapes, size_t count, fr_kv_types types) {
    if (fr_turbo(types.k)) types.k = FR_Q8_0;
    bool fits = fr_failure_keep(fr_kv_check(shapes, count, types)).status == FR_OK;
    return fits ? types : (fr_kv_types){FR_F16, FR_F16};
}

/* ----------------------------------------------------------------------------------------------------------- layout */

enum { LINE = 64 }; /* bytes; within a page, the rows of each layer begin at a multiple of this number */

static size_t round_up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

/* Places a layer's rows after the rows of earlier layers in the page. *page is the page's size in bytes so far, and
 * grows by the rows of the heads that this rank keeps. *whole is the size that the page would have with all heads, and
 * grows by the rows of all heads. */
static fr_kv_rows place_rows(const fr_kv_layer *layer, fr_dtype type, size_t *page, size_t *whole) {
    fr_kv_rows rows = {.at = *page, .type = type, .bytes = fr_dtype_row_bytes(type, layer->head_dim)};
    *page += round_up(layer->heads * FR_KV_PAGE * rows.bytes, LINE);
    *whole += round_up(layer->all * FR_KV_PAGE * rows.bytes, LINE);
    return rows;
}

/* Gives how many positions before a forward's last row the sliding layers must hold, so that each row of the forward
 * finds its whole window. The number is rounded up to whole pages. Gives 0 if sliding layers hold all positions. */
static size_t keeps(size_t window, size_t context, size_t batch) {
    size_t all = round_up(context, FR_KV_PAGE), few = round_up(window + batch, FR_KV_PAGE);
    return window && few + FR_KV_PAGE < all ? few : 0;
}

/* Gives the most pages of a kind that one timeline needs. Sliding layers need pages for kv->keeps positions, and one
 * more page for the last position. */
static size_t table_pages(const fr_kv *kv, fr_kv_kind kind) {
    return kind == FR_KV_SLIDING && kv->keeps ? kv->keeps / FR_KV_PAGE + 1 : kv->blocks;
}

static void take_tables(fr_kv *kv, fr_arena *arena, size_t context) {
    kv->layers = fr_arena_take(arena, kv->count, sizeof *kv->layers);
    kv->blocks = fr_kv_blocks(context);
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++)
        kv->table[kind] = fr_arena_take(arena, kv->blocks, sizeof *kv->table[kind]);
}

/* Chooses the number of pages of each kind, which is enough for all timelines. If sizes->bytes is given, the pages of
 * both kinds together must fill these bytes. The numbers of both kinds are then scaled by the same factor. */
static void choose_page_counts(fr_kv *kv, const fr_kv_sizes *sizes) {
    double all = 0, fewest = 0; /* fewest: one timeline needs some share of the pages of each kind; this is the larger
                                 * of these shares */
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++) {
        size_t tables = 1 + (kind == FR_KV_SLIDING ? kv->spare : 0);
        size_t number = sizes->timelines * tables * table_pages(kv, kind);
        if (sizes->pages && kind == FR_KV_FULL) number = sizes->pages;
        kv->page_count[kind] = kv->whole_bytes[kind] ? number : 0;
        all += (double)kv->page_count[kind] * (double)kv->whole_bytes[kind];
        double share = kv->page_count[kind] ? (double)table_pages(kv, kind) / (double)kv->page_count[kind] : 0;
        if (share > fewest) fewest = share;
    }
    kv->fewest_bytes = (size_t)(fewest * all) + kv->whole_bytes[FR_KV_FULL] + kv->whole_bytes[FR_KV_SLIDING];
    for (fr_kv_kind kind = 0; sizes->bytes && kind < FR_KV_KINDS; kind++)
        kv->page_count[kind] = (size_t)((double)kv->page_count[kind] * ((double)sizes->bytes / all));
}

size_t fr_kv_window(const fr_kv_shape *shapes, size_t count) {
    size_t widest = 0;
    for (size_t i = 0; i < count; i++) widest = fr_larger(widest, shapes[i].window);
    return widest;
}

/* Reserves a layer's part in each page of the layer's kind, after the parts of earlier layers. */
static fr_kv_layer place_layer(fr_kv *kv, const fr_kv_shape *shape, fr_kv_types types) {
    fr_kv_kind kind = shape->window && kv->window ? FR_KV_SLIDING : FR_KV_FULL;
    size_t *page = &kv->page_bytes[kind], *whole = &kv->whole_bytes[kind], latent = shape->latent;
    fr_kv_layer layer = {.heads = shape->heads,
                         .head_dim = shape->head_dim,
                         .value_dim = latent ? latent : shape->head_dim,
                         .first = shape->before,
                         .all = shape->before + shape->heads + shape->behind,
                         .kind = kind,
                         .pages = kv->table[kind]};
    layer.k = place_rows(&layer, types.k, page, whole);
    layer.v = latent ? (fr_kv_rows){.at = layer.k.at, .type = types.k} : place_rows(&layer, types.v, page, whole);
    return layer;
}

/* A rank that keeps no heads of a kind still counts pages of this kind, because all ranks must have the same number of
 * pages. Each of these pages takes one cache line, because a page is identified by its address. */
static void take_pools(fr_kv *kv, fr_arena *arena, const fr_kv_sizes *sizes) {
    kv->pages = fr_arena_take(arena, FR_KV_KINDS, sizeof *kv->pages);
    choose_page_counts(kv, sizes);
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++) {
        if (kv->whole_bytes[kind]) kv->page_bytes[kind] = fr_larger(kv->page_bytes[kind], LINE);
        fr_kv_pages pages = fr_kv_pages_layout(arena, kv->page_bytes[kind], kv->page_count[kind]);
        if (kv->pages) kv->pages[kind] = pages;
    }
}

void fr_kv_layout(fr_kv *kv, fr_arena *arena, const fr_kv_shape *shapes, size_t count, fr_kv_types types,
                  fr_kv_sizes sizes) {
    *kv = (fr_kv){.count = count, .window = sizes.whole ? 0 : fr_kv_window(shapes, count)};
    take_tables(kv, arena, sizes.context);
    kv->keeps = keeps(kv->window, sizes.context, sizes.batch);
    if (kv->keeps)
        kv->spare = fr_smaller(sizes.checkpoints, sizes.context / kv->keeps);
    else if (sizes.recurrent_count)
        kv->spare = sizes.checkpoints;
    for (size_t i = 0; i < count; i++) {
        fr_kv_layer layer = place_layer(kv, &shapes[i], types);
        if (kv->layers) kv->layers[i] = layer;
    }
    take_pools(kv, arena, &sizes);
    fr_recurrent_layout(&kv->recurrent, arena, sizes.recurrent, sizes.recurrent_count,
                        sizes.timelines * (1 + kv->spare));
}

void fr_kv_layout_fork(fr_kv *fork, fr_arena *arena, const fr_kv *kv) {
    *fork = *kv;
    fork->length = fork->from = 0;
    take_tables(fork, arena, kv->blocks * FR_KV_PAGE);
    for (size_t i = 0; fork->layers && i < fork->count; i++) {
        fork->layers[i] = kv->layers[i];
        fork->layers[i].pages = fork->table[kv->layers[i].kind];
    }
    fr_recurrent_layout_fork(&fork->recurrent, arena, &kv->recurrent);
}

size_t fr_kv_position_bytes(const fr_kv_shape *shapes, size_t count, fr_kv_types types) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += shapes[i].heads * (fr_dtype_row_bytes(types.k, shapes[i].head_dim) +
                                    (shapes[i].latent ? 0 : fr_dtype_row_bytes(types.v, shapes[i].head_dim)));
    return bytes;
}

size_t fr_kv_bytes(const fr_kv *kv) {
    size_t bytes = 0;
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++) bytes += table_pages(kv, kind) * kv->page_bytes[kind];
    return bytes + fr_recurrent_page_bytes(kv->recurrent.shapes, kv->recurrent.count);
}

size_t fr_kv_spare_bytes(const fr_kv *kv) {
    size_t tables = 1 + kv->spare; /* number of tables of a timeline: its own table, and one for each checkpoint */
    return kv->page_count[FR_KV_SLIDING] * kv->spare / tables * kv->page_bytes[FR_KV_SLIDING] +
           kv->recurrent.page_count * kv->spare / tables *
               fr_recurrent_page_bytes(kv->recurrent.shapes, kv->recurrent.count);
}

size_t fr_kv_foreign_bytes(const fr_kv *kv) {
    size_t bytes = 0;
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++) {
        size_t whole = kv->whole_bytes[kind], own = kv->page_bytes[kind];
        bytes += whole > own ? kv->page_count[kind] * (whole - own) : 0;
    }
    return bytes;
}

size_t fr_kv_pool_bytes(const fr_kv *kv) {
    size_t bytes = kv->recurrent.page_count * fr_recurrent_page_bytes(kv->recurrent.shapes, kv->recurrent.count);
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++) bytes += kv->page_count[kind] * kv->page_bytes[kind];
    return bytes;
}

/* --------------------------------------------------------------------------------------------------------- claiming */

/* Makes this timeline the only holder of a block's page, so that the timeline may write there. If another timeline also
 * holds the page, and the page has accepted rows, this timeline gets a copy. */
static fr_status own(fr_kv *kv, fr_kv_kind kind, size_t block) {
    fr_kv_pages *pages = &kv->pages[kind];
    uint8_t *page = kv->table[kind][block];
    if (page && !fr_kv_page_shared(pages, page)) return FR_OK;
    uint8_t *mine = fr_kv_pages_take(pages);
    if (!mine && page && fr_kv_page_release(pages, page)) return FR_OK;
    if (!mine)
        return fr_fail(FR_MEMORY, "no page for keys and values at position %zu is left: all %zu are held", kv->length,
                       pages->count);
    if (page && block * FR_KV_PAGE < kv->length) memcpy(mine, page, pages->bytes);
    fr_kv_pages_drop(pages, kv->table[kind], block, block + 1);
    kv->table[kind][block] = mine;
    return FR_OK;
}

static fr_status own_all(fr_kv *kv, fr_kv_kind kind, size_t from, size_t end) {
    if (kv->page_bytes[kind] == 0) return FR_OK;
    for (size_t block = from / FR_KV_PAGE; block < fr_kv_blocks(end); block++) FR_TRY(own(kv, kind, block));
    return FR_OK;
}

size_t fr_kv_held_from(const fr_kv *kv, size_t from, size_t end) {
    if (kv->keeps == 0 || end <= kv->keeps) return from;
    return fr_larger(from, (end - 1) / FR_KV_PAGE * FR_KV_PAGE - kv->keeps);
}

/* Gives the first block after the frontier's block that has no page. */
static size_t held_end(const fr_kv *kv, fr_kv_kind kind) {
    size_t block = fr_kv_blocks(kv->length);
    while (block < kv->blocks && kv->table[kind][block]) block++;
    return block;
}

/* Drops the pages after the frontier. In the table of each kind, they are the pages of blocks from[kind] and later. */
static void give_back(fr_kv *kv, const size_t from[FR_KV_KINDS]) {
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++)
        fr_kv_pages_drop(&kv->pages[kind], kv->table[kind], from[kind], held_end(kv, kind));
}

fr_status fr_kv_claim(fr_kv *kv, size_t rows) {
    size_t end = kv->length + rows, from = fr_kv_held_from(kv, kv->from, end);
    const size_t held[] = {held_end(kv, FR_KV_FULL), held_end(kv, FR_KV_SLIDING)};
    fr_kv_pages_drop(&kv->pages[FR_KV_SLIDING], kv->table[FR_KV_SLIDING], kv->from / FR_KV_PAGE, from / FR_KV_PAGE);
    kv->from = from;
    fr_status status = own_all(kv, FR_KV_FULL, kv->length, end);
    if (status == FR_OK) status = own_all(kv, FR_KV_SLIDING, kv->length, end);
    if (status == FR_OK) status = fr_recurrent_claim(&kv->recurrent, kv->length);
    if (status != FR_OK) give_back(kv, held);
    return status;
}

void fr_kv_give_back(fr_kv *kv) {
    size_t first = fr_kv_blocks(kv->length);
    give_back(kv, (const size_t[]){first, first});
}

fr_status fr_kv_restore(fr_kv *kv, size_t from, size_t length) {
    FR_TRY(own_all(kv, FR_KV_FULL, 0, length));
    return own_all(kv, FR_KV_SLIDING, from, length);
}

/* ----------------------------------------------------------------------------------------------------- the frontier */

void fr_kv_commit(fr_kv *kv, size_t length) {
    kv->length = length;
}

void fr_kv_ran(fr_kv *kv) {
    fr_recurrent_ran(&kv->recurrent);
}

bool fr_kv_holds_lookback(const fr_kv *kv, size_t length) {
    return fr_recurrent_holds(&kv->recurrent, length) && (kv->from == 0 || kv->from + kv->window <= length);
}

void fr_kv_rewind(fr_kv *kv, size_t length) {
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++)
        fr_kv_pages_drop(&kv->pages[kind], kv->table[kind], fr_kv_blocks(length), kv->blocks);
    kv->length = length;
    if (length == 0) kv->from = 0;
    if (length == 0 || length < kv->recurrent.at) fr_recurrent_reset(&kv->recurrent);
}

void fr_kv_reset(fr_kv *kv) {
    fr_kv_rewind(kv, 0);
}

/* ------------------------------------------------------------------------------------------------------------ forks */

void fr_kv_fork(fr_kv *fork, const fr_kv *kv) {
    fr_kv_reset(fork);
    fork->length = kv->length;
    fork->from = kv->from;
    fork->rope_far = kv->rope_far;
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++)
        fr_kv_pages_hold(&kv->pages[kind], fork->table[kind], kv->table[kind], 0, fr_kv_blocks(kv->length));
    fr_recurrent_fork(&fork->recurrent, &kv->recurrent);
}
