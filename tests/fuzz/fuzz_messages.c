/* libFuzzer's target for chats. The first line has the options, and the other lines have the messages. Five published
 * templates render the messages, and a tokenizer converts the result to ids.
 *
 * In: any bytes; an empty first line means no options. Out: a crash if a sanitizer finds an error. */
#include "tests/fuzz/harness.h"

static const char *const folders[] = {"tests/data/models/gemma4-e", "tests/data/glm-ocr",
                                      "tests/data/tokenizers/qwen35", "tests/data/tokenizers/deepseek3",
                                      "tests/data/tokenizers/llama3"};
enum { FOLDERS = sizeof folders / sizeof *folders };

static char *text_of(const uint8_t *bytes, size_t size) {
    char *text = malloc(size + 1);
    if (!text) die("no memory for", "a text");
    if (size) memcpy(text, bytes, size);
    text[size] = '\0';
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fr_tokenizer *tokenizers[FOLDERS];
    for (size_t i = 0; i < FOLDERS; i++)
        if (!tokenizers[i] && fr_tokenizer_open(folders[i], NULL, &tokenizers[i]) != FR_OK) die(fr_last_error(), "");
    fuzz_halves halves = fuzz_divide(bytes, size, '\n');
    char *settings = text_of(halves.first, halves.first_size);
    char *messages = text_of(halves.second, halves.second_size);
    for (size_t i = 0; i < FOLDERS; i++) {
        fr_marked_text text;
        int32_t *ids;
        size_t count;
        if (refused(fr_chat_render(tokenizers[i], messages, *settings ? settings : NULL, &text))) continue;
        fuzz_inputs_read++;
        if (strlen(text.text) > text.length) abort();
        if (!refused(fr_tokenize_marked(tokenizers[i], &text, &ids, &count))) fr_free(ids);
        fr_marked_text_free(&text);
    }
    free(settings);
    free(messages);
    return 0;
}
