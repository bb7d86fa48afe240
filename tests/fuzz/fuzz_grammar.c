/* libFuzzer's target for grammars. The first byte chooses the kind of grammar, and the rest is the grammar's text.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error, or if the grammar refuses a token that its mask allows. */
#include "base/hash.h"
#include "tests/fuzz/grammar_walk.h"
#include "tests/fuzz/harness.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (size == 0) return 0;
    fr_grammar_kind kind = (fr_grammar_kind)(bytes[0] % 3);
    fuzz_inputs_read += fuzz_walk_grammar(kind, (const char *)bytes + 1, size - 1, (uint32_t)fr_hash(0, bytes, size));
    return 0;
}
