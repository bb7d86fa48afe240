/* Chooses the draft methods of a session, and combines several of them.
 *
 * In: the words of --spec-type. Out: methods. Several methods are combined to one method, which asks each of them, in
 * order, until one has a proposal. A method that looks drafts up makes no proposal if the drafts of the next methods
 * are worth more (draft_gain.h). */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFT_LIST_H
#define FR_SRC_ENGINE_DRAFT_DRAFT_LIST_H

#include "src/engine/draft/draft.h"

#define FR_DRAFT_LIST_MAX 4

typedef struct fr_draft_list {
    const fr_draft_method *methods[FR_DRAFT_LIST_MAX];
    size_t drafters[FR_DRAFT_LIST_MAX]; /* for each method with weights, the number of its drafter (fr_drafter_at) */
    size_t count;
} fr_draft_list;

/* fr_draft_word gives the words that the help text lists. fr_draft_other_word gives other words for the same methods.
 * Both give NULL after the last word. */
const char *fr_draft_word(size_t index);
const char *fr_draft_other_word(size_t index);

/* fr_draft_words_check checks the words of --spec-type alone. fr_draft_list_choose also checks them against the drafter
 * and gives the methods. words: names of methods, separated by commas. If `words` is empty, the method is the
 * drafter's, or `none` without a drafter. A method with weights must be the method of the drafter or of drafter->beside
 * (the target's MTP layer). FR_USAGE is returned for an unknown word, for another method with weights, and for `none`
 * together with other methods. */
fr_status fr_draft_words_check(const char *words);
/* Returns true if one of these methods needs a drafter's weights. Also returns true for "" and NULL, because the
 * drafter's method is then used. */
bool fr_draft_words_take_drafter(const char *words);
/* Returns true if the words name two methods: the method of a drafter that has files of its own, and the method of the
 * MTP layer in the target's files. */
bool fr_draft_words_name_both(const char *words, const fr_drafter *drafter);
fr_status fr_draft_list_choose(const char *words, const fr_drafter *drafter, fr_draft_list *list);

bool fr_draft_list_has(const fr_draft_list *list, const fr_draft_method *method);
/* Returns true if a method of the list reads the weights of drafter number `drafter`. */
bool fr_draft_list_uses(const fr_draft_list *list, size_t drafter);

/* Opens the chosen methods, as fr_draft_method.open does. workspaces: [FR_DRAFTERS_MAX] the workspace of each drafter's
 * method. */
fr_draft *fr_draft_list_open(const fr_draft_list *list, const fr_drafter *drafter, fr_arena *arena,
                             const fr_draft_sizes *sizes, void *const *workspaces);

/* fr_draft_reader gives the state of the method that reads the weights of drafter number `drafter`. This is `draft`
 * itself, or one of the methods that `draft` combines; NULL if no method reads these weights. fr_draft_speaker gives
 * the state of the method that made the last proposal. */
fr_draft *fr_draft_reader(fr_draft *draft, size_t drafter);
const fr_draft *fr_draft_speaker(const fr_draft *draft);

#endif
