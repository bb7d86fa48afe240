/* Walks through grammars that a fuzzer has made.
 *
 * In: a text in one of their languages. Out: whether it was read; abort() if the grammar refuses a token that its mask
 * allows. */
#ifndef FR_TESTS_FUZZ_GRAMMAR_WALK_H
#define FR_TESTS_FUZZ_GRAMMAR_WALK_H

#include "forerun.h"

/* Opens a grammar, asks which tokens may come, takes some of those, chosen by the seed, and closes it. */
bool fuzz_walk_grammar(fr_grammar_kind kind, const char *text, size_t length, uint32_t seed);

#endif
