/* Walks through grammars that a fuzzer has made.
 *
 * In: the text of a grammar, of any kind. Out: true if it was read; abort() if the grammar refuses a token that its
 * mask allows. */
#ifndef FR_TESTS_FUZZ_GRAMMAR_WALK_H
#define FR_TESTS_FUZZ_GRAMMAR_WALK_H

#include "forerun.h"

/* Opens a grammar, asks several times which tokens are allowed, takes one of them as the seed chooses, and closes the
 * grammar. */
bool fuzz_walk_grammar(fr_grammar_kind kind, const char *text, size_t length, uint32_t seed);

#endif
