/* libFuzzer's target for requests to a server. The input is the body of a request. It may be in OpenAI's or llama.cpp's
 * format, in the format of another API, or a request to fill in code. It is read, given to sessions and run for some
 * rounds.
 *
 * In: a byte that chooses the format and whether the model reads pictures, and then the body. Out: a crash if a
 * sanitizer finds an error, or if a request has neither an error nor choices that can be run.
 *
 * To run a request takes a hundred times as long as to read it. So only requests whose size is a multiple of RUN_EVERY
 * are run. */
/* suite: links=command */
#include "tests/fuzz/harness.h"
#include "tools/cli/wide_json.h"
#include "tools/serve/dialects/request_dialects.h"
#include "tools/serve/generation_request.h"
#include "tools/jobs/infill.h"

enum { MOST = 6, CONTEXT = 192, PLACES = 2, RUN_EVERY = 32, INFILL = 127 };

static fr_arguments args[2];
static fr_loaded loaded[2];
static fr_job_setting settings[2];

static void open_engine(int which) {
    static const char *const models[] = {"tools/demo/target", "tests/data/glm-ocr"};
    fr_loaded *l = &loaded[which];
    settings[which] = (fr_job_setting){.args = &args[which], .loaded = l, .context = CONTEXT};
    args[which].number[FR_ARG_PREDICT] = MOST;
    args[which].text[FR_ARG_MODEL] = models[which];
    l->options = fr_options_new();
    if (!l->options || fr_options_set(l->options, FR_OPT_CONTEXT, CONTEXT) != FR_OK ||
        fr_options_set(l->options, FR_OPT_THREADS, 1) != FR_OK ||
        fr_model_open(models[which], l->options, &l->model) != FR_OK ||
        fr_engine_open(l->model, NULL, l->options, PLACES, &settings[which].engine) != FR_OK)
        die(fr_last_error(), models[which]);
}

/* Runs only a few rounds, because a request may ask for as many ids as fit in the context. */
static void run(fr_job *job, fr_engine *engine) {
    int32_t ids[FR_STEP_MAX];
    fr_job_start(job, NULL, 0);
    for (int round = 0; !job->ended && round < 2 * CONTEXT; round++) {
        fr_round r = fr_job_round(job, ids);
        if (fr_engine_step(engine, &r, 1) != FR_OK) abort();
        fr_job_take(job, &r);
    }
    if (!job->ended) abort();
}

/* Converts a body to a chat request. Returns NULL if the body is invalid. `kind` is the input's first byte, which is at
 * least 64. Each range of 16 values selects one API: OpenAI's /v1/responses, Anthropic's /v1/messages, ollama's
 * /api/chat and ollama's /api/generate. */
static json_t *read_dialect(int kind, json_t *body) {
    static json_t *(*const read[])(json_t * body, char *error) = {fr_responses_read, fr_messages_read,
                                                                  fr_ollama_read_chat, fr_ollama_read_generate};
    char error[FR_DIALECT_ERROR];
    json_t *chat = read[kind / 16 - 4](body, error);
    if ((error[0] != '\0') == (chat != NULL)) abort();
    json_decref(body);
    return chat;
}

/* Opens the demo model's tokenizer with additional tokens for filling in code. The ids of these tokens come after the
 * demo model's ids. */
static fr_tokenizer *open_infilling(void) {
    static const char *const tokens[] = {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>",
                                         "<|file_sep|>"};
    const char *folder = fuzz_folder();
    fuzz_file file = fuzz_file_new();
    fr_tokenizer *tokenizer = NULL;
    json_t *value = json_load_file("tools/demo/target/tokenizer.json", 0, NULL);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        json_array_append_new(json_object_get(value, "added_tokens"),
                              json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", 4096 + (int)i, "content",
                                        tokens[i], "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0,
                                        "special", 1));
    char *text = json_dumps(value, JSON_COMPACT);
    fuzz_file_write(&file, text, strlen(text), NULL, 0);
    fuzz_link(folder, "tokenizer.json", file.path);
    if (fr_tokenizer_open(folder, NULL, &tokenizer) != FR_OK) die(fr_last_error(), folder);
    free(text);
    json_decref(value);
    return tokenizer;
}

/* Converts a body of /infill to a body of /completion. */
static bool read_infill(json_t *body) {
    static fr_tokenizer *tokenizer;
    char error[FR_INFILL_ERROR] = "";
    if (!tokenizer) tokenizer = open_infilling();
    bool taken = fr_infill_read(tokenizer, body, error);
    if (taken == (error[0] != '\0')) abort();
    fuzz_inputs_read += taken;
    return taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const fr_job_form forms[] = {FR_JOB_CHAT, FR_JOB_COMPLETION, FR_JOB_NATIVE};
    json_error_t error;
    int which = size && *bytes / 3 % 2;
    fr_job_setting *setting = &settings[which];
    if (!setting->engine) open_engine(which);
    json_t *body = size ? fr_json_load((const char *)bytes + 1, size - 1, &error) : NULL;
    bool dialect = size && *bytes >= 64 && *bytes < INFILL, infill = size && *bytes == INFILL;
    if (dialect && json_is_object(body)) body = read_dialect(*bytes, body);
    if (!body) return 0;
    if (infill && json_is_object(body) && !read_infill(body)) {
        json_decref(body);
        return 0;
    }
    bool raw = dialect && !json_object_get(body, "messages");
    fr_job_form form = raw ? FR_JOB_COMPLETION : dialect ? FR_JOB_CHAT : infill ? FR_JOB_NATIVE : forms[*bytes % 3];
    fr_generation_request *taken = fr_generation_request_read(NULL, setting, form, body);
    if (dialect && taken->count > 1) abort();
    if ((taken->error[0] != '\0') == (taken->count > 0)) abort();
    if (taken->count) fuzz_inputs_read++;
    for (size_t i = 0; i < taken->count; i++)
        if (taken->choices[i].job.ended || taken->choices[i].job.prompt.count == 0) abort();
    size_t runs = size % RUN_EVERY ? 0 : PLACES;
    for (size_t i = 0; i < taken->count && i < runs; i++) run(&taken->choices[i].job, setting->engine);
    fr_generation_request_free(taken);
    return 0;
}
