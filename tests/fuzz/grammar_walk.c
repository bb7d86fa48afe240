/* Walks through grammars: see grammar_walk.h. */
#include "tests/fuzz/grammar_walk.h"

#include "tests/fuzz/harness.h"

/* Most new inputs differ from earlier ones only in how the grammar's text is parsed, so a walk through the grammar
 * would find nothing new. So only one in WALKED inputs is walked, and most walks have only FEW_STEPS steps. */
enum { STEPS = 24, FEW_STEPS = 2, WALKED = 4, FAR = 4, REPEATED_MAX = 100, SELDOM = 64 };

static const fr_token_tree *token_tree(size_t *vocab) {
    static fr_token_tree *tree;
    static fr_tokenizer *tokenizer;
    if (!tree && (fr_tokenizer_open("tests/data/llama/q4_0.gguf", NULL, &tokenizer) != FR_OK ||
                  fr_token_tree_open(tokenizer, &tree) != FR_OK))
        die("can't read", "the tokenizer");
    *vocab = fr_tokenizer_count(tokenizer);
    return tree;
}

/* Returns an allowed token that is chosen at random, or -1 if no token is allowed. `state` is the state of the random
 * numbers. */
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
    size_t steps = state % WALKED ? 0 : state / WALKED % FAR ? FEW_STEPS : STEPS;
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

/* Returns true if counts of repetitions may make the grammar so large that it would take most of the fuzzer's time.
 * Here such grammars are read only seldom. test_grammar_bounds.c tests that their time is limited. */
static bool repeats_much(const char *text, size_t length) {
    double product = 1, number = 0;
    bool counts = false; /* true: the position is inside a brace */
    for (size_t i = 0; i < length; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        if (digit && counts) number = 10 * number + text[i] - '0';
        if (digit) continue;
        if (number > 1) product *= number;
        number = 0;
        counts = text[i] == '{' || (counts && text[i] == ',');
    }
    return product > REPEATED_MAX;
}

bool fuzz_walk_grammar(fr_grammar_kind kind, const char *text, size_t length, uint32_t seed) {
    size_t vocab;
    fr_grammar *grammar;
    const fr_token_tree *tree = token_tree(&vocab);
    if (repeats_much(text, length) && seed % SELDOM) return false;
    if (refused(fr_grammar_open(tree, kind, text, length, &grammar))) return false;
    walk(grammar, vocab, seed);
    fr_grammar_close(grammar);
    return true;
}
