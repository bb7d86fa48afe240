/* libFuzzer's target for lines of a batch. The input is one line, which is read as a job, given to a session, run for
 * some rounds and answered.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error, or if the answer has the wrong form. It must be an object
 * with ids or with an error; in OpenAI's format it must be an object with a response. */
/* suite: links=command */
#include "tests/fuzz/harness.h"
#include "tools/jobs/job.h"

#define MODEL "tools/demo/target"

enum { MOST = 6 };

static fr_arguments args;
static fr_loaded loaded;
static fr_job_setting setting = {.args = &args, .loaded = &loaded, .file = "fuzz"};

static void open_engine(void) {
    args.number[FR_ARG_PREDICT] = MOST;
    args.text[FR_ARG_MODEL] = MODEL;
    loaded.options = fr_options_new();
    if (!loaded.options || fr_options_set(loaded.options, FR_OPT_CONTEXT, 96) != FR_OK ||
        fr_options_set(loaded.options, FR_OPT_THREADS, 1) != FR_OK ||
        fr_model_open(MODEL, loaded.options, &loaded.model) != FR_OK ||
        fr_engine_open(loaded.model, NULL, loaded.options, 2, &setting.engine) != FR_OK)
        die(fr_last_error(), "");
}

/* Runs only a few rounds, because a line may request as many ids as fit in the context. */
static void run(fr_job *job) {
    int32_t ids[FR_STEP_MAX];
    for (int round = 0; !job->ended && round < 200; round++) {
        fr_round r = fr_job_round(job, ids);
        if (fr_engine_step(setting.engine, &r, 1) != FR_OK) abort();
        fr_job_take(job, &r);
    }
    if (!job->ended) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    fr_job job;
    if (!setting.engine) open_engine();
    fr_job_begin(&job, &setting, &(fr_job_line){.text = (const char *)bytes, .length = size, .row = 1});
    if (!job.ended) fuzz_inputs_read++;
    run(&job);
    char *line = fr_job_answer(&job);
    json_t *answer = json_loads(line, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    bool ids = json_object_get(answer, "ids"), error = json_object_get(answer, "error");
    bool response = json_is_object(json_object_get(answer, "response"));
    if (job.form == FR_JOB_PLAIN ? ids == error : !response) abort();
    json_decref(answer);
    free(line);
    fr_job_end(&job);
    return 0;
}
