/* An example of a draft method written by the caller, in C99 that is also C++17. If the same question was asked before,
 * the method proposes the earlier answer. The target accepts the proposed ids up to the first one that it would not
 * have generated. The ids must be those of a run without drafts, but with fewer forwards.
 *
 * In: MODEL. Out: the ids, and the numbers of forwards without and with drafts, such as "ID,... 12 forwards, then
 * 3". */
#include <forerun.h>
#include <stdio.h>

#define WANTED 12
#define MOST   64

/* The method's context. It has the ids of an earlier conversation, and counts of proposed and accepted drafts. */
typedef struct remembered {
    int32_t ids[MOST];
    size_t count, proposed, accepted;
} remembered;

/* If the current text is the beginning of the earlier text, proposes the rest of the earlier text. */
static size_t propose(void *context, fr_drafting *drafting) {
    const remembered *text = (const remembered *)context;
    size_t made = 0;
    for (size_t i = 0; i < drafting->length; i++)
        if (i >= text->count || text->ids[i] != drafting->ids[i]) return 0;
    for (size_t next = drafting->length; made < drafting->count && next < text->count; next++)
        drafting->drafts[made++] = text->ids[next];
    return made;
}

static void commit(void *context, const int32_t *ids, size_t length, size_t proposed, size_t accepted) {
    remembered *text = (remembered *)context;
    (void)ids, (void)length;
    text->proposed += proposed;
    text->accepted += accepted;
}

/* Generates an answer. `text` gets the prompt and the answer. memory: the text from which drafts are made; NULL: no
 * drafts are made. *forwards gets the number of forwards after the prompt. */
static fr_status answer(const fr_model *model, remembered *memory, remembered *text, size_t *forwards) {
    const int32_t prompt[] = {2, 9, 17, 5};
    const size_t length = sizeof prompt / sizeof *prompt;
    fr_proposer method = {propose, commit, NULL, memory};
    fr_options *options = fr_options_new();
    fr_session *session = NULL;
    size_t got = 1, accepted;
    fr_options_set(options, FR_OPT_IGNORE_EOS, 1);
    fr_options_set(options, FR_OPT_DRAFT_MAX, 7);
    fr_status status = fr_session_open(model, NULL, options, &session);
    fr_options_free(options);
    if (status == FR_OK && memory) status = fr_session_set_proposer(session, &method);
    if (status == FR_OK) status = fr_session_prompt(session, prompt, length);
    for (text->count = 0; text->count < length; text->count++) text->ids[text->count] = prompt[text->count];
    for (*forwards = 0; status == FR_OK && got > 0 && text->count < length + WANTED; ++*forwards) {
        status = fr_session_step(session, text->ids + text->count, length + WANTED - text->count, &got, &accepted);
        if (status == FR_OK) text->count += got;
    }
    fr_session_close(session);
    return status;
}

int main(int argc, char **argv) {
    remembered first = {{0}, 0, 0, 0}, second = {{0}, 0, 0, 0};
    size_t plain, drafted, i;
    fr_model *model = NULL;
    if (argc < 2) return puts(fr_version()) < 0;
    fr_status status = fr_model_open(argv[1], NULL, &model);
    if (status == FR_OK) status = answer(model, NULL, &first, &plain);
    if (status == FR_OK) status = answer(model, &first, &second, &drafted);
    fr_model_close(model);
    if (status != FR_OK) {
        fprintf(stderr, "%s\n", fr_last_error());
        return 1;
    }
    for (i = 4; i < second.count; i++) {
        if (second.ids[i] != first.ids[i]) return 1;
        printf("%d%c", (int)second.ids[i], i + 1 < second.count ? ',' : ' ');
    }
    printf("%d forwards, then %d\n", (int)plain, (int)drafted);
    return first.accepted == first.proposed ? 0 : 1;
}
