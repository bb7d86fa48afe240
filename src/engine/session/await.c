/* Lets prompts wait for pages that another session computes: see await.h. */
#include "src/engine/session/await.h"

#include <string.h>

#include "base/sizes.h"

static bool same_block(const fr_session *a, const fr_session *b, size_t block) {
    size_t at = block * FR_KV_PAGE;
    return memcmp(a->ids + at, b->ids + at, FR_KV_PAGE * sizeof *a->ids) == 0 &&
           memcmp(&a->cache.digests[block], &b->cache.digests[block], sizeof *a->cache.digests) == 0;
}

/* Counts the whole blocks that both timelines begin with. */
static size_t common_blocks(const fr_session *a, const fr_session *b) {
    size_t blocks = fr_smaller(a->length, b->length) / FR_KV_PAGE,
           n = fr_smaller(a->cache.path.length, b->cache.path.length);
    /* a node stands for all ids up to its end, so equal nodes mean equal beginnings */
    while (n && a->cache.path.nodes[n - 1] != b->cache.path.nodes[n - 1]) n--;
    while (n < blocks && same_block(a, b, n)) n++;
    return n;
}

/* Returns true if the leader, a session whose prompt runs in this round, is computing the block that session s needs
 * next. A block is the FR_KV_PAGE ids of one page. pair: 1 if a drafter's cache is shared too, otherwise 0. A drafter's
 * entry for a position also depends on the id at the next position. So with pair = 1 the entries of a block are those
 * of the positions one before the block's ids. */
static bool next_is_coming(const fr_session *s, const fr_session *leader, size_t common, size_t pair) {
    size_t block = (s->cache.kv.length + pair) / FR_KV_PAGE, first = block * FR_KV_PAGE, end = first + FR_KV_PAGE;
    bool helps = fr_smaller(end - pair, s->length - 1) > s->cache.kv.length;
    return helps && block < common && leader->cache.kv.length + pair >= first && leader->cache.kv.length < end;
}

static void ask_for_states(fr_session *leader, size_t position) {
    for (size_t i = 0; i < leader->cache.awaited_count; i++)
        if (leader->cache.awaited[i] == position) return;
    if (leader->cache.awaited_count < FR_RECURRENT_POINTS)
        leader->cache.awaited[leader->cache.awaited_count++] = position;
}

/* Asks the leader to store its recurrent states for session s; returns true if the leader will. Each block of the
 * common part has a page, but states are stored for one position only. So the states near the end of the common part
 * are asked for: those one position before the end, because a drafter's entry for a position also depends on the next
 * id. */
static bool states_are_coming(const fr_session *s, fr_session *leader, size_t common) {
    size_t end = common * FR_KV_PAGE, ahead = leader->cache.kv.length;
    if (end < s->cache.kv.length + 2 || ahead < s->cache.kv.length || ahead >= end ||
        leader->cache.kv.recurrent.at + 1 >= end)
        return false;
    ask_for_states(leader, end - 1);
    return true;
}

bool fr_await_pages(const fr_session *s, const fr_batch_slice *slices, const fr_batch_slice *end) {
    fr_kv *drafters[FR_DRAFTERS_MAX];
    unsigned set = fr_session_draft_kv(s, drafters);
    if (!fr_session_reuses(s)) return false;
    for (const fr_batch_slice *slice = slices; slice < end; slice++) {
        fr_session *leader = slice->session;
        bool leads = leader->round.stage == FR_STAGE_PROMPT && !leader->round.last_failed && fr_session_shares(leader);
        if (!leads || (set & ~fr_session_draft_kv(leader, drafters))) continue;
        size_t common = common_blocks(s, leader);
        if (s->cache.kv.recurrent.count ? states_are_coming(s, leader, common)
                                        : next_is_coming(s, leader, common, set != 0))
            return true;
    }
    return false;
}
