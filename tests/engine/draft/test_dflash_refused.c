/* Tests that block drafters are refused if they don't fit their target, are damaged, or are of an unsupported kind.
 * Each refusal gives one line that names the fault, and nothing stays open. Also tests the words with which a user
 * chooses a drafter, and that two spellings of the same layer kinds give the same drafts.
 *
 * The wrong files are made from the folders and files of tests/data/dflash. Members of a config.json are changed, or
 * tensors, values and keys of a GGUF file are renamed. */
/* suite: quick hostile */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/safetensors.h"
#include "forerun_lab.h"
#include "tests/support/command.h"
#include "tests/support/gguf_copy.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define DATA "tests/data/dflash/"

static char folder[64], path[128];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "%s/forerun-dflash-XXXXXX", P_tmpdir);
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
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Replaces members of `config` by the members of `changes`, also inside inner objects. A null in `changes` removes the
 * member. */
static void change(json_t *config, const json_t *changes) {
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)changes, key, value) {
        if (json_is_null(value))
            json_object_del(config, key);
        else if (json_is_object(value) && json_is_object(json_object_get(config, key)))
            change(json_object_get(config, key), value);
        else
            json_object_set(config, key, value);
    }
}

/* Replaces each occurrence of `from` in the bytes by `to`, which must have the same length. */
static void replace(uint8_t *bytes, size_t size, const char *from, const char *to) {
    size_t length = strlen(from), count = 0;
    ck_assert_uint_eq(length, strlen(to));
    for (size_t i = 0; i + length <= size; i++) {
        if (memcmp(bytes + i, from, length) != 0) continue;
        memcpy(bytes + i, to, length);
        count++;
    }
    ck_assert_msg(count > 0, "%s is nowhere", from);
}

/* A value to write into the tensor d2t, which maps draft ids to target ids. */
typedef struct damage {
    size_t index;
    int64_t value;
} damage;

/* Writes a drafter of the test data to the folder, with changes to config.json, to one tensor's name and to one value
 * of d2t. */
static void write_changed(const char *name, const char *changes, const char *from, const char *to, const damage *d2t) {
    char whole[256];
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    json_t *all = json_loads(changes, 0, NULL);
    ck_assert_msg(all != NULL, "%s", changes);
    snprintf(whole, sizeof whole, DATA "%s/drafter/config.json", name);
    json_t *config = fr_load_json(whole);
    change(config, all);
    ck_assert_int_eq(json_dump_file(config, in_folder("config.json"), 0), 0);
    json_decref(config);
    json_decref(all);
    snprintf(whole, sizeof whole, DATA "%s/drafter/model.safetensors", name);
    require(fr_map_open(&map, whole, true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    uint8_t *bytes = malloc(map.size);
    uint64_t header;
    memcpy(bytes, map.bytes, map.size);
    memcpy(&header, bytes, sizeof header);
    if (from) replace(bytes + 8, header, from, to);
    if (d2t) {
        const fr_tensor *tensor = fr_tensors_find(&tensors, "d2t");
        memcpy(bytes + ((const uint8_t *)tensor->data - map.bytes) + 8 * d2t->index, &d2t->value, sizeof d2t->value);
    }
    FILE *out = fopen(in_folder("model.safetensors"), "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, map.size, out), map.size);
    ck_assert_int_eq(fclose(out), 0);
    free(bytes);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
}

/* Opens the drafter with the target. This must fail, and the error line must contain `line`. If `line` is NULL, the
 * drafter must open and make drafts. */
static void open_drafter(const char *drafter, const char *target, const char *line, const char *what) {
    static const int32_t ids[] = {3, 141, 59, 26, 5};
    char whole[64];
    fr_model *model;
    fr_drafter *opened = NULL;
    fr_session *session;
    size_t got;
    int32_t said[FR_STEP_MAX];
    snprintf(whole, sizeof whole, DATA "%s", target);
    require(fr_model_open(target[0] == 't' ? target : whole, NULL, &model));
    fr_status status = fr_drafter_open(drafter, model, NULL, &opened);
    if (line) {
        const char *told = status == FR_OK ? "taken" : fr_last_error();
        ck_assert_msg(strstr(told, line) && !strchr(told, '\n'), "%s: %s", what, told);
        ck_assert_msg(status == (strstr(line, "not built") ? FR_UNBUILT : FR_INPUT), "%s: status %d", what, status);
        ck_assert_ptr_null(opened);
    } else {
        ck_assert_msg(status == FR_OK, "%s: %s", what, fr_last_error());
        require(fr_session_open(model, opened, NULL, &session));
        require(fr_session_prompt(session, ids, sizeof ids / sizeof *ids));
        for (size_t round = 0; round < 4; round++) require(fr_session_step(session, said, FR_STEP_MAX, &got, NULL));
        ck_assert_double_gt(fr_session_stat(session, FR_STAT_DRAFTED), 0);
        fr_session_close(session);
    }
    fr_drafter_close(opened);
    fr_model_close(model);
}

/* -------------------------------------------------------------------------------------------------- configurations */

#define ODD_TARGET "tests/data/models/llama-odd"

static const struct {
    const char *drafter, *target, *changes;
    const char *line; /* a part of the error line; NULL: the drafter is accepted */
} configurations[] = {
    {"qwen3", "qwen3", "{}", NULL},
    {"qwen3", "qwen3", "{\"block_size\": null, \"dflash_config\": {\"block_size\": 16}}", NULL},
    {"qwen3", "qwen3", "{\"block_size\": null}", NULL},
    {"qwen3", "qwen3", "{\"block_size\": 2}", NULL},
    {"qwen3", "qwen3", "{\"block_size\": 1}", "block_size"},
    {"qwen3", "qwen3", "{\"block_size\": 0}", "block_size"},
    {"qwen3", "qwen3", "{\"block_size\": -8}", "block_size"},
    {"qwen3", "qwen3", "{\"block_size\": 8.5}", "block_size"},
    {"qwen3", "qwen3", "{\"block_size\": \"8\"}", "block_size"},
    {"qwen3", "qwen3", "{\"block_size\": 4294967304}", "block_size"},
    {"dspark-qwen3", "dspark-qwen3", "{\"block_size\": 0}", "block_size"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"mask_token_id\": null}}", "mask_token_id"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"mask_token_id\": -1}}", "mask_token_id"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"mask_token_id\": 320}}", "mask_token_id is 320"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"mask_token_id\": 4294967296}}", "mask_token_id"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"mask_token_id\": [319]}}", "mask_token_id"},
    {"qwen3", "qwen3", "{\"dflash_config\": null}", "mask_token_id"},
    {"qwen3", "qwen3", "{\"dflash_config\": null, \"mask_token_id\": 319, \"target_layer_ids\": [0, 1, 3]}", NULL},
    {"qwen3", "qwen3", "{\"dflash_config\": 3}", "dflash_config"},
    {"qwen3", "qwen3", "{\"dflash_config\": [1]}", "dflash_config"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"target_layer_ids\": [0, 1, 5]}}", "target's layer 6, which has 5"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"target_layer_ids\": [0, 1, 4]}}", NULL},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"target_layer_ids\": [0, -1, 3]}}", "target_layer_ids"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"target_layer_ids\": [0, 1.5, 3]}}", "target_layer_ids"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"target_layer_ids\": [0, 1, 9223372036854775807]}}", "target_layer_ids"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"target_layer_ids\": []}}", "target_layer_ids"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"target_layer_ids\": 3}}", "target_layer_ids"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"target_layer_ids\": [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]}}", "layers"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"target_layer_ids\": [0, 1]}}", "fc.weight has shape"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"target_layer_ids\": null}}", "fc.weight has shape"},
    {"qwen3", "qwen3", "{\"hidden_size\": 128}", "hidden_size is 128, the target's 64"},
    {"qwen3", "qwen3", "{\"hidden_size\": 0}", "hidden_size"},
    {"qwen3", "qwen3", "{\"vocab_size\": 321}", "vocab_size is 321, the target's 320"},
    {"qwen3", "qwen3", "{\"vocab_size\": 319}", "vocab_size is 319, the target's 320"},
    {"qwen3", "qwen3", "{\"intermediate_size\": 96}", "gate_proj.weight has shape"},
    {"qwen3", "qwen3", "{\"num_hidden_layers\": 3}", "layer"},
    {"qwen3", "qwen3", "{\"num_hidden_layers\": 1, \"layer_types\": null}", "layers.1."},
    {"qwen3", "qwen3", "{\"num_hidden_layers\": 0}", "num_hidden_layers"},
    {"qwen3", "qwen3", "{\"num_attention_heads\": 8}", "q_proj.weight has shape"},
    {"qwen3", "qwen3", "{\"num_key_value_heads\": 4}", "k_proj.weight has shape"},
    {"qwen3", "qwen3", "{\"num_key_value_heads\": 3}", "3 key/value heads"},
    {"qwen3", "qwen3", "{\"head_dim\": 32}", "has shape"},
    {"qwen3", "qwen3", "{\"head_dim\": 15}", "heads of 15"},
    {"qwen3", "qwen3", "{\"hidden_act\": \"gelu\"}", "hidden_act gelu is not built"},
    {"qwen3", "qwen3", "{\"attention_bias\": true}", "bias is missing"},
    {"qwen3", "qwen3", "{\"layer_types\": [\"full_attention\"]}", "layer_types"},
    {"qwen3", "qwen3", "{\"layer_types\": [\"full_attention\", \"linear_attention\"]}", "layer_types"},
    {"qwen3", "qwen3", "{\"is_causal\": 3}", "is_causal"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"attention_sink_bias\": true}}", "attention_sink_bias is not built"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"attention_value_scale\": 0.5}}", "is not built"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"output_multiplier\": \"2\"}}", "output_multiplier"},
    {"qwen3", "qwen3", "{\"dflash_config\": {\"final_logit_softcapping\": \"x\"}}", "final_logit_softcapping"},
    {"llama-sliding", "llama-sliding", "{\"sliding_window\": 0}", "sliding_window"},
    {"llama-sliding", "llama-sliding", "{\"sliding_window\": -4}", "sliding_window"},
    {"llama-sliding", "llama-sliding", "{\"sliding_window\": 1}", NULL},
    {"llama-sliding", "llama-sliding", "{\"sliding_window\": 16777216}", NULL},
    {"muse-glimmer", "muse-glimmer", "{}", NULL},
    {"muse-glimmer", "muse-glimmer", "{\"layer_types\": null}", NULL},
    {"muse-glimmer", "muse-glimmer", "{\"sliding_window\": 0}", "sliding_window"},
    {"muse-glimmer", "muse-glimmer", "{\"target_layer_ids\": null}", "target's layer 14, which has 4"},
    {"muse-glimmer", "muse-glimmer", "{\"mask_token_id\": 320}", "mask_token_id is 320"},
    {"qwen3", ODD_TARGET, "{}", "the target's"},
    {"qwen3", "v2-qwen3", "{}", "num_target_layers is 5, the target's 4"},
    {"spec-llama", "spec-llama", "{}", NULL},
    {"spec-llama", "spec-llama", "{\"architectures\": [\"DFlashSpeculator\"]}", NULL},
    {"spec-llama", "spec-llama", "{\"aux_hidden_state_layer_ids\": [2, 3, 6]}", "target's layer 6, which has 5"},
    {"spec-llama", "spec-llama", "{\"aux_hidden_state_layer_ids\": [2, 3, 5]}", NULL},
    {"spec-llama", "spec-llama", "{\"aux_hidden_state_layer_ids\": [2, 3]}", "fc.weight has shape"},
    {"spec-llama", "spec-llama", "{\"draft_vocab_size\": 219}", "has shape"},
    {"spec-llama", "spec-llama", "{\"draft_vocab_size\": 640}", "640 ids is larger"},
    {"spec-llama", "spec-llama", "{\"draft_vocab_size\": 0}", "draft_vocab_size"},
    {"spec-llama", "spec-llama", "{\"target_hidden_size\": 64}", NULL},
    {"spec-llama", "spec-llama", "{\"target_hidden_size\": 96}", "target_hidden_size is 96, the target's 64"},
    {"spec-llama", "spec-llama", "{\"target_hidden_size\": -0.5}", "target_hidden_size"},
    {"spec-llama", "spec-llama", "{\"speculators_config\": {\"verifier\": {\"architectures\": 4}}}",
     "no array of words"},
    {"spec-llama", "spec-llama", "{\"speculators_config\": {\"verifier\": {\"architectures\": [4]}}}",
     "no array of words"},
    {"spec-llama", "spec-llama", "{\"speculators_config\": {\"verifier\": {\"architectures\": []}}}", NULL},
    {"spec-llama", "spec-llama", "{\"transformer_layer_config\": null}", ""},
    {"spec-llama", "spec-llama", "{\"transformer_layer_config\": \"qwen3\"}", "transformer_layer_config"},
    {"spec-llama", "spec-llama", "{\"transformer_layer_config\": {\"vocab_size\": 160}}", "is 160, the target's 320"},
    {"spec-llama", "dspark-qwen3", "{}", "drafts for LlamaForCausalLM, the target is Qwen3ForCausalLM"},
    {"v2-qwen3", "v2-qwen3", "{\"dflash_config\": {\"conv_kernel_size\": 2}}", "base_kernel has shape"},
    {"v2-qwen3", "v2-qwen3", "{\"dflash_config\": {\"conv_kernel_size\": 0}}", "conv_kernel_size"},
    {"v2-qwen3", "v2-qwen3", "{\"dflash_config\": {\"conv_group_size\": 8}}", "kernel_projection.weight has shape"},
    {"v2-qwen3", "v2-qwen3", "{\"dflash_config\": {\"conv_group_size\": 24}}", "conv_group_size"},
    {"v2-qwen3", "v2-qwen3", "{\"dflash_config\": {\"conv_group_size\": 0}}", "conv_group_size"},
    {"v2-qwen3", "v2-qwen3", "{\"dflash_config\": {\"selector_rank\": 15}}", "has shape"},
    {"v2-qwen3", "v2-qwen3", "{\"dflash_config\": {\"selector_rank\": 0}}", "selector_rank"},
    {"v2-qwen3", "v2-qwen3", "{\"dflash_config\": {\"selector_top_k\": 0}}", "selector_top_k"},
    {"v2-qwen3", "v2-qwen3", "{\"dflash_config\": {\"selector_top_k\": 321}}", "selector_top_k"},
    {"v2-qwen3", "v2-qwen3", "{\"dflash_config\": {\"selector_top_k\": 320}}", NULL},
    {"v2-qwen3", "v2-qwen3", "{\"dflash_config\": {\"selector_top_k\": 1}}", NULL},
    {"v2-spec-qwen3", "v2-spec-qwen3", "{\"draft_vocab_size\": 160}", "draft vocabulary of its own is not built"},
    {"dspark-qwen3", "dspark-qwen3", "{\"markov_head_type\": \"gated\"}", "markov_head_type \"gated\" is not built"},
    {"dspark-qwen3", "dspark-qwen3", "{\"markov_head_type\": \"rnn\"}", "markov_head_type \"rnn\" is not built"},
    {"dspark-qwen3", "dspark-qwen3", "{\"markov_head_type\": \"later\"}", "\"later\" is not built"},
    {"dspark-qwen3", "dspark-qwen3", "{\"markov_head_type\": 3}", "markov_head_type"},
    {"dspark-qwen3", "dspark-qwen3", "{\"markov_rank\": 8}", "has shape"},
    {"dspark-qwen3", "dspark-qwen3", "{\"markov_rank\": -1}", "markov_rank"},
    {"dspark-qwen3", "dspark-qwen3", "{\"confidence_head_with_markov\": false}", "has shape"},
    {"dspark-qwen3", "dspark-qwen3", "{\"sample_from_anchor\": \"yes\"}", "sample_from_anchor"},
    {"dspark-qwen3", "dspark-qwen3", "{\"sample_from_anchor\": false}", NULL},
    {"dspark-qwen3", "dspark-qwen3", "{\"speculators_model_type\": \"xpress\"}", "not built"},
    {"dspark-qwen3", "dspark-qwen3", "{\"speculators_model_type\": \"peagle\"}", "not built"},
    {"qwen3", "qwen3", "{\"architectures\": [\"Qwen3XPressModel\"]}", "not built"},
    {"dspark-dense-qwen3", "dspark-dense-qwen3", "{\"architectures\": [\"Gemma4DSparkModel\"]}", "not built"},
    {"dspark-dense-qwen3", "dspark-dense-qwen3", "{\"architectures\": [\"DSparkDraftModel\"]}", NULL},
    {"dspark-dense-qwen3", "dspark-dense-qwen3", "{\"architectures\": [\"LingDSparkModel\"]}", NULL},
};

START_TEST(configurations_that_do_not_fit) {
    write_changed(configurations[_i].drafter, configurations[_i].changes, NULL, NULL, NULL);
    open_drafter(folder, configurations[_i].target, configurations[_i].line, configurations[_i].changes);
}
END_TEST

/* Pairs of spellings for the kinds of a drafter's layers (full or sliding attention). transformers' Qwen3 configuration
 * makes a missing layer_types from max_window_layers. If use_sliding_window is off, it drops the window. In the
 * speculators library a sliding layer without a window is the same as a full layer. test_dflash.c compares a
 * configuration that has both keys. */
static const struct {
    const char *drafter, *listed, *other; /* two changes of config.json that mean the same */
} spellings[] = {
    {"llama-sliding", "{\"layer_types\": [\"full_attention\", \"full_attention\", \"sliding_attention\"]}",
     "{\"layer_types\": null, \"max_window_layers\": 2}"},
    {"llama-sliding", "{\"layer_types\": [\"sliding_attention\", \"sliding_attention\", \"sliding_attention\"]}",
     "{\"layer_types\": null, \"max_window_layers\": 0}"},
    {"llama-sliding", "{\"layer_types\": [\"full_attention\", \"full_attention\", \"full_attention\"]}",
     "{\"layer_types\": null, \"max_window_layers\": null}"},
    {"llama-sliding", "{\"layer_types\": [\"full_attention\", \"full_attention\", \"full_attention\"]}",
     "{\"layer_types\": null, \"max_window_layers\": 0, \"use_sliding_window\": false}"},
    {"odd-dspark-window", "{\"layer_types\": [\"full_attention\", \"sliding_attention\"]}",
     "{\"layer_types\": null, \"max_window_layers\": 1}"},
    {"odd-dspark-window", "{\"layer_types\": [\"full_attention\", \"full_attention\"]}",
     "{\"use_sliding_window\": false}"},
    {"spec-llama", "{\"transformer_layer_config\": {\"layer_types\": [\"full_attention\", \"full_attention\"]}}",
     "{\"transformer_layer_config\": {\"sliding_window\": null, \"use_sliding_window\": false}}"},
    {"spec-llama", "{\"transformer_layer_config\": {\"layer_types\": [\"full_attention\", \"sliding_attention\"]}}",
     "{\"transformer_layer_config\": {\"layer_types\": null, \"max_window_layers\": 1}}"},
};

enum { LONG = 40, DRAFTS = 4, VOCAB = 320 };

/* Runs a drafter with changes to its config.json after a text of LONG ids. Returns the scores of its drafts in
 * `scores`. */
static void score_changed(const char *name, const char *changes, float *scores) {
    char target[64];
    int32_t ids[LONG];
    fr_rows rows = {scores, 0, DRAFTS * VOCAB};
    fr_model *model;
    fr_drafter *drafter;
    fr_session *session;
    for (int32_t i = 0; i < LONG; i++) ids[i] = 3 + i * 37 % 300;
    write_changed(name, changes, NULL, NULL, NULL);
    snprintf(target, sizeof target, DATA "%s", name);
    require(fr_model_open(target, NULL, &model));
    require(fr_drafter_open(folder, model, NULL, &drafter));
    require(fr_session_open(model, drafter, NULL, &session));
    require(fr_session_draft_logits(session, ids, LONG, DRAFTS, fr_rows_collect, &rows));
    ck_assert_uint_eq(rows.count, DRAFTS * VOCAB);
    fr_session_close(session);
    fr_drafter_close(drafter);
    fr_model_close(model);
}

START_TEST(spellings_of_the_same_layers_draft_alike) {
    float listed[DRAFTS * VOCAB], other[DRAFTS * VOCAB], own[DRAFTS * VOCAB];
    score_changed(spellings[_i].drafter, "{}", own);
    score_changed(spellings[_i].drafter, spellings[_i].listed, listed);
    score_changed(spellings[_i].drafter, spellings[_i].other, other);
    ck_assert_mem_eq(listed, other, sizeof listed);
    ck_assert_mem_ne(listed, own, sizeof listed);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- tensors */

static const struct {
    const char *drafter, *from, *to; /* a tensor's name, shape or type, and its replacement */
    damage d2t;                      /* if `from` is NULL, this value is changed instead */
    const char *line;
} tensors[] = {
    {"qwen3", "\"fc.weight\"", "\"fd.weight\"", {0, 0}, "fc.weight is missing"},
    {"qwen3", "\"hidden_norm.weight\"", "\"hidden_form.weight\"", {0, 0}, "hidden_norm.weight is missing"},
    {"qwen3", "\"norm.weight\"", "\"form.weight\"", {0, 0}, "norm.weight is missing"},
    {"qwen3", "1.self_attn.k_norm", "1.self_attn.k_form", {0, 0}, "k_norm.weight is missing"},
    {"qwen3", "0.mlp.gate_proj", "0.mlp.late_proj", {0, 0}, "gate_proj.weight is missing"},
    {"qwen3", "[64,192]", "[192,64]", {0, 0}, "fc.weight has shape"},
    {"v2-qwen3", "1.mlp_conv.base_kernel", "1.mlp_conv.case_kernel", {0, 0}, "mlp_conv.base_kernel is missing"},
    {"v2-qwen3", "0.attention_conv.kernel_p", "0.attention_conv.colnel_p", {0, 0}, NULL},
    {"v2-qwen3", "successor_codebook", "successes_codebook", {0, 0}, NULL},
    {"v2-qwen3", "hidden_projection", "hidden_projector_", {0, 0}, "hidden_projection.weight is missing"},
    {"dspark-qwen3", "markov_w1", "markov_w3", {0, 0}, "markov_w1.weight is missing"},
    {"dspark-qwen3", "markov_w2", "markov_w4", {0, 0}, "markov_w2.weight is missing"},
    {"dspark-qwen3", "confidence_head.proj.w", "confidence_head.prog.w", {0, 0}, "proj.weight is missing"},
    {"dspark-qwen3", "\"lm_head.weight\"", "\"lm_heap.weight\"", {0, 0}, "lm_head.weight is missing"},
    {"dspark-qwen3", "\"d2t\"", "\"d3t\"", {0, 0}, "d2t is missing"},
    {"dspark-qwen3", NULL, NULL, {199, 121}, "d2t has 121 at index 199"},
    {"dspark-qwen3", NULL, NULL, {3, -4}, "d2t has -4 at index 3"},
    {"dspark-qwen3", NULL, NULL, {199, INT64_MAX}, "d2t has 9223372036854775807 at index 199"},
    {"dspark-qwen3", NULL, NULL, {199, INT64_MIN}, "d2t has -9223372036854775808 at index 199"},
    {"dspark-qwen3", NULL, NULL, {199, 118}, "twice"},
    {"spec-llama", NULL, NULL, {219, 101}, "d2t has 101 at index 219"},
};

START_TEST(tensors_that_do_not_fit) {
    bool damaged = !tensors[_i].from;
    write_changed(tensors[_i].drafter, "{}", tensors[_i].from, tensors[_i].to, damaged ? &tensors[_i].d2t : NULL);
    open_drafter(folder, tensors[_i].drafter, tensors[_i].line ? tensors[_i].line : "is missing",
                 damaged ? "d2t" : tensors[_i].from);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ GGUF */

static const struct {
    const char *drafter, *key, *line;
} keys[] = {
    {"qwen3", "tokenizer.ggml.mask_token_id", "mask_token_id"},
    {"qwen3", "dflash.target_layers", "target_layers"},
    {"qwen3", "dflash.embedding_length", "embedding_length"},
    {"qwen3", "dflash.block_count", "block_count"},
    /* if the key is missing, the size is 2, but the tensors have 3 */
    {"v2-qwen3", "dflash.conv_kernel_size", "conv"},
    {"v2-qwen3", "dflash.selector_rank", "selector_"}, /* if the key is missing, the rank is 256 */
};

START_TEST(files_that_lack_a_key) {
    char whole[128];
    snprintf(whole, sizeof whole, DATA "%s/drafter.gguf", keys[_i].drafter);
    fr_gguf_hide_key(whole, in_folder("drafter.gguf"), keys[_i].key);
    open_drafter(in_folder("drafter.gguf"), keys[_i].drafter, keys[_i].line, keys[_i].key);
}
END_TEST

static const struct {
    const char *drafter, *from, *to, *line;
} file_tensors[] = {
    {"qwen3", "fc.weight", "fd.weight", "fc.weight is missing"},
    {"qwen3", "enc.output_norm.weight", "enc.output_form.weight", "enc.output_norm.weight is missing"},
    {"qwen3", "blk.1.attn_k_norm", "blk.1.attn_k_form", "attn_k_norm.weight is missing"},
    {"v2-qwen3", "blk.0.ffn_conv_base", "blk.0.ffn_conv_case", "ffn_conv_base is missing"},
    {"v2-qwen3", "selector_successor", "selector_successes", "selector_successor.weight is missing"},
    {"dspark-qwen3", "markov_w2", "markov_w4", "markov_w2.weight is missing"},
    {"dspark-qwen3", "output.weight", "outpup.weight", ""},
};

/* Copies a drafter's file to the folder. In the copy, `from` is replaced by `to`. */
static void write_file(const char *drafter, const char *from, const char *to) {
    char whole[128];
    size_t length;
    snprintf(whole, sizeof whole, DATA "%s/drafter.gguf", drafter);
    char *bytes = fr_load_text(whole, &length);
    replace((uint8_t *)bytes, length, from, to);
    FILE *out = fopen(in_folder("drafter.gguf"), "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, length, out), length);
    ck_assert_int_eq(fclose(out), 0);
    free(bytes);
}

START_TEST(files_that_lack_a_tensor) {
    write_file(file_tensors[_i].drafter, file_tensors[_i].from, file_tensors[_i].to);
    open_drafter(in_folder("drafter.gguf"), file_tensors[_i].drafter, file_tensors[_i].line, file_tensors[_i].from);
}
END_TEST

START_TEST(files_of_another_target) {
    open_drafter(DATA "qwen3/drafter.gguf", ODD_TARGET, "the target's", "another width");
}
END_TEST

/* ---------------------------------------------------------------------------------------------- the option's words */

/* The word with which the user chooses a draft method must fit the drafter. */
START_TEST(words_are_the_drafters) {
    static const struct {
        const char *drafter, *words;
        fr_status status;
    } words[] = {{"qwen3", "dflash", FR_OK},
                 {"qwen3", "draft-dflash", FR_OK},
                 {"qwen3", "ngram,dflash", FR_OK},
                 {"qwen3", "none", FR_OK},
                 {"qwen3", "dflash2", FR_USAGE},
                 {"qwen3", "dspark", FR_USAGE},
                 {"qwen3", "eagle3", FR_USAGE},
                 {"qwen3", "mtp", FR_USAGE},
                 {"v2-qwen3", "dflash2", FR_OK},
                 {"v2-qwen3", "draft-dflash2", FR_OK},
                 {"v2-qwen3", "dspark", FR_USAGE},
                 {"dspark-qwen3", "dspark", FR_OK},
                 {"dspark-qwen3", "draft-dspark", FR_OK},
                 {"dspark-qwen3", "dflash", FR_USAGE},
                 {NULL, "dflash", FR_USAGE},
                 {NULL, "dspark", FR_USAGE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *name = words[i].drafter ? words[i].drafter : "qwen3";
        char target[64], whole[64];
        fr_options *options = fr_options_new();
        fr_model *model;
        fr_drafter *drafter = NULL;
        fr_session *session;
        snprintf(target, sizeof target, DATA "%s", name);
        snprintf(whole, sizeof whole, DATA "%s/drafter", name);
        require(fr_options_set_text(options, FR_OPT_SPEC_TYPE, words[i].words));
        require(fr_model_open(target, options, &model));
        if (words[i].drafter) require(fr_drafter_open(whole, model, options, &drafter));
        fr_status status = fr_session_open(model, drafter, options, &session);
        ck_assert_msg(status == words[i].status, "%s: %s: %d", name, words[i].words, status);
        if (status == FR_OK) fr_session_close(session);
        fr_drafter_close(drafter);
        fr_model_close(model);
        fr_options_free(options);
    }
}
END_TEST

/* ----------------------------------------------------------------------------------------------------- the command */

static const struct {
    const char *line, *says;
    int status;
} commands[] = {
    /* A user may give a drafter where a model is expected. The error line then says that it is a drafter, and which
     * target it needs. */
    {"generate -m " DATA "qwen3/drafter --ids 1,2,3 -n 2", "drafter", 1},
    {"generate -m " DATA "dspark-qwen3/drafter --ids 1,2,3 -n 2", "drafter", 1},
    {"generate -m " DATA "v2-qwen3/drafter.gguf --ids 1,2,3 -n 2", "drafter", 1},
    {"generate -m " DATA "qwen3 -md " DATA "qwen3/drafter --ids 1,2,3 -n 2 --draft-max 16", "16", 2},
    {"generate -m " DATA "v2-qwen3 -md " DATA "v2-qwen3/drafter --spec-type dflash --ids 1,2,3 -n 2", "dflash", 2},
    {"generate -m " DATA "qwen3 --spec-type dflash --ids 1,2,3 -n 2", "dflash", 2},
    {"generate -m " DATA "qwen3 -md " DATA "v2-qwen3/drafter --spec-type xpress --ids 1,2,3 -n 2", "xpress", 2},
};

START_TEST(commands_end_in_one_line) {
    fr_command command = fr_command_run(commands[_i].line, NULL);
    ck_assert_msg(command.status == commands[_i].status, "%d: %s", command.status, command.err);
    ck_assert_uint_eq(command.out_length, 0);
    ck_assert_msg(strstr(command.err, commands[_i].says) != NULL, "%s", command.err);
    ck_assert_msg(strchr(command.err, '\n') == command.err + command.err_length - 1, "%s", command.err);
    fr_command_free(&command);
}
END_TEST

FR_SUITE("dflash refused") {
    TCase *tests = tcase_create("refused");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_loop_test(tests, configurations_that_do_not_fit, 0, sizeof configurations / sizeof *configurations);
    tcase_add_loop_test(tests, spellings_of_the_same_layers_draft_alike, 0, sizeof spellings / sizeof *spellings);
    tcase_add_loop_test(tests, tensors_that_do_not_fit, 0, sizeof tensors / sizeof *tensors);
    tcase_add_loop_test(tests, files_that_lack_a_key, 0, sizeof keys / sizeof *keys);
    tcase_add_loop_test(tests, files_that_lack_a_tensor, 0, sizeof file_tensors / sizeof *file_tensors);
    tcase_add_test(tests, files_of_another_target);
    tcase_add_test(tests, words_are_the_drafters);
    tcase_add_loop_test(tests, commands_end_in_one_line, 0, sizeof commands / sizeof *commands);
    suite_add_tcase(suite, tests);
}
