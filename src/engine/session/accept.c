/* Accepts drafts: see accept.h. */
#include "src/engine/session/accept.h"

size_t fr_accept_greedy(const int64_t *choices, const int32_t *drafts, size_t count) {
    size_t accepted = 0;
    while (accepted < count && choices[accepted] == drafts[accepted]) accepted++;
    return accepted;
}

static int32_t id_of(const fr_distribution *p, size_t candidate) {
    return p->ids ? p->ids[candidate] : (int32_t)candidate;
}

double fr_probability(const fr_distribution *p, int32_t id) {
    size_t i = p->ids ? 0 : (size_t)id;
    while (p->ids && i < p->count && p->ids[i] != id) i++;
    return i < p->count ? p->weight[i] / p->total : 0;
}

bool fr_accept_draft(double p, double q, double u) {
    return u * q < p;
}

int32_t fr_sample(const fr_distribution *p, double u) {
    double reached = 0, wanted = u * p->total;
    int32_t id = -1;
    for (size_t i = 0; i < p->count && reached <= wanted; i++) {
        if (p->weight[i] == 0) continue;
        reached += p->weight[i];
        id = id_of(p, i);
    }
    return id;
}

/* Gives how much more probable candidate i is in p than in q; 0 if it is not more probable in p. If q is NULL, the
 * draft has probability 1 in q. */
static double excess(const fr_distribution *p, const fr_distribution *q, int32_t draft, size_t i) {
    int32_t id = id_of(p, i);
    double drafted = q ? q->weight[id] / q->total : id == draft;
    double more = p->weight[i] / p->total - drafted;
    return more > 0 ? more : 0;
}

int32_t fr_sample_residual(const fr_distribution *p, const fr_distribution *q, int32_t draft, double u) {
    double total = 0, reached = 0;
    int32_t id = -1;
    for (size_t i = 0; i < p->count; i++) total += excess(p, q, draft, i);
    if (total == 0) return fr_sample(p, u);
    for (size_t i = 0; i < p->count && reached <= u * total; i++) {
        double more = excess(p, q, draft, i);
        if (more == 0) continue;
        reached += more;
        id = id_of(p, i);
    }
    return id;
}
