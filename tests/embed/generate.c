/* A C program that uses the installed library. It generates 12 ids with a model and its drafter.
 *
 * In: MODEL DRAFTER, or no arguments. Out: the ids on one line. Without arguments it prints the library's version. */
#include <forerun.h>
#include <stdio.h>

#define COUNT 12

static void count_line(void *context, fr_log_level level, const char *line) {
    (void)level;
    *(int *)context += line[0] != '\0';
}

static bool ask_once(void *context) {
    return (*(int *)context)++ == 0;
}

static fr_status generate(fr_session *session, int32_t *ids) {
    const int32_t prompt[] = {2, 9, 17, 5};
    size_t got = 1, accepted;
    int asked = 0;
    fr_session_set_abort(session, ask_once, &asked);
    fr_status status = fr_session_prompt(session, prompt, 4);
    /* The prompt was aborted before it began, so the first step runs it. */
    status = status == FR_ABORTED ? FR_OK : FR_USAGE;
    for (size_t made = 0; made < COUNT && got > 0 && status == FR_OK; made += got)
        status = fr_session_step(session, ids + made, COUNT - made, &got, &accepted);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 3) return puts(fr_version()) < 0;
    int32_t ids[COUNT];
    int lines = 0;
    fr_options *options = fr_options_new();
    fr_options_set(options, FR_OPT_IGNORE_EOS, 1);
    fr_options_set_log(options, count_line, &lines);
    fr_model *model = NULL;
    fr_drafter *drafter = NULL;
    fr_session *session = NULL;
    fr_status status = fr_model_open(argv[1], options, &model);
    if (status == FR_OK) status = fr_drafter_open(argv[2], model, options, &drafter);
    if (status == FR_OK) status = fr_session_open(model, drafter, options, &session);
    fr_options_free(options);
    if (status == FR_OK) status = generate(session, ids);
    if (status != FR_OK) fprintf(stderr, "%s\n", fr_last_error());
    for (int i = 0; status == FR_OK && i < COUNT; i++) printf("%d%c", (int)ids[i], i + 1 < COUNT ? ',' : '\n');
    fr_session_close(session);
    fr_drafter_close(drafter);
    fr_model_close(model);
    return status != FR_OK ? (int)status : lines < 3;
}
