/* The method `none`, which makes no drafts. So every round runs one row and gives one id, as plain decoding does. */
#include "src/engine/draft/draft.h"

static fr_draft *none_open(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    (void)drafter;
    (void)sizes;
    fr_draft *draft = fr_arena_take(arena, 1, sizeof *draft);
    if (draft) *draft = (fr_draft){.method = &fr_draft_none};
    return draft;
}

static void none_propose(fr_proposal *first) {
    (void)first;
}

const fr_draft_method fr_draft_none = {.name = "none", .open = none_open, .propose = none_propose};
