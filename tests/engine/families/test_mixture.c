/* Tests mixtures of experts. A folder and its GGUF file must be the same model, and every way of running it must give
 * the same answer. Wrong routers, names and configurations are refused. test_reference.c compares folders with
 * transformers. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "formats/safetensors.h"
#include "src/engine/draft/pairs.h"
#include "tests/support/brief.h"
#include "tests/support/changed_folder.h"
#include "tests/support/gguf_copy.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define MODELS FR_TEST_MODELS

enum { IDS = 40, STEPS = 4 };

static const int32_t prompt[] = {270, 301, 302, 303, 301, 302, 303, 301, 302, 290, 477, 301, 302, 412, 413, 414};
#define PROMPT (sizeof prompt / sizeof *prompt)

static char folder[64];

static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_folder(void) {
    snprintf(folder, sizeof folder, "%s/forerun-mixture-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
    static const char *const names[] = {"config.json",  "model.safetensors", "model.gguf",        "packed.gguf",
                                        "changed.gguf", "pairs.gguf",        "changed-pairs.gguf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(in_folder(names[i]));
    ck_assert_int_eq(rmdir(folder), 0);
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

static void write_gguf(const char *model, const char *type, bool pure) {
    const fr_lab_quantization how = {.type = type, .pure = pure};
    FILE *out = fopen(in_folder("model.gguf"), "wb");
    ck_assert_ptr_nonnull(out);
    require(fr_lab_quantize(model, &how, NULL, out));
    fclose(out);
}

/* The logits of the prompt. If the model has an MTP layer, also the logits of this layer's drafts after the prompt. */
typedef struct answer {
    fr_rows logits, drafts;
} answer;

static fr_rows room(const fr_model *model, size_t rows) {
    size_t capacity = rows * (size_t)fr_model_fact(model, FR_FACT_VOCAB);
    return (fr_rows){malloc(capacity * sizeof(float)), 0, capacity};
}

/* Returns the answer of a model. `mtp` is the path of a file with only an MTP layer, which then drafts. If it is NULL
 * and the model has an MTP layer, that layer drafts. */
static answer answer_beside(const char *path, const char *mtp) {
    fr_model *model;
    fr_drafter *drafter = NULL;
    fr_session *session;
    require(fr_model_open(path, NULL, &model));
    if (mtp || fr_model_fact(model, FR_FACT_MTP_LAYERS) > 0) require(fr_drafter_open(mtp, model, NULL, &drafter));
    require(fr_session_open(model, drafter, NULL, &session));
    answer a = {.logits = room(model, PROMPT), .drafts = room(model, STEPS)};
    int32_t ids[PROMPT];
    for (size_t i = 0; i < PROMPT; i++) ids[i] = prompt[i] % (int32_t)fr_model_fact(model, FR_FACT_VOCAB);
    require(fr_session_logits(session, ids, PROMPT, 0, fr_rows_collect, &a.logits));
    if (drafter) require(fr_session_draft_logits(session, ids, PROMPT, STEPS, fr_rows_collect, &a.drafts));
    fr_session_close(session);
    fr_drafter_close(drafter);
    fr_model_close(model);
    return a;
}

static answer answer_of(const char *path) {
    return answer_beside(path, NULL);
}

static const char *const folders[] = {MODELS "qwen3-moe-odd", MODELS "glm4-moe-odd", MODELS "glm4-moe-own",
                                      MODELS "glm4-moe-fp8"};
enum { FOLDERS = sizeof folders / sizeof *folders };

/* The GGUF file stacks the experts' matrices and splits fused matrices. Its logits must have the same bits as the
 * folder's: float32 keeps every weight, and FP8 weights are rounded only once, just as when the folder is loaded. */
START_TEST(a_folder_as_gguf_is_the_same_model) {
    write_gguf(folders[_i], "f32", true);
    answer folders_own = answer_of(folders[_i]), files = answer_of(in_folder("model.gguf"));
    ck_assert_uint_eq(folders_own.logits.count, folders_own.logits.capacity);
    ck_assert_uint_eq(folders_own.drafts.count, _i ? folders_own.drafts.capacity : 0);
    fr_rows_expect_same(&files.logits, &folders_own.logits);
    fr_rows_expect_same(&files.drafts, &folders_own.drafts);
    free(folders_own.logits.values);
    free(folders_own.drafts.values);
    free(files.logits.values);
    free(files.drafts.values);
}
END_TEST

/* Compares the logits of every prompt with the reference. The bound is tighter than the bound of test_reference.c,
 * which holds for all families. */
START_TEST(logits_are_within_a_part_of_their_scale) {
    fr_reference r;
    fr_session *session;
    fr_reference_open(&r, strrchr(folders[_i], '/') + 1, NULL);
    require(fr_session_open(r.model, NULL, NULL, &session));
    const json_t *prompts = json_object_get(r.info, "prompts");
    for (size_t p = 0; p < json_array_size(prompts); p++) {
        size_t count, values;
        int32_t *ids = fr_json_ids_of(json_array_get(prompts, p), &count);
        const float *expected = fr_reference_floats(&r, &values, "prompt.%zu.logits", p);
        fr_rows got = room(r.model, count);
        float scale = 0, apart = 0;
        require(fr_session_logits(session, ids, count, 0, fr_rows_collect, &got));
        ck_assert_uint_eq(got.count, values);
        for (size_t i = 0; i < values; i++) scale = fmaxf(scale, fabsf(expected[i]));
        for (size_t i = 0; i < values; i++) apart = fmaxf(apart, fabsf(got.values[i] - expected[i]));
        ck_assert_msg(apart <= 5e-5f * scale, "prompt %zu: %g apart, of %g", p, (double)apart, (double)scale);
        free(got.values);
        free(ids);
    }
    fr_session_close(session);
    fr_reference_close(&r);
}
END_TEST

/* The MTP layer's table and head may be copies of the model's. In this case memory must hold them only once. */
START_TEST(copies_are_not_held_twice) {
    static const struct {
        const char *folder;
        bool own;
    } which[] = {{MODELS "glm4-moe-odd", false}, {MODELS "glm4-moe-own", true}};
    static const char *const names[] = {"embed_tokens.weight", "shared_head.head.weight"};
    fr_model *model;
    fr_drafter *drafter;
    require(fr_model_open(which[_i].folder, NULL, &model));
    require(fr_drafter_open(NULL, model, NULL, &drafter));
    const fr_pair_net *pairs = drafter->net;
    ck_assert((pairs->head->data == model->trunk.head.data) == !which[_i].own);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        snprintf(name, sizeof name, "model.layers.%zu.%s", model->trunk.spec.layers, names[i]);
        const fr_tensor *tensor = fr_tensors_find(&model->files.tensors, name);
        ck_assert_ptr_nonnull(tensor);
        ck_assert(fr_weights_bound(&drafter->weights, tensor) == which[_i].own);
    }
    fr_drafter_close(drafter);
    fr_model_close(model);
}
END_TEST

/* ------------------------------------------------------------------------------ tensors that an MTP layer may lack */

#define NORM  "nextn.shared_head_norm.weight"
#define TABLE "nextn.embed_tokens.weight"
#define HEAD  "nextn.shared_head_head.weight"

/* A change of the MTP layer's tensors NORM, TABLE and HEAD, in this order. If from[i] is NULL, tensor i is left out.
 * Otherwise tensor i becomes a copy of the tensor from[i]. If `backwards` is true, the rows of matrices are copied in
 * reverse order. */
typedef struct change {
    const char *from[3];
    bool backwards;
} change;

static change changed;

static void write_rows(fr_gguf_writer *w, const fr_tensor *t) {
    size_t rows = t->dims == 2 && changed.backwards ? t->shape[0] : 1, each = t->bytes / rows;
    for (size_t r = rows; r-- > 0;) require(fr_gguf_write_data(w, (const uint8_t *)t->data + r * each, each));
}

static void copy_changed(const fr_tensors *all, fr_gguf_writer *w, bool data) {
    static const char *const names[] = {NORM, TABLE, HEAD};
    char block[16] = "", name[64];
    for (size_t i = 0; i < all->count; i++) {
        const fr_tensor *t = &all->items[i];
        const char *own = strstr(t->name, "nextn.");
        if (own) snprintf(block, sizeof block, "%.*s", (int)(own - t->name), t->name);
        if (own && (strcmp(own, NORM) == 0 || strcmp(own, TABLE) == 0 || strcmp(own, HEAD) == 0)) continue;
        if (data)
            require(fr_gguf_write_data(w, t->data, t->bytes));
        else
            fr_gguf_put_tensor(w, t->name, t->type, false, t->dims, t->shape);
    }
    for (size_t i = 0; i < 3; i++) {
        const fr_tensor *t = changed.from[i] ? fr_tensors_find(all, changed.from[i]) : NULL;
        ck_assert(t || !changed.from[i]);
        snprintf(name, sizeof name, "%s%s", block, names[i]);
        if (t && data) write_rows(w, t);
        if (t && !data) fr_gguf_put_tensor(w, name, t->type, false, t->dims, t->shape);
    }
}

/* Returns the answer of a copy of model.gguf to which this change is applied. */
static answer answer_changed(change how) {
    char from[128];
    changed = how;
    snprintf(from, sizeof from, "%s", in_folder("model.gguf"));
    fr_gguf_copy(from, in_folder("changed.gguf"), copy_changed);
    answer a = answer_of(in_folder("changed.gguf"));
    ck_assert_uint_eq(a.drafts.count, a.drafts.capacity);
    return a;
}

static void free_answer(answer *a) {
    free(a->logits.values);
    free(a->drafts.values);
}

static const char *const with_mtp[] = {MODELS "glm4-moe-own",      MODELS "qwen35-moe-odd", MODELS "qwen35-odd",
                                       MODELS "glm-4.7-flash-odd", MODELS "../deepseek-v3", MODELS "glm-ocr-odd",
                                       MODELS "qwen3-next-odd",    MODELS "exaone-moe-mtp", MODELS "ling-odd",
                                       MODELS "ling3-odd",         MODELS "nemotron-3-mtp"};
/* The last three models of with_mtp (Ling's and Nemotron's) have an MTP layer with its own norm. So the tests in which
 * the layer shares the model's norm leave out these three. */
enum { WITH_MTP = sizeof with_mtp / sizeof *with_mtp, MAY_SHARE = WITH_MTP - 3 };

/* If a file has no norm, table or head for the MTP layer, the layer uses the model's, as in llama.cpp. */
START_TEST(an_mtp_layer_may_share_its_norm_table_and_head) {
    write_gguf(with_mtp[_i], "f32", true);
    answer shared = answer_changed((change){{NULL}, false});
    answer copies = answer_changed((change){{"output_norm.weight", "token_embd.weight", "output.weight"}, false});
    fr_rows_expect_same(&shared.logits, &copies.logits);
    fr_rows_expect_same(&shared.drafts, &copies.drafts);
    free_answer(&shared);
    free_answer(&copies);
}
END_TEST

/* If the MTP layer's head has the model's rows in reverse order, it must score the ids in reverse order. If its table
 * has the rows in reverse order, the drafts must change. */
START_TEST(an_mtp_layer_may_have_a_table_and_a_head) {
    write_gguf(with_mtp[_i], "f32", true);
    answer shared = answer_changed((change){{"output_norm.weight", NULL, NULL}, true});
    answer head = answer_changed((change){{"output_norm.weight", NULL, "output.weight"}, true});
    answer table = answer_changed((change){{"output_norm.weight", "token_embd.weight", NULL}, true});
    size_t vocab = shared.drafts.count / STEPS;
    for (size_t i = 0; i < vocab; i++) ck_assert_float_eq(head.drafts.values[i], shared.drafts.values[vocab - 1 - i]);
    ck_assert(memcmp(table.drafts.values, shared.drafts.values, vocab * sizeof(float)) != 0);
    fr_rows_expect_same(&head.logits, &shared.logits);
    fr_rows_expect_same(&table.logits, &shared.logits);
    free_answer(&shared);
    free_answer(&head);
    free_answer(&table);
}
END_TEST

/* ERNIE 4.5's largest model was published with a transposed mtp_linear_proj. The engine leaves out its MTP layer and
 * runs the rest. Any other wrong shape is refused. */
START_TEST(an_mtp_layer_whose_projection_is_turned_is_left_out) {
    static const char name[] = MODELS "ernie4.5-moe-mtp";
    static const char linear[] = "linear_proj.0.weight\":{\"dtype\":\"BF16\",\"shape\":";
    char from[128], to[128];
    fr_changed_folder copy;
    fr_model *model;
    fr_drafter *drafter = NULL;
    snprintf(from, sizeof from, "%s[60,120]", linear);
    snprintf(to, sizeof to, "%s%s", linear, _i ? "[10,720]" : "[120,60]");
    fr_changed_folder_make(&copy, name, "{}");
    fr_changed_folder_edit(&copy, from, to);
    require(fr_model_open(copy.path, NULL, &model));
    ck_assert_int_eq(fr_model_fact(model, FR_FACT_MTP_LAYERS), _i);
    if (_i) {
        ck_assert_int_eq(fr_drafter_open(NULL, model, NULL, &drafter), FR_INPUT);
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "model.mtp_linear_proj.0.weight has shape [10, 720]"));
    } else {
        answer left = answer_of(copy.path), whole = answer_of(name);
        ck_assert_ptr_nonnull(strstr(fr_model_note(model, 0), "linear_proj.0.weight is turned"));
        fr_rows_expect_same(&left.logits, &whole.logits);
        ck_assert_uint_eq(left.drafts.count, 0);
        ck_assert_uint_eq(whole.drafts.count, whole.drafts.capacity);
        free_answer(&left);
        free_answer(&whole);
    }
    fr_model_close(model);
    fr_changed_folder_remove(&copy);
}
END_TEST

/* FastDeploy's MTP model has one layer, the first, whatever num_nextn_predict_layers says (_update_mtp_config in
 * fastdeploy/spec_decode/mtp.py). So a folder with several must draft as one that has the first alone. */
START_TEST(the_first_of_several_mtp_layers_drafts_alone) {
    static const char name[] = MODELS "ernie4.5-moe-mtp";
    fr_changed_folder copy;
    fr_model *model;
    fr_changed_folder_make(&copy, name, "{\"num_nextn_predict_layers\": 3}");
    answer several = answer_of(copy.path), one = answer_of(name);
    fr_rows_expect_same(&several.logits, &one.logits);
    fr_rows_expect_same(&several.drafts, &one.drafts);
    ck_assert_uint_gt(several.drafts.count, 0);
    require(fr_model_open(copy.path, NULL, &model));
    ck_assert_ptr_nonnull(strstr(fr_model_note(model, 0), "the first of its 3 MTP layers drafts alone"));
    fr_model_close(model);
    free_answer(&several);
    free_answer(&one);
    fr_changed_folder_remove(&copy);
}
END_TEST

/* Copies the tensors that llama.cpp's converter writes with --mtp. These are the tensors of the MTP layer, which is the
 * last layer, and the model's tensors that the MTP layer needs for its scores. */
static void copy_alone(const fr_tensors *all, fr_gguf_writer *w, bool data) {
    size_t last = 0, block;
    for (size_t i = 0; i < all->count; i++)
        if (sscanf(all->items[i].name, "blk.%zu.", &block) == 1 && block > last) last = block;
    for (size_t i = 0; i < all->count; i++) {
        const fr_tensor *t = &all->items[i];
        if (sscanf(t->name, "blk.%zu.", &block) == 1 && block < last) continue;
        if (data)
            require(fr_gguf_write_data(w, t->data, t->bytes));
        else
            fr_gguf_put_tensor(w, t->name, t->type, false, t->dims, t->shape);
    }
}

/* The folder's MTP layer is written to a file of its own, with GGUF's names and order of rows. The drafts from this
 * file must be the folder's, bit for bit. GLM-OCR is an exception: the file has the rows in another order than the
 * folder, so sums round differently. */
START_TEST(an_mtp_layer_drafts_from_a_file_beside_its_folder) {
    char from[128];
    write_gguf(with_mtp[_i], "f32", true);
    snprintf(from, sizeof from, "%s", in_folder("model.gguf"));
    fr_gguf_copy(from, in_folder("changed.gguf"), copy_alone);
    answer own = answer_of(with_mtp[_i]), beside = answer_beside(with_mtp[_i], in_folder("changed.gguf"));
    ck_assert_uint_eq(own.drafts.count, own.drafts.capacity);
    ck_assert_uint_eq(beside.drafts.count, own.drafts.count);
    if (strcmp(with_mtp[_i], MODELS "glm-ocr-odd") == 0)
        fr_rows_compare(beside.drafts.values, own.drafts.values, own.drafts.count);
    else
        fr_rows_expect_same(&beside.drafts, &own.drafts);
    free_answer(&own);
    free_answer(&beside);
}
END_TEST

/* Copies GLM-OCR's file with the two values of each rotary pair next to each other. GLM-OCR's folder has this order
 * too. llama.cpp's files have it for models whose rotary pairs are not divided into sections. */
static void copy_in_pairs(const fr_tensors *all, fr_gguf_writer *w, bool data) {
    enum { HEAD_DIM = 20 };
    for (size_t i = 0; i < all->count; i++) {
        const fr_tensor *t = &all->items[i];
        bool turns = strstr(t->name, "attn_q.weight") || strstr(t->name, "attn_k.weight");
        size_t rows = turns ? t->shape[0] : 1, each = t->bytes / rows;
        if (!data) fr_gguf_put_tensor(w, t->name, t->type, false, t->dims, t->shape);
        for (size_t row = 0; data && row < rows; row++) {
            size_t in_head = row % HEAD_DIM, from = row - in_head + in_head / 2 + in_head % 2 * (HEAD_DIM / 2);
            require(fr_gguf_write_data(w, (const uint8_t *)t->data + from * each, each));
        }
    }
}

static void write_in_pairs(const char *name, const char *as) {
    char from[128];
    snprintf(from, sizeof from, "%s", in_folder(name));
    fr_gguf_copy(from, in_folder(as), copy_in_pairs);
    fr_gguf_hide_key(in_folder(as), in_folder(as), "glm4.rope.dimension_sections");
}

/* The values of a head's rotary pairs may be next to each other, or in the two halves of the head. A target and a file
 * with its MTP layer may use different orders. */
START_TEST(an_mtp_layers_file_says_how_its_own_rows_stand) {
    static const char *const targets[] = {NULL, "model.gguf", "pairs.gguf"}; /* NULL: the folder */
    static const char *const layers[] = {"changed.gguf", "changed-pairs.gguf"};
    const char *name = targets[_i / 2];
    char target[128], layer[128], model[128];
    write_gguf(MODELS "glm-ocr-odd", "f32", true);
    snprintf(model, sizeof model, "%s", in_folder("model.gguf"));
    fr_gguf_copy(model, in_folder("changed.gguf"), copy_alone);
    write_in_pairs("model.gguf", "pairs.gguf");
    write_in_pairs("changed.gguf", "changed-pairs.gguf");
    snprintf(target, sizeof target, "%s", name ? in_folder(name) : MODELS "glm-ocr-odd");
    snprintf(layer, sizeof layer, "%s", in_folder(layers[_i % 2]));
    answer own = answer_of(MODELS "glm-ocr-odd"), beside = answer_beside(target, layer);
    ck_assert_uint_eq(own.drafts.count, own.drafts.capacity);
    ck_assert_uint_eq(beside.drafts.count, own.drafts.count);
    fr_rows_compare(beside.logits.values, own.logits.values, own.logits.count);
    fr_rows_compare(beside.drafts.values, own.drafts.values, own.drafts.count);
    free_answer(&own);
    free_answer(&beside);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------- one answer */

/* One way of running a model. The text is sampled, because a sampled text depends on every logit. */
typedef struct manner {
    const char *path, *isa, *method;
    int threads, chunk;
} manner;

static void text_of(const manner *m, int32_t *ids) {
    fr_options *options = fr_options_new();
    fr_model *model;
    fr_drafter *drafter = NULL;
    fr_session *session;
    if (m->isa) require(fr_options_set_text(options, FR_OPT_ISA, m->isa));
    require(fr_options_set(options, FR_OPT_THREADS, m->threads));
    require(fr_options_set(options, FR_OPT_CHUNK, m->chunk));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(options, FR_OPT_PIN, 0));
    require(fr_options_set_text(options, FR_OPT_SPEC_TYPE, m->method));
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, 0.7));
    require(fr_model_open(m->path, options, &model));
    if (strcmp(m->method, "mtp") == 0) require(fr_drafter_open(NULL, model, options, &drafter));
    require(fr_session_open(model, drafter, options, &session));
    require(fr_session_prompt(session, prompt, PROMPT));
    for (size_t made = 0, got, accepted; made < IDS; made += got)
        require(fr_session_step(session, ids + made, IDS - made, &got, &accepted));
    fr_session_close(session);
    fr_drafter_close(drafter);
    fr_model_close(model);
    fr_options_free(options);
}

static void expect_one_answer(const char *path, bool drafts) {
    static const char *const methods[] = {"none", "ngram", "mtp"};
    static const int chunks[] = {1, 7, 64, 5, 16}, threads[] = {1, 2, 3, 5, 7};
    int32_t first[IDS], ids[IDS];
    bool begun = false;
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++) {
        manner m = {.path = path, .isa = fr_lab_word(FR_LAB_ISA, i)};
        if (!fr_lab_isa_here(m.isa)) continue;
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            m.threads = threads[t];
            m.chunk = chunks[t];
            m.method = methods[(i + t) % (drafts ? 3 : 2)];
            text_of(&m, begun ? ids : first);
            if (begun)
                ck_assert_msg(memcmp(ids, first, sizeof ids) == 0, "%s: %s, %d threads, %s", path, m.isa, m.threads,
                              m.method);
            begun = true;
        }
    }
    ck_assert(begun);
}

START_TEST(every_manner_of_running_gives_one_answer) {
    expect_one_answer(folders[_i], _i > 0);
}
END_TEST

/* The experts' weights are packed in tiles, either in the file or when they are loaded. Here up to seven threads share
 * matrices that have only two tiles. */
START_TEST(packed_experts_give_one_answer) {
    write_gguf(folders[_i], "q4_0", false);
    FILE *out = fopen(in_folder("packed.gguf"), "wb");
    require(fr_lab_pack(in_folder("model.gguf"), NULL, out));
    fclose(out);
    expect_one_answer(in_folder("model.gguf"), _i > 0);
    int32_t ids[2][IDS];
    for (size_t i = 0; i < 2; i++) {
        manner m = {in_folder(i ? "packed.gguf" : "model.gguf"), NULL, "none", 2, 64};
        text_of(&m, ids[i]);
    }
    ck_assert_mem_eq(ids[0], ids[1], sizeof ids[0]);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- refusals */

#define EXPERTS "model.layers.1.mlp.experts."

static const struct {
    const char *name, *changes;
    fr_status status;
    const char *line; /* a part of the error line */
} cases[] = {
    {"qwen3-moe-raw", "{}", FR_OK, ""},
    {"qwen3-moe-raw", "{\"num_experts\": 6}", FR_INPUT, "mlp.gate.weight has shape [5, 70]"},
    {"qwen3-moe-raw", "{\"num_experts\": 0}", FR_INPUT, "num_experts"},
    {"qwen3-moe-raw", "{\"num_experts\": 99999}", FR_INPUT, "num_experts"},
    {"qwen3-moe-raw", "{\"num_experts_per_tok\": 6}", FR_INPUT, "6 experts are chosen of 5"},
    {"qwen3-moe-raw", "{\"num_experts_per_tok\": 0}", FR_INPUT, "num_experts_per_tok"},
    {"qwen3-moe-raw", "{\"moe_intermediate_size\": 13}", FR_INPUT, "mlp.experts.gate_up_proj has shape [5, 52, 70]"},
    {"qwen3-moe-raw", "{\"decoder_sparse_step\": 2}", FR_INPUT, "model.layers.0.mlp.gate_proj.weight is missing"},
    {"qwen3-moe-raw", "{\"decoder_sparse_step\": 0}", FR_INPUT, "decoder_sparse_step"},
    {"qwen3-moe-raw", "{\"mlp_only_layers\": [1]}", FR_INPUT, "model.layers.1.mlp.gate_proj.weight is missing"},
    {"qwen3-moe-raw", "{\"mlp_only_layers\": [1024]}", FR_INPUT, "mlp_only_layers has"},
    {"qwen3-moe-raw", "{\"mlp_only_layers\": [\"1\"]}", FR_INPUT, "mlp_only_layers has"},
    {"qwen3-moe-raw", "{\"mlp_only_layers\": 1}", FR_INPUT, "mlp_only_layers is no list"},
    {"qwen3-moe-raw", "{\"mlp_only_layers\": [900]}", FR_OK, ""},
    {"qwen3-moe-raw", "{\"attention_bias\": true}", FR_INPUT, "model.layers.0.self_attn.q_proj.bias is missing"},
    {"qwen3-moe-dense", "{\"mlp_only_layers\": []}", FR_INPUT, "model.layers.1.mlp.gate.weight is missing"},
    {"qwen3-moe-raw", "{\"use_sliding_window\": true, \"sliding_window\": 0}", FR_INPUT, "sliding_window"},
    {"qwen3-moe-raw", "{\"rope_scaling\": {\"rope_type\": \"ntk\", \"factor\": 2}}", FR_UNBUILT, "rope_type ntk"},
    {"qwen3-moe-raw", "{\"scoring_func\": \"sigmoid\"}", FR_UNBUILT, "scoring_func sigmoid"},
    {"ernie4.5-moe-odd", "{\"moe_k\": null, \"num_experts_per_tok\": 8}", FR_INPUT, "8 experts are chosen of 7"},
    {"ernie4.5-moe-odd", "{\"moe_num_experts\": null, \"num_experts\": 6}", FR_INPUT, "asks for [1, 6]"},
    {"qwen3-moe-raw", "{\"norm_topk_prob\": 1}", FR_INPUT, "norm_topk_prob"},
    {"glm4-moe-own", "{}", FR_OK, ""},
    {"glm4-moe-own", "{\"num_nextn_predict_layers\": 0}", FR_OK, ""},
    {"glm4-moe-own", "{\"num_nextn_predict_layers\": 3}", FR_UNBUILT, "3 MTP layers are not built, 1 is"},
    {"glm4-moe-own", "{\"n_group\": 2}", FR_INPUT, "3 of 9 experts can't be chosen in 1 of 2 groups"},
    {"glm4-moe-own", "{\"n_group\": 9}", FR_INPUT, "can't be chosen"},
    {"glm4-moe-own", "{\"n_group\": 3, \"topk_group\": 4}", FR_INPUT, "can't be chosen"},
    {"glm4-moe-own", "{\"n_group\": 3, \"num_experts_per_tok\": 4}", FR_INPUT, "can't be chosen"},
    {"glm4-moe-own", "{\"n_group\": 3, \"topk_group\": 2}", FR_OK, ""},
    {"glm4-moe-own", "{\"first_k_dense_replace\": 3}", FR_INPUT, "model.layers.1.mlp.gate_proj.weight"},
    {"glm4-moe-own", "{\"first_k_dense_replace\": 4}", FR_INPUT, "4 layers stand before the first mixture"},
    {"glm4-moe-own", "{\"first_k_dense_replace\": 2}", FR_INPUT, "model.layers.1.mlp.gate_proj.weight"},
    {"glm4-moe-own", "{\"n_shared_experts\": 0}", FR_INPUT, "nothing reads tensor model.layers.1.mlp.shared_experts"},
    {"glm4-moe-own", "{\"n_shared_experts\": 2}", FR_INPUT, "mlp.shared_experts.gate_proj.weight has shape"},
    {"glm4-moe-own", "{\"use_qk_norm\": true}", FR_INPUT, "model.layers.0.self_attn.q_norm.weight is missing"},
    {"glm4-moe-own", "{\"attention_bias\": true}", FR_INPUT, "model.layers.0.self_attn.q_proj.bias is missing"},
    {"glm4-moe-own", "{\"routed_scaling_factor\": \"much\"}", FR_INPUT, "routed_scaling_factor"},
    {"glm4-moe-own", "{\"partial_rotary_factor\": 0.01}", FR_INPUT, "0 rotary values"},
};

START_TEST(a_configuration_is_taken_or_refused_in_a_line) {
    fr_status status = fr_reference_open_changed(cases[_i].name, cases[_i].changes, folder);
    ck_assert_msg(status == cases[_i].status, "%s: %d, %s", cases[_i].changes, status,
                  status == FR_OK ? "" : fr_last_error());
    if (status == FR_OK) return;
    ck_assert_msg(strstr(fr_last_error(), cases[_i].line) && !strchr(fr_last_error(), '\n'), "%s", fr_last_error());
}
END_TEST

/* If num_shared_experts is null, Ling 2.0's modeling file makes no shared experts, so nothing reads their tensors. */
START_TEST(null_means_no_shared_experts) {
    fr_changed_folder none;
    fr_model *model = NULL;
    fr_changed_folder_make(&none, MODELS "ling-odd", "{\"num_shared_experts\": null}");
    ck_assert_int_eq(fr_model_open(none.path, NULL, &model), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "nothing reads tensor model.layers.1.mlp.shared_experts"));
    fr_changed_folder_remove(&none);
}
END_TEST

/* Writes a copy of a model's file. In its header each `from` is replaced by `to`, which has the same length. Value 3 of
 * the BF16 tensor named `nan` becomes NaN. If `from` or `nan` is NULL, this change is left out. */
static void write_changed(const char *name, const char *from, const char *to, const char *nan) {
    char path[128];
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    snprintf(path, sizeof path, MODELS "%s/model.safetensors", name);
    require(fr_map_open(&map, path, true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    uint8_t *bytes = malloc(map.size);
    memcpy(bytes, map.bytes, map.size);
    for (uint8_t *at = bytes; from && (at = memmem(at, map.size - (size_t)(at - bytes), from, strlen(from)));)
        memcpy(at, to, strlen(to));
    const fr_tensor *tensor = nan ? fr_tensors_find(&tensors, nan) : NULL;
    if (nan) ck_assert(tensor && tensor->type == FR_BF16);
    if (tensor) memcpy(bytes + ((const uint8_t *)tensor->data - map.bytes) + 6, "\xc0\x7f", 2);
    FILE *out = fopen(in_folder("model.safetensors"), "wb");
    ck_assert(fwrite(bytes, map.size, 1, out));
    fclose(out);
    free(bytes);
    fr_tensors_free(&tensors);
    fr_map_close(&map);
    json_t *config;
    snprintf(path, sizeof path, MODELS "%s/config.json", name);
    config = fr_load_json(path);
    ck_assert_int_eq(json_dump_file(config, in_folder("config.json"), 0), 0);
    json_decref(config);
}

static const struct {
    const char *from, *to, *line;
    bool drafter; /* true: the fault is in the MTP layer, so the model opens and the drafter is refused */
} names[] = {
    {EXPERTS "3.up_proj.weight\"", EXPERTS "x.up_proj.weight\"", "tensor " EXPERTS "3.up_proj.weight is missing",
     false},
    {EXPERTS "0.gate_proj.weight\"", EXPERTS "7.gate_proj.weight\"", "tensor " EXPERTS "0.gate_proj.weight is missing",
     false},
    {EXPERTS "4.down_proj.weight\"", EXPERTS "5.down_proj.weight\"", "tensor " EXPERTS "4.down_proj.weight is missing",
     false},
    {"\"" EXPERTS, "\"model.layers.1.mlp.axperts.", "gate_proj.weight is missing, and", false},
    {"model.layers.1.mlp.gate.e_score_correction_bias", "model.layers.1.mlp.gate.e_score_correction_bits",
     "e_score_correction_bias is missing", false},
    {"model.layers.2.mlp.experts.1.up_proj.weight\"", "model.layers.2.mlp.experts.9.up_proj.weight\"",
     "tensor model.layers.2.mlp.experts.1.up_proj.weight is missing", true},
    {"model.layers.2.enorm.weight\"", "model.layers.2.anorm.weight\"", "model.layers.2.anorm.weight", false},
    /* these tensors belong to quantized weights, but the configuration does not mention a quantization */
    {"model.layers.0.input_layernorm.weight\"", "model.layers.0.inproj.pre_quant_scale\"",
     "tensor model.layers.0.inproj.pre_quant_scale: its weights' quantization is not built", false},
    {"model.layers.0.self_attn.q_proj.weight\"", "model.layers.0.self_attn.pproj.qweight\"",
     "tensor model.layers.0.self_attn.pproj.scales is missing, which model.layers.0.self_attn.pproj.qweight needs",
     false},
};

START_TEST(a_name_that_is_missing_or_too_many_is_told) {
    fr_model *model;
    fr_drafter *drafter = NULL;
    write_changed("glm4-moe-fp8", names[_i].from, names[_i].to, NULL);
    fr_status status = fr_model_open(folder, NULL, &model);
    ck_assert_int_eq(status == FR_OK, names[_i].drafter);
    if (status == FR_OK) {
        status = fr_drafter_open(NULL, model, NULL, &drafter);
        ck_assert_int_eq(status, FR_INPUT);
    }
    ck_assert_msg(strstr(fr_last_error(), names[_i].line) && !strchr(fr_last_error(), '\n'), "%s", fr_last_error());
    if (names[_i].drafter) fr_model_close(model);
}
END_TEST

/* A NaN in a router's matrix must give an error line, even if the router would not choose the expert of that row. */
START_TEST(nan_in_a_router_ends_in_a_line) {
    fr_model *model;
    fr_session *session;
    int32_t ids[IDS];
    size_t got, accepted;
    write_changed("glm4-moe-own", NULL, NULL, "model.layers.1.mlp.gate.weight");
    require(fr_model_open(folder, NULL, &model));
    require(fr_session_open(model, NULL, NULL, &session));
    fr_status status = fr_session_prompt(session, prompt, PROMPT);
    if (status == FR_OK) status = fr_session_step(session, ids, IDS, &got, &accepted);
    ck_assert_int_ne(status, FR_OK);
    ck_assert_msg(strstr(fr_last_error(), "not finite") && !strchr(fr_last_error(), '\n'), "%s", fr_last_error());
    fr_session_close(session);
    fr_model_close(model);
}
END_TEST

/* A forward pass reads the experts once, however many rows it has. So a mixture runs its prompt in longer chunks if no
 * other session would have to wait meanwhile. */
START_TEST(a_prompts_forwards_are_longer_alone) {
    static const struct {
        const char *name;
        int64_t asked;
        bool alone;
        size_t rows;
    } runs[] = {{"qwen3-moe-raw", 0, true, 256}, {"qwen3-moe-raw", 0, false, 64}, {"qwen3-moe-raw", 7, true, 7},
                {"qwen3-moe-raw", 64, true, 64}, {"llama", 0, true, 64},          {"llama", 512, false, 512}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        char path[128];
        fr_model *model;
        fr_options *options = fr_options_new();
        snprintf(path, sizeof path, MODELS "%s", runs[i].name);
        require(fr_model_open(path, NULL, &model));
        if (runs[i].asked) require(fr_options_set(options, FR_OPT_CHUNK, runs[i].asked));
        ck_assert_uint_eq(fr_model_chunk(model, options, runs[i].alone), runs[i].rows);
        fr_options_free(options);
        fr_model_close(model);
    }
}
END_TEST

#define GATED MODELS "qwen35-moe-odd"

/* Writes a model with shared experts. If `there` is true, the shared experts have weights that give 0. Otherwise they
 * have width 0, and their tensors are renamed to those of a vision encoder, which are ignored. */
static void write_gated(bool there) {
    fr_map map;
    size_t length = 0;
    char name[32];
    require(fr_map_open(&map, GATED "/model.safetensors", true));
    char *bytes = malloc(map.size);
    memcpy(bytes, map.bytes, map.size);
    memcpy(&length, bytes, 8);
    json_t *header = json_loadb(bytes + 8, length, 0, NULL), *renamed = json_object(), *tensor;
    json_t *config = fr_load_json(GATED "/config.json");
    const char *key;
    json_object_foreach (header, key, tensor) {
        bool shared = strstr(key, ".shared_expert") != NULL;
        snprintf(name, sizeof name, "visual.%zu", json_object_size(renamed));
        json_object_set(renamed, shared && !there ? name : key, tensor);
        if (!there || !shared || !strstr(key, "down_proj")) continue;
        const json_t *at = json_object_get(tensor, "data_offsets");
        size_t begin = (size_t)json_integer_value(json_array_get(at, 0));
        memset(bytes + 8 + length + begin, 0, (size_t)json_integer_value(json_array_get(at, 1)) - begin);
    }
    memset(bytes + 8, ' ', length);
    ck_assert_uint_le(json_dumpb(renamed, bytes + 8, length, JSON_COMPACT), length);
    FILE *out = fopen(in_folder("model.safetensors"), "wb");
    ck_assert(fwrite(bytes, map.size, 1, out));
    fclose(out);
    fr_map_close(&map);
    if (!there)
        json_object_set_new(json_object_get(config, "text_config"), "shared_expert_intermediate_size", json_integer(0));
    ck_assert_int_eq(json_dump_file(config, in_folder("config.json"), 0), 0);
    json_decref(config);
    json_decref(renamed);
    json_decref(header);
    free(bytes);
}

/* If the shared experts have width 0, their gate is ignored. The logits of the GGUF file differ slightly from the
 * folder's, because the file stores logarithms of the decays, which are rounded differently. */
START_TEST(gated_experts_of_width_0_are_none) {
    write_gated(true);
    answer silent = answer_of(folder);
    write_gated(false);
    answer none = answer_of(folder);
    fr_rows_expect_same(&none.logits, &silent.logits);
    fr_rows_expect_same(&none.drafts, &silent.drafts);
    write_gguf(folder, "f32", true);
    answer written = answer_of(in_folder("model.gguf"));
    for (size_t i = 0; i < none.logits.count; i++)
        ck_assert_float_eq_tol(written.logits.values[i], none.logits.values[i], 1e-4f);
    free(silent.logits.values);
    free(silent.drafts.values);
    free(none.logits.values);
    free(none.drafts.values);
    free(written.logits.values);
    free(written.drafts.values);
}
END_TEST

FR_SUITE("mixture") {
    TCase *tests = tcase_create("mixture");
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_loop_test(tests, a_folder_as_gguf_is_the_same_model, 0, FOLDERS);
    tcase_add_loop_test(tests, logits_are_within_a_part_of_their_scale, 0, FOLDERS);
    tcase_add_loop_test(tests, copies_are_not_held_twice, 0, 2);
    tcase_add_loop_test(tests, an_mtp_layer_may_share_its_norm_table_and_head, 0, MAY_SHARE);
    tcase_add_loop_test(tests, an_mtp_layer_may_have_a_table_and_a_head, 0, MAY_SHARE);
    tcase_add_loop_test(tests, an_mtp_layer_drafts_from_a_file_beside_its_folder, 0, WITH_MTP);
    tcase_add_loop_test(tests, an_mtp_layers_file_says_how_its_own_rows_stand, 0, 6);
    tcase_add_loop_test(tests, an_mtp_layer_whose_projection_is_turned_is_left_out, 0, 2);
    tcase_add_test(tests, the_first_of_several_mtp_layers_drafts_alone);
    fr_test_add_loop(tests, every_manner_of_running_gives_one_answer, FOLDERS, 1);
    fr_test_add_loop(tests, packed_experts_give_one_answer, 2, 1);
    tcase_add_test(tests, null_means_no_shared_experts);
    tcase_add_loop_test(tests, a_configuration_is_taken_or_refused_in_a_line, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(tests, a_name_that_is_missing_or_too_many_is_told, 0, sizeof names / sizeof *names);
    tcase_add_test(tests, nan_in_a_router_ends_in_a_line);
    tcase_add_test(tests, a_prompts_forwards_are_longer_alone);
    tcase_add_test(tests, gated_experts_of_width_0_are_none);
    suite_add_tcase(suite, tests);
}
