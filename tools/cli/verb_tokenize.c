/* Implements forerun tokenize: turns text into ids, or ids into text with --decode. With --pieces it prints each id
 * with its text. */
#include "tools/cli/loaded.h"
#include "tools/cli/output.h"
#include "tools/cli/verbs.h"

/* Prints an id, and the text by which it lengthens the text of the id before it. before: the id before it; NULL: it is
 * the first id. The id before matters because some tokenizers leave out a blank at the beginning of a text. */
static int print_piece(const fr_tokenizer *tokenizer, const int32_t *before, int32_t id) {
    int32_t both[2] = {before ? *before : id, id};
    char *first = NULL, *all = NULL;
    size_t skipped = 0, length = 0;
    fr_status status = before ? fr_detokenize(tokenizer, both, 1, &first, &skipped) : FR_OK;
    if (status == FR_OK) status = fr_detokenize(tokenizer, both, before ? 2 : 1, &all, &length);
    if (status == FR_OK) {
        printf("%d\t", id);
        fr_quoted_print(all + skipped, length - skipped, stdout);
        putchar('\n');
    }
    fr_free(first);
    fr_free(all);
    return fr_exit_status(status);
}

static int print_pieces(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count) {
    int code = 0;
    for (size_t i = 0; i < count && !code; i++) code = print_piece(tokenizer, i ? &ids[i - 1] : NULL, ids[i]);
    return code;
}

static int encode(const fr_tokenizer *tokenizer, const fr_prompt *prompt, const fr_arguments *args) {
    int32_t *ids = NULL;
    size_t count = 0;
    bool add_special = !args->given[FR_ARG_NO_BOS];
    int code = fr_exit_status(fr_tokenize(tokenizer, prompt->bytes, prompt->length, add_special, true, &ids, &count));
    if (!code && args->given[FR_ARG_PIECES])
        code = print_pieces(tokenizer, ids, count);
    else if (!code)
        fr_ids_print(ids, count, stdout);
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
    if (!code) code = fr_loaded_tokenizer_alone(&tokenizer, args);
    if (!code && !decoding)
        code = encode(tokenizer, &prompt, args);
    else if (!code)
        code =
            args->given[FR_ARG_PIECES] ? print_pieces(tokenizer, prompt.ids, prompt.count) : decode(tokenizer, &prompt);
    fr_tokenizer_close(tokenizer);
    fr_prompt_free(&prompt);
    return code;
}
