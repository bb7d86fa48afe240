/* An example of a first program: a model continues a text. The program may have a drafter. It is C99 and C++17.
 *
 * In: MODEL TEXT [DRAFTER]. Out: the continuation, and exit status 0. If a call fails, the library's error line, and
 * its status as the exit status. */
#include <forerun.h>
#include <stdio.h>
#include <string.h>

static fr_status print_answer(fr_session *session, fr_decoder *decoder) {
    int32_t ids[FR_STEP_MAX];
    size_t count = 1, length = 0, i;
    const char *text = "";
    fr_status status = FR_OK;
    while (status == FR_OK && count > 0) {
        status = fr_session_step(session, ids, FR_STEP_MAX, &count, NULL);
        for (i = 0; i < count && status == FR_OK; i++) {
            status = fr_decoder_feed(decoder, ids[i], &text, &length);
            fwrite(text, 1, length, stdout);
        }
    }
    if (status == FR_OK) status = fr_decoder_finish(decoder, &text, &length);
    if (status == FR_OK) fwrite(text, 1, length, stdout);
    return status;
}

int main(int argc, char **argv) {
    fr_model *model = NULL;
    fr_drafter *drafter = NULL;
    fr_session *session = NULL;
    fr_decoder *decoder = NULL;
    int32_t *ids = NULL;
    size_t count = 0;
    if (argc < 3) return FR_USAGE;
    fr_status status = fr_model_open(argv[1], NULL, &model);
    if (status == FR_OK && argc > 3) status = fr_drafter_open(argv[3], model, NULL, &drafter);
    if (status == FR_OK) status = fr_session_open(model, drafter, NULL, &session);
    if (status == FR_OK) status = fr_decoder_new(fr_model_tokenizer(model), false, &decoder);
    if (status == FR_OK)
        status = fr_tokenize(fr_model_tokenizer(model), argv[2], strlen(argv[2]), true, false, &ids, &count);
    if (status == FR_OK) status = fr_session_prompt(session, ids, count);
    if (status == FR_OK) status = print_answer(session, decoder);
    if (status != FR_OK) fprintf(stderr, "%s: %s\n", fr_status_name(status), fr_last_error());
    fr_free(ids);
    fr_decoder_free(decoder);
    fr_session_close(session);
    fr_drafter_close(drafter);
    fr_model_close(model);
    return (int)status;
}
