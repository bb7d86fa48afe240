/* Tests Qwen3.5 and Qwen3-Next. llama.cpp's converter made GGUF files of the fixtures' folders
 * (tests/references/converted.py). The converter's files must give transformers' logits, and forerun's files must have
 * the same tensors as the converter's. MTP layers are read from files of their own. Wrong configurations, names and
 * files are refused. test_reference.c compares folders with transformers. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "forerun_lab.h"
#include "formats/gguf.h"
#include "src/convert/quantize_types.h"
#include "tests/support/changed_folder.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define FILES "tests/data/qwen35/"

/* These models have 3, 1, 2, 2 and 2 value heads for each key head. The last three are mixtures of experts. */
static const char *const names[] = {"qwen35-odd", "qwen35-tied", "qwen35-moe-odd", "qwen35-moe-tied", "qwen3-next-odd"};

enum { NAMES = sizeof names / sizeof *names };

static fr_test_folder folder;

static void make_folder(void) {
    fr_folder_make(&folder);
}

static void remove_folder(void) {
    static const char *const files[] = {"config.json", "model.safetensors", "model.gguf"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(folder.file, sizeof folder.file, "%s/%s", folder.path, files[i]);
        unlink(folder.file);
    }
    ck_assert_int_eq(rmdir(folder.path), 0);
}

static const char *folder_of(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, FR_TEST_MODELS "%s", name);
    return path;
}

static const char *file_of(const char *name) {
    static char path[128];
    static const char most[] = "qwen35-"; /* the file of a fixture whose name begins with this is named without it */
    bool shorter = strncmp(name, most, sizeof most - 1) == 0;
    snprintf(path, sizeof path, FILES "%s.gguf", shorter ? name + sizeof most - 1 : name);
    return path;
}

/* ------------------------------------------------------------------------------------ comparison with the converter */

static void quantize(const char *path, const char *type) {
    const fr_lab_quantization how = {.type = type};
    snprintf(folder.file, sizeof folder.file, "%s/model.gguf", folder.path);
    FILE *out = fopen(folder.file, "wb");
    ck_assert_ptr_nonnull(out);
    require(fr_lab_quantize(path, &how, NULL, out));
    fclose(out);
}

/* Compares decays, which are negative exponentials. forerun computes them in double precision, so when they are rounded
 * to floats they may differ from the converter's by one unit in the last place. */
static void compare_decays(const fr_tensor *ours, const fr_tensor *theirs) {
    const int32_t *a = ours->data, *b = theirs->data;
    for (size_t i = 0; i < ours->bytes / sizeof *a; i++)
        ck_assert_msg(labs((long)a[i] - (long)b[i]) <= 1, "%s, value %zu", ours->name, i);
}

static void compare_tensors(const fr_checkpoint *ours, const fr_checkpoint *theirs) {
    ck_assert_uint_eq(ours->tensors.count, theirs->tensors.count);
    for (size_t i = 0; i < ours->tensors.count; i++) {
        const fr_tensor *a = &ours->tensors.items[i], *b = fr_tensors_find(&theirs->tensors, a->name);
        ck_assert_msg(b != NULL, "the converter writes no %s", a->name);
        ck_assert_msg(a->type == b->type && a->dims == b->dims, "%s has another type or shape", a->name);
        ck_assert_mem_eq(a->shape, b->shape, a->dims * sizeof *a->shape);
        if (strstr(a->name, "ssm_a"))
            compare_decays(a, b);
        else
            ck_assert_msg(memcmp(a->data, b->data, a->bytes) == 0, "%s has other bytes", a->name);
    }
}

/* Compares the keys of two files. Two kinds of keys may be only in the converter's file: a name, and the interval of
 * attention layers. forerun does not write the interval, because these folders do not have it. */
static void compare_keys(const fr_checkpoint *ours, const fr_checkpoint *theirs) {
    static const char *const own[] = {"general.name", "qwen35.full_attention_interval",
                                      "qwen35moe.full_attention_interval", "qwen3next.full_attention_interval"};
    size_t compared = 0;
    for (size_t i = 0; i < theirs->gguf->count; i++) {
        const fr_gguf_value *b = &theirs->gguf->values[i];
        char key[128];
        bool skipped = false;
        snprintf(key, sizeof key, "%.*s", (int)b->key.length, b->key.bytes);
        for (size_t k = 0; k < sizeof own / sizeof *own; k++) skipped |= strcmp(key, own[k]) == 0;
        const fr_gguf_value *a = fr_gguf_find(ours->gguf, key);
        ck_assert_msg(a != NULL || skipped, "no key %s", key);
        if (skipped) continue;
        ck_assert_msg(a->type == b->type && a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0,
                      "key %s has another value", key);
        compared++;
    }
    ck_assert_uint_gt(compared, 20);
}

START_TEST(a_folder_becomes_the_converters_file) {
    fr_checkpoint ours, theirs;
    quantize(folder_of(names[_i]), "bf16");
    require(fr_checkpoint_open(&ours, folder.file, true));
    require(fr_checkpoint_open(&theirs, file_of(names[_i]), true));
    compare_tensors(&ours, &theirs);
    compare_keys(&ours, &theirs);
    fr_checkpoint_close(&ours);
    fr_checkpoint_close(&theirs);
}
END_TEST

/* llama.cpp's converter counts the MTP layers in the tensors if the configuration has no key for them. From such a
 * folder it writes the same file (made once with qwen35-odd's folder without the key). */
START_TEST(tensors_tell_of_an_mtp_layer) {
    fr_changed_folder copy;
    fr_checkpoint ours, theirs;
    fr_changed_folder_make(&copy, folder_of("qwen35-odd"), "{\"mtp_num_hidden_layers\": null}");
    quantize(copy.path, "bf16");
    require(fr_checkpoint_open(&ours, folder.file, true));
    require(fr_checkpoint_open(&theirs, file_of("qwen35-odd"), true));
    compare_tensors(&ours, &theirs);
    compare_keys(&ours, &theirs);
    fr_checkpoint_close(&ours);
    fr_checkpoint_close(&theirs);
    fr_changed_folder_remove(&copy);
}
END_TEST

/* llama-quantize gives more bits to the value matrix of some attention layers. It treats the fused matrix of a DeltaNet
 * layer in the same way. */
START_TEST(values_have_more_bits_in_some_layers) {
    static const char *const matrices[] = {"blk.0.attn_qkv.weight", "blk.1.attn_qkv.weight", "blk.2.attn_qkv.weight",
                                           "blk.3.attn_v.weight", "blk.4.attn_v.weight"};
    static const fr_dtype expected[] = {FR_Q4_K, FR_Q4_K, FR_Q6_K, FR_Q4_K, FR_Q6_K};
    fr_type_choice choice;
    fr_outputs outputs = {.layers = 5, .gqa = 2};
    require(fr_type_choice_read(&choice, &(fr_lab_quantization){.type = "q4_k"}));
    require(fr_outputs_add(&outputs, "blk.0.ssm_conv1d.weight", NULL));
    for (size_t i = 0; i < 5; i++) require(fr_outputs_add(&outputs, matrices[i], NULL));
    for (size_t i = 0; i < outputs.count; i++) {
        outputs.items[i].dims = 2;
        outputs.items[i].shape[0] = outputs.items[i].shape[1] = 256;
    }
    require(fr_choose_types(&choice, &outputs));
    ck_assert_int_eq(outputs.items[0].type, FR_F32);
    for (size_t i = 0; i < 5; i++) ck_assert_msg(outputs.items[i + 1].type == expected[i], "%s", matrices[i]);
    fr_outputs_free(&outputs);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- logits */

/* Generates greedy text. If there is a drafter, the text is generated with drafts. Returns how many drafts were
 * accepted. */
static size_t generate(const fr_model *model, const fr_drafter *drafter, const int32_t *prompt, size_t count,
                       int32_t *ids, size_t wanted) {
    size_t stood = 0;
    fr_session *session;
    fr_options *options = fr_options_new();
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, 3));
    require(fr_session_open(model, drafter, options, &session));
    require(fr_session_prompt(session, prompt, count));
    for (size_t made = 0, got, accepted; made < wanted; made += got, stood += accepted)
        require(fr_session_step(session, ids + made, wanted - made, &got, &accepted));
    fr_session_close(session);
    fr_options_free(options);
    return stood;
}

/* Compares the logits of all prompts, and the greedy text, with the reference. If `drafter` is NULL, the text is
 * generated without drafts. */
static void check_against(const fr_reference *r, const fr_model *model, const fr_drafter *drafter) {
    json_t *prompts = json_object_get(r->info, "prompts"), *text;
    fr_session *session;
    size_t index;
    require(fr_session_open(model, NULL, NULL, &session));
    for (size_t p = 0; p < json_array_size(prompts); p++) {
        size_t count, size;
        int32_t *ids = fr_json_ids_of(json_array_get(prompts, p), &count);
        const float *expected = fr_reference_floats(r, &size, "prompt.%zu.logits", p);
        fr_rows got = {malloc(size * sizeof(float)), 0, size};
        require(fr_session_logits(session, ids, count, 0, fr_rows_collect, &got));
        fr_rows_compare(got.values, expected, size);
        free(got.values);
        free(ids);
    }
    fr_session_close(session);
    json_array_foreach (json_object_get(r->info, "greedy"), index, text) {
        size_t count, wanted, prompt = (size_t)json_integer_value(json_object_get(text, "prompt"));
        int32_t *ids = fr_json_ids_of(json_array_get(prompts, prompt), &count);
        int32_t *expected = fr_json_ids_of(json_object_get(text, "tokens"), &wanted);
        int32_t *got = calloc(wanted, sizeof *got);
        size_t stood = generate(model, drafter, ids, count, got, wanted);
        ck_assert_mem_eq(got, expected, wanted * sizeof *got);
        ck_assert(!drafter || stood >= 8);
        free(ids);
        free(expected);
        free(got);
    }
    ck_assert_uint_gt(index, 0);
}

/* In the folder, the value heads that share a key head are next to each other. In the file they are interleaved. Both
 * must give the reference's logits. */
START_TEST(folders_and_files_have_the_references_logits) {
    fr_reference r;
    fr_model *file;
    fr_drafter *drafter;
    fr_reference_open(&r, names[_i], NULL);
    check_against(&r, r.model, r.drafter);
    require(fr_model_open(file_of(names[_i]), NULL, &file));
    require(fr_drafter_open(NULL, file, NULL, &drafter));
    check_against(&r, file, drafter);
    fr_drafter_close(drafter);
    fr_model_close(file);
    fr_reference_close(&r);
}
END_TEST

/* FP8 codes are converted to other types. As float32 the file must give the reference's logits; this shows that codes,
 * scales and the order of heads are right. With fewer bits the text may differ from the reference's. It must still be
 * the same with the MTP layer's drafts as without drafts. */
START_TEST(codes_become_files_of_any_type) {
    static const char *const types[] = {"f32", "q8_0", "q4_0"};
    fr_reference r;
    fr_model *file;
    fr_drafter *drafter;
    size_t count;
    int32_t got[48];
    fr_reference_open(&r, "qwen35-fp8", NULL);
    quantize(r.folder, types[_i]);
    require(fr_model_open(folder.file, NULL, &file));
    require(fr_drafter_open(NULL, file, NULL, &drafter));
    if (_i == 0) {
        check_against(&r, r.model, r.drafter);
        check_against(&r, file, drafter);
    }
    int32_t *ids = fr_json_ids_of(json_array_get(json_object_get(r.info, "prompts"), 4), &count);
    ck_assert_uint_ge(generate(file, drafter, ids, count, got, 48), 4);
    free(ids);
    fr_drafter_close(drafter);
    fr_model_close(file);
    fr_reference_close(&r);
}
END_TEST

/* ------------------------------------------------------------------------------------ MTP layers in their own files */

START_TEST(an_mtp_layer_drafts_from_a_file_of_its_own) {
    fr_reference r;
    fr_model *trunk;
    fr_drafter *drafter;
    fr_reference_open(&r, "qwen35-tied", NULL);
    require(fr_model_open(FILES "tied-trunk.gguf", NULL, &trunk));
    ck_assert_int_eq(fr_model_fact(trunk, FR_FACT_MTP_LAYERS), 0);
    require(fr_drafter_open(FILES "tied-mtp.gguf", trunk, NULL, &drafter));
    check_against(&r, trunk, drafter);
    fr_drafter_close(drafter);
    /* a model in a folder can also use the MTP layer of a file */
    require(fr_drafter_open(FILES "tied-mtp.gguf", r.model, NULL, &drafter));
    check_against(&r, r.model, drafter);
    fr_drafter_close(drafter);
    fr_model_close(trunk);
    fr_reference_close(&r);
}
END_TEST

static void expect_line(fr_status status, fr_status expected, const char *part) {
    ck_assert_msg(status == expected, "%d: %s", status, status == FR_OK ? "" : fr_last_error());
    ck_assert_msg(strstr(fr_last_error(), part) && !strchr(fr_last_error(), '\n'), "%s", fr_last_error());
}

START_TEST(a_file_of_an_mtp_layer_fits_its_target_alone) {
    fr_model *model;
    fr_drafter *drafter;
    expect_line(fr_model_open(FILES "tied-mtp.gguf", NULL, &model), FR_INPUT, "is a drafter (qwen35)");
    require(fr_model_open(FILES "tied-trunk.gguf", NULL, &model));
    expect_line(fr_drafter_open(NULL, model, NULL, &drafter), FR_INPUT, "has no MTP layer");
    fr_model_close(model);
    require(fr_model_open(FR_TEST_MODELS "llama", NULL, &model));
    expect_line(fr_drafter_open(FILES "tied-mtp.gguf", model, NULL, &drafter), FR_INPUT,
                "is an MTP layer of architecture \"qwen35\"");
    fr_model_close(model);
    require(fr_model_open(file_of("odd"), NULL, &model));
    expect_line(fr_drafter_open(FILES "tied-mtp.gguf", model, NULL, &drafter), FR_INPUT, "tensor blk.7.");
    fr_model_close(model);
    fr_options *options = fr_options_new();
    expect_line(fr_lab_pack(FILES "tied-mtp.gguf", options, stderr), FR_INPUT, "is an MTP layer alone, packed beside");
    fr_options_free(options);
}
END_TEST

/* --------------------------------------------------------------------------------------------------- changed files */

/* Copies a file. In the copy, each occurrence of `text` is replaced by `instead`, which has the same length. */
static void copy_changed(const char *from, const char *name, const char *text, const char *instead) {
    size_t size, length = strlen(text), found = 0;
    char *bytes = fr_load_text(from, &size);
    ck_assert_uint_eq(length, strlen(instead));
    for (size_t i = 0; i + length <= size; i++)
        if (memcmp(bytes + i, text, length) == 0) found += memcpy(bytes + i, instead, length) != NULL;
    ck_assert_uint_gt(found, 0);
    snprintf(folder.file, sizeof folder.file, "%s/%s", folder.path, name);
    FILE *out = fopen(folder.file, "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, size, out), size);
    fclose(out);
    free(bytes);
}

/* Opens the changed model and then its MTP layer. Returns the first failure. */
static fr_status open_both(const char *path) {
    fr_model *model;
    fr_drafter *drafter = NULL;
    FR_TRY(fr_model_open(path, NULL, &model));
    fr_status status = fr_drafter_open(NULL, model, NULL, &drafter);
    fr_drafter_close(drafter);
    fr_model_close(model);
    return status;
}

/* When a tensor is renamed, one tensor is missing and another is unknown. The error line must name one of the two. */
START_TEST(a_tensor_that_is_missing_or_too_many_is_named) {
    static const char *const renamed[][4] = {
        {"qwen35-odd", "layers.0.linear_attn.dt_bias", "layers.0.linear_attn.xt_bias", "linear_attn."},
        {"qwen35-odd", "layers.0.linear_attn.conv1d.weight", "layers.0.linear_attn.xonv1d.weight", "linear_attn."},
        {"qwen35-odd", "layers.1.self_attn.q_norm.weight", "layers.1.self_attn.x_norm.weight", "self_attn."},
        {"qwen35-odd", "mtp.fc.weight", "mtp.fx.weight", "mtp.f"},
        {"qwen35-odd", "mtp.norm.weight", "mtp.nxrm.weight", "mtp.n"},
        {"qwen35-odd", "mtp.layers.0.mlp.up_proj.weight", "mtp.layers.0.mlp.ux_proj.weight", "mtp.layers.0.mlp.u"},
        {"qwen35-odd", "mtp.layers.0.mlp.up_proj.weight", "mtp.layers.1.mlp.up_proj.weight",
         "mtp.layers.1.mlp.up_proj"},
        {"qwen35-moe-odd", "mtp.layers.0.mlp.experts.6.down_proj", "mtp.layers.0.mlp.experts.7.down_proj",
         "mtp.layers.0.mlp"},
        {"qwen35-tied", "model.visual.patch_embed.proj.bias", "mtp.layers.0.mlp.experts.down_proj",
         "nothing reads tensor mtp."},
    };
    char from[160];
    snprintf(from, sizeof from, "%s/config.json", folder_of(renamed[_i][0]));
    copy_changed(from, "config.json", "{", "{");
    snprintf(from, sizeof from, "%s/model.safetensors", folder_of(renamed[_i][0]));
    copy_changed(from, "model.safetensors", renamed[_i][1], renamed[_i][2]);
    expect_line(open_both(folder.path), FR_INPUT, renamed[_i][3]);
}
END_TEST

START_TEST(a_key_of_a_file_is_checked) {
    static const char *const keys[][3] = {
        {"qwen35.ssm.group_count", "qwen35.ssm.grxup_count", "ssm.group_count"},
        {"qwen35.rope.dimension_sections", "qwen35.rope.dimensixn_sections", "rope.dimension_sections"},
        {"nextn.enorm.weight", "nextn.enxrm.weight", "nextn.en"},
        {"qwen35.ssm.inner_size", "qwen35.ssm.innxr_size", "ssm.inner_size"},
    };
    copy_changed(FILES "tied.gguf", "model.gguf", keys[_i][0], keys[_i][1]);
    expect_line(open_both(folder.file), FR_INPUT, keys[_i][2]);
}
END_TEST

/* Older converters wrote an interval of attention layers instead of the kind of each layer. A file that leaves out the
 * MTP layer does not count this layer in its number of layers. */
START_TEST(an_older_file_tells_by_an_interval) {
    fr_model *model;
    copy_changed(FILES "tied-trunk.gguf", "model.gguf", "qwen35.attention.recurrent_layers",
                 "qwen35.attention.recurrent_lxyers");
    /* in the file the interval is 4, but in this model every third layer has attention */
    expect_line(fr_model_open(folder.file, NULL, &model), FR_INPUT, "blk.");
    copy_changed(FILES "tied-trunk.gguf", "model.gguf", "qwen35.full_attention_interval",
                 "qwen35.fxll_attention_interval");
    require(fr_model_open(folder.file, NULL, &model));
    ck_assert_int_eq(fr_model_fact(model, FR_FACT_MTP_LAYERS), 0);
    fr_model_close(model);
}
END_TEST

/* -------------------------------------------------------------------------------------------------- configurations */

static const struct {
    const char *name, *changes;
    fr_status status;
    const char *line; /* a part of the error line */
} cases[] = {
    {"qwen35-odd", "{}", FR_OK, ""},
    /* the fixture's layer_types has priority over this key */
    {"qwen35-odd", "{\"full_attention_interval\": 3}", FR_OK, ""},
    {"qwen35-odd", "{\"layer_types\": null, \"full_attention_interval\": 2}", FR_INPUT, "layers.3."},
    {"qwen35-odd", "{\"layer_types\": null, \"full_attention_interval\": 0}", FR_INPUT, "full_attention_interval"},
    {"qwen35-odd", "{\"layer_types\": [\"full_attention\"]}", FR_INPUT, "not an array of 7"},
    {"qwen35-odd", "{\"num_hidden_layers\": 6}", FR_INPUT, "not an array of 6"},
    {"qwen35-odd", "{\"layer_types\": {\"a\": 1}}", FR_INPUT, "layer_types"},
    {"qwen35-odd", "{\"layer_types\": [1, 2, 3, 4, 5, 6, 7]}", FR_INPUT, "layer_types has"},
    {"qwen35-odd", "{\"linear_num_value_heads\": 5}", FR_INPUT, "5 value heads of DeltaNet"},
    {"qwen35-odd", "{\"linear_num_value_heads\": 4}", FR_INPUT, "in_proj_qkv.weight has shape"},
    {"qwen35-odd", "{\"linear_num_key_heads\": 0}", FR_INPUT, "linear_num_key_heads"},
    {"qwen35-odd", "{\"linear_key_head_dim\": 13}", FR_INPUT, "in_proj_qkv.weight has shape"},
    {"qwen35-odd", "{\"linear_value_head_dim\": 5000}", FR_INPUT, "linear_value_head_dim"},
    {"qwen35-odd", "{\"linear_conv_kernel_dim\": 4}", FR_INPUT, "conv1d.weight has shape"},
    {"qwen35-odd", "{\"linear_conv_kernel_dim\": 17}", FR_INPUT, "linear_conv_kernel_dim"},
    {"qwen35-odd", "{\"attention_bias\": true}", FR_UNBUILT, "attention_bias"},
    {"qwen35-odd", "{\"attn_output_gate\": false}", FR_UNBUILT, "attn_output_gate"},
    {"qwen35-odd", "{\"mtp_use_dedicated_embeddings\": true}", FR_UNBUILT, "mtp_use_dedicated_embeddings"},
    {"qwen35-odd", "{\"mtp_num_hidden_layers\": 2}", FR_UNBUILT, "2 MTP layers"},
    {"qwen35-odd", "{\"hidden_act\": \"gelu\"}", FR_UNBUILT, "hidden_act gelu"},
    {"qwen35-odd", "{\"rope_parameters\": {\"rope_type\": \"ntk\"}}", FR_UNBUILT, "rope_type ntk"},
    {"qwen35-odd", "{\"rope_scaling\": {\"type\": \"linear\", \"mrope_section\": [2, 1, 1]}}", FR_INPUT, "factor"},
    {"qwen35-odd", "{\"rope_parameters\": {\"partial_rotary_factor\": 0.4, \"mrope_section\": [2, 2, 1]}}", FR_INPUT,
     "have 5 angles, the heads 4"},
    {"qwen35-odd", "{\"rope_parameters\": {\"mrope_section\": [2, 2]}}", FR_INPUT, "mrope_section is not"},
    {"qwen35-odd", "{\"rope_parameters\": null, \"partial_rotary_factor\": 0.4, \"rope_theta\": 5000.0}", FR_OK, ""},
    {"qwen35-odd", "{\"rope_parameters\": []}", FR_INPUT, "rope_parameters"},
    /* the folder has its own head, so the key has no effect */
    {"qwen35-odd", "{\"tie_word_embeddings\": true}", FR_OK, ""},
    {"qwen35-odd", "{\"architectures\": [\"Qwen3_5MoeForCausalLM\"]}", FR_INPUT, "mlp."},
    {"qwen35-moe-tied", "{\"tie_word_embeddings\": false}", FR_INPUT, "lm_head.weight is missing"},
    {"qwen35-odd", "{\"hidden_size\": null}", FR_INPUT, "the configuration asks for [517, 4096]"},
    {"qwen35-moe-tied", "{\"hidden_size\": null}", FR_INPUT, "the configuration asks for [405, 2048]"},
    {"qwen35-moe-tied", "{\"num_hidden_layers\": null}", FR_INPUT, "not an array of 40"},
    {"qwen35-moe-tied", "{\"num_experts_per_tok\": 6}", FR_INPUT, "6 experts are chosen of 5"},
    {"qwen35-moe-tied", "{\"num_experts\": 4}", FR_INPUT, "mlp.gate.weight has shape"},
    {"qwen35-moe-tied", "{\"shared_expert_intermediate_size\": 13}", FR_INPUT, "shared_expert."},
    {"qwen35-moe-tied", "{\"shared_expert_intermediate_size\": null}", FR_INPUT, "asks for [512, 48]"},
    {"qwen35-moe-tied", "{\"moe_intermediate_size\": 13}", FR_INPUT, "mlp.experts.gate_up_proj has shape"},
    {"qwen35-moe-tied", "{\"architectures\": [\"Qwen3_5ForCausalLM\"], \"intermediate_size\": 12}", FR_INPUT,
     "mlp.gate_proj.weight is missing"},
};

START_TEST(a_configuration_is_taken_or_refused_in_a_line) {
    fr_status status = fr_reference_open_changed(cases[_i].name, cases[_i].changes, folder.path);
    if (status != FR_OK || cases[_i].status != FR_OK) expect_line(status, cases[_i].status, cases[_i].line);
}
END_TEST

/* Pictures are refused if the folder has no vision encoder. They are also refused if the tokenizer has no image token,
 * even when a file adds an encoder. */
START_TEST(pictures_are_refused) {
    fr_model *model;
    fr_options *options = fr_options_new();
    require(fr_model_open(folder_of("qwen35-tied"), NULL, &model));
    ck_assert_int_eq(fr_model_fact(model, FR_FACT_IMAGE_TOKEN), -1);
    fr_model_close(model);
    require(fr_options_set_text(options, FR_OPT_MMPROJ, "tests/data/glm-ocr/mmproj-bf16.gguf"));
    expect_line(fr_model_open(folder_of("qwen35-tied"), options, &model), FR_INPUT,
                "gives rows of 256, the text model reads rows of 36");
    fr_options_free(options);
}
END_TEST

/* -------------------------------------------------------------------------------------------------------- tokenizer */

START_TEST(a_files_tokenizer_is_the_folders) {
    static const char *const texts[] = {"", "Hello, world! 12345 isn't  here\n\n ", "<|im_start|>user\nhi<|im_end|>",
                                        "cafe\xcc\x81 \xe6\x97\xa5\xe6\x9c\xac", "<think>\n\n</think>"};
    fr_model *models[2];
    require(fr_model_open(folder_of("qwen35-odd"), NULL, &models[0]));
    require(fr_model_open(file_of("odd"), NULL, &models[1]));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int32_t *ids[2];
        size_t counts[2];
        for (size_t m = 0; m < 2; m++)
            require(fr_tokenize(fr_model_tokenizer(models[m]), texts[i], strlen(texts[i]), true, true, &ids[m],
                                &counts[m]));
        ck_assert_uint_eq(counts[0], counts[1]);
        ck_assert_mem_eq(ids[0], ids[1], counts[0] * sizeof **ids);
        for (size_t m = 0; m < 2; m++) fr_free(ids[m]);
    }
    for (size_t m = 0; m < 2; m++) fr_model_close(models[m]);
}
END_TEST

FR_SUITE("qwen35") {
    TCase *tests = tcase_create("qwen35");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_loop_test(tests, a_folder_becomes_the_converters_file, 0, NAMES);
    tcase_add_test(tests, values_have_more_bits_in_some_layers);
    tcase_add_loop_test(tests, folders_and_files_have_the_references_logits, 0, NAMES);
    tcase_add_loop_test(tests, codes_become_files_of_any_type, 0, 3);
    tcase_add_test(tests, tensors_tell_of_an_mtp_layer);
    tcase_add_test(tests, an_mtp_layer_drafts_from_a_file_of_its_own);
    tcase_add_test(tests, a_file_of_an_mtp_layer_fits_its_target_alone);
    tcase_add_loop_test(tests, a_tensor_that_is_missing_or_too_many_is_named, 0, 9);
    tcase_add_loop_test(tests, a_key_of_a_file_is_checked, 0, 4);
    tcase_add_test(tests, an_older_file_tells_by_an_interval);
    tcase_add_loop_test(tests, a_configuration_is_taken_or_refused_in_a_line, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tests, pictures_are_refused);
    tcase_add_test(tests, a_files_tokenizer_is_the_folders);
    suite_add_tcase(suite, tests);
}
