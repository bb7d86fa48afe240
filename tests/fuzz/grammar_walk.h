/* Walks through grammars that a fuzzer has made.
 *
 * In: the text of a grammar of any kind. Out: true if the text could be read. The program aborts if the grammar refuses
 * a token that its mask allows. */
#ifndef FR_TESTS_FUZZ_GRAMMAR_WALK_H
#define FR_TESTS_FUZZ_GRAMMAR_WALK_H

#include "forerun.h"

/* Opens a grammar, requests the allowed tokens several times, accepts one of them each time, and closes the grammar.
 * `seed` decides which tokens are chosen. */
bool fuzz_walk_grammar(fr_grammar_kind kind, const char *text, size_t length, uint32_t seed);

#endif
