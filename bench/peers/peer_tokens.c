/* Prints the ids into which llama.cpp tokenizes lines, for tools/real/tokens.py. build.sh links this program with
 * llama.cpp's library.
 *
 *   usage: peer-tokens MODEL < LINES
 *
 * In: a GGUF file, of which only the vocabulary is read; lines of any length. Out: for each line its ids, separated by
 * blanks. Special tokens in the text are recognized, and no special tokens are added. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama.h"

static void silence(enum ggml_log_level level, const char *text, void *context) {
    (void)level, (void)text, (void)context;
}

static int print_ids(const struct llama_vocab *vocab, const char *line, int32_t length) {
    int32_t room = length + 16;
    llama_token *ids = malloc((size_t)room * sizeof *ids);
    int32_t count = ids ? llama_tokenize(vocab, line, length, ids, room, false, true) : -1;
    for (int32_t i = 0; i < count; i++) printf("%s%d", i ? " " : "", ids[i]);
    putchar('\n');
    free(ids);
    return count < 0;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: peer-tokens MODEL < LINES\n");
        return 2;
    }
    llama_log_set(silence, NULL);
    llama_backend_init();
    struct llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    struct llama_model *model = llama_model_load_from_file(argv[1], params);
    int failed = model == NULL;
    char *line = NULL;
    size_t room = 0;
    for (ssize_t length; !failed && (length = getline(&line, &room, stdin)) > 0;)
        failed = print_ids(llama_model_get_vocab(model), line, (int32_t)(length - (line[length - 1] == '\n')));
    if (failed) fprintf(stderr, "peer-tokens: %s: llama.cpp can't read it, or a line\n", argv[1]);
    free(line);
    if (model) llama_model_free(model);
    llama_backend_free();
    return failed != 0;
}
