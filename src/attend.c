/* Attention of a batch by a team: see attend.h. */
#include "src/attend.h"

void fr_attend_layout(fr_attend_room *room, fr_arena *arena, size_t head_dim, size_t threads) {
    room->scratch_size = fr_attn_scratch(head_dim, FR_ATTEND_BATCH);
    room->queries = fr_arena_take(arena, threads * FR_ATTEND_BATCH, sizeof *room->queries);
    room->scratch = fr_arena_take(arena, threads * room->scratch_size, sizeof(float));
}

void fr_attend_run(const fr_team *team, const fr_attend_rows *a) {
    const fr_kv_layer *cache = a->cache;
    size_t n = cache->head_dim, group = a->heads / cache->heads, per_kv_head = a->rows * group, begin, end;
    fr_attn_query *queries = a->room->queries + team->index * FR_ATTEND_BATCH;
    fr_attn attn = {.k_type = cache->k.type,
                    .v_type = cache->v.type,
                    .k_stride = cache->k.bytes,
                    .v_stride = cache->v.bytes,
                    .slots = cache->slots,
                    .head_dim = n,
                    .scale = a->scale,
                    .queries = queries,
                    .scratch = a->room->scratch + team->index * a->room->scratch_size};
    int64_t span = (int64_t)a->span;
    fr_partition(a->rows * a->heads, 1, team->index, team->count, &begin, &end);
    while (begin < end) {
        size_t kv_head = begin / per_kv_head;
        for (attn.count = 0; attn.count < FR_ATTEND_BATCH && begin < end && begin / per_kv_head == kv_head; begin++) {
            size_t row = begin % per_kv_head / group, head = kv_head * group + begin % group;
            int64_t last = a->last + (int64_t)row, first = span && last >= span ? last - span + 1 : 0;
            size_t at = row * a->stride + head * n;
            queries[attn.count++] = (fr_attn_query){a->q + at, a->out + at, first, last};
        }
        attn.k = fr_kv_slot(cache, &cache->k, kv_head, 0);
        attn.v = fr_kv_slot(cache, &cache->v, kv_head, 0);
        a->kernels->attn(&attn);
    }
}
