/* Leaves out the drafts that are not worth their rows: see draft_cut.h. */
#include "src/engine/session/draft_cut.h"

#include "base/sizes.h"

/* Describes a chain of drafts to which rows are given one by one. */
typedef struct chain {
    fr_draft_depth_part *part;
    size_t rows;      /* number of the chain's drafts that have got a row */
    double all_stand; /* probability that all drafts with a row are accepted */
} chain;

/* Fills in a part's `stands`: for each draft, the probability that it is accepted if all drafts before it are accepted.
 * Looked-up drafts need no correction, because their method has counted how often such drafts were accepted. */
static void fill_stands(const fr_draft_depth *draft_depth, fr_draft_depth_part *part) {
    fr_draft_gain gains;
    bool corrects = part->tells && !part->looked_up;
    if (corrects) fr_calibration_tell(&draft_depth->by[part->drafter].calibration, &gains);
    for (size_t d = 0; d < part->drafted; d++) {
        double chance = (double)part->chances[d];
        if (corrects) chance = gains.stands[fr_draft_gain_depth(d)][fr_draft_gain_bin(chance)];
        part->stands[d] = part->tells ? (float)chance : (float)part->gains.next[d];
    }
}

/* Returns how many of a part's drafts are verified whether or not they are worth their rows. If the result is
 * FR_STEP_MAX, each draft is verified only if it is worth its row. */
static size_t count_certain(const fr_draft_depth_part *part) {
    if (part->looked_up) return part->tells ? FR_STEP_MAX : part->drafted;
    if (part->ends && !part->compares) return FR_STEP_MAX;
    return fr_smaller(part->drafted, part->planned);
}

/* Finds the chain whose next draft is most likely to be accepted together with all drafts before it. Returns the
 * chain's index, and this probability in *likeliest. Returns `count` if no chain has a draft left. */
static size_t find_likeliest(const chain *chains, size_t count, double *likeliest) {
    size_t found = count;
    for (size_t i = 0; i < count; i++) {
        const chain *c = &chains[i];
        if (c->rows == c->part->drafted) continue;
        double all_stand = c->all_stand * (double)c->part->stands[c->rows];
        if (found < count && all_stand <= *likeliest) continue;
        found = i;
        *likeliest = all_stand;
    }
    return found;
}

void fr_draft_cut(const fr_draft_depth *draft_depth, fr_draft_depth_part *parts, size_t count, size_t room,
                  size_t taken) {
    chain chains[FR_DRAFT_DEPTH_ROWS];
    fr_draft_depth_part *order[FR_DRAFT_DEPTH_ROWS];
    double seconds[FR_DRAFT_DEPTH_ROWS + 1], all_stand = 0, gain = 0, most = 0;
    double rate = fr_draft_depth_rate(draft_depth);
    size_t going = 0, certain = 0, chosen = 0;
    for (size_t i = 0; i < count; i++) {
        fr_draft_depth_part *part = &parts[i];
        size_t kept = count_certain(part);
        fill_stands(draft_depth, part);
        part->left_out = kept < FR_STEP_MAX ? part->drafted - kept : part->drafted;
        certain += part->drafted - part->left_out;
        if (kept == FR_STEP_MAX && part->drafted && going < FR_DRAFT_DEPTH_ROWS)
            chains[going++] = (chain){.part = part, .all_stand = 1};
    }

    size_t base = count + taken + certain, largest = fr_draft_depth_lately(draft_depth, seconds);
    if (base >= FR_DRAFT_DEPTH_ROWS || room <= certain) return;
    size_t hoped = largest > base ? 2 * (largest - base) + 1 : 1;
    size_t limit = fr_smaller(fr_smaller(room - certain, FR_DRAFT_DEPTH_ROWS - base), hoped);
    for (size_t n = 1; n <= limit; n++) {
        size_t next = find_likeliest(chains, going, &all_stand);
        if (next == going) break;
        chains[next].rows++;
        chains[next].all_stand = all_stand;
        order[n - 1] = chains[next].part;
        gain += all_stand - rate * (seconds[base + n] - seconds[base + n - 1]);
        if (gain <= most) continue;
        most = gain;
        chosen = n;
    }
    for (size_t n = 0; n < chosen; n++) order[n]->left_out--;
}
