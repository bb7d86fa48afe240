/* libFuzzer's target for adapters. The input is a GGUF file of an adapter, or the text of adapter_config.json followed
 * by a NUL and the bytes of adapter_model.safetensors.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error. If the adapter fits one of several models, it is used in a
 * session of that model. */
#include "src/engine/model/adapter.h"
#include "tests/fuzz/harness.h"

#define MODELS "tests/data/models/"

/* The models that an adapter may fit. They are of four kinds: dense, with fused matrices, with one tensor for each
 * expert, and with DeltaNet. The last model is a GGUF file. */
static const char *const folders[] = {MODELS "qwen3-odd", MODELS "phi3-window", MODELS "qwen3-moe-odd",
                                      MODELS "qwen35-odd", "tests/data/dense/qwen3-odd.gguf"};
enum { COUNT = sizeof folders / sizeof *folders };

static void run(const fr_model *model, const fr_adapter *adapter) {
    static const double scale = 1;
    int32_t ids[FR_STEP_MAX] = {2, 9, 40, 7, 30};
    size_t count = 5;
    fr_session *session;
    if (refused(fr_session_open(model, NULL, fuzz_options(), &session))) return;
    if (fr_session_set_adapters(session, &adapter, &scale, 1) != FR_OK) die(fr_last_error(), "");
    if (!refused(fr_session_set_prompt(session, ids, count)))
        refused(fr_session_step(session, ids, FR_STEP_MAX, &count, NULL));
    fr_session_close(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fr_checkpoint files[COUNT];
    static const fr_model *models[COUNT];
    static fuzz_file config, weights;
    static const char *folder;
    if (!folder) {
        config = fuzz_file_new();
        weights = fuzz_file_new();
        folder = fuzz_folder();
        fuzz_link(folder, "adapter_config.json", config.path);
        fuzz_link(folder, "adapter_model.safetensors", weights.path);
        for (size_t i = 0; i < COUNT; i++) {
            fuzz_open_files(&files[i], folders[i]);
            models[i] = fuzz_model_open(&files[i]);
            if (!models[i]) die(fr_last_error(), folders[i]);
        }
    }
    bool gguf = size >= 4 && memcmp(bytes, "GGUF", 4) == 0;
    const fuzz_halves halves = fuzz_divide(bytes, size, '\0');
    if (!gguf) fuzz_file_write(&config, halves.first, halves.first_size, NULL, 0);
    fuzz_file_write(&weights, gguf ? bytes : halves.second, gguf ? size : halves.second_size, NULL, 0);
    for (size_t i = 0; i < COUNT; i++) {
        fr_adapter *adapter;
        if (refused(fr_adapter_open(gguf ? weights.path : folder, models[i], &adapter))) continue;
        fuzz_inputs_read++;
        run(models[i], adapter);
        fr_adapter_close(adapter);
    }
    return 0;
}
