/* libFuzzer's target for the conversation that `forerun chat` saves with its session. The input is read as a
 * conversation, changed and written.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error. */
/* suite: links=command */
#include "tests/fuzz/harness.h"
#include "tools/cli/conversation.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    json_t *messages = fr_conversation_read(bytes, size), *again;
    if (!messages) return 0;
    fuzz_inputs_read++;
    size_t turns = fr_conversation_turns(messages), length;
    json_t *later = json_copy(messages);
    if (turns > 0) free(fr_conversation_said(messages));
    fr_conversation_drop(later, 1);
    if (turns > 0 && (fr_conversation_turns(later) != turns - 1 || fr_conversation_fault(messages))) abort();
    fr_conversation_take_reply(later);
    fr_conversation_take_back(later);
    json_decref(later);
    fr_conversation_set_system(messages, "Briefly.");
    char *written = fr_conversation_write(messages, &length);
    again = fr_conversation_read(written, length);
    if (!again || fr_conversation_turns(again) != turns || !json_equal(messages, again)) abort();
    free(written);
    json_decref(messages);
    json_decref(again);
    return 0;
}
