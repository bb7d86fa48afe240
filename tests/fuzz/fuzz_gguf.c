/* libFuzzer's target for GGUF: any bytes as a file, through the parser and all that reads its metadata.
 *
 * In: bytes; a GGUF file, or the part before its tensors' data, which are then zeros. Out: nothing, unless the
 * sanitizers find something. What parses is walked: every value by the getters, the tokenizer, the configuration and
 * tensors of a model, of a drafter, of a vision tower. */
#include <unistd.h>

#include "src/assistant_gemma4.h"
#include "src/vision.h"
#include "tests/fuzz/harness.h"

#define ZEROS ((off_t)4 << 20) /* more than a fixture's data */

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

static bool bind_model(const fr_checkpoint *files) {
    fr_model *model = fuzz_model_bind(files);
    fuzz_model_close(model);
    return model != NULL;
}

static bool bind_drafter(const fr_checkpoint *files) {
    fr_weights weights;
    fr_assistant assistant;
    bool bound = false;
    if (refused(fr_weights_open(&weights, files))) return false;
    bound = !refused(fr_assistant_open(&assistant, NULL, files, &weights));
    fr_assistant_close(&assistant);
    fr_weights_close(&weights);
    return bound;
}

static bool bind_tower(const fr_checkpoint *files) {
    fr_weights weights;
    fr_vision *vision;
    if (refused(fr_weights_open(&weights, files))) return false;
    bool bound = !refused(fr_vision_open(&weights, fuzz_kernels(), 0, &vision));
    fr_vision_close(vision);
    fr_weights_close(&weights);
    return bound;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fuzz_file file;
    fr_checkpoint files;
    if (!file.fd) file = fuzz_file_new();
    fuzz_file_write(&file, bytes, size, NULL, 0);
    fr_status status = fr_checkpoint_open(&files, file.path, size % 2);
    if (refused(status) && ftruncate(file.fd, (off_t)size + ZEROS) == 0)
        status = fr_checkpoint_open(&files, file.path, true);
    if (refused(status)) return 0;
    walk_values(files.gguf);
    bool model = bind_model(&files), drafter = bind_drafter(&files), tower = bind_tower(&files);
    fuzz_inputs_read += model || drafter || tower;
    fr_checkpoint_close(&files);
    return 0;
}
