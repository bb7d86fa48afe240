/* libFuzzer's target for grammars: behind a byte that says which language, a text in it.
 *
 * In: bytes. Out: nothing, unless the sanitizers find something, or a token that a mask allows is not allowed. */
#include "base/hash.h"
#include "forerun.h"
#include "tests/fuzz/harness.h"

/* Most inputs are walked a little: reading them is what differs. */
enum { STEPS = 24, FEW_STEPS = 2, WALKED = 8 };

static const fr_token_tree *token_tree(size_t *vocab) {
    static fr_token_tree *tree;
    static fr_tokenizer *tokenizer;
    if (!tree && (fr_tokenizer_open("tests/data/llama/q4_0.gguf", NULL, &tokenizer) != FR_OK ||
                  fr_token_tree_open(tokenizer, &tree) != FR_OK))
        die("can't read", "the tokenizer");
    *vocab = fr_tokenizer_count(tokenizer);
    return tree;
}

/* An allowed token, which one the state says; -1: there is none. */
static int32_t choose(const uint64_t *bits, size_t vocab, uint32_t *state) {
    int32_t chosen = -1;
    *state = *state * 1664525u + 1013904223u;
    size_t first = *state % vocab;
    for (size_t i = 0; i < vocab && chosen < 0; i++) {
        size_t id = (first + i) % vocab;
        if (bits[id / 64] >> (id % 64) & 1) chosen = (int32_t)id;
    }
    return chosen;
}

static void walk(fr_grammar *grammar, size_t vocab, uint32_t state) {
    int32_t ids[STEPS];
    size_t steps = state % WALKED ? FEW_STEPS : STEPS;
    for (size_t i = 0; i < steps; i++) {
        const uint64_t *bits;
        bool ends;
        fr_status status = fr_grammar_allowed(grammar, ids, i, &bits, &ends);
        if (status != FR_OK && strstr(fr_last_error(), "too ambiguous")) return;
        if (status != FR_OK) abort();
        ids[i] = choose(bits, vocab, &state);
        if (ids[i] < 0) return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    size_t vocab;
    fr_grammar *grammar;
    const fr_token_tree *tree = token_tree(&vocab);
    if (size == 0) return 0;
    fr_grammar_kind kind = (fr_grammar_kind)(bytes[0] % 3);
    if (refused(fr_grammar_open(tree, kind, (const char *)bytes + 1, size - 1, &grammar))) return 0;
    fuzz_inputs_read++;
    walk(grammar, vocab, (uint32_t)fr_hash(0, bytes, size));
    fr_grammar_close(grammar);
    return 0;
}
