/* Calls the methods of several sessions for proposals: see draft.h.
 *
 * Proposals are linked into lists, so no memory is taken for any number of sessions. A method that calls other methods
 * makes lists of its own. */
#include "src/engine/draft/draft.h"

/* Takes all proposals with the first proposal's method out of a list. These proposals stay linked in their order,
 * beginning with `first`. Returns the list of all other proposals. */
static fr_proposal *part_method(fr_proposal *first) {
    const fr_draft_method *method = first->draft->method;
    fr_proposal *same = NULL, *others = NULL, **ends[2] = {&others, &same};
    for (fr_proposal *p = first; p; p = p->next) {
        fr_proposal ***end = &ends[p->draft->method == method];
        **end = p;
        *end = &p->next;
    }
    *ends[0] = *ends[1] = NULL;
    return others;
}

void fr_draft_propose_list(fr_proposal *first) {
    for (fr_proposal *p = first; p; p = p->next) {
        p->proposed = p->made = 0;
        p->found = false;
        p->failure.status = FR_OK;
    }
    for (fr_proposal *others; first; first = others) {
        others = part_method(first);
        first->draft->method->propose(first);
        for (fr_proposal *p = first; p; p = p->next)
            if (p->proposed < p->n_min) p->proposed = 0;
    }
}

void fr_draft_propose(fr_proposal *proposals, size_t count) {
    if (count == 0) return;
    for (size_t i = 0; i < count; i++) proposals[i].next = i + 1 < count ? &proposals[i + 1] : NULL;
    fr_draft_propose_list(proposals);
}

fr_status fr_draft_propose_one(fr_proposal *proposal) {
    fr_draft_propose(proposal, 1);
    return fr_failure_raise(&proposal->failure);
}
