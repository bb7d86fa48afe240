/* libFuzzer's target for GGUF: any bytes as a file, through the parser and all that reads its metadata.
 *
 * In: bytes; a GGUF file is a corpus entry as it is. Out: nothing, unless the sanitizers find something. What parses is
 * walked: every value by the getters, the tokenizer, the model's and the drafter's configuration and tensors. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/checkpoint.h"
#include "formats/tokenizer_gguf.h"
#include "src/assistant_gemma4.h"
#include "src/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void walk_values(const fr_gguf *gguf) {
    for (size_t i = 0; i < gguf->count; i++) {
        const fr_gguf_value *value = &gguf->values[i];
        char key[300];
        int64_t number, numbers[4];
        double real;
        bool flag;
        fr_text text;
        memcpy(key, value->key.bytes, value->key.length);
        key[value->key.length] = '\0';
        if (fr_gguf_find(gguf, key) != value && key[0] != '.') abort();
        fr_gguf_int(gguf, key, 0, 100, FR_GGUF_REQUIRED, &number);
        fr_gguf_ints(gguf, key, -5, 100, 0, 4, numbers);
        fr_gguf_real(gguf, key, -1, 1, 0, &real);
        fr_gguf_bool(gguf, key, false, &flag);
        fr_gguf_text(gguf, key, &text);
        if (value->type != FR_GGUF_ARRAY || value->element != FR_GGUF_STRING) continue;
        size_t at = 0;
        for (uint64_t s = 0; s < value->count; s++) {
            text = fr_gguf_next(value, &at);
            if (text.length) (void)*(const volatile char *)(text.bytes + text.length - 1);
        }
        if (at != value->bytes) abort();
    }
}

static void read_tokenizer(const fr_gguf *gguf) {
    fr_tokenizer *tokenizer;
    int32_t ends[8], *ids;
    size_t count = 0;
    fr_tokenizer_gguf_ends(gguf, 512, ends, 8, &count);
    if (fr_tokenizer_from_gguf(gguf, &tokenizer) != FR_OK) return;
    if (fr_tokenize(tokenizer, "Text, <bos> 12\xff", 16, true, &ids, &count) == FR_OK) fr_free(ids);
    fr_tokenizer_close(tokenizer);
}

static void bind_all(const fr_checkpoint *files) {
    fr_weights weights;
    fr_gemma4_config config;
    fr_gemma4 net;
    fr_assistant assistant;
    if (fr_weights_open(&weights, files) == FR_OK && fr_gemma4_config_read(&config, &weights, false) == FR_OK &&
        fr_gemma4_open(&net, &config, &weights) == FR_OK)
        fr_gemma4_close(&net);
    fr_weights_close(&weights);
    if (fr_weights_open(&weights, files) == FR_OK) {
        fr_assistant_open(&assistant, NULL, files, &weights);
        fr_assistant_close(&assistant);
    }
    fr_weights_close(&weights);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char path[64];
    int file = memfd_create("fuzz", 0);
    if (file < 0 || write(file, bytes, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    fr_checkpoint files;
    if (fr_checkpoint_open(&files, path, size % 2) == FR_OK) {
        walk_values(files.gguf);
        read_tokenizer(files.gguf);
        bind_all(&files);
        fr_checkpoint_close(&files);
    }
    close(file);
    return 0;
}
