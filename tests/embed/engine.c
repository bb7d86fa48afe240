/* An example of generating several texts at once, in C99 that is also C++17. All sessions of one engine share each
 * forward pass. A fork is a session that continues another session's text. Each session must give the ids that it would
 * give if it ran alone.
 *
 * In: MODEL DRAFTER, or nothing for the library's version. Out: a line with the ids of each of three prompts, then a
 * line with the ids of the first prompt again. The second half of this last line is from a fork, which was saved to
 * memory and restored. */
#include <forerun.h>
#include <stdio.h>

#define TEXTS  3
#define WANTED 12

static const int32_t prompts[TEXTS][4] = {{2, 9, 17, 5}, {2, 40, 41, 42}, {2, 7, 7, 300}};

typedef struct text {
    fr_session *session; /* NULL until it is opened */
    int32_t ids[WANTED];
    size_t count;
} text;

/* Runs rounds until each text has as many ids as wanted. A complete text takes no part in further rounds. */
static fr_status write_texts(fr_engine *engine, text *texts, size_t count, size_t wanted) {
    for (;;) {
        fr_round rounds[TEXTS];
        text *whose[TEXTS];
        size_t n = 0, i;
        for (i = 0; i < count; i++) {
            text *t = &texts[i];
            fr_round round = {t->session, t->ids + t->count, wanted - t->count, 0, 0, FR_OK, NULL};
            if (round.limit == 0) continue;
            whose[n] = t;
            rounds[n++] = round;
        }
        if (n == 0) return FR_OK;
        fr_status status = fr_engine_step(engine, rounds, n);
        if (status != FR_OK) return status;
        for (i = 0; i < n; i++) {
            if (rounds[i].status == FR_OK) {
                whose[i]->count += rounds[i].count;
                continue;
            }
            fprintf(stderr, "%s\n", rounds[i].error); /* the other sessions could continue */
            return rounds[i].status;
        }
    }
}

/* Opens a session and restores another session's timeline into it. A program could also write the saved bytes to a file
 * in between. */
static fr_status branch(fr_engine *engine, const fr_options *options, const text *from, text *to) {
    fr_session *fork = NULL;
    void *bytes = NULL;
    size_t size = 0;
    fr_status status = fr_session_fork(from->session, NULL, &fork);
    if (status == FR_OK) status = fr_session_save_bytes(fork, &bytes, &size);
    fr_session_close(fork);
    if (status == FR_OK) status = fr_engine_session(engine, options, &to->session);
    if (status == FR_OK) status = fr_session_restore_bytes(to->session, bytes, size);
    fr_free(bytes);
    for (to->count = 0; to->count < from->count; to->count++) to->ids[to->count] = from->ids[to->count];
    return status;
}

static fr_status run(fr_engine *engine, const fr_options *options, text *texts, text *fork) {
    fr_status status = FR_OK;
    for (size_t i = 0; i < TEXTS && status == FR_OK; i++) {
        status = fr_engine_session(engine, options, &texts[i].session);
        if (status == FR_OK) status = fr_session_put(texts[i].session, prompts[i], 4); /* the first round runs it */
    }
    if (status == FR_OK) status = write_texts(engine, texts, TEXTS, WANTED / 2);
    if (status == FR_OK) status = branch(engine, options, &texts[0], fork);
    if (status == FR_OK) status = write_texts(engine, texts, TEXTS, WANTED);
    if (status == FR_OK) status = write_texts(engine, fork, 1, WANTED);
    return status;
}

static void finish(text *t) {
    for (size_t i = 0; i < t->count; i++) printf("%d%c", (int)t->ids[i], i + 1 < t->count ? ',' : '\n');
    fr_session_close(t->session);
}

int main(int argc, char **argv) {
    if (argc < 3) return puts(fr_version()) < 0;
    text texts[TEXTS] = {{NULL, {0}, 0}, {NULL, {0}, 0}, {NULL, {0}, 0}}, fork = {NULL, {0}, 0};
    fr_options *options = fr_options_new();
    fr_model *model = NULL;
    fr_drafter *drafter = NULL;
    fr_engine *engine = NULL;
    fr_options_set(options, FR_OPT_IGNORE_EOS, 1);
    fr_status status = fr_model_open(argv[1], options, &model);
    if (status == FR_OK) status = fr_drafter_open(argv[2], model, options, &drafter);
    if (status == FR_OK) status = fr_engine_open(model, drafter, options, TEXTS + 2, &engine);
    if (status == FR_OK) status = run(engine, options, texts, &fork);
    if (status != FR_OK) fprintf(stderr, "%s\n", fr_last_error());
    for (size_t i = 0; i < TEXTS; i++) finish(&texts[i]);
    finish(&fork);
    fr_engine_close(engine);
    fr_drafter_close(drafter);
    fr_model_close(model);
    fr_options_free(options);
    return status == FR_OK ? 0 : 1;
}
