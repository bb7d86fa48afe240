/* Tests ids that a model must never generate. A folder lists them in generation_config.json (suppress_tokens), and a
 * GGUF file in tokenizer.ggml.suppress_tokens.
 *
 * The expected ids follow from transformers' logits in the fixtures: if the best id is suppressed, the best of the
 * other ids must be generated. Most tests suppress every id of a reference's greedy text, so that each position of the
 * text must get another id. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_place.h"
#include "forerun_lab.h"
#include "formats/safetensors.h"
#include "kernels/dispatch.h"
#include "src/engine/session/sampler.h"
#include "tests/support/always.h"
#include "tests/support/changed_folder.h"
#include "tests/support/command.h"
#include "tests/support/gguf_copy.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define GGUF   "tests/data/gguf/e-q4_0."
#define GEMMA4 FR_TEST_MODELS "gemma4-e"

enum { COUNT = 48, PATH = 64 };

/* ----------------------------------------------------------------------------------------------------- expected ids */

/* A fixture's greedy text, and the logits from which its ids were chosen. */
typedef struct text {
    int32_t *prompt, *ids;
    size_t prompt_count, count, vocab;
    const float *logits; /* [count, vocab] */
} text;

static text text_of(const fr_reference *r, const json_t *item) {
    text t;
    size_t floats, prompt = (size_t)json_integer_value(json_object_get(item, "prompt"));
    t.prompt = fr_json_ids_of(json_array_get(json_object_get(r->info, "prompts"), prompt), &t.prompt_count);
    t.ids = fr_json_ids_of(json_object_get(item, "tokens"), &t.count);
    t.vocab = (size_t)fr_model_fact(r->model, FR_FACT_VOCAB);
    t.logits = fr_reference_floats(r, &floats, "greedy.%zu.logits", prompt);
    ck_assert_uint_eq(floats, t.count * t.vocab);
    return t;
}

static text first_text(const fr_reference *r) {
    return text_of(r, json_array_get(json_object_get(r->info, "greedy"), 0));
}

static void free_text(text *t) {
    free(t->prompt);
    free(t->ids);
}

static bool is_in(const int32_t *ids, size_t count, int32_t id) {
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id) return true;
    return false;
}

/* Returns the id with the largest logit among the ids outside `out`. Sets *margin to the difference between this logit
 * and the next largest. */
static int32_t best_of_others(const float *row, size_t vocab, const int32_t *out, size_t count, float *margin) {
    int32_t best = -1;
    float next = -INFINITY;
    for (size_t id = 0; id < vocab; id++) {
        if (is_in(out, count, (int32_t)id)) continue;
        if (best < 0 || row[id] > row[best]) {
            next = best < 0 ? next : row[best];
            best = (int32_t)id;
        } else if (row[id] > next) {
            next = row[id];
        }
    }
    *margin = row[best] - next;
    return best;
}

/* ------------------------------------------------------------------------------------------------------- the models */

/* A copy of a fixture in a folder whose generation_config.json suppresses ids. */
typedef struct subject {
    fr_changed_folder folder;
    fr_reference reference; /* the fixture as published, without suppressed ids */
    fr_model *model;
    fr_drafter *drafter; /* NULL if the fixture has no drafter */
    fr_options *options;
} subject;

static void list_ids(char *list, size_t size, const int32_t *ids, size_t count) {
    size_t at = 0;
    list[0] = '\0';
    for (size_t i = 0; i < count; i++) at += (size_t)snprintf(list + at, size - at, i ? ", %d" : "%d", ids[i]);
}

static void keep_out(const fr_changed_folder *folder, const int32_t *ids, size_t count) {
    char list[1024], config[1280];
    list_ids(list, sizeof list, ids, count);
    snprintf(config, sizeof config, "{\"eos_token_id\": 1, \"suppress_tokens\": [%s]}", list);
    fr_changed_folder_write(folder, "generation_config.json", config);
}

/* Opens a fixture in which all ids of its first greedy text are suppressed. */
static void open_subject(subject *s, const char *name) {
    char path[320];
    *s = (subject){.options = fr_options_new()};
    require(fr_options_set(s->options, FR_OPT_CONTEXT, 256));
    require(fr_options_set(s->options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(s->options, FR_OPT_DRAFT_MAX, 3)); /* a fixed number, since "auto" depends on the clock */
    fr_reference_open(&s->reference, name, s->options);
    text t = first_text(&s->reference);
    snprintf(path, sizeof path, FR_TEST_MODELS "%s", name);
    fr_changed_folder_make(&s->folder, path, "{}");
    keep_out(&s->folder, t.ids, t.count);
    free_text(&t);
    require(fr_model_open(s->folder.path, s->options, &s->model));
    snprintf(path, sizeof path, "%s/assistant", s->folder.path);
    bool own = fr_model_fact(s->model, FR_FACT_MTP_LAYERS) > 0;
    if (own || fr_file_exists(path)) require(fr_drafter_open(own ? NULL : path, s->model, s->options, &s->drafter));
}

static void close_subject(subject *s) {
    fr_drafter_close(s->drafter);
    fr_model_close(s->model);
    fr_reference_close(&s->reference);
    fr_options_free(s->options);
    fr_changed_folder_remove(&s->folder);
}

static fr_session *open_session(const subject *s, bool draft) {
    fr_session *session;
    require(fr_session_open(s->model, draft ? s->drafter : NULL, s->options, &session));
    return session;
}

static void generate(fr_session *session, int32_t *ids, size_t count) {
    for (size_t made = 0, got, accepted; made < count; made += got) {
        require(fr_session_step(session, ids + made, count - made, &got, &accepted));
        ck_assert_uint_gt(got, 0);
    }
}

/* ------------------------------------------------------------------------------------------------------------ texts */

static const char *const fixtures[] = {"gemma4-e",   "gemma4-e-odd",    "gemma4-moe",
                                       "qwen35-odd", "deepseek-v3-odd", "llama"};
enum { FIXTURES = sizeof fixtures / sizeof *fixtures };

/* Checks which id follows the prompt, and which id follows the prompt with each beginning of its greedy text. */
START_TEST(the_best_of_the_others_comes) {
    subject s;
    int32_t id;
    size_t got, accepted, checked = 0;
    open_subject(&s, fixtures[_i]);
    text t = first_text(&s.reference);
    int32_t *ids = malloc((t.prompt_count + t.count) * sizeof *ids);
    memcpy(ids, t.prompt, t.prompt_count * sizeof *ids);
    memcpy(ids + t.prompt_count, t.ids, t.count * sizeof *ids);
    fr_session *session = open_session(&s, false);
    for (size_t i = 0; i < t.count; i++) {
        float margin;
        int32_t expected = best_of_others(t.logits + i * t.vocab, t.vocab, t.ids, t.count, &margin);
        if (margin < 2e-3f) continue;
        require(fr_session_set_prompt(session, ids, t.prompt_count + i));
        require(fr_session_step(session, &id, 1, &got, &accepted));
        ck_assert_msg(id == expected, "%s: position %zu: %d, not %d", fixtures[_i], i, id, expected);
        checked++;
    }
    ck_assert_uint_gt(checked, 40);
    fr_session_close(session);
    free(ids);
    free_text(&t);
    close_subject(&s);
}
END_TEST

/* Generates a text without drafts. If there is a drafter, also generates the text with drafts, which must be the
 * same. */
static void compare_texts(const subject *s, int32_t *plain) {
    text t = first_text(&s->reference);
    int32_t drafted[COUNT];
    for (int draft = 0; draft <= (s->drafter != NULL); draft++) {
        fr_session *session = open_session(s, draft);
        require(fr_session_prompt(session, t.prompt, t.prompt_count));
        generate(session, draft ? drafted : plain, COUNT);
        ck_assert(!draft || fr_session_stat(session, FR_STAT_DRAFTED) > 0);
        fr_session_close(session);
    }
    if (s->drafter) ck_assert_mem_eq(drafted, plain, sizeof drafted);
    for (size_t i = 0; i < COUNT; i++) ck_assert(!is_in(t.ids, t.count, plain[i]));
    free_text(&t);
}

START_TEST(one_text_with_and_without_drafts) {
    subject s;
    int32_t ids[COUNT];
    open_subject(&s, fixtures[_i]);
    compare_texts(&s, ids);
    close_subject(&s);
}
END_TEST

/* Compares sampled texts. At this temperature the model would often sample the suppressed ids if they were not
 * suppressed. */
START_TEST(sampled_texts_are_one_too) {
    subject s;
    int32_t ids[COUNT];
    open_subject(&s, fixtures[_i]);
    require(fr_options_set_number(s.options, FR_OPT_TEMPERATURE, 0.8));
    for (int seed = 0; seed < 4; seed++) {
        require(fr_options_set(s.options, FR_OPT_SEED, seed));
        compare_texts(&s, ids);
    }
    close_subject(&s);
}
END_TEST

/* The scripted drafts are the ids that the model would generate without suppression. None of them may be accepted,
 * greedy or sampled. */
START_TEST(drafts_of_such_ids_do_not_stand) {
    subject s;
    int32_t ids[COUNT], script[256];
    open_subject(&s, "gemma4-e");
    text t = first_text(&s.reference);
    memcpy(script, t.prompt, t.prompt_count * sizeof *script);
    memcpy(script + t.prompt_count, t.ids, t.count * sizeof *script);
    require(fr_options_set_number(s.options, FR_OPT_TEMPERATURE, _i ? 0.8 : 0));
    if (_i == 2) require(fr_options_set_text(s.options, FR_OPT_ACCEPT, "rejection"));
    fr_session *session = open_session(&s, false);
    require(fr_lab_session_script(session, script, t.prompt_count + t.count, fr_test_always, NULL));
    require(fr_session_prompt(session, t.prompt, t.prompt_count));
    generate(session, ids, COUNT);
    ck_assert(fr_session_stat(session, FR_STAT_DRAFTED) > 20);
    ck_assert(fr_session_stat(session, FR_STAT_ACCEPTED) == 0);
    for (size_t i = 0; i < COUNT; i++) ck_assert(!is_in(t.ids, t.count, ids[i]));
    fr_session_close(session);
    free_text(&t);
    close_subject(&s);
}
END_TEST

/* Rejection sampling compares the drafter's distribution with the target's. Its text may differ from the text of other
 * ways of sampling, but it must not contain a suppressed id. */
START_TEST(rejection_never_gives_them) {
    subject s;
    int32_t ids[COUNT];
    open_subject(&s, fixtures[_i]);
    text t = first_text(&s.reference);
    require(fr_options_set_number(s.options, FR_OPT_TEMPERATURE, 0.8));
    require(fr_options_set_text(s.options, FR_OPT_ACCEPT, "rejection"));
    for (int seed = 0; s.drafter && seed < 4; seed++) {
        require(fr_options_set(s.options, FR_OPT_SEED, seed));
        fr_session *session = open_session(&s, true);
        require(fr_session_prompt(session, t.prompt, t.prompt_count));
        generate(session, ids, COUNT);
        for (size_t i = 0; i < COUNT; i++) ck_assert(!is_in(t.ids, t.count, ids[i]));
        fr_session_close(session);
    }
    free_text(&t);
    close_subject(&s);
}
END_TEST

/* Two sessions of one engine run together. Neither may generate a suppressed id. */
START_TEST(sessions_of_an_engine_say_the_same) {
    subject s;
    fr_engine *engine;
    int32_t alone[COUNT], ids[2][FR_STEP_MAX];
    fr_round rounds[2] = {{.ids = ids[0]}, {.ids = ids[1]}};
    size_t made[2] = {0};
    open_subject(&s, "gemma4-e");
    compare_texts(&s, alone);
    text t = first_text(&s.reference);
    require(fr_engine_open(s.model, s.drafter, s.options, 2, &engine));
    for (size_t i = 0; i < 2; i++) {
        require(fr_engine_session(engine, s.options, &rounds[i].session));
        require(fr_session_put(rounds[i].session, t.prompt, t.prompt_count));
    }
    while (made[0] < COUNT || made[1] < COUNT) {
        for (size_t i = 0; i < 2; i++) rounds[i].limit = made[i] < COUNT ? FR_STEP_MAX : 1;
        require(fr_engine_step(engine, rounds, 2));
        for (size_t i = 0; i < 2; made[i] += rounds[i].count, i++) {
            require(rounds[i].status);
            for (size_t n = 0; n < rounds[i].count && made[i] + n < COUNT; n++)
                ck_assert_int_eq(ids[i][n], alone[made[i] + n]);
        }
    }
    for (size_t i = 0; i < 2; i++) fr_session_close(rounds[i].session);
    fr_engine_close(engine);
    free_text(&t);
    close_subject(&s);
}
END_TEST

/* The logits that the library gives to callers are the model's own, without suppression. Log-probabilities are computed
 * from these logits. */
START_TEST(logits_stay_as_they_are) {
    subject s;
    open_subject(&s, "gemma4-e");
    text t = first_text(&s.reference);
    fr_rows got[2];
    for (int i = 0; i < 2; i++) {
        fr_session *session;
        got[i] = (fr_rows){.values = malloc(t.vocab * sizeof(float)), .capacity = t.vocab};
        require(fr_session_open(i ? s.model : s.reference.model, NULL, s.options, &session));
        require(fr_session_logits(session, t.prompt, t.prompt_count, t.prompt_count - 1, fr_rows_collect, &got[i]));
        fr_session_close(session);
    }
    fr_rows_expect_same(&got[1], &got[0]);
    free(got[0].values);
    free(got[1].values);
    free_text(&t);
    close_subject(&s);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------- GGUF */

static const int32_t *listed;
static size_t listed_count;

/* Copies the file's tensors and adds a key that suppresses ids. */
static void copy_with_list(const fr_tensors *all, fr_gguf_writer *w, bool data) {
    if (!data) fr_gguf_put_array(w, "tokenizer.ggml.suppress_tokens", FR_GGUF_I32, listed_count);
    for (size_t i = 0; !data && i < listed_count; i++) fr_gguf_add_u32(w, (uint32_t)listed[i]);
    for (size_t i = 0; i < all->count; i++) {
        const fr_tensor *t = &all->items[i];
        if (data)
            require(fr_gguf_write_data(w, t->data, t->bytes));
        else
            fr_gguf_put_tensor(w, t->name, t->type, t->packed, t->dims, t->shape);
    }
}

static void make_file(char *path, const int32_t *ids, size_t count) {
    snprintf(path, PATH, "/tmp/forerun-suppressed-XXXXXX");
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    listed = ids;
    listed_count = count;
    fr_gguf_copy(GGUF "gguf", path, copy_with_list);
}

/* Returns the greedy text of a quantized file. transformers computed it with the file's weights decoded to floats. The
 * engine also quantizes activations. So an id is compared only if its logit exceeds the next largest by 5% of the range
 * of all logits. */
static text text_of_file(const fr_reference *r, fr_map *map, fr_tensors *tensors) {
    json_t *info;
    fr_tensors unread = {0};
    require(fr_json_read(GGUF "reference.json", 1 << 20, &info));
    const json_t *item = json_array_get(json_object_get(info, "greedy"), 0);
    require(fr_map_open(map, GGUF "reference.safetensors", true));
    require(fr_safetensors_read(map, 0, tensors, &unread));
    fr_tensors_free(&unread);
    text t = first_text(r);
    free(t.ids);
    t.ids = fr_json_ids_of(json_object_get(item, "tokens"), &t.count);
    t.logits = fr_tensors_find(tensors, "greedy.2.logits")->data;
    json_decref(info);
    return t;
}

static float spread_of(const float *row, size_t vocab) {
    float least = row[0], most = row[0];
    for (size_t i = 1; i < vocab; i++) {
        least = fminf(least, row[i]);
        most = fmaxf(most, row[i]);
    }
    return most - least;
}

START_TEST(a_file_says_it_by_its_key) {
    char path[PATH];
    fr_reference r;
    fr_map map;
    fr_tensors tensors = {0};
    fr_model *model;
    fr_session *session;
    int32_t id, ids[128];
    size_t got, accepted, checked = 0;
    fr_reference_open(&r, "gemma4-e", NULL);
    text t = text_of_file(&r, &map, &tensors);
    make_file(path, t.ids, t.count);
    require(fr_model_open(path, NULL, &model));
    require(fr_session_open(model, NULL, NULL, &session));
    memcpy(ids, t.prompt, t.prompt_count * sizeof *ids);
    memcpy(ids + t.prompt_count, t.ids, t.count * sizeof *ids);
    for (size_t i = 0; i < t.count; i++) {
        float margin;
        const float *row = t.logits + i * t.vocab;
        int32_t expected = best_of_others(row, t.vocab, t.ids, t.count, &margin);
        require(fr_session_set_prompt(session, ids, t.prompt_count + i));
        require(fr_session_step(session, &id, 1, &got, &accepted));
        ck_assert(!is_in(t.ids, t.count, id));
        if (margin < 0.05F * spread_of(row, t.vocab)) continue;
        ck_assert_int_eq(id, expected);
        checked++;
    }
    ck_assert_uint_ge(checked, 8);
    fr_session_close(session);
    fr_model_close(model);
    unlink(path);
    free_text(&t);
    fr_tensors_free(&tensors);
    fr_map_close(&map);
    fr_reference_close(&r);
}
END_TEST

/* Checks which suppressed ids `forerun inspect` prints. */
static void expect_listed(const char *model, const int32_t *ids, size_t count) {
    fr_command json = fr_command_ok("inspect -m %s -o json", model), words = fr_command_ok("inspect -m %s", model);
    json_t *object = json_loads(json.out, 0, NULL);
    size_t found_count;
    char list[1024], line[1100];
    int32_t *found = fr_json_ids_of(fr_json_get(object, "suppressed"), &found_count);
    ck_assert_uint_eq(found_count, count);
    ck_assert_mem_eq(found, ids, count * sizeof *ids);
    list_ids(list, sizeof list, ids, count);
    for (char *comma; (comma = strchr(list, ','));) memmove(comma, comma + 1, strlen(comma));
    snprintf(line, sizeof line, "\nnever said     ids %s\n", list);
    ck_assert_msg((strstr(words.out, line) != NULL) == (count > 0), "%s", words.out);
    free(found);
    json_decref(object);
    fr_command_free(&json);
    fr_command_free(&words);
}

/* When a folder is converted to a file, the file must have the folder's suppressed ids. When this file is converted to
 * another file, that file must have them too. */
START_TEST(conversions_keep_the_list) {
    static const int32_t ids[] = {361, 7, 511};
    char file[3][80];
    fr_changed_folder folder;
    fr_changed_folder_make(&folder, GEMMA4, "{}");
    keep_out(&folder, ids, 3);
    for (int i = 0; i < 3; i++) snprintf(file[i], sizeof file[i], "%s-%d.gguf", folder.path, i);
    fr_command made = fr_command_ok("quantize -m %s --type bf16 -o %s", folder.path, file[0]);
    fr_command again = fr_command_ok("quantize -m %s --type q8_0 -o %s", file[0], file[1]);
    fr_command packed = fr_command_ok("pack -m %s -o %s", file[1], file[2]);
    expect_listed(folder.path, ids, 3);
    expect_listed(GEMMA4, NULL, 0);
    for (int i = 0; i < 3; i++) {
        fr_checkpoint files;
        const fr_gguf_value *list;
        require(fr_checkpoint_open(&files, file[i], true));
        require(fr_gguf_array(files.gguf, "tokenizer.ggml.suppress_tokens", FR_GGUF_I32, &list));
        ck_assert_ptr_nonnull(list);
        fr_checkpoint_close(&files);
        expect_listed(file[i], ids, 3);
        unlink(file[i]);
    }
    fr_command_free(&made);
    fr_command_free(&again);
    fr_command_free(&packed);
    fr_changed_folder_remove(&folder);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ lists */

static const struct {
    const char *list;  /* suppress_tokens in generation_config.json */
    const char *words; /* a part of the error line, or NULL if the list is accepted */
    size_t count;      /* number of ids that the library reads from the list */
} lists[] = {
    {"null", NULL, 0},
    {"[]", NULL, 0},
    {"[5, 6.0, 5]", NULL, 3},
    {"[511, 512, -1, 258883, 9000000000000000000]", NULL, 1}, /* the vocabulary has 512 ids, so only 511 is kept */
    {"5", "\"suppress_tokens\" is not an array of ids", 0},
    {"{\"5\": 6}", "is not an array of ids", 0},
    {"\"5\"", "is not an array of ids", 0},
    {"[5, \"6\"]", "\"suppress_tokens\" holds something that is no id", 0},
    {"[5, null]", "holds something that is no id", 0},
    {"[true]", "holds something that is no id", 0},
    {"[0.5]", "holds something that is no id", 0},
    {"[1e300]", "holds something that is no id", 0},
    {"[[5]]", "holds something that is no id", 0},
};
enum { LISTS = sizeof lists / sizeof *lists };

static void expect_refusal(const char *path, const char *words) {
    fr_model *model;
    ck_assert_int_eq(fr_model_open(path, NULL, &model), FR_INPUT);
    ck_assert_msg(strstr(fr_last_error(), words) != NULL, "\"%s\" is not in \"%s\"", words, fr_last_error());
}

START_TEST(a_list_is_read_or_refused) {
    fr_changed_folder folder;
    fr_model *model;
    const int32_t *ids;
    char config[128];
    fr_changed_folder_make(&folder, GEMMA4, "{}");
    snprintf(config, sizeof config, "{\"suppress_tokens\": %s}", lists[_i].list);
    fr_changed_folder_write(&folder, "generation_config.json", config);
    if (lists[_i].words) {
        expect_refusal(folder.path, lists[_i].words);
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "generation_config.json"));
    } else {
        require(fr_model_open(folder.path, NULL, &model));
        ck_assert_uint_eq(fr_model_suppressed(model, &ids), lists[_i].count);
        for (size_t i = 0; i < lists[_i].count; i++) ck_assert(ids[i] >= 0 && ids[i] < 512);
        fr_model_close(model);
    }
    fr_changed_folder_remove(&folder);
}
END_TEST

enum { MOST = 4096, VOCAB = 512 };

/* Returns the ids 0 to count - 1. `count` may be greater than the number of ids in the vocabulary. */
static int32_t *count_up(size_t count) {
    int32_t *ids = malloc(count * sizeof *ids);
    for (size_t i = 0; i < count; i++) ids[i] = (int32_t)i;
    return ids;
}

START_TEST(a_list_has_a_limit) {
    fr_model *model;
    fr_changed_folder folder;
    int32_t *ids = count_up(MOST + 1);
    const int32_t *read;
    char config[2 * MOST + 64], path[PATH];
    fr_changed_folder_make(&folder, GEMMA4, "{}");
    size_t end = (size_t)snprintf(config, sizeof config, "{\"suppress_tokens\": [0");
    for (size_t i = 0; i < MOST; i++) end += (size_t)snprintf(config + end, sizeof config - end, ",7");
    snprintf(config + end, sizeof config - end, "]}");
    fr_changed_folder_write(&folder, "generation_config.json", config);
    expect_refusal(folder.path, "\"suppress_tokens\" has 4097 ids, and at most 4096 are read");
    make_file(path, ids, MOST + 1);
    expect_refusal(path, "key tokenizer.ggml.suppress_tokens has 4097 ids, and at most 4096 are read");
    unlink(path);
    make_file(path, ids, MOST);
    require(fr_model_open(path, NULL, &model));
    ck_assert_uint_eq(fr_model_suppressed(model, &read), VOCAB);
    fr_model_close(model);
    unlink(path);
    free(ids);
    fr_changed_folder_remove(&folder);
}
END_TEST

/* Replaces the element type of the file's list by another type of the same size. */
START_TEST(a_file_whose_list_is_of_another_type_is_refused) {
    static const char key[] = "tokenizer.ggml.suppress_tokens";
    static const uint32_t types[] = {FR_GGUF_F32, FR_GGUF_U32};
    char path[PATH];
    make_file(path, (int32_t[]){5, 6}, 2);
    FILE *file = fopen(path, "r+b");
    char *bytes = malloc(1 << 20);
    size_t size = fread(bytes, 1, 1 << 20, file);
    char *found = memmem(bytes, size, key, strlen(key));
    ck_assert_ptr_nonnull(found);
    ck_assert_int_eq(fseek(file, found - bytes + (long)strlen(key) + 4, SEEK_SET), 0);
    ck_assert_uint_eq(fwrite(&types[_i], 4, 1, file), 1);
    ck_assert_int_eq(fclose(file), 0);
    expect_refusal(path, "suppress_tokens is an array of");
    unlink(path);
    free(bytes);
}
END_TEST

/* If all ids are suppressed, nothing can be generated, and the step must fail with one line. */
START_TEST(a_list_of_all_ids_leaves_no_token) {
    fr_model *model;
    fr_session *session;
    fr_options *options = fr_options_new();
    char path[PATH];
    int32_t *ids = count_up(VOCAB);
    make_file(path, ids, VOCAB);
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, _i));
    require(fr_model_open(path, options, &model));
    require(fr_session_open(model, NULL, options, &session));
    ck_assert_int_eq(fr_session_prompt(session, (int32_t[]){2, 100}, 2), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "no token is left at position 2"));
    fr_session_close(session);
    fr_model_close(model);
    fr_options_free(options);
    unlink(path);
    free(ids);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------- sampler */

enum { ROWS = 200, IDS = 40, OUT = 9 };

typedef struct drawer {
    fr_sampler sampler;
    fr_arena arena;
} drawer;

static void open_drawer(drawer *d, const fr_options *options, const int32_t *out, size_t count) {
    const fr_kernels *kernels;
    fr_options resolved = fr_options_resolve(options);
    require(fr_kernels_select(NULL, &kernels));
    require(fr_sampler_set(&d->sampler, &resolved, kernels, IDS));
    fr_sampler_suppress(&d->sampler, out, count);
    d->arena = (fr_arena){0};
    fr_sampler_layout(&d->sampler, &d->arena, FR_STEP_MAX - 1);
    require(fr_arena_open(&d->arena, d->arena.used, "sampler"));
    fr_sampler_layout(&d->sampler, &d->arena, FR_STEP_MAX - 1);
}

/* Returns options of one kind. Kinds 0 to 3 are greedy, temperature 1, temperature 1 with filters, and rejection
 * sampling. Kinds 4 to 7 are these four with a repeat penalty. */
static fr_options *options_of(int kind) {
    fr_options *options = fr_options_new();
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, kind % 4 ? 1 : 0));
    require(fr_options_set(options, FR_OPT_TOP_K, kind % 4 == 2 ? 12 : 0));
    require(fr_options_set_number(options, FR_OPT_TOP_P, kind % 4 == 2 ? 0.7 : 1));
    if (kind % 4 == 3) require(fr_options_set_text(options, FR_OPT_ACCEPT, "rejection"));
    if (kind >= 4) require(fr_options_set_number(options, FR_OPT_REPEAT_PENALTY, 1.3));
    return options;
}

/* Fills a row with few different values, so that a suppressed id often has the same logit as the best of the remaining
 * ids. */
static void make_row(float *row, size_t n, uint32_t *state) {
    static const float values[] = {-2.5F, -1, -0.0F, 0, 0.75F, 2};
    for (size_t i = 0; i < n; i++) {
        *state = *state * 1664525U + 1013904223U;
        row[i] = values[(*state >> 16) % (sizeof values / sizeof *values)];
    }
}

/* Suppressing ids must give the same samples as a bias of minus infinity for these ids, which test_sampling.c compares
 * with numpy. The logits are those of all ids, or of the ids that a drafter scores. If the caller gives a suppressed id
 * a positive bias, it must still not be generated. */
START_TEST(draws_are_those_with_the_ids_banned) {
    static const int32_t out[OUT] = {0, 1, 7, 8, 20, 21, 33, 38, 39}, ids[] = {8, 39, 3, 21, 30, 20, 11, 0, 5};
    static const char bans[] = "0-inf,1-inf,7-inf,8-inf,20-inf,21-inf,33-inf,38-inf,39-inf";
    float row[IDS];
    uint32_t state = 1;
    fr_options *plain = options_of(_i), *banned = options_of(_i);
    drawer a, b;
    if (_i >= 4) require(fr_options_set_text(plain, FR_OPT_LOGIT_BIAS, "7+50,39+50,38+0"));
    require(fr_options_set_text(banned, FR_OPT_LOGIT_BIAS, bans));
    open_drawer(&a, plain, out, OUT);
    open_drawer(&b, banned, NULL, 0);
    for (size_t i = 0; i < 2 * ROWS; i++) {
        const fr_scores scores = {.logits = row, .ids = i % 2 ? ids : NULL, .count = i % 2 ? OUT : IDS};
        const fr_past past = {.ids = (int32_t[]){3, 5, 9}, .length = 3, .drafts = ids, .drafted = i % 5};
        make_row(row, scores.count, &state);
        int32_t id = fr_sampler_draw(&a.sampler, &scores, &past);
        ck_assert_int_eq(id, fr_sampler_draw(&b.sampler, &scores, &past));
        ck_assert(id >= 0 && !is_in(out, OUT, id));
    }
    fr_arena_close(&a.arena);
    fr_arena_close(&b.arena);
    fr_options_free(plain);
    fr_options_free(banned);
}
END_TEST

/* The probabilities of the remaining ids are the softmax over these ids alone. A draft of a suppressed id must have
 * probability 0, even if the drafter or the raw logits give it a high probability. */
START_TEST(probabilities_are_of_what_is_left) {
    static const int32_t out[] = {4, 11};
    float rows[2][IDS];
    uint32_t state = 5;
    double sum = 0, got[IDS] = {0};
    fr_options *options = options_of(3);
    drawer d;
    make_row(rows[0], IDS, &state);
    make_row(rows[1], IDS, &state);
    rows[0][4] = 30;
    open_drawer(&d, options, out, 2);
    const fr_scores scores = {.logits = rows[0], .count = IDS};
    fr_past past = {.ids = (int32_t[]){3}, .length = 1, .drafts = (int32_t[]){4}};
    fr_distribution p = fr_sampler_distribution(&d.sampler, &scores, &past);
    for (size_t i = 0; i < IDS; i++) sum += is_in(out, 2, (int32_t)i) ? 0 : exp((double)rows[0][i]);
    for (size_t i = 0; i < p.count; i++) got[p.ids ? p.ids[i] : (int32_t)i] = p.weight[i] / p.total;
    for (size_t i = 0; i < IDS; i++) {
        double expected = is_in(out, 2, (int32_t)i) ? 0 : exp((double)rows[0][i]) / sum;
        ck_assert_double_le(fabs(got[i] - expected), 1e-6);
    }
    past.drafted = 1;
    for (size_t at = 0; at < 2000; at++) {
        int32_t id, ids[2000] = {0};
        past.ids = ids;
        past.length = at;
        ck_assert_uint_eq(fr_sampler_verify(&d.sampler, rows[0], NULL, &past, &id), 0);
        ck_assert(id >= 0 && !is_in(out, 2, id));
    }
    fr_arena_close(&d.arena);
    fr_options_free(options);
}
END_TEST

FR_SUITE("suppressed") {
    TCase *texts = tcase_create("texts"), *lists_read = tcase_create("lists"), *draws = tcase_create("draws");
    tcase_set_timeout(texts, 120);
    tcase_add_loop_test(texts, the_best_of_the_others_comes, 0, FIXTURES);
    tcase_add_loop_test(texts, one_text_with_and_without_drafts, 0, FIXTURES);
    tcase_add_loop_test(texts, sampled_texts_are_one_too, 0, FIXTURES);
    tcase_add_loop_test(texts, drafts_of_such_ids_do_not_stand, 0, 3);
    tcase_add_loop_test(texts, rejection_never_gives_them, 0, FIXTURES);
    tcase_add_test(texts, sessions_of_an_engine_say_the_same);
    tcase_add_test(texts, logits_stay_as_they_are);
    tcase_add_test(texts, a_file_says_it_by_its_key);
    tcase_add_test(lists_read, conversions_keep_the_list);
    tcase_add_loop_test(lists_read, a_list_is_read_or_refused, 0, LISTS);
    tcase_add_test(lists_read, a_list_has_a_limit);
    tcase_add_loop_test(lists_read, a_file_whose_list_is_of_another_type_is_refused, 0, 2);
    tcase_add_loop_test(lists_read, a_list_of_all_ids_leaves_no_token, 0, 2);
    tcase_add_loop_test(draws, draws_are_those_with_the_ids_banned, 0, 8);
    tcase_add_test(draws, probabilities_are_of_what_is_left);
    suite_add_tcase(suite, texts);
    suite_add_tcase(suite, lists_read);
    suite_add_tcase(suite, draws);
}
