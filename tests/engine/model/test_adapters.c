/* Tests adapters (LoRA). The results of fr_adapter_open and fr_session_set_adapters are compared with peft
 * (tests/references/adapters.py), for models and adapters in folders and in GGUF files. The bits must be the same for
 * any number of threads, instruction set, chunk, draft and neighbouring session. Sessions with different adapters must
 * not share cached rows. Files that don't fit are refused, and the error line names the fault. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "formats/safetensors.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define ADAPTERS "tests/data/adapters/"
#define MODELS   "tests/data/models/"

/* The cases. `gguf` is a GGUF file of the same model that llama.cpp made, or NULL. If `adapter_gguf` is true, the
 * adapter has a GGUF file too. */
static const struct {
    const char *adapter, *model, *gguf;
    bool adapter_gguf;
} cases[] = {{"llama", "llama", NULL, false},
             {"llama-other", "llama", NULL, false},
             {"mistral-nemo", "mistral-nemo", "tests/data/dense/mistral-nemo.gguf", true},
             {"qwen3", "qwen3-odd", "tests/data/dense/qwen3-odd.gguf", true},
             {"phi3", "phi3-window", "tests/data/dense/phi3-window.gguf", false},
             {"gemma4", "gemma4-e-odd", NULL, false},
             {"qwen2-moe", "qwen2-moe-odd", "tests/data/dense/qwen2-moe-odd.gguf", false},
             {"experts", "qwen3-moe-odd", NULL, false},
             {"gpt-neox", "gpt-neox-odd", "tests/data/dense/gpt-neox-odd.gguf", false},
             {"falcon", "falcon-40b", "tests/data/dense/falcon-40b.gguf", false},
             {"gpt2", "gpt2-odd", "tests/data/dense/gpt2-odd.gguf", false},
             {"glm4", "glm4-dense", "tests/data/dense/glm4-dense.gguf", false},
             {"mla", "deepseek-v3-odd", NULL, false},
             {"deltanet", "qwen35-odd", NULL, false}};
enum { CASES = sizeof cases / sizeof *cases, GREEDY = 48 };

static fr_options *settings(const char *isa, int threads, int chunk) {
    fr_options *options = fr_options_new();
    if (isa) require(fr_options_set_text(options, FR_OPT_ISA, isa));
    require(fr_options_set(options, FR_OPT_THREADS, threads));
    require(fr_options_set(options, FR_OPT_CHUNK, chunk));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set_text(options, FR_OPT_SPEC_TYPE, "none"));
    return options;
}

/* Runs steps until `count` ids have been generated. */
static void generate(fr_session *session, const int32_t *prompt, size_t prompt_count, int32_t *ids, size_t count) {
    require(fr_session_set_prompt(session, prompt, prompt_count));
    for (size_t at = 0, got; at < count; at += got) {
        require(fr_session_step(session, ids + at, count - at, &got, NULL));
        ck_assert_uint_gt(got, 0);
    }
}

static json_t *reference_of(const char *adapter, int32_t **ids, size_t *count, int32_t **greedy) {
    char path[256];
    size_t greedy_count;
    json_error_t error;
    snprintf(path, sizeof path, ADAPTERS "%s/reference.json", adapter);
    json_t *info = json_load_file(path, 0, &error);
    ck_assert_msg(info != NULL, "%s: %s", path, error.text);
    *ids = fr_json_ids_of(json_object_get(info, "ids"), count);
    *greedy = fr_json_ids_of(json_object_get(info, "greedy"), &greedy_count);
    ck_assert_uint_eq(greedy_count, GREEDY);
    return info;
}

/* Allocates room for the logits of `count` ids. */
static fr_rows room_for(const fr_model *model, size_t count) {
    fr_rows rows = {.capacity = count * (size_t)fr_model_fact(model, FR_FACT_VOCAB)};
    rows.values = malloc(rows.capacity * sizeof *rows.values);
    ck_assert_ptr_nonnull(rows.values);
    return rows;
}

/* Opens a model with an adapter, and compares its results with those of peft. */
static void compare(const char *name, const char *model_path, const char *adapter_path) {
    char path[256];
    int32_t *ids, *greedy, got[GREEDY];
    size_t count;
    json_t *info = reference_of(name, &ids, &count, &greedy);
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    snprintf(path, sizeof path, ADAPTERS "%s/reference.safetensors", name);
    require(fr_map_open(&map, path, true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    const fr_tensor *logits = fr_tensors_find(&tensors, "logits");
    ck_assert_ptr_nonnull(logits);

    fr_options *options = settings(NULL, 2, 64);
    fr_model *model;
    fr_adapter *adapter;
    fr_session *session;
    require(fr_model_open(model_path, options, &model));
    fr_rows rows = room_for(model, count);
    require(fr_adapter_open(adapter_path, model, &adapter));
    require(fr_session_open(model, NULL, options, &session));
    require(fr_session_set_adapters(session, (const fr_adapter *const *)&adapter, (const double[]){1}, 1));
    require(fr_session_logits(session, ids, count, 0, fr_rows_collect, &rows));
    ck_assert_uint_eq(rows.count * sizeof(float), logits->bytes);
    fr_rows_compare(rows.values, logits->data, rows.count);
    generate(session, ids, count, got, GREEDY);
    ck_assert_mem_eq(got, greedy, sizeof got);
    fr_session_close(session);
    fr_adapter_close(adapter);
    fr_model_close(model);
    fr_options_free(options);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
    free(rows.values);
    free(ids);
    free(greedy);
    json_decref(info);
}

START_TEST(matches_peft) {
    char model[256], folder[256], gguf[256];
    snprintf(model, sizeof model, MODELS "%s", cases[_i].model);
    snprintf(folder, sizeof folder, ADAPTERS "%s", cases[_i].adapter);
    snprintf(gguf, sizeof gguf, ADAPTERS "%s/adapter.gguf", cases[_i].adapter);
    compare(cases[_i].adapter, model, folder);
    if (cases[_i].gguf) compare(cases[_i].adapter, cases[_i].gguf, folder);
    if (cases[_i].adapter_gguf) compare(cases[_i].adapter, model, gguf);
    if (cases[_i].adapter_gguf) compare(cases[_i].adapter, cases[_i].gguf, gguf);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------ one answer */

enum { PROMPT = 90 };

/* Gets the logits of a prompt, and 24 ids that are generated after the prompt. */
static void run(fr_session *session, fr_rows *rows, int32_t ids[24]) {
    int32_t prompt[PROMPT];
    for (size_t i = 0; i < PROMPT; i++) prompt[i] = (int32_t)(11 + 17 * i) % 160;
    require(fr_session_logits(session, prompt, PROMPT, 0, fr_rows_collect, rows));
    generate(session, prompt, PROMPT, ids, 24);
}

/* Runs a model with an adapter at scale 0.75. */
static void run_alone(const char *model_path, const char *adapter_path, fr_options *options, fr_rows *rows,
                      int32_t ids[24]) {
    fr_model *model;
    fr_adapter *adapter;
    fr_session *session;
    require(fr_model_open(model_path, options, &model));
    require(fr_adapter_open(adapter_path, model, &adapter));
    require(fr_session_open(model, NULL, options, &session));
    require(fr_session_set_adapters(session, (const fr_adapter *const *)&adapter, (const double[]){0.75}, 1));
    *rows = room_for(model, PROMPT);
    run(session, rows, ids);
    fr_session_close(session);
    fr_adapter_close(adapter);
    fr_model_close(model);
    fr_options_free(options);
}

/* The models whose bits are compared: one quantized in blocks, one with float weights and one mixture. Each has an
 * adapter. */
static const char *const answered[][2] = {{"tests/data/llama/q4_0.gguf", ADAPTERS "llama"},
                                          {MODELS "qwen35-odd", ADAPTERS "deltanet"},
                                          {MODELS "qwen3-moe-odd", ADAPTERS "experts"}};

START_TEST(gives_one_answer) {
    static const struct {
        const char *isa;
        int threads, chunk;
        const char *drafts;
    } ways[] = {{NULL, 3, 7, "none"}, {"scalar", 2, 64, "none"}, {NULL, 1, 64, "ngram"}};
    fr_rows rows, other;
    int32_t ids[24], other_ids[24];
    run_alone(answered[_i][0], answered[_i][1], settings(NULL, 1, 64), &rows, ids);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        fr_options *options = settings(ways[w].isa, ways[w].threads, ways[w].chunk);
        require(fr_options_set_text(options, FR_OPT_SPEC_TYPE, ways[w].drafts));
        run_alone(answered[_i][0], answered[_i][1], options, &other, other_ids);
        fr_rows_expect_same(&other, &rows);
        ck_assert_mem_eq(other_ids, ids, sizeof ids);
        free(other.values);
    }
    free(rows.values);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------ neighbours */

typedef struct crowd {
    fr_options *options;
    fr_model *model;
    fr_adapter *adapters[2];
    fr_engine *engine;
    fr_session *sessions[4];
} crowd;

enum { CROWD = 4, TEXT = 20 };
static const double scales[CROWD][2] = {{0, 0}, {1, 0}, {0, 0.5}, {1, 0.5}};

static void open_crowd(crowd *c) {
    *c = (crowd){.options = settings(NULL, 2, 64)};
    require(fr_model_open(MODELS "llama", c->options, &c->model));
    require(fr_adapter_open(ADAPTERS "llama", c->model, &c->adapters[0]));
    require(fr_adapter_open(ADAPTERS "llama-other", c->model, &c->adapters[1]));
    require(fr_engine_open(c->model, NULL, c->options, CROWD, &c->engine));
    for (size_t i = 0; i < CROWD; i++) {
        require(fr_engine_session(c->engine, c->options, &c->sessions[i]));
        require(fr_session_set_adapters(c->sessions[i], (const fr_adapter *const *)c->adapters, scales[i], 2));
    }
}

static void close_crowd(crowd *c) {
    for (size_t i = 0; i < CROWD; i++) fr_session_close(c->sessions[i]);
    fr_engine_close(c->engine);
    for (size_t i = 0; i < 2; i++) fr_adapter_close(c->adapters[i]);
    fr_model_close(c->model);
    fr_options_free(c->options);
}

/* Runs steps of all sessions together until each session has generated TEXT ids. */
static void run_crowd(crowd *c, int32_t text[CROWD][TEXT]) {
    int32_t prompt[PROMPT];
    size_t at[CROWD] = {0};
    for (size_t i = 0; i < PROMPT; i++) prompt[i] = (int32_t)(5 + 23 * i) % 160;
    for (size_t i = 0; i < CROWD; i++) require(fr_session_put(c->sessions[i], prompt, PROMPT));
    for (bool more = true; more;) {
        fr_round rounds[CROWD];
        int32_t ids[CROWD][FR_STEP_MAX];
        size_t count = 0, whose[CROWD];
        for (size_t i = 0; i < CROWD; i++) {
            if (at[i] == TEXT) continue;
            whose[count] = i;
            rounds[count] = (fr_round){.session = c->sessions[i], .ids = ids[i], .limit = TEXT - at[i]};
            count++;
        }
        more = count > 0;
        if (!more) break;
        require(fr_engine_step(c->engine, rounds, count));
        for (size_t r = 0; r < count; r++) {
            require(rounds[r].status);
            memcpy(text[whose[r]] + at[whose[r]], ids[whose[r]], rounds[r].count * sizeof **text);
            at[whose[r]] += rounds[r].count;
        }
    }
}

START_TEST(rows_of_other_adapters_lie_side_by_side) {
    crowd c;
    int32_t text[CROWD][TEXT], again[CROWD][TEXT], prompt[PROMPT];
    open_crowd(&c);
    run_crowd(&c, text);
    for (size_t i = 0; i < PROMPT; i++) prompt[i] = (int32_t)(5 + 23 * i) % 160;
    for (size_t i = 0; i < CROWD; i++) {
        fr_session *alone;
        int32_t ids[TEXT];
        require(fr_session_open(c.model, NULL, c.options, &alone));
        require(fr_session_set_adapters(alone, (const fr_adapter *const *)c.adapters, scales[i], 2));
        generate(alone, prompt, PROMPT, ids, TEXT);
        ck_assert_mem_eq(text[i], ids, sizeof ids);
        fr_session_close(alone);
        for (size_t j = 0; j < i; j++) ck_assert_mem_ne(text[i], text[j], sizeof ids);
    }
    /* So far no session has reused another's prefix, because any two sessions have different adapters. Now each session
     * gets the adapters of the next session, so it must find that session's prefix. */
    for (size_t i = 0; i < CROWD; i++) {
        double reused = fr_session_stat(c.sessions[i], FR_STAT_REUSED_TOKENS);
        ck_assert_double_eq(reused, 0);
        require(
            fr_session_set_adapters(c.sessions[i], (const fr_adapter *const *)c.adapters, scales[(i + 1) % CROWD], 2));
        ck_assert_uint_eq(fr_session_length(c.sessions[i]), 0);
    }
    run_crowd(&c, again);
    for (size_t i = 0; i < CROWD; i++) {
        ck_assert_mem_eq(again[i], text[(i + 1) % CROWD], sizeof *again);
        ck_assert_double_ge(fr_session_stat(c.sessions[i], FR_STAT_REUSED_TOKENS), 64);
    }
    close_crowd(&c);
}
END_TEST

START_TEST(saved_sessions_keep_to_their_adapters) {
    crowd c;
    char path[] = "/tmp/forerun-adapters-XXXXXX";
    int32_t prompt[PROMPT];
    open_crowd(&c);
    for (size_t i = 0; i < PROMPT; i++) prompt[i] = (int32_t)i;
    require(fr_session_set_prompt(c.sessions[1], prompt, PROMPT));
    close(mkstemp(path));
    require(fr_session_save(c.sessions[1], path));
    for (size_t i = 0; i < CROWD; i++)
        ck_assert_int_eq(fr_session_restore(c.sessions[i], path), i == 1 ? FR_OK : FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "with other adapters"));
    fr_session *fork;
    fr_session_close(c.sessions[0]);
    require(fr_session_fork(c.sessions[1], NULL, &fork));
    c.sessions[0] = fork;
    require(fr_session_restore(fork, path));
    unlink(path);
    close_crowd(&c);
}
END_TEST

/* -------------------------------------------------------------------------------------------------------- refusals */

/* Writes an adapter that has only the two tensors of one matrix. */
static void write_adapter(const char *folder, const char *config, const char *tensors, size_t bytes,
                          const float *values) {
    char path[256];
    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    FILE *file = fopen(path, "w");
    fputs(config, file);
    fclose(file);
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    file = fopen(path, "w");
    uint64_t length = strlen(tensors);
    fwrite(&length, sizeof length, 1, file);
    fputs(tensors, file);
    fwrite(values, 1, bytes, file);
    fclose(file);
}

#define Q "base_model.model.model.layers.0.self_attn.q_proj"
#define PAIR(name, rows, cols, b_rows, b_cols, split, end)                                                            \
    "{\"" name ".lora_A.weight\": {\"dtype\": \"F32\", \"shape\": [" rows ", " cols "], \"data_offsets\": [0, " split \
    "]}, \"" name ".lora_B.weight\": {\"dtype\": \"F32\", \"shape\": [" b_rows ", " b_cols                            \
    "], \"data_offsets\": [" split ", " end "]}}"

/* The header entries of the two adapter tensors for one matrix of qwen3-odd. Each tensor's name begins with
 * `prefix`. */
#define K_PROJ(prefix, begin, split, end)                                                              \
    "\"" prefix "layers.0.self_attn.k_proj.lora_A.weight\": {\"dtype\": \"F32\", \"shape\": [1, 60], " \
    "\"data_offsets\": [" begin ", " split "]}, "                                                      \
    "\"" prefix "layers.0.self_attn.k_proj.lora_B.weight\": {\"dtype\": \"F32\", \"shape\": [36, 1], " \
    "\"data_offsets\": [" split ", " end "]}"

START_TEST(refuses_what_does_not_fit) {
    static const struct {
        const char *config, *tensors;
        size_t bytes;
        fr_status status;
        const char *line;
    } bad[] = {
        {"{\"r\": 1}", PAIR(Q, "1", "2", "2", "1", "8", "16"), 16, FR_INPUT, "the model's matrix is"},
        {"{\"r\": 2}", PAIR(Q, "1", "2", "2", "1", "8", "16"), 16, FR_INPUT, "rank 1, the configuration 2"},
        {"{\"r\": 1}", PAIR(Q, "1", "2", "1", "2", "8", "16"), 16, FR_INPUT, "rank 1, tensor"},
        {"{\"r\": 1}", PAIR("base_model.model.model.layers.99.self_attn.q_proj", "1", "2", "2", "1", "8", "16"), 16,
         FR_INPUT, "does not have"},
        {"{\"r\": 1}", PAIR("base_model.model.model.layers.0.self_attn.q_norm", "1", "2", "2", "1", "8", "16"), 16,
         FR_UNBUILT, "adapters can't change"},
        {"{\"r\": 1}", "{\"" Q ".lora_A.weight\": {\"dtype\": \"F32\", \"shape\": [1, 2], \"data_offsets\": [0, 8]}}",
         8, FR_INPUT, "has no " Q ".lora_B.weight beside it"},
        {"{\"r\": 1}", "{\"" Q ".lora_B.weight\": {\"dtype\": \"F32\", \"shape\": [2, 1], \"data_offsets\": [0, 8]}}",
         8, FR_INPUT, "has no " Q ".lora_A.weight beside it"},
        {"{\"r\": 1}",
         "{\"" Q ".lora_magnitude_vector\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 8]}}", 8,
         FR_UNBUILT, "lora_magnitude_vector is not built"},
        {"{\"r\": 1}", "{}", 0, FR_INPUT, "changes no matrix"},
        {"{\"use_dora\": true}", "{}", 0, FR_UNBUILT, "\"use_dora\" is not built"},
        {"{\"modules_to_save\": [\"lm_head\"]}", "{}", 0, FR_UNBUILT, "\"modules_to_save\" is not built"},
        {"{\"bias\": \"all\"}", "{}", 0, FR_UNBUILT, "\"bias\" \"all\" is not built"},
        {"{\"peft_type\": \"LOHA\"}", "{}", 0, FR_UNBUILT, "peft_type \"LOHA\""},
        {"{\"init_lora_weights\": \"pissa_niter_16\"}", "{}", 0, FR_UNBUILT, "pissa_niter_16"},
        {"{\"r\": 0}", "{}", 0, FR_INPUT, "r"},
        {"{\"r\": 1, \"lora_alpha\": NaN}", "{}", 0, FR_INPUT, "lora_alpha"},
        {"{\"r\": 8193}", "{}", 0, FR_INPUT, "not in 1 to 8192"},
        {"{\"r\": 1e30}", "{}", 0, FR_INPUT, "\"r\""},
        {"{\"r\": 1, \"lora_alpha\": 1e300}", "{}", 0, FR_INPUT, "lora_alpha"},
        {"{\"r\": 1, \"r\": 2}", "{}", 0, FR_INPUT, "duplicate"},
        {"[]", "{}", 0, FR_INPUT, "is no object"},
        {"{\"r\": 1, \"rank_pattern\": {\"q_proj\": 0}}", PAIR(Q, "1", "2", "2", "1", "8", "16"), 16, FR_INPUT,
         "\"q_proj\" is"},
        {"{\"r\": 1, \"alpha_pattern\": {\"q_proj\": 1e10}}", PAIR(Q, "1", "2", "2", "1", "8", "16"), 16, FR_INPUT,
         "\"q_proj\" is"},
        {"{\"r\": 1}", PAIR(Q, "0", "60", "108", "0", "0", "0"), 0, FR_INPUT, "the rank 0, not 1 to"},
        {"{\"r\": 1}", PAIR(Q, "8193", "1", "1", "8193", "32772", "65544"), 65544, FR_INPUT, "the rank 8193, not 1 to"},
        {"{\"r\": 1}", PAIR(Q, "2, 1", "60", "2, 108", "1", "480", "1344"), 1344, FR_INPUT, "the model's matrix is"},
        {"{\"r\": 1}", PAIR(Q, "1, 1", "2", "2, 1", "1", "8", "16"), 16, FR_INPUT, "3 and 3 dimensions"},
        {"{\"r\": 1}", PAIR(Q, "1, 1", "2", "2", "1", "8", "16"), 16, FR_INPUT, "3 and 2 dimensions"},
        {"{\"r\": 1}", PAIR(Q, "1, 1, 1", "2", "1, 1, 2", "1", "8", "16"), 16, FR_INPUT, "4 and 4 dimensions"},
        {"{\"r\": 1}", PAIR(Q, "4611686018427387904", "4", "2", "1", "8", "16"), 16, FR_INPUT, ""},
        {"{\"r\": 1}",
         PAIR("base_model.model.model.layers.18446744073709551616.self_attn.q_proj", "1", "2", "2", "1", "8", "16"), 16,
         FR_INPUT, "does not have"},
        {"{\"r\": 1}", PAIR("base_model.model.model.layers.-0.self_attn.q_proj", "1", "2", "2", "1", "8", "16"), 16,
         FR_INPUT, "does not have"},
        {"{\"r\": 1}", PAIR("base_model.model.model.embed_tokens", "1", "2", "2", "1", "8", "16"), 16, FR_UNBUILT,
         "adapters can't change"},
        {"{\"r\": 1}", "{" K_PROJ("model.", "0", "240", "384") ", " K_PROJ("language_model.", "384", "624", "768") "}",
         768, FR_INPUT, "changes a matrix that another tensor changes too"},
        {"{\"r\": 1, \"alpha_pattern\": {\"a{99}\": 1}}", PAIR(Q, "1", "2", "2", "1", "8", "16"), 16, FR_UNBUILT,
         "the pattern"},
    };
    fr_options *options = settings(NULL, 1, 64);
    fr_model *model;
    fr_adapter *adapter;
    char folder[] = "/tmp/forerun-adapter-XXXXXX", path[256];
    static const float values[2 * 8193];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    require(fr_model_open(MODELS "qwen3-odd", options, &model));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_adapter(folder, bad[i].config, bad[i].tensors, bad[i].bytes, values);
        ck_assert_msg(fr_adapter_open(folder, model, &adapter) == bad[i].status, "%zu: %s", i, fr_last_error());
        ck_assert_msg(strstr(fr_last_error(), bad[i].line) != NULL, "%zu: %s", i, fr_last_error());
        ck_assert_ptr_null(adapter);
    }
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i ? "adapter_config.json" : "adapter_model.safetensors");
        unlink(path);
    }
    rmdir(folder);
    ck_assert_int_eq(fr_adapter_open("tests/data/dense/qwen3-odd.gguf", model, &adapter), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "general.type"));
    ck_assert_int_eq(fr_adapter_open(ADAPTERS "mistral-nemo/adapter.gguf", model, &adapter), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "is an adapter for llama"));
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

START_TEST(refuses_values_that_are_not_finite) {
    char tensors[512], folder[] = "/tmp/forerun-adapter-XXXXXX", path[256];
    fr_options *options = settings(NULL, 1, 64);
    fr_model *model;
    fr_adapter *adapter;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    require(fr_model_open(MODELS "llama", options, &model));
    size_t hidden = (size_t)fr_model_fact(model, FR_FACT_HIDDEN), vocab = (size_t)fr_model_fact(model, FR_FACT_VOCAB);
    float *values = calloc(hidden + vocab, sizeof *values);
    snprintf(tensors, sizeof tensors,
             "{\"lm_head.lora_A.weight\": {\"dtype\": \"F32\", \"shape\": [1, %zu], \"data_offsets\": [0, %zu]}, "
             "\"lm_head.lora_B.weight\": {\"dtype\": \"F32\", \"shape\": [%zu, 1], \"data_offsets\": [%zu, %zu]}}",
             hidden, 4 * hidden, vocab, 4 * hidden, 4 * (hidden + vocab));
    write_adapter(folder, "{\"r\": 1}", tensors, 4 * (hidden + vocab), values);
    require(fr_adapter_open(folder, model, &adapter));
    ck_assert_uint_eq(fr_adapter_rank(adapter), 1);
    ck_assert_uint_eq(fr_adapter_matrices(adapter), 1);
    fr_session *session;
    require(fr_session_open(model, NULL, options, &session));
    const fr_adapter *twice[] = {adapter, adapter};
    ck_assert_int_eq(fr_session_set_adapters(session, twice, (const double[]){1, 1}, 2), FR_USAGE);
    ck_assert_int_eq(fr_session_set_adapters(session, twice, (const double[]){(double)NAN}, 1), FR_USAGE);
    fr_session_close(session);
    fr_adapter_close(adapter);
    values[hidden + 3] = (float)INFINITY;
    write_adapter(folder, "{\"r\": 1}", tensors, 4 * (hidden + vocab), values);
    ck_assert_int_eq(fr_adapter_open(folder, model, &adapter), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "lm_head.lora_B.weight has a value that is not finite"));
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i ? "adapter_config.json" : "adapter_model.safetensors");
        unlink(path);
    }
    rmdir(folder);
    free(values);
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

FR_SUITE("adapters") {
    TCase *tests = tcase_create("adapters");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, matches_peft, 0, CASES);
    tcase_add_loop_test(tests, gives_one_answer, 0, sizeof answered / sizeof *answered);
    tcase_add_test(tests, rows_of_other_adapters_lie_side_by_side);
    tcase_add_test(tests, saved_sessions_keep_to_their_adapters);
    tcase_add_test(tests, refuses_what_does_not_fit);
    tcase_add_test(tests, refuses_values_that_are_not_finite);
    suite_add_tcase(suite, tests);
}
