/* libFuzzer's target for the library's options. Each line sets one option. Then a session is opened with them.
 *
 * In: lines with three parts, as in "21n0.8". The first part is the number of an option. The second is the letter "i",
 * "n" or "t" and chooses the function that sets the option. The third is the value. Out: a crash if a sanitizer finds
 * an error. If a session would take long, it is not opened. */
#include "tests/fuzz/harness.h"

#define MODEL "tests/data/models/gemma4-e-odd"

#define LONG 4096 /* limit of positions, and of rows in a forward pass */

static void set(fr_options *options, const char *line) {
    char *value;
    fr_option option = (fr_option)strtol(line, &value, 10);
    char kind = *value;
    if (!kind) return;
    value++;
    if (kind == 'i') refused(fr_options_set(options, option, strtoll(value, NULL, 10)));
    if (kind == 'n') refused(fr_options_set_number(options, option, strtod(value, NULL)));
    if (kind == 't') refused(fr_options_set_text(options, option, value));
}

static void set_all(fr_options *options, const uint8_t *bytes, size_t size) {
    char line[512];
    for (size_t at = 0, length; at < size; at += length + 1) {
        const uint8_t *end = memchr(bytes + at, '\n', size - at);
        length = end ? (size_t)(end - bytes) - at : size - at;
        snprintf(line, sizeof line, "%.*s", (int)length, (const char *)bytes + at);
        set(options, line);
    }
}

static void run(const fr_model *model, const fr_drafter *drafter, const fr_options *options) {
    int32_t ids[FR_STEP_MAX] = {2, 9, 40, 7, 9, 40};
    size_t count, accepted;
    fr_session *session;
    if (options->value[FR_OPT_CONTEXT] > LONG || refused(fr_session_open(model, drafter, options, &session))) return;
    fuzz_inputs_read++;
    if (!refused(fr_session_prompt(session, ids, 6)))
        for (int step = 0; step < 3; step++)
            if (refused(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted))) break;
    fr_session_close(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fr_checkpoint files;
    static fr_model *model;
    static fr_drafter *drafter;
    if (!model) {
        fuzz_open_files(&files, MODEL);
        model = fuzz_model_open(&files);
        drafter = model ? fuzz_drafter_open(MODEL "/assistant", model) : NULL;
        if (!drafter) die(fr_last_error(), "");
    }
    fr_options *options = fr_options_new();
    if (!options || fr_options_set(options, FR_OPT_CONTEXT, 64) != FR_OK) die("no options", "");
    set_all(options, bytes, size);
    run(model, size % 2 ? drafter : NULL, options);
    fr_options_free(options);
    return 0;
}
