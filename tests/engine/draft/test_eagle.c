/* Tests EAGLE drafters in every published form of their configuration. The logits of each draft step, the drafts and
 * the accepted lengths are compared with a reference. Every way of drafting must give the same answer. Drafters that
 * don't fit their target or are damaged are refused.
 *
 * Most expected values are in drafts.json and drafts.safetensors of tests/data/llama. They were computed in torch, with
 * the target's states from transformers' Llama (tests/data/models/llama). eagle3.gguf is llama.cpp's conversion of the
 * folder eagle3. The values of eagle3-odd, eagle3-qwen and eagle-odd are made by tests/references/eagle.py, and those
 * of drafters with several layers by eagle_layers.py. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "formats/safetensors.h"
#include "tests/support/brief.h"
#include "tests/support/parts.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define LLAMA "tests/data/llama/"
#define BOUND 5e-5 /* the largest allowed difference, as a share of the row's largest logit */

enum { DEPTH = 4, IDS = 48, VOCAB = 512 };

static char folder[64], path[128];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "%s/forerun-eagle-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static const char *in_folder(const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void remove_folder(void) {
    unlink(in_folder("config.json"));
    unlink(in_folder("model.safetensors"));
    unlink(in_folder("drafter.gguf"));
    unlink(in_folder("target.gguf"));
    ck_assert_int_eq(rmdir(folder), 0);
}

/* ------------------------------------------------------------------------------------------------- changed drafters */

/* Replaces members of `config` by the members of `changes`. A null in `changes` removes the member. */
static void change(json_t *config, const char *changes) {
    json_t *all = json_loads(changes, 0, NULL), *value;
    const char *key;
    void *next;
    ck_assert_msg(all != NULL, "%s", changes);
    json_object_foreach_safe(all, next, key, value) {
        if (json_is_null(value))
            json_object_del(config, key);
        else
            json_object_set(config, key, value);
    }
    json_decref(all);
}

static void replace(char *bytes, size_t size, const char *from, const char *to) {
    size_t length = strlen(from);
    ck_assert_uint_eq(length, strlen(to));
    for (size_t i = 0; i + length <= size; i++)
        if (memcmp(bytes + i, from, length) == 0) memcpy(bytes + i, to, length);
}

/* A change of one value in the tensor d2t, the map from draft ids to target ids. d2t is the first tensor in the
 * file. */
typedef struct damage {
    size_t index;
    int64_t value;
} damage;

/* Writes a drafter's folder with another config.json, other tensor names and another value of d2t. `names` lists pairs
 * of an old and a new name; if it is NULL, no name changes. If `d2t` is NULL, no value changes. */
static const char *write_folder(const char *from, json_t *config, const char *const *names, const damage *d2t) {
    char whole[256];
    fr_map map;
    snprintf(whole, sizeof whole, LLAMA "%s/model.safetensors", from);
    require(fr_map_open(&map, whole, true));
    uint8_t *bytes = malloc(map.size);
    memcpy(bytes, map.bytes, map.size);
    fr_tensors tensors = {0}, unread = {0};
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    const fr_tensor *tensor = fr_tensors_find(&tensors, "d2t");
    if (d2t)
        memcpy(bytes + ((const uint8_t *)tensor->data - map.bytes) + 8 * d2t->index, &d2t->value, sizeof d2t->value);
    uint64_t header;
    memcpy(&header, bytes, sizeof header);
    for (; names && names[0]; names += 2) replace((char *)bytes + 8, header, names[0], names[1]);
    FILE *out = fopen(in_folder("model.safetensors"), "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, map.size, out), map.size);
    fclose(out);
    ck_assert_int_eq(json_dump_file(config, in_folder("config.json"), 0), 0);
    free(bytes);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
    json_decref(config);
    return folder;
}

static json_t *config_of(const char *drafter) {
    char name[128];
    snprintf(name, sizeof name, LLAMA "%s/config.json", drafter);
    return fr_load_json(name);
}

/* Writes the drafter in the form that the speculators library publishes: an inner object has the keys of the layer. */
static const char *write_speculator(void) {
    static const char *const names[] = {"midlayer.", "layers.0.", NULL};
    static const char top[] =
        "{\"architectures\": [\"Eagle3Speculator\"], \"draft_vocab_size\": 256, \"target_hidden_size\": null, "
        "\"norm_before_residual\": false, \"eagle_aux_hidden_state_layer_ids\": [2, 3, 4], \"speculators_config\": "
        "{\"verifier\": {\"architectures\": [\"LlamaForCausalLM\"]}}}";
    json_t *config = json_loads(top, 0, NULL), *layer = config_of("eagle3");
    json_object_del(layer, "architectures");
    json_object_set_new(config, "transformer_layer_config", layer);
    return write_folder("eagle3", config, names, NULL);
}

/* Writes the drafter in the form of EAGLE's authors (Li et al.). There "architectures" names the target's class. */
static const char *write_plain(void) {
    json_t *config = config_of("eagle3");
    change(config, "{\"architectures\": [\"LlamaForCausalLM\"]}");
    return write_folder("eagle3", config, NULL, NULL);
}

/* Writes the drafter in the form that SpecForge publishes. The number k in this form's configuration means the output
 * of the target's layer k, counted from 0. */
static const char *write_nested(void) {
    json_t *config = config_of("eagle3");
    change(config, "{\"architectures\": [\"LlamaForCausalLMEagle3\"], \"eagle_config\": "
                   "{\"eagle_aux_hidden_state_layer_ids\": [1, 2, 3], \"norm_before_fc\": false}}");
    return write_folder("eagle3", config, NULL, NULL);
}

/* Writes the GGUF file that `forerun quantize` makes from the folder. */
static const char *write_file(void) {
    const fr_lab_quantization how = {.type = "f32", .drafter = LLAMA "eagle3"};
    FILE *out = fopen(in_folder("drafter.gguf"), "wb");
    require(fr_lab_quantize(FR_TEST_MODELS "llama", &how, NULL, out));
    ck_assert_int_eq(fclose(out), 0);
    return in_folder("drafter.gguf");
}

static const char *as_it_is(const char *name) {
    static char whole[128];
    snprintf(whole, sizeof whole, LLAMA "%s", name);
    return whole;
}

static const char *eagle3(void) {
    return as_it_is("eagle3");
}
static const char *eagle3_file(void) {
    return as_it_is("eagle3.gguf");
}
static const char *eagle1(void) {
    return as_it_is("eagle");
}
static const char *layers(void) {
    return as_it_is("eagle3-layers");
}
static const char *layers_qwen(void) {
    return as_it_is("eagle3-layers-qwen");
}

/* Writes the drafter in the form of several layers that vLLM also accepts. Here the first layer's tensors are named as
 * if it were the only layer. */
static const char *write_layers(void) {
    static const char *const names[] = {"layers.0.", "midlayer.", NULL};
    return write_folder("eagle3-layers", config_of("eagle3-layers"), names, NULL);
}

static const struct {
    const char *(*write)(void);
    const char *folder, *reference; /* drafts.json of `folder` has the expected drafts under the key `reference` */
    const char *ids;                /* the folder with the ids of the draft vocabulary, or NULL if there is none */
} drafters[] = {{eagle3, LLAMA, "eagle3_draft", LLAMA "eagle3"},
                {eagle3_file, LLAMA, "eagle3_draft", LLAMA "eagle3"},
                {write_speculator, LLAMA, "eagle3_draft", LLAMA "eagle3"},
                {write_plain, LLAMA, "eagle3_draft", LLAMA "eagle3"},
                {write_nested, LLAMA, "eagle3_draft", LLAMA "eagle3"},
                {write_file, LLAMA, "eagle3_draft", LLAMA "eagle3"},
                {layers, LLAMA "eagle3-layers/", "eagle3_draft", LLAMA "eagle3-layers"},
                {layers_qwen, LLAMA "eagle3-layers-qwen/", "eagle3_draft", LLAMA "eagle3-layers-qwen"},
                {write_layers, LLAMA "eagle3-layers/", "eagle3_draft", LLAMA "eagle3-layers"},
                {eagle1, LLAMA, "eagle_draft", NULL}};
enum { DRAFTERS = sizeof drafters / sizeof *drafters };

/* ---------------------------------------------------------------------------------------------------- the reference */

typedef struct bench {
    fr_model *model;
    fr_drafter *drafter;
    fr_options *options;
    json_t *target, *drafts;
    fr_map map;
    fr_tensors tensors;
    int32_t ids[VOCAB]; /* the target's id for each id of the draft vocabulary */
} bench;

/* Reads the target's id for each draft id. If `drafter` is NULL, there is no draft vocabulary, and each draft id is
 * also the target's id. */
static void read_ids(const char *drafter, int32_t *ids) {
    char name[128];
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    for (int32_t i = 0; i < VOCAB; i++) ids[i] = i;
    if (!drafter) return;
    snprintf(name, sizeof name, "%s/model.safetensors", drafter);
    require(fr_map_open(&map, name, true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    const fr_tensor *d2t = fr_tensors_find(&tensors, "d2t");
    for (size_t i = 0; i < d2t->shape[0]; i++) {
        int64_t apart; /* the value may be at an unaligned address in the file */
        memcpy(&apart, (const uint8_t *)d2t->data + i * sizeof apart, sizeof apart);
        ids[i] += (int32_t)apart;
    }
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
}

/* Opens a target and a drafter that are not compared with a reference. */
static void open_models(bench *b, const char *target, const char *drafter) {
    *b = (bench){.options = fr_options_new()};
    require(fr_options_set(b->options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(b->options, FR_OPT_DRAFT_MAX, 3));
    require(fr_model_open(target, b->options, &b->model));
    require(fr_drafter_open(drafter, b->model, b->options, &b->drafter));
}

static void open_bench(bench *b, int which) {
    fr_tensors unread = {0};
    char name[128];
    open_models(b, FR_TEST_MODELS "llama", drafters[which].write());
    b->target = fr_load_json(FR_TEST_MODELS "llama/reference.json");
    snprintf(name, sizeof name, "%sdrafts.json", drafters[which].folder);
    b->drafts = fr_load_json(name);
    snprintf(name, sizeof name, "%sdrafts.safetensors", drafters[which].folder);
    require(fr_map_open(&b->map, name, true));
    require(fr_safetensors_read(&b->map, 0, &b->tensors, &unread));
    read_ids(drafters[which].ids, b->ids);
}

static void close_bench(bench *b) {
    fr_drafter_close(b->drafter);
    fr_model_close(b->model);
    fr_options_free(b->options);
    fr_tensors_free(&b->tensors);
    fr_map_close(&b->map);
    json_decref(b->target);
    json_decref(b->drafts);
}

/* Returns a prompt of the reference, followed by the first n ids of the reference's greedy text. The caller frees the
 * result. */
static int32_t *text_of(const bench *b, const json_t *item, size_t n, size_t *count) {
    json_int_t prompt = json_integer_value(json_object_get(item, "prompt"));
    int32_t *ids = fr_ids_of(json_array_get(json_object_get(b->target, "prompts"), (size_t)prompt), count);
    json_t *greedy;
    size_t index, length;
    json_array_foreach (json_object_get(b->target, "greedy"), index, greedy) {
        if (n == 0 || json_integer_value(json_object_get(greedy, "prompt")) != prompt) continue;
        int32_t *tokens = fr_ids_of(json_object_get(greedy, "tokens"), &length);
        ids = realloc(ids, (*count + n) * sizeof *ids);
        memcpy(ids + *count, tokens, n * sizeof *ids);
        *count += n;
        free(tokens);
    }
    return ids;
}

static void compare_case(const bench *b, fr_session *session, const json_t *item) {
    float got[DEPTH * VOCAB];
    char name[64];
    size_t count, length;
    snprintf(name, sizeof name, "%s.logits", json_string_value(json_object_get(item, "case")));
    const fr_tensor *expected = fr_tensors_find(&b->tensors, name);
    ck_assert_msg(expected && expected->shape[0] == DEPTH, "%s", name);
    int32_t *ids = text_of(b, item, (size_t)json_integer_value(json_object_get(item, "n_generated")), &count);
    int32_t *tokens = fr_ids_of(json_object_get(item, "tokens"), &length);
    fr_rows rows = {got, 0, DEPTH * VOCAB};
    ck_assert_uint_eq(count, (size_t)json_integer_value(json_object_get(item, "L")));
    require(fr_session_draft_logits(session, ids, count, DEPTH, fr_rows_collect, &rows));
    ck_assert_uint_eq(rows.count, DEPTH * VOCAB);
    for (size_t d = 0; d < DEPTH; d++) {
        size_t scored = 0;
        int32_t best = 0;
        double largest = 0;
        for (int32_t i = 0; i < VOCAB; i++) {
            scored += !isinf(got[d * VOCAB + (size_t)i]);
            if (got[d * VOCAB + (size_t)i] > got[d * VOCAB + (size_t)best]) best = i;
        }
        for (size_t i = 0; i < expected->shape[1]; i++)
            largest = fmax(largest, fabs((double)((const float *)expected->data)[d * expected->shape[1] + i]));
        ck_assert_uint_eq(scored, expected->shape[1]);
        ck_assert_int_eq(best, tokens[d]);
        for (size_t i = 0; i < expected->shape[1]; i++) {
            double value = ((const float *)expected->data)[d * expected->shape[1] + i];
            ck_assert_msg(fabs((double)got[d * VOCAB + (size_t)b->ids[i]] - value) < BOUND * largest,
                          "%s, step %zu, id %d", name, d, b->ids[i]);
        }
    }
    free(tokens);
    free(ids);
}

/* Compares the logits of every draft step with the reference. Some prompts are run in chunks. */
START_TEST(drafts_are_the_references) {
    bench b;
    fr_session *session;
    json_t *item;
    size_t i;
    open_bench(&b, _i);
    for (int chunk = 1; chunk <= 64; chunk += 21) {
        require(fr_options_set(b.options, FR_OPT_CHUNK, chunk));
        require(fr_session_open(b.model, b.drafter, b.options, &session));
        json_array_foreach (json_object_get(json_object_get(b.drafts, drafters[_i].reference), "cases"), i, item)
            compare_case(&b, session, item);
        ck_assert_uint_ge(i, 8);
        fr_session_close(session);
    }
    close_bench(&b);
}
END_TEST

static const struct {
    const char *drafter;
    bool maps;
    size_t vocab; /* number of ids that the drafter scores */
} odd[] = {
    {LLAMA "eagle3-odd", true, 101},   /* EAGLE 3.1 with every flag; its rows are narrower than the target's */
    {LLAMA "eagle3-qwen", true, 101},  /* one sliding layer as in Qwen3, and a norm for each of aux_layers */
    {LLAMA "eagle-odd", false, VOCAB}, /* fc without bias, attention with biases, and the target's embeddings */
};
enum { QWEN = 1, ODD = sizeof odd / sizeof *odd }; /* QWEN: index of eagle3-qwen */

/* Compares the logits of the drafter odd[which] with the reference. `files` is the path of the drafter. */
static void compare_odd(int which, const char *files) {
    char name[64];
    float got[DEPTH * VOCAB];
    fr_model *model;
    fr_drafter *drafter;
    fr_session *session;
    fr_rows rows = {got, 0, DEPTH * VOCAB};
    size_t count, length, at, i, scored = 0;
    snprintf(name, sizeof name, "%s/reference.json", odd[which].drafter);
    json_t *reference = fr_load_json(name), *step, *value;
    int32_t *ids = fr_ids_of(json_object_get(reference, "ids"), &count);
    int32_t *tokens = fr_ids_of(json_object_get(reference, "tokens"), &length), targets[VOCAB];
    read_ids(odd[which].maps ? odd[which].drafter : NULL, targets);
    require(fr_model_open(FR_TEST_MODELS "llama", NULL, &model));
    require(fr_drafter_open(files, model, NULL, &drafter));
    require(fr_session_open(model, drafter, NULL, &session));
    require(fr_session_draft_logits(session, ids, count, DEPTH, fr_rows_collect, &rows));
    json_array_foreach (json_object_get(reference, "logits"), at, step) {
        const float *row = got + at * VOCAB;
        double best = row[tokens[at]], largest = 0;
        json_array_foreach (step, i, value) largest = fmax(largest, fabs(json_number_value(value)));
        json_array_foreach (step, i, value) {
            double score = row[targets[i]];
            ck_assert_msg(fabs(score - json_number_value(value)) < BOUND * largest, "step %zu, id %d", at, targets[i]);
            ck_assert_double_le(score, best);
            scored++;
        }
    }
    ck_assert_uint_eq(scored, DEPTH * odd[which].vocab);
    fr_session_close(session);
    fr_drafter_close(drafter);
    fr_model_close(model);
    json_decref(reference);
    free(ids);
    free(tokens);
}

START_TEST(odd_drafts_are_the_references) {
    compare_odd(_i, odd[_i].drafter);
}
END_TEST

/* Describes the layer of eagle3-qwen with other keys that mean the same. As in transformers' Qwen3 configuration, the
 * layer is a sliding one if layer_types is missing and max_window_layers is 0. */
START_TEST(other_spellings_of_the_layer_are_the_same) {
    static const char *const layers[] = {"{\"layer_types\": null, \"max_window_layers\": 0}",
                                         "{\"max_window_layers\": 0}"};
    json_t *config = config_of("eagle3-qwen");
    change(json_object_get(config, "transformer_layer_config"), layers[_i]);
    compare_odd(QWEN, write_folder("eagle3-qwen", config, NULL, NULL));
}
END_TEST

START_TEST(a_window_that_is_off_is_none) {
    static const char *const off[] = {
        "{\"layer_types\": [\"full_attention\"]}", "{\"use_sliding_window\": false}",
        "{\"use_sliding_window\": false, \"sliding_window\": null}", "{\"layer_types\": null}",
        "{\"layer_types\": null, \"max_window_layers\": 0, \"use_sliding_window\": false}"};
    enum { OFF = sizeof off / sizeof *off };
    float scores[OFF][DEPTH * VOCAB];
    int32_t ids[IDS];
    fr_model *model;
    fr_drafter *drafter;
    fr_session *session;
    for (int32_t i = 0; i < IDS; i++) ids[i] = 3 + i * 37 % 500;
    require(fr_model_open(FR_TEST_MODELS "llama", NULL, &model));
    for (size_t i = 0; i < OFF; i++) {
        fr_rows rows = {scores[i], 0, DEPTH * VOCAB};
        json_t *config = config_of("eagle3-qwen");
        change(json_object_get(config, "transformer_layer_config"), off[i]);
        require(fr_drafter_open(write_folder("eagle3-qwen", config, NULL, NULL), model, NULL, &drafter));
        require(fr_session_open(model, drafter, NULL, &session));
        require(fr_session_draft_logits(session, ids, IDS, DEPTH, fr_rows_collect, &rows));
        ck_assert_mem_eq(scores[i], scores[0], sizeof scores[0]);
        fr_session_close(session);
        fr_drafter_close(drafter);
    }
    fr_model_close(model);
}
END_TEST

static void generate(fr_session *session, const int32_t *prompt, size_t count, int32_t *ids, size_t wanted) {
    require(fr_session_prompt(session, prompt, count));
    for (size_t made = 0, got, accepted; made < wanted; made += got)
        require(fr_session_step(session, ids + made, wanted - made, &got, &accepted));
}

/* Compares the number of accepted drafts in each round with the reference. The last round is left out, because it ends
 * at the requested number of ids. */
static void compare_lengths(fr_session *session, const json_t *rounds) {
    const uint8_t *lengths;
    size_t count = fr_session_accepted_lengths(session, &lengths), whole = json_array_size(rounds) - 1;
    ck_assert(count == whole + 1 || count == whole);
    for (size_t i = 0; i < whole; i++)
        ck_assert_int_eq(lengths[i], json_integer_value(json_object_get(json_array_get(rounds, i), "accepted")));
}

/* Runs some rounds without drafts, and then one round of the reference with drafts. In this last round as many drafts
 * must be accepted as in the reference. */
START_TEST(rounds_without_drafts_change_no_later_draft) {
    bench b;
    json_t *loop, *round;
    size_t i, r, got, accepted;
    fr_session *session;
    open_bench(&b, _i);
    require(fr_session_open(b.model, b.drafter, b.options, &session));
    json_array_foreach (json_object_get(json_object_get(b.drafts, drafters[_i].reference), "loop"), i, loop) {
        const json_t *rounds = json_object_get(loop, "rounds");
        size_t count, before = 1;
        int32_t *prompt = text_of(&b, loop, 0, &count), ids[IDS];
        json_array_foreach (rounds, r, round) {
            size_t stand = (size_t)json_integer_value(json_object_get(round, "accepted"));
            if (before + DEPTH > IDS) break;
            fr_session_reset(session);
            require(fr_session_prompt(session, prompt, count));
            for (size_t made = 0; made < before; made += got)
                require(fr_session_step(session, ids, 1, &got, &accepted));
            require(fr_session_step(session, ids, DEPTH, &got, &accepted));
            ck_assert_uint_eq(accepted, stand);
            before += stand + 1;
        }
        ck_assert_uint_gt(before, 8);
        free(prompt);
    }
    fr_session_close(session);
    close_bench(&b);
}
END_TEST

/* Runs each text twice: in a new session, and in one session that is kept for all texts. In both sessions as many
 * drafts must be accepted as in the reference. */
START_TEST(accepted_lengths_are_the_references) {
    bench b;
    json_t *loop;
    size_t i;
    fr_session *session, *kept;
    open_bench(&b, _i);
    require(fr_session_open(b.model, b.drafter, b.options, &kept));
    json_array_foreach (json_object_get(json_object_get(b.drafts, drafters[_i].reference), "loop"), i, loop) {
        size_t count, all;
        int32_t *ids = text_of(&b, loop, 0, &count), *text = text_of(&b, loop, IDS, &all), got[IDS];
        require(fr_session_open(b.model, b.drafter, b.options, &session));
        generate(session, ids, count, got, IDS);
        ck_assert_mem_eq(got, text + count, sizeof got);
        compare_lengths(session, json_object_get(loop, "rounds"));
        fr_session_close(session);
        fr_session_reset(kept);
        require(fr_session_prompt(kept, ids, count));
        require(fr_session_truncate(kept, count / 2));
        generate(kept, ids + count / 2, count - count / 2, got, IDS);
        ck_assert_mem_eq(got, text + count, sizeof got);
        compare_lengths(kept, json_object_get(loop, "rounds"));
        free(ids);
        free(text);
    }
    ck_assert_uint_ge(i, 2);
    fr_session_close(kept);
    close_bench(&b);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------- one answer */

typedef struct manner {
    const char *target, *drafter, *words; /* drafter NULL: none */
    int threads, chunk, depth;
    double temperature;
    const char *isa;
} manner;

/* Generates ids after a prompt of the reference. The prompt is one after which some drafts are accepted. */
static void answer(const manner *how, int32_t *ids, double *accepted) {
    fr_options *options = fr_options_new();
    fr_model *model;
    fr_drafter *drafter = NULL;
    fr_session *session;
    json_t *reference = fr_load_json(FR_TEST_MODELS "llama/reference.json");
    size_t count;
    int32_t *prompt = fr_ids_of(json_array_get(json_object_get(reference, "prompts"), 4), &count);
    require(fr_options_set_text(options, FR_OPT_ISA, how->isa));
    require(fr_options_set(options, FR_OPT_THREADS, how->threads));
    require(fr_options_set(options, FR_OPT_CHUNK, how->chunk));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(options, FR_OPT_PIN, 0));
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, how->depth));
    require(fr_options_set_text(options, FR_OPT_SPEC_TYPE, how->words));
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, how->temperature));
    require(fr_model_open(how->target, options, &model));
    if (how->drafter) require(fr_drafter_open(how->drafter, model, options, &drafter));
    require(fr_session_open(model, drafter, options, &session));
    generate(session, prompt, count, ids, IDS);
    const uint8_t *lengths;
    size_t rounds = fr_session_accepted_lengths(session, &lengths);
    for (size_t i = 0; i < rounds; i++) *accepted += lengths[i];
    fr_session_close(session);
    fr_drafter_close(drafter);
    fr_model_close(model);
    fr_options_free(options);
    free(prompt);
    json_decref(reference);
}

/* A session is saved in the middle of its text. The saved state includes the drafter's own keys and values. Another
 * session that restores this state must continue like a session whose prompt is the whole text. */
START_TEST(a_restored_session_drafts_as_before) {
    enum { HALF = IDS / 2 };
    bench b;
    fr_session *sessions[2];
    size_t count, rounds[2];
    int32_t got[2][IDS];
    const uint8_t *lengths[2];
    open_bench(&b, _i);
    const json_t *loop = json_array_get(json_object_get(json_object_get(b.drafts, drafters[_i].reference), "loop"), 0);
    int32_t *ids = text_of(&b, loop, HALF, &count);
    for (size_t i = 0; i < 2; i++) require(fr_session_open(b.model, b.drafter, b.options, &sessions[i]));
    generate(sessions[0], ids, count - HALF, got[0], HALF);
    ck_assert_mem_eq(got[0], ids + count - HALF, HALF * sizeof *ids);
    require(fr_session_save(sessions[0], in_folder("model.safetensors")));
    require(fr_session_restore(sessions[1], in_folder("model.safetensors")));
    fr_session_reset(sessions[0]);
    require(fr_session_prompt(sessions[0], ids, count));
    for (size_t i = 0; i < 2; i++) {
        for (size_t made = 0, given, accepted; made < HALF; made += given)
            require(fr_session_step(sessions[i], got[i] + made, HALF - made, &given, &accepted));
        rounds[i] = fr_session_accepted_lengths(sessions[i], &lengths[i]);
    }
    ck_assert_mem_eq(got[0], got[1], HALF * sizeof **got);
    ck_assert_uint_eq(rounds[0], rounds[1]);
    ck_assert_mem_eq(lengths[0], lengths[1], rounds[1]);
    for (size_t i = 0; i < 2; i++) fr_session_close(sessions[i]);
    free(ids);
    close_bench(&b);
}
END_TEST

enum { CHAIN = 5, ANY_ID = 230 }; /* ANY_ID: every target has all ids below this number */

/* Checks that the session's next drafts are those of a fresh session whose prompt is the whole text. */
static void check_as_fresh(const bench *b, fr_session *session, const int32_t *ids, size_t count) {
    int32_t drafts[2][FR_STEP_MAX];
    size_t proposed[2], made, accepted;
    fr_session *fresh;
    require(fr_session_open(b->model, b->drafter, b->options, &fresh));
    require(fr_session_prompt(fresh, ids, count - 1));
    require(fr_session_step(fresh, drafts[0], 1, &made, &accepted));
    ck_assert_int_eq(drafts[0][0], ids[count - 1]);
    require(fr_draft_now(fresh, CHAIN, drafts[0], &proposed[0], NULL));
    require(fr_draft_now(session, CHAIN, drafts[1], &proposed[1], NULL));
    ck_assert_uint_eq(proposed[0], CHAIN);
    ck_assert_uint_eq(proposed[1], CHAIN);
    ck_assert_mem_eq(drafts[0], drafts[1], CHAIN * sizeof **drafts);
    fr_session_close(fresh);
}

/* Runs rounds until the session has generated `count` more ids. Returns the new length of its text. */
static size_t say(fr_session *session, int32_t *ids, size_t length, size_t count) {
    for (size_t end = length + count, got, accepted; length < end; length += got)
        require(fr_session_step(session, ids + length, end - length, &got, &accepted));
    return length;
}

/* Runs another conversation in the session, longer than the conversation that the test restores afterwards. */
static void digress(fr_session *session) {
    int32_t ids[256];
    for (size_t i = 0; i < 170; i++) ids[i] = (int32_t)(7 * i * i + i) % ANY_ID;
    require(fr_session_set_prompt(session, ids, 170));
    say(session, ids, 170, 9);
}

/* More drafters, each with a sliding layer. When two prompts share pages, they share all positions of the sliding
 * layer, even those outside of the window. */
static const struct {
    const char *target, *drafter; /* if drafter is NULL, the target's own MTP layer drafts */
} sliding[] = {{FR_TEST_MODELS "llama", LLAMA "eagle3-qwen"},
               {FR_TEST_MODELS "exaone-moe-mtp", NULL},
               {FR_TEST_MODELS "mellum-mtp", NULL}};
enum { CONVERSATIONS = DRAFTERS + sizeof sliding / sizeof *sliding };

/* Runs one conversation with prompts, replies, another prompt with the same beginning, a truncation and a fork. The
 * conversation is also saved, and restored after another conversation has run. All of this runs once in a session
 * without an engine, then several times in an engine, where later runs find the cache pages of earlier runs. */
START_TEST(conversations_draft_as_fresh_sessions) {
    bench b;
    fr_engine *engine;
    if (_i < DRAFTERS)
        open_models(&b, FR_TEST_MODELS "llama", drafters[_i].write());
    else
        open_models(&b, sliding[_i - DRAFTERS].target, sliding[_i - DRAFTERS].drafter);
    require(fr_options_set(b.options, FR_OPT_CHUNK, 24));
    require(fr_options_set(b.options, FR_OPT_CONTEXT, 256));
    require(fr_engine_open(b.model, b.drafter, b.options, 3, &engine));
    for (size_t time = 0; time < 3; time++) {
        int32_t ids[256];
        fr_session *session, *fork;
        void *bytes;
        size_t size;
        for (size_t i = 0; i < 160; i++) ids[i] = (int32_t)((i * i * 31 + 7 * i + 2) % ANY_ID);
        if (time)
            require(fr_engine_session(engine, b.options, &session));
        else
            require(fr_session_open(b.model, b.drafter, b.options, &session));
        require(fr_session_set_prompt(session, ids, 90));
        ck_assert(time < 2 || fr_session_stat(session, FR_STAT_REUSED_TOKENS) >= 64);
        size_t length = say(session, ids, 90, 20);
        check_as_fresh(&b, session, ids, length);
        for (size_t i = 100; i < 140; i++) ids[i] = (int32_t)(3 * i % ANY_ID);
        require(fr_session_set_prompt(session, ids, 140));
        length = say(session, ids, 140, 9);
        check_as_fresh(&b, session, ids, length);
        require(fr_session_truncate(session, 130));
        length = say(session, ids, 130, 12);
        check_as_fresh(&b, session, ids, length);
        require(fr_session_save_bytes(session, &bytes, &size));
        if (time) {
            ck_assert(time == 1 || fr_session_stat(session, FR_STAT_REUSED_TOKENS) > 60);
            require(fr_session_fork(session, NULL, &fork));
            length = say(fork, ids, length, 1);
            check_as_fresh(&b, fork, ids, length);
            fr_session_close(fork);
        }
        digress(session);
        require(fr_session_restore_bytes(session, bytes, size));
        length = say(session, ids, time ? length - 1 : length, 7);
        check_as_fresh(&b, session, ids, length);
        fr_free(bytes);
        fr_session_close(session);
    }
    fr_engine_close(engine);
    close_bench(&b);
}
END_TEST

static const struct {
    const char *target, *drafter, *words[2];
    bool helps; /* true: the drafter fits the target, so some drafts must be accepted */
} pairs[] = {
    {FR_TEST_MODELS "llama", LLAMA "eagle3", {"eagle3", "ngram,eagle3"}, true},
    {FR_TEST_MODELS "llama", LLAMA "eagle", {"eagle", "ngram,eagle"}, true},
    {FR_TEST_MODELS "llama", LLAMA "eagle3.gguf", {"draft-eagle3", "eagle3"}, true},
    {LLAMA "q4_0.gguf", LLAMA "eagle3", {"eagle3", "eagle3"}, true},
    {FR_TEST_MODELS "llama", LLAMA "eagle3-layers", {"eagle3", "ngram,eagle3"}, true},
    {FR_TEST_MODELS "llama", LLAMA "eagle3-layers-qwen", {"eagle3", "ngram,eagle3"}, true},
    {FR_TEST_MODELS "gemma4-e", LLAMA "eagle3", {"eagle3", "ngram,eagle3"}, false},
    {FR_TEST_MODELS "gemma4-e", LLAMA "eagle", {"eagle", "eagle"}, false},
    {FR_TEST_MODELS "llama", LLAMA "eagle3-odd", {"eagle3", "eagle3"}, false},
    {FR_TEST_MODELS "llama", LLAMA "eagle-odd", {"eagle", "eagle"}, false},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

/* No generated id may depend on the draft depth, the number of threads, the chunk size, the instruction set or the list
 * of draft methods. This is tested with greedy and sampled text, and also with a drafter and a target of different
 * families. Half of the instruction sets run greedily and the other half run sampled. If FULL is set in the
 * environment, each instruction set runs both ways, twice. */
START_TEST(drafting_changes_no_id) {
    static const int chunks[] = {1, 7, 64}, depths[] = {1, 2, 5, 15};
    size_t which = (size_t)_i % PAIRS, run = (size_t)_i, runs = fr_test_full() ? 2 : 1;
    double temperature = _i < PAIRS ? 0.0 : 0.8, accepted = 0;
    int32_t plain[IDS], ids[IDS];
    answer(&(manner){pairs[which].target, NULL, "none", 1, 16, 3, temperature, "scalar"}, plain, &accepted);
    ck_assert_double_eq(accepted, 0);
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++) {
        if (!fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i))) continue;
        if ((i + (size_t)_i / PAIRS + which) % 2 && !fr_test_full()) continue;
        for (size_t d = 0; d < runs; d++, run++) {
            const manner how = {pairs[which].target, pairs[which].drafter,      pairs[which].words[run % 2],
                                1 + (int)run % 3,    chunks[run % 3],           depths[run % 4],
                                temperature,         fr_lab_word(FR_LAB_ISA, i)};
            answer(&how, ids, &accepted);
            ck_assert_msg(memcmp(ids, plain, sizeof ids) == 0, "%s over %s, %d drafts, %s", how.drafter, how.target,
                          how.depth, how.isa);
        }
    }
    ck_assert(!pairs[which].helps || accepted > 0);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- refusals */

static const struct {
    const char *drafter, *target, *changes;
    damage d2t;       /* {0, 0}: nothing is changed */
    const char *line; /* a part of the error line; NULL: the drafter is accepted */
} cases[] = {
    {"eagle3", "llama", "{}", {0, 0}, NULL},
    {"eagle3", "llama", "{\"architectures\": [\"Eagle3LlamaForCausalLM\"]}", {0, 0}, NULL},
    {"eagle3", "llama", "{\"eagle_aux_hidden_state_layer_ids\": [0, 7, 7]}", {0, 0}, NULL},
    {"eagle3", "llama", "{\"norm_before_residual\": true, \"norm_output\": true}", {0, 0}, NULL},
    {"eagle3", "llama", "{\"eagle_aux_hidden_state_layer_ids\": [2, 3, 8]}", {0, 0}, "layer 8, which has 7"},
    {"eagle3", "llama", "{\"eagle_aux_hidden_state_layer_ids\": [2, 3]}", {0, 0}, "fc.weight has shape"},
    {"eagle3", "llama", "{\"eagle_aux_hidden_state_layer_ids\": [2, -3, 4]}", {0, 0}, "index 1"},
    {"eagle3", "llama", "{\"eagle_aux_hidden_state_layer_ids\": []}", {0, 0}, "1 to 8 layers"},
    {"eagle3", "llama", "{\"eagle_aux_hidden_state_layer_ids\": 3}", {0, 0}, "1 to 8 layers"},
    {"eagle3", "llama", "{\"eagle_config\": {\"eagle_aux_hidden_state_layer_ids\": [0, 6, 6]}}", {0, 0}, NULL},
    {"eagle3",
     "llama",
     "{\"eagle_config\": {\"eagle_aux_hidden_state_layer_ids\": [0, 6, 7]}}",
     {0, 0},
     "input of the target's layer 8, which has 7"},
    {"eagle3", "llama", "{\"eagle_config\": {\"eagle_aux_hidden_state_layer_ids\": [0, 6, -1]}}", {0, 0}, "index 2"},
    {"eagle3", "llama", "{\"target_hidden_size\": 512}", {0, 0}, "is 512, the target's 256"},
    {"eagle3", "llama", "{\"vocab_size\": 513}", {0, 0}, "is 513, the target's 512"},
    {"eagle3", "llama-odd", "{}", {0, 0}, "the target's"},
    {"eagle3", "gemma4-e", "{}", {0, 0}, NULL},
    {"eagle3", "gemma4-dense-odd", "{}", {0, 0}, "the target's"},
    {"eagle3", "llama", "{\"hidden_size\": 128}", {0, 0}, "fc.weight has shape"},
    {"eagle3", "llama", "{\"intermediate_size\": 128}", {0, 0}, "gate_proj.weight has shape"},
    {"eagle3", "llama", "{\"num_key_value_heads\": 4}", {0, 0}, "k_proj.weight has shape"},
    {"eagle3", "llama", "{\"num_hidden_layers\": 40}", {0, 0}, NULL}, /* its layer is called midlayer */
    {"eagle3-qwen",
     "llama",
     "{\"transformer_layer_config\": {\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 44, "
     "\"intermediate_size\": 38, \"num_attention_heads\": 3, \"num_key_value_heads\": 1, \"head_dim\": 14, "
     "\"vocab_size\": 512}}",
     {0, 0},
     "layers.1.input_layernorm.weight is missing"},
    {"eagle3", "llama", "{\"num_hidden_layers\": 0}", {0, 0}, "num_hidden_layers"},
    {"eagle3", "llama", "{\"num_hidden_layers\": 1025}", {0, 0}, "num_hidden_layers"},
    {"eagle3", "llama", "{\"layer_types\": [\"full_attention\"]}", {0, 0}, NULL},
    {"eagle3", "llama", "{\"layer_types\": [\"sliding_attention\"], \"sliding_window\": null}", {0, 0}, NULL},
    {"eagle3", "llama", "{\"layer_types\": [\"linear\"]}", {0, 0}, "layer_types has \"linear\" for layer 0"},
    {"eagle3", "llama", "{\"layer_types\": []}", {0, 0}, "layer_types is no array of 1 words"},
    {"eagle3", "llama", "{\"architectures\": 7}", {0, 0}, "\"architectures\" is no array of words"},
    {"eagle3", "llama", "{\"architectures\": [7]}", {0, 0}, "\"architectures\" is no array of words"},
    {"eagle3", "llama", "{\"draft_vocab_size\": 128}", {0, 0}, "lm_head.weight has shape"},
    {"eagle3", "llama", "{\"draft_vocab_size\": 1024}", {0, 0}, "1024 ids is larger"},
    {"eagle3", "llama", "{\"draft_vocab_size\": null}", {0, 0}, "lm_head.weight has shape"},
    {"eagle3", "llama", "{\"norm_before_fc\": true}", {0, 0}, "input_norm.weight is missing"},
    {"eagle3", "llama", "{\"fc_norm\": true}", {0, 0}, "fc_norm.0.weight is missing"},
    {"eagle3", "llama", "{\"fc_norm\": true, \"norm_before_fc\": true}", {0, 0}, "exclude each other"},
    {"eagle3", "llama", "{\"attention_bias\": true}", {0, 0}, "self_attn.q_proj.bias is missing"},
    {"eagle3", "llama", "{\"hidden_act\": \"gelu\"}", {0, 0}, "hidden_act gelu is not built"},
    {"eagle3",
     "llama",
     "{\"speculators_config\": {\"verifier\": {\"architectures\": [\"Qwen3ForCausalLM\"]}}}",
     {0, 0},
     "drafts for Qwen3ForCausalLM, the target is LlamaForCausalLM"},
    {"eagle3", "llama", "{}", {255, 257}, "d2t has 257 at index 255"},
    {"eagle3", "llama", "{}", {3, -4}, "d2t has -4 at index 3"},
    {"eagle3", "llama", "{}", {255, INT64_MAX}, "d2t has 9223372036854775807 at index 255"},
    {"eagle3", "llama", "{}", {255, INT64_MIN}, "d2t has -9223372036854775808 at index 255"},
    {"eagle3", "llama", "{}", {255, -255}, "d2t has the target's id"},
    {"eagle", "llama", "{}", {0, 0}, NULL},
    {"eagle", "llama", "{\"architectures\": {\"a\": 1}}", {0, 0}, "\"architectures\" is no array of words"},
    {"eagle", "llama", "{\"hidden_size\": 128}", {0, 0}, "is 128, the target's 256"},
    {"eagle", "llama", "{\"vocab_size\": 511}", {0, 0}, "is 511, the target's 512"},
    {"eagle", "llama", "{\"num_hidden_layers\": 3}", {0, 0}, "num_hidden_layers is 3"},
    {"eagle", "llama", "{\"num_attention_heads\": 2}", {0, 0}, "q_proj.weight has shape"},
    {"eagle", "llama-odd", "{}", {0, 0}, "the target's"},
};

START_TEST(what_does_not_fit_is_refused_in_a_line) {
    fr_model *model;
    fr_drafter *drafter;
    char target[64];
    json_t *config = config_of(cases[_i].drafter);
    const damage *d2t = cases[_i].d2t.index || cases[_i].d2t.value ? &cases[_i].d2t : NULL;
    change(config, cases[_i].changes);
    write_folder(cases[_i].drafter, config, NULL, d2t);
    snprintf(target, sizeof target, FR_TEST_MODELS "%s", cases[_i].target);
    require(fr_model_open(target, NULL, &model));
    fr_status status = fr_drafter_open(folder, model, NULL, &drafter);
    if (!cases[_i].line) {
        require(status);
        fr_drafter_close(drafter);
    } else {
        const char *line = status == FR_OK ? "taken" : fr_last_error();
        ck_assert_int_eq(status, strstr(cases[_i].line, "not built") ? FR_UNBUILT : FR_INPUT);
        ck_assert_msg(strstr(line, cases[_i].line) && !strchr(line, '\n'), "%s: %s", cases[_i].changes, line);
    }
    fr_model_close(model);
}
END_TEST

/* In GGUF, two published architectures can have the same name: GLM-4.7-Flash has DeepSeek-V3's name. A drafter's
 * configuration names the architecture that it drafts for. This drafter is made for Llama and too wide for the target.
 * So if the name is accepted, the error line is that of the next check, which compares widths. */
START_TEST(a_verifiers_architecture_may_have_another_name_in_gguf) {
#define FLASH FR_TEST_MODELS "glm-4.7-flash-odd"
    static const char width[] = "target_hidden_size is 256, the target's 96";
    static const struct {
        const char *target, *verifier, *line; /* if target is NULL, the GGUF file made of FLASH below is the target */
    } says[] = {
        {NULL, "Glm4MoeLiteForCausalLM", width},
        {NULL, "DeepseekV3ForCausalLM", width},
        {NULL, "Glm4MoeForCausalLM", "drafts for Glm4MoeForCausalLM, the target is deepseek2"},
        {NULL, "Nobody", "drafts for Nobody, the target is deepseek2"},
        {FLASH, "Glm4MoeLiteForCausalLM", width},
        {FLASH, "DeepseekV3ForCausalLM", "drafts for DeepseekV3ForCausalLM, the target is Glm4MoeLiteForCausalLM"},
        {LLAMA "q4_0.gguf", "LlamaForCausalLM", NULL},
        {LLAMA "q4_0.gguf", "Glm4MoeLiteForCausalLM", "drafts for Glm4MoeLiteForCausalLM, the target is llama"},
    };
    FILE *out = fopen(in_folder("target.gguf"), "wb");
    require(fr_lab_quantize(FLASH, &(fr_lab_quantization){.type = "q8_0"}, NULL, out));
    ck_assert_int_eq(fclose(out), 0);
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        fr_model *model;
        fr_drafter *drafter;
        char changes[128];
        json_t *config = config_of("eagle3");
        snprintf(changes, sizeof changes,
                 "{\"speculators_config\": {\"verifier\": {\"architectures\": [\"%s\"]}}, "
                 "\"target_hidden_size\": 256}",
                 says[i].verifier);
        change(config, changes);
        write_folder("eagle3", config, NULL, NULL);
        require(fr_model_open(says[i].target ? says[i].target : in_folder("target.gguf"), NULL, &model));
        fr_status status = fr_drafter_open(folder, model, NULL, &drafter);
        ck_assert_int_eq(status, says[i].line ? FR_INPUT : FR_OK);
        if (says[i].line) ck_assert_msg(strstr(fr_last_error(), says[i].line), "%s", fr_last_error());
        fr_drafter_close(drafter);
        fr_model_close(model);
    }
}
END_TEST

/* The word with which the user chooses a draft method must fit the drafter. */
START_TEST(words_are_the_drafters) {
    static const struct {
        const char *drafter, *words;
        fr_status status;
    } words[] = {{LLAMA "eagle3", "eagle3", FR_OK},
                 {LLAMA "eagle3", "draft-eagle3", FR_OK},
                 {LLAMA "eagle3", "eagle", FR_USAGE},
                 {LLAMA "eagle3", "mtp", FR_USAGE},
                 {LLAMA "eagle", "eagle", FR_OK},
                 {LLAMA "eagle", "eagle3", FR_USAGE},
                 {NULL, "eagle3", FR_USAGE},
                 {NULL, "eagle", FR_USAGE},
                 {LLAMA "eagle3", "ngram,eagle3", FR_OK},
                 {LLAMA "eagle3", "none", FR_OK}};
    fr_model *model;
    require(fr_model_open(FR_TEST_MODELS "llama", NULL, &model));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        fr_options *options = fr_options_new();
        fr_drafter *drafter = NULL;
        fr_session *session;
        require(fr_options_set_text(options, FR_OPT_SPEC_TYPE, words[i].words));
        if (words[i].drafter) require(fr_drafter_open(words[i].drafter, model, options, &drafter));
        fr_status status = fr_session_open(model, drafter, options, &session);
        ck_assert_msg(status == words[i].status, "%s: %d", words[i].words, status);
        if (status == FR_OK) fr_session_close(session);
        fr_drafter_close(drafter);
        fr_options_free(options);
    }
    fr_model_close(model);
}
END_TEST

START_TEST(none_is_packed_without_its_target) {
    static const char *const all[] = {LLAMA "eagle3", LLAMA "eagle", LLAMA "eagle3.gguf"};
    FILE *out = tmpfile();
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(fr_lab_pack(all[i], NULL, out), FR_INPUT);
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "is an EAGLE drafter, packed beside its target"));
    }
    fclose(out);
}
END_TEST

FR_SUITE("eagle") {
    TCase *tests = tcase_create("eagle");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_loop_test(tests, drafts_are_the_references, 0, DRAFTERS);
    tcase_add_loop_test(tests, odd_drafts_are_the_references, 0, ODD);
    tcase_add_loop_test(tests, other_spellings_of_the_layer_are_the_same, 0, 2);
    tcase_add_test(tests, a_window_that_is_off_is_none);
    tcase_add_loop_test(tests, rounds_without_drafts_change_no_later_draft, 0, DRAFTERS);
    tcase_add_loop_test(tests, accepted_lengths_are_the_references, 0, DRAFTERS);
    tcase_add_loop_test(tests, a_restored_session_drafts_as_before, 0, DRAFTERS);
    fr_test_add_loop(tests, conversations_draft_as_fresh_sessions, CONVERSATIONS, 1);
    fr_test_add_loop(tests, drafting_changes_no_id, 2 * PAIRS, 2);
    tcase_add_loop_test(tests, what_does_not_fit_is_refused_in_a_line, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tests, a_verifiers_architecture_may_have_another_name_in_gguf);
    tcase_add_test(tests, words_are_the_drafters);
    tcase_add_test(tests, none_is_packed_without_its_target);
    suite_add_tcase(suite, tests);
}
