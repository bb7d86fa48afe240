/* libFuzzer's target for GGUF. The input is a file, which is parsed and then read by all code that uses its metadata.
 *
 * In: a GGUF file, or only its part before the tensors' data. In the second case the target appends the data of a
 * fixture. Out: a crash if a sanitizer finds an error. If a file can be parsed, everything in it is read: every value
 * by each function that returns values, and the configuration and tensors of a model, of a drafter and of a vision
 * encoder. */
#include "src/engine/draft/assistant_gemma4.h"
#include "tests/fuzz/harness.h"

static fuzz_data data[] = {{.mark = "gemma4_mtp", .path = "tests/data/gguf/ik.gguf"},
                           {.mark = "gemma4-assistant", .path = "tests/data/gguf/moe-odd-assistant.gguf"},
                           {.mark = "expert", .path = "tests/data/gguf/moe-odd.gguf"},
                           {.mark = "glm4v", .path = "tests/data/glm-ocr/mmproj-bf16.gguf"},
                           {.mark = "glm4", .path = "tests/data/glm-ocr/model-q4_0.gguf"},
                           {.mark = "llama.block", .path = "tests/data/llama/q4_0.gguf"},
                           {.mark = "qwen2.block", .path = "tests/data/dense/qwen2-yarn.gguf"},
                           {.mark = "gemma3.block", .path = "tests/data/dense/gemma3-tower.gguf"},
                           {.mark = "markov_w1", .path = "tests/data/dflash/dspark-qwen3/drafter.gguf"},
                           {.mark = "selector_hidden", .path = "tests/data/dflash/v2-qwen3/drafter.gguf"},
                           {.mark = "nomic-bert", .path = "tests/data/encoders/gguf/nomic.gguf"},
                           {.mark = "modern-bert", .path = "tests/data/encoders/gguf/modernbert.gguf"},
                           {.mark = "bert.block", .path = "tests/data/encoders/gguf/bert-mean.gguf"},
                           {.mark = "", .path = "tests/data/gguf/e-q4_0.gguf"}};

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

/* Loads the weights of a block drafter without a target. Returns true if they fit. */
static bool bind_block(const fr_checkpoint *files) {
    fr_drafter drafter = {.files = *files};
    if (!fr_draft_dflash.reads(files) || refused(fr_weights_open(&drafter.weights, files))) return false;
    bool bound = !refused(fr_draft_dflash.load(&drafter));
    fr_draft_dflash.unload(&drafter);
    fr_weights_close(&drafter.weights);
    return bound;
}

static bool bind_tower(const fr_checkpoint *files) {
    fuzz_tower tower;
    fuzz_tower_open(&tower, files);
    fuzz_tower_close(&tower);
    return tower.vision != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fuzz_file file;
    fr_checkpoint files;
    if (!file.fd) {
        file = fuzz_file_new();
        for (size_t i = 0; i < sizeof data / sizeof *data; i++) fuzz_data_read(&data[i]);
    }
    fuzz_file_write(&file, bytes, size, NULL, 0);
    fr_status status = fr_checkpoint_open(&files, file.path, size % 2);
    if (refused(status)) {
        const fuzz_data *behind = fuzz_data_find(data, bytes, size);
        fuzz_file_write(&file, bytes, size, behind->bytes, behind->size);
        status = fr_checkpoint_open(&files, file.path, true);
    }
    if (refused(status)) return 0;
    walk_values(files.gguf);
    bool model = bind_model(&files), drafter = bind_drafter(&files), tower = bind_tower(&files);
    fuzz_inputs_read += bind_block(&files) || model || drafter || tower;
    fr_checkpoint_close(&files);
    return 0;
}
