/* forerun tokenize: text in, ids out; with --decode the other way. */
#include "engine.h"
#include "output.h"
#include "verbs.h"

static int encode(const fr_tokenizer *tokenizer, const fr_prompt *prompt, bool add_special) {
    int32_t *ids = NULL;
    size_t count = 0;
    int code = fr_exit_status(fr_tokenize(tokenizer, prompt->bytes, prompt->length, add_special, &ids, &count));
    if (!code) fr_ids_print(ids, count, stdout);
    fr_free(ids);
    return code;
}

static int decode(const fr_tokenizer *tokenizer, const fr_prompt *prompt) {
    char *text = NULL;
    size_t length = 0;
    int code = fr_exit_status(fr_detokenize(tokenizer, prompt->ids, prompt->count, &text, &length));
    if (!code) fwrite(text, 1, length, stdout);
    if (!code) fr_flush_output();
    fr_free(text);
    return code;
}

int fr_verb_tokenize(const fr_arguments *args) {
    bool decoding = args->given[FR_ARG_DECODE];
    if (decoding && !args->given[FR_ARG_IDS]) return fr_wrong_usage("--decode needs --ids LIST");
    if (decoding && args->given[FR_ARG_NO_BOS]) return fr_wrong_usage("--no-bos is not for --decode");
    if (!decoding && args->given[FR_ARG_IDS]) return fr_wrong_usage("--ids goes with --decode; a text is -p or -f");

    fr_tokenizer *tokenizer = NULL;
    fr_prompt prompt;
    int code = fr_prompt_read(&prompt, args);
    if (!code) code = fr_exit_status(fr_tokenizer_open(args->text[FR_ARG_MODEL], &tokenizer));
    if (!code) code = decoding ? decode(tokenizer, &prompt) : encode(tokenizer, &prompt, !args->given[FR_ARG_NO_BOS]);
    fr_tokenizer_close(tokenizer);
    fr_prompt_free(&prompt);
    return code;
}
