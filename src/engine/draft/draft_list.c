/* Chooses draft methods by name, and combines them: see draft_list.h. */
#include "src/engine/draft/draft_list.h"

#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "base/word_list.h"
#include "src/engine/draft/draft_own.h"

static const struct {
    const char *word;
    const fr_draft_method *method;
    /* false for words that llama.cpp uses; several of these are ways to look up drafts in the text, as ngram does */
    bool in_help;
} words_known[] = {
    {"none", &fr_draft_none, true},
    {"mtp", &fr_draft_assistant, true},
    {"eagle", &fr_draft_eagle, true},
    {"eagle3", &fr_draft_eagle3, true},
    {"dflash", &fr_draft_dflash, true},
    {"dflash2", &fr_draft_dflash2, true},
    {"dspark", &fr_draft_dspark, true},
    {"draft", &fr_draft_model, true},
    {"ngram", &fr_draft_ngram, true},
    {"draft-mtp", &fr_draft_assistant, false},
    {"draft-eagle3", &fr_draft_eagle3, false},
    {"draft-dflash", &fr_draft_dflash, false},
    {"draft-dflash2", &fr_draft_dflash2, false},
    {"draft-dspark", &fr_draft_dspark, false},
    {"draft-simple", &fr_draft_model, false},
    {"ngram-simple", &fr_draft_ngram, false},
    {"ngram-cache", &fr_draft_ngram, false},
    {"ngram-map-k", &fr_draft_ngram, false},
    {"ngram-map-k4v", &fr_draft_ngram, false},
    {"ngram-mod", &fr_draft_ngram, false},
};
#define WORDS (sizeof words_known / sizeof *words_known)

static const char *word_of(size_t index, bool in_help) {
    for (size_t i = 0; i < WORDS; i++)
        if (words_known[i].in_help == in_help && index-- == 0) return words_known[i].word;
    return NULL;
}

const char *fr_draft_word(size_t index) {
    return word_of(index, true);
}

const char *fr_draft_other_word(size_t index) {
    return word_of(index, false);
}

/* Gives the method that the first word in `words` names. Moves `words` past that word and its comma, or to NULL after
 * the last word. */
static fr_status next_method(const char **words, const fr_draft_method **method) {
    const char *word = *words, *comma = strchr(word, ',');
    size_t length = comma ? (size_t)(comma - word) : strlen(word);
    *words = comma ? comma + 1 : NULL;
    for (size_t i = 0; i < WORDS; i++) {
        if (strlen(words_known[i].word) != length || memcmp(words_known[i].word, word, length) != 0) continue;
        *method = words_known[i].method;
        return FR_OK;
    }
    return fr_fail(FR_USAGE, "spec-type %.*s is not known (%s)", length < 40 ? (int)length : 40, word,
                   fr_list_words(fr_draft_word).text);
}

fr_status fr_draft_words_check(const char *words) {
    const fr_draft_method *method;
    bool none = false;
    size_t count = 0;
    for (; words; count++) {
        FR_TRY(next_method(&words, &method));
        none |= method == &fr_draft_none;
    }
    return none && count > 1 ? fr_fail(FR_USAGE, "spec-type: none stands alone, not beside others") : FR_OK;
}

bool fr_draft_words_take_drafter(const char *words) {
    const fr_draft_method *method;
    if (!words || !*words) return true;
    while (words)
        if (next_method(&words, &method) == FR_OK && method->reads) return true;
    return false;
}

bool fr_draft_words_name_both(const char *words, const fr_drafter *drafter) {
    const fr_draft_method *method;
    bool own = false, mtp = false;
    while (words && *words) {
        if (next_method(&words, &method) != FR_OK) return false;
        if (!method->load) continue;
        own |= strcmp(method->name, drafter->method->name) == 0;
        mtp |= strcmp(method->name, fr_draft_mtp.name) == 0;
    }
    return own && mtp && strcmp(drafter->method->name, fr_draft_mtp.name) != 0;
}

/* A method that has a workspace is a method that reads a drafter's weights. */
bool fr_draft_list_uses(const fr_draft_list *list, size_t drafter) {
    for (size_t i = 0; i < list->count; i++)
        if (list->methods[i]->workspace && list->drafters[i] == drafter) return true;
    return false;
}

bool fr_draft_list_has(const fr_draft_list *list, const fr_draft_method *method) {
    for (size_t i = 0; i < list->count; i++)
        if (list->methods[i] == method) return true;
    return false;
}

/* If the method reads weights, replaces the method by the drafter's method of the same name, and gives that drafter's
 * number. A method without weights stays as it is. */
static fr_status take_drafters(const fr_draft_method **method, const fr_drafter *drafter, size_t *index) {
    const char *word = (*method)->name;
    if (!(*method)->load) return FR_OK;
    if (!drafter) return fr_fail(FR_USAGE, "spec-type %s needs a drafter", word);
    for (*index = 0; *index < FR_DRAFTERS_MAX; ++*index) {
        const fr_drafter *d = fr_drafter_at(drafter, *index);
        if (!d || strcmp(word, d->method->name) != 0) continue;
        *method = d->method;
        return FR_OK;
    }
    return fr_fail(FR_USAGE, "spec-type %s: %s is a drafter of %s", word, fr_drafter_path(drafter),
                   drafter->method->name);
}

fr_status fr_draft_list_choose(const char *words, const fr_drafter *drafter, fr_draft_list *list) {
    *list = (fr_draft_list){0};
    if (!*words) words = drafter ? drafter->method->name : "none";
    while (words) {
        const fr_draft_method *method;
        size_t index = 0;
        FR_TRY(next_method(&words, &method));
        FR_TRY(take_drafters(&method, drafter, &index));
        if (method == &fr_draft_none || fr_draft_list_has(list, method)) continue;
        list->drafters[list->count] = index;
        list->methods[list->count++] = method;
    }
    if (list->count == 0) list->methods[list->count++] = &fr_draft_none;
    for (size_t i = 0; list->count > 1 && i < list->count; i++)
        if (list->methods[i] == &fr_draft_ngram) list->methods[i] = &fr_draft_ngram_first;
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------ chains of methods */

typedef struct chain {
    fr_draft base;
    fr_draft *links[FR_DRAFT_LIST_MAX];
    size_t count;
    size_t spoke;      /* index in `links` of the method that made the last proposal */
    fr_proposal asked; /* the request to the method in `links` that is called */
} chain;

static fr_status follow(fr_draft *link, const fr_draft_view *view) {
    return link->follows ? link->method->follow(link, view) : FR_OK;
}

/* Returns true if the method number `link` of the session's list is called next. This is so if no method before it in
 * the list had drafts. */
static bool is_next(const fr_proposal *p, size_t link) {
    const chain *c = (const chain *)p->draft;
    return link < c->count && c->spoke == link;
}

/* Returns true if method number `link` can make drafts of the kind that the proposal asks for. It can't if the proposal
 * asks for drafts of a certain drafter and the method reads another drafter's weights. */
static bool is_wanted(const fr_proposal *p, size_t link) {
    const fr_draft *l = ((const chain *)p->draft)->links[link];
    bool others = p->by && l->method->workspace && l->drafter + 1 != p->by;
    return l->finds || (p->count > 0 && !others);
}

/* Makes a list of the sessions in which method number `link` is called. */
static fr_proposal *ask_links(fr_proposal *first, size_t link) {
    fr_proposal *asked = NULL, **end = &asked;
    for (fr_proposal *p = first; p; p = p->next) {
        chain *c = (chain *)p->draft;
        if (!is_next(p, link) || !is_wanted(p, link)) continue;
        c->asked = *p;
        c->asked.draft = c->links[link];
        c->asked.next = NULL;
        *end = &c->asked;
        end = &c->asked.next;
    }
    return asked;
}

static void take_answers(fr_proposal *first, size_t link) {
    for (fr_proposal *p = first; p; p = p->next) {
        chain *c = (chain *)p->draft;
        if (!is_next(p, link)) continue;
        if (is_wanted(p, link)) {
            p->proposed = c->asked.proposed;
            p->made = c->asked.made;
            p->found = c->asked.found;
            p->failure = c->asked.failure;
        }
        c->spoke += p->proposed == 0 && p->failure.status == FR_OK;
    }
}

/* Passes the target's rows to the methods of the list that were not called for drafts in this round. Such a method may
 * run the rows later, together with newer rows. */
static fr_status follow_rest(const fr_proposal *p) {
    const chain *c = (const chain *)p->draft;
    fr_draft_view view = *p->view;
    view.defers = true;
    for (size_t i = 0; i < c->count; i++)
        if (i > c->spoke || !is_wanted(p, i)) FR_TRY(follow(c->links[i], &view));
    return FR_OK;
}

/* Calls the methods of the list one after the other, until each session has drafts. Each method is called for all
 * sessions that need it together, so that it runs once for all of them. */
static void chain_propose(fr_proposal *first) {
    for (fr_proposal *p = first; p; p = p->next) ((chain *)p->draft)->spoke = 0;
    for (size_t link = 0; link < FR_DRAFT_LIST_MAX; link++) {
        fr_draft_propose_list(ask_links(first, link));
        take_answers(first, link);
    }
    for (fr_proposal *p = first; p; p = p->next)
        if (p->failure.status == FR_OK) p->failure = fr_failure_keep(follow_rest(p));
}

static fr_status chain_follow(fr_draft *draft, const fr_draft_view *view) {
    chain *c = (chain *)draft;
    for (size_t i = 0; i < c->count; i++) FR_TRY(follow(c->links[i], view));
    return FR_OK;
}

static void chain_cut(fr_draft *draft, const fr_draft_view *view) {
    chain *c = (chain *)draft;
    for (size_t i = 0; i < c->count; i++)
        if (c->links[i]->method->cut) c->links[i]->method->cut(c->links[i], view);
}

static void chain_begin(fr_draft *draft, const fr_draft_view *view) {
    chain *c = (chain *)draft;
    for (size_t i = 0; i < c->count; i++)
        if (c->links[i]->method->begin) c->links[i]->method->begin(c->links[i], view);
}

/* Reports the round to all methods of the list. To a method that did not propose drafts, the report says that none were
 * proposed. */
static void chain_commit(fr_draft *draft, const fr_draft_view *view, size_t proposed, size_t accepted) {
    chain *c = (chain *)draft;
    for (size_t i = 0; i < c->count; i++) {
        bool spoke = i == c->spoke;
        if (c->links[i]->method->commit)
            c->links[i]->method->commit(c->links[i], view, spoke ? proposed : 0, spoke ? accepted : 0);
    }
}

static void chain_fork(fr_draft *fork, const fr_draft *draft) {
    chain *c = (chain *)fork;
    const chain *of = (const chain *)draft;
    for (size_t i = 0; i < c->count; i++)
        if (c->links[i]->method->fork) c->links[i]->method->fork(c->links[i], of->links[i]);
}

static void chain_close(fr_draft *draft) {
    chain *c = (chain *)draft;
    for (size_t i = 0; i < c->count; i++)
        if (c->links[i]->method->close) c->links[i]->method->close(c->links[i]);
}

static const fr_draft_method draft_chain = {
    .name = "chain",
    .fork = chain_fork,
    .propose = chain_propose,
    .cut = chain_cut,
    .begin = chain_begin,
    .commit = chain_commit,
    .follow = chain_follow,
    .close = chain_close,
};

fr_draft *fr_draft_reader(fr_draft *draft, size_t drafter) {
    draft = (fr_draft *)fr_draft_inner(draft);
    if (draft->method != &draft_chain) return draft->method->workspace && draft->drafter == drafter ? draft : NULL;
    const chain *c = (const chain *)draft;
    for (size_t i = 0; i < c->count; i++)
        if (c->links[i]->method->workspace && c->links[i]->drafter == drafter) return c->links[i];
    return NULL;
}

const fr_draft *fr_draft_speaker(const fr_draft *draft) {
    const chain *c = (const chain *)draft;
    return draft->method == &draft_chain && c->spoke < c->count ? c->links[c->spoke] : draft;
}

/* Opens method number `index` of the list. */
static fr_draft *open_link(const fr_draft_list *list, size_t index, const fr_drafter *drafter, fr_arena *arena,
                           fr_draft_sizes sizes, void *const *workspaces) {
    size_t of = list->drafters[index];
    sizes.workspace = workspaces[of];
    fr_draft *link = list->methods[index]->open(fr_drafter_at(drafter, of), arena, &sizes);
    if (link) link->drafter = of;
    return link;
}

fr_draft *fr_draft_list_open(const fr_draft_list *list, const fr_drafter *drafter, fr_arena *arena,
                             const fr_draft_sizes *sizes, void *const *workspaces) {
    if (list->count == 1) return open_link(list, 0, drafter, arena, *sizes, workspaces);
    chain state = {.base = {.method = &draft_chain, .only_finds = true}, .count = list->count};
    chain *place = fr_arena_take(arena, 1, sizeof *place);
    bool whole = place != NULL;
    for (size_t i = 0; i < list->count; i++) {
        state.links[i] = open_link(list, i, drafter, arena, *sizes, workspaces);
        state.base.follows |= state.links[i] && state.links[i]->follows;
        state.base.lags |= state.links[i] && state.links[i]->lags;
        state.base.finds |= state.links[i] && state.links[i]->finds;
        state.base.only_finds &= state.links[i] && state.links[i]->only_finds;
        if (state.links[i]) state.base.block = fr_larger(state.base.block, state.links[i]->block);
        whole &= state.links[i] != NULL;
    }
    if (!whole) return NULL;
    *place = state;
    return &place->base;
}
