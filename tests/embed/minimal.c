/* The smallest complete program, as shown in the header: a model continues a text. It is C99 and C++17.
 *
 * In: MODEL TEXT. Out: the continuation, and exit status 0. If a call fails, the library's error line, and its status
 * as the exit status. */
#include <forerun.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    fr_model *model = NULL;
    fr_session *session = NULL;
    fr_decoder *decoder = NULL;
    int32_t *prompt = NULL, id = 0;
    size_t count = 0, length = 0;
    const char *text = "";
    if (argc != 3) return FR_USAGE;
    fr_status status = fr_model_open(argv[1], NULL, &model);
    const fr_tokenizer *tokenizer = fr_model_tokenizer(model);
    if (status == FR_OK) status = fr_session_open(model, NULL, NULL, &session);
    if (status == FR_OK) status = fr_decoder_new(tokenizer, false, &decoder);
    if (status == FR_OK) status = fr_tokenize(tokenizer, argv[2], strlen(argv[2]), true, false, &prompt, &count);
    if (status == FR_OK) status = fr_session_prompt(session, prompt, count);
    while (status == FR_OK && (status = fr_session_step(session, &id, 1, &count, NULL)) == FR_OK && count == 1) {
        status = fr_decoder_feed(decoder, id, &text, &length);
        fwrite(text, 1, length, stdout);
    }
    if (status != FR_OK) fprintf(stderr, "%s\n", fr_last_error());
    fr_free(prompt);
    fr_decoder_free(decoder);
    fr_session_close(session);
    fr_model_close(model);
    return (int)status;
}
