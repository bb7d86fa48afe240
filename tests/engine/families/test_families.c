/* Tests families that are rows of tables (src/engine/families/config.c). Some configurations must be refused. When a
 * folder is written as a GGUF file, it must be refused, or the file must give the same model with the same kinds of
 * layers and rotary forms. test_dense.c compares these families with transformers. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "src/engine/families/config.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define KINDS(a, b, c)  "{\"layer_types\": [\"" a "_attention\", \"" b "_attention\", \"" c "_attention\", "

#define FULL(type, by) "\"full_attention\": {\"rope_type\": \"" type "\", \"factor\": " by "}"

static char folder[64], file[128];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "%s/forerun-families-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
    static const char *const names[] = {"config.json", "model.safetensors", "model.gguf"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        snprintf(file, sizeof file, "%s/%s", folder, names[i]);
        unlink(file);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Changed configurations. `line` is a part of the error line, or "" if the model must open. */
static const struct {
    const char *name, *changes;
    fr_status status;
    const char *line;
} cases[] = {
    {"qwen2-tied", "{}", FR_OK, ""},
    {"qwen2-tied", "{\"hidden_act\": \"gelu\"}", FR_UNBUILT, "hidden_act gelu"},
    {"qwen2-yarn", "{\"partial_rotary_factor\": 0.5}", FR_UNBUILT, "a partial_rotary_factor is not built"},
    {"qwen2-tied", "{\"partial_rotary_factor\": 0.5, \"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}}",
     FR_UNBUILT, "a partial_rotary_factor is not built"},
    {"qwen2-tied", "{\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2, \"partial_rotary_factor\": 1}}", FR_OK,
     ""},
    {"gemma3-odd", "{\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2, \"partial_rotary_factor\": 0.5}}",
     FR_UNBUILT, "rope_scaling: partial_rotary_factor 0.5 is not built with rope_type linear"},
    {"ling3-odd",
     "{\"rope_parameters\": null, \"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2, "
     "\"partial_rotary_factor\": 0.5}}",
     FR_UNBUILT, "partial_rotary_factor 0.5 is not built"},
    /* if K-EXAONE has several MTP layers, all are ignored; transformers has no Mellum 2 with several */
    {"exaone-moe-mtp", "{\"num_nextn_predict_layers\": 2, \"mtp_layer_types\": [\"a\", \"b\"]}", FR_OK, ""},
    {"exaone-moe-mtp", "{\"num_nextn_predict_layers\": null}", FR_OK, ""},
    {"exaone-moe-mtp", "{\"mtp_layer_types\": [\"linear_attention\"]}", FR_INPUT,
     "mtp_layer_types has \"linear_attention\""},
    {"exaone-moe-mtp", "{\"mtp_layer_types\": [\"full_attention\", \"full_attention\"]}", FR_INPUT,
     "mtp_layer_types is no array of 1 words"},
    {"exaone-moe-mtp", "{\"sliding_window\": 0, \"layer_types\": null, \"mtp_layer_types\": [\"sliding_attention\"]}",
     FR_INPUT, "layer 4 has sliding attention, but the window is missing"},
    {"exaone-moe-mtp", "{\"sliding_windows\": [7, 0, 7, 7], \"mtp_sliding_windows\": null}", FR_OK, ""},
    {"exaone-moe-mtp", "{\"sliding_windows\": [7, 0, 8, 7]}", FR_UNBUILT,
     "sliding_windows has another window for layer 2"},
    {"exaone-moe-mtp", "{\"sliding_windows\": 8}", FR_INPUT, "sliding_windows is no list"},
    {"exaone-moe-mtp", "{\"mtp_sliding_windows\": \"7\"}", FR_INPUT, "mtp_sliding_windows is no list"},
    {"exaone-moe-mtp", "{\"mtp_sliding_windows\": [7]}", FR_UNBUILT, "mtp_sliding_windows has another window"},
    {"exaone-moe-mtp", "{\"swiglu_limits\": [0, 0, 7, 7]}", FR_UNBUILT, "swiglu_limits"},
    {"mellum-mtp", "{\"num_nextn_predict_layers\": 2}", FR_UNBUILT, "2 MTP layers are not built, 1 is"},
    {"mellum-mtp", "{\"num_nextn_predict_layers\": 0}", FR_OK, ""},
    {"mellum-mtp", "{\"mtp_mlp_layer_types\": [\"linear\"]}", FR_INPUT, "mtp_mlp_layer_types has \"linear\""},
    {"ernie4.5-moe-mtp", "{\"num_nextn_predict_layers\": 2}", FR_OK, ""}, /* the first one drafts */
    {"ernie4.5-moe-mtp", "{\"num_nextn_predict_layers\": null}", FR_OK, ""},
    {"ernie4.5-moe-mtp", "{\"num_nextn_predict_layers\": -1}", FR_INPUT, "num_nextn_predict_layers"},
    {"ernie4.5-moe-odd", "{\"num_nextn_predict_layers\": 1}", FR_OK, ""}, /* saved without it */
    {"mpt-odd", "{\"attn_config\": {\"alibi_bias_max\": 0.5}}", FR_INPUT, "alibi_bias_max"},
    {"mpt-odd", "{\"attn_config\": {\"alibi_bias_max\": 65}}", FR_INPUT, "alibi_bias_max"},
    {"mpt-odd", "{\"attn_config\": {\"alibi\": false}}", FR_UNBUILT, "alibi false is not built"},
    {"qwen2-tied", "{\"rope_scaling\": {\"rope_type\": \"ntk\", \"factor\": 2}}", FR_UNBUILT, "rope_type ntk"},
    {"qwen2-tied", "{\"num_hidden_layers\": 1}", FR_INPUT, "nothing reads tensor model.layers.1."},
    {"qwen2-tied", "{\"hidden_size\": 0}", FR_INPUT, "hidden_size"},
    {"qwen2-tied", "{\"rms_norm_eps\": 2}", FR_INPUT, "rms_norm_eps"},
    {"qwen2-window", "{\"sliding_window\": 0}", FR_INPUT, "sliding_window"},
    {"qwen2-window", "{\"layer_types\": null, \"sliding_window\": null}", FR_OK, ""},
    {"qwen2-window", "{\"layer_types\": null, \"sliding_window\": 0, \"use_sliding_window\": false}", FR_OK, ""},
    {"qwen2-window", "{\"max_window_layers\": -1}", FR_INPUT, "max_window_layers"},
    {"qwen2-window", "{\"layer_types\": [\"full_attention\"]}", FR_INPUT, "layer_types"},
    {"qwen2-window", KINDS("full", "linear", "full") "\"full_attention\"]}", FR_INPUT, "linear_attention"},
    {"qwen2-window", KINDS("full", "full", "full") "\"sliding_attention\"], \"use_sliding_window\": false}", FR_INPUT,
     "layer 3 has sliding attention"},
    {"mistral-window", "{\"hidden_act\": \"gelu\"}", FR_UNBUILT, "hidden_act gelu"},
    {"ministral3-odd", "{\"hidden_act\": \"gelu\"}", FR_UNBUILT, "hidden_act gelu"},
    /* transformers saves EXAONE 3.5 in this form, because transformers has no class for it */
    {"exaone3-odd", "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"exaone\"}", FR_OK, ""},
    /* For these two keys, the published modeling file and transformers disagree. */
    {"sarvam-odd", "{\"num_experts_per_tok\": 1}", FR_UNBUILT, "num_experts_per_tok 1 is not built"},
    {"sarvam-odd", "{\"norm_topk_prob\": false}", FR_UNBUILT, "norm_topk_prob false"},
    {"sarvam-odd", "{\"use_bias\": true}", FR_UNBUILT, "use_bias"},
    {"sarvam-mla-odd", "{\"norm_topk_prob\": false}", FR_UNBUILT, "norm_topk_prob false"},
    {"sarvam-mla-odd", "{\"score_function\": \"softmax\"}", FR_UNBUILT, "score_function softmax"},
    {"sarvam-mla-odd", "{\"use_bias\": true}", FR_UNBUILT, "use_bias"},
    {"sarvam-mla-odd", "{\"n_group\": 3, \"topk_group\": 4}", FR_INPUT, "can't be chosen in 4 of 3 groups"},
    {"sarvam-mla-odd", "{\"architectures\": null}", FR_OK, ""},
    {"hyperclovax-odd", "{\"use_post_norm\": false}", FR_INPUT, "nothing reads tensor"},
    {"arcee-bias", "{\"hidden_act\": \"tanh\"}", FR_UNBUILT, "hidden_act tanh"},
    {"arcee-bias", "{\"hidden_act\": \"gelu\"}", FR_OK, ""},
    {"gemma3-odd", "{}", FR_OK, ""},
    {"gemma3-odd", "{\"hidden_activation\": \"silu\"}", FR_UNBUILT, "hidden_activation silu"},
    {"gemma3-odd", "{\"attention_bias\": true}", FR_UNBUILT, "attention_bias"},
    {"gemma3-odd", "{\"attn_logit_softcapping\": 50}", FR_UNBUILT, "attn_logit_softcapping"},
    {"gemma3-odd", "{\"use_bidirectional_attention\": true}", FR_OK, ""}, /* this key makes the model a text encoder */
    {"gemma2-odd", "{\"use_bidirectional_attention\": true}", FR_UNBUILT, "use_bidirectional_attention"},
    {"gemma3-odd", "{\"is_causal\": false}", FR_UNBUILT, "is_causal false"},
    {"gemma3-odd", "{\"query_pre_attn_scalar\": 0}", FR_INPUT, "query_pre_attn_scalar"},
    {"gemma3-odd", "{\"rope_parameters\": {\"sliding_attention\": {\"rope_theta\": 0}}}", FR_INPUT, "rope_theta"},
    {"gemma3-odd", "{\"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 4}}", FR_INPUT,
     "neither full_attention"},
    {"gemma3-odd", "{\"num_attention_heads\": 7}", FR_INPUT, "no multiple"},
    {"gemma4-e", "{}", FR_OK, ""},
    {"gemma4-e", "{\"num_kv_shared_layers\": 4}", FR_INPUT, "this is a drafter"},
    {"gemma4-e", "{\"num_kv_shared_layers\": 3}", FR_INPUT, "layer 1 borrows a KV cache of its kind"},
    {"gemma4-e", "{\"enable_moe_block\": true, \"num_experts\": 8}", FR_INPUT, "0 experts are chosen of 8"},
    {"gemma4-e", "{\"num_experts\": 8, \"top_k_experts\": 9}", FR_OK, ""}, /* unused, since enable_moe_block is off */
    {"gemma4-e", "{\"rope_parameters\": {" FULL("ntk", "2") "}}", FR_UNBUILT, "rope_type ntk"},
    {"gemma4-e", "{\"rope_parameters\": {" FULL("linear", "2, \"partial_rotary_factor\": 0.5") "}}", FR_UNBUILT,
     "partial_rotary_factor 0.5 is not built with rope_type linear"},
    {"gemma4-e", "{\"rope_parameters\": {" FULL("dynamic", "2, \"partial_rotary_factor\": 0.5") "}}", FR_UNBUILT,
     "partial_rotary_factor 0.5 is not built with rope_type dynamic"},
    {"gemma4-e", "{\"per_layer_config\": {\"9\": {}}}", FR_INPUT, "neither a layer below 4 nor a layer type"},
    {"gemma4-e", "{\"per_layer_config\": {\"1\": {\"head_dim\": 12}}}", FR_UNBUILT, "layers of one kind"},
    {"gemma4-e", "{\"vocab_size_per_layer_input\": 511}", FR_INPUT, "differs from vocab_size 512"},
    {"gemma4-e", "{\"num_attention_heads\": 5, \"num_key_value_heads\": 2}", FR_INPUT, "no multiple"},
};

START_TEST(a_configuration_is_taken_or_refused_in_a_line) {
    fr_status status = fr_reference_open_changed(cases[_i].name, cases[_i].changes, folder);
    ck_assert_msg(status == cases[_i].status, "%s: %d, %s", cases[_i].changes, status,
                  status == FR_OK ? "" : fr_last_error());
    if (status == FR_OK) return;
    ck_assert_msg(strstr(fr_last_error(), cases[_i].line) && !strchr(fr_last_error(), '\n'), "%s", fr_last_error());
}
END_TEST

/* Writes a fixture with changes to its configuration as a GGUF file of type float32. */
static fr_status write_file(const char *name, const char *changes) {
    const fr_lab_quantization how = {.type = "f32", .pure = true};
    require(fr_reference_open_changed(name, changes, folder));
    snprintf(file, sizeof file, "%s/model.gguf", folder);
    FILE *out = fopen(file, "wb");
    ck_assert_ptr_nonnull(out);
    fr_status status = fr_lab_quantize(folder, &how, NULL, out);
    fclose(out);
    return status;
}

static fr_rows rows_of(const char *path) {
    static const int32_t prompt[] = {1, 30, 31, 32, 33, 30, 31, 90, 77, 30, 31, 12, 13, 14, 200, 201, 202};
    fr_model *model;
    fr_session *session;
    require(fr_model_open(path, NULL, &model));
    size_t capacity = COUNT_OF(prompt) * (size_t)fr_model_fact(model, FR_FACT_VOCAB);
    fr_rows rows = {malloc(capacity * sizeof(float)), 0, capacity};
    require(fr_session_open(model, NULL, NULL, &session));
    require(fr_session_logits(session, prompt, COUNT_OF(prompt), 0, fr_rows_collect, &rows));
    fr_session_close(session);
    fr_model_close(model);
    return rows;
}

/* transformers 5.17 accepts partial_rotary_factor for all families. For the families of this test it ignores the key
 * and rotates all values of a head. */
START_TEST(heads_turn_as_a_whole) {
    static const char *const names[] = {"qwen2-tied", "llama-fp8", "qwen3-moe-raw"};
    static const char *const changes[] = {
        "{\"partial_rotary_factor\": 0.5}",
        "{\"rope_parameters\": {\"rope_theta\": 10000.0, \"partial_rotary_factor\": 0.5}, \"rope_theta\": 10000.0, "
        "\"rope_scaling\": null}"};
    static const char *const plain[] = {
        "{}", "{\"rope_parameters\": {\"rope_theta\": 10000.0}, \"rope_theta\": 10000.0, \"rope_scaling\": null}"};
    fr_rows got[2];
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(fr_reference_open_changed(names[_i / 2], (i ? changes : plain)[_i % 2], folder) == FR_OK, "%s",
                      fr_last_error());
        got[i] = rows_of(folder);
        snprintf(file, sizeof file, "%s/model.safetensors", folder);
        unlink(file);
    }
    fr_rows_expect_same(&got[1], &got[0]);
    free(got[0].values);
    free(got[1].values);
}
END_TEST

static const struct {
    const char *name, *changes;
} written[] = {
    {"qwen2-tied", "{}"},
    {"qwen2-yarn", "{}"},
    /* Gemma has several patterns of layer kinds. If a GGUF file has no key for the pattern, every sixth layer is full.
     * Any other pattern needs the key. */
    {"gemma3-odd", "{\"query_pre_attn_scalar\": 14}"},
    {"gemma3-odd", "{\"query_pre_attn_scalar\": 14, \"layer_types\": null, \"sliding_window_pattern\": 3, "
                   "\"final_logit_softcapping\": 2.5}"},
    {"gemma3-odd", "{\"query_pre_attn_scalar\": 14, \"layer_types\": null}"},
    {"gemma3-odd", "{\"query_pre_attn_scalar\": 14, \"layer_types\": null, \"sliding_window_pattern\": 1}"},
    {"gemma3-tower", "{\"image_token_index\": 3}"}, /* no id of the prompt is 3 */
    /* In these models the width of the heads, or the number of KV heads, differs from layer to layer. */
    {"gemma4-e", "{}"},
    {"gemma4-e-layers", "{}"},
    {"gemma4-moe", "{}"},
    {"ling-biased", "{}"}, /* published models have several groups of experts, this one has one */
    {"sarvam-saved", "{}"},
    {"nemotron-3-mtp", "{\"routed_scaling_factor\": 1.3}"},
    {"mellum-mtp", "{}"}, /* the file has no MTP layer */
    {"ernie4.5-moe-mtp", "{}"},
    {"youtu-odd", "{}"},
    {"minicpm3-plain", "{\"rope_theta\": 700, \"v_head_dim\": 15}"},
    {"minicpm3-plain", "{\"rope_scaling\": null}"},
    {"ling3-odd", "{\"rope_theta\": 800, \"kda_lower_bound\": -2.5, \"layer_group_size\": 2}"},
};

START_TEST(a_folder_as_gguf_is_the_same_model) {
    require(write_file(written[_i].name, written[_i].changes));
    fr_rows of_folder = rows_of(folder), of_file = rows_of(file);
    fr_rows_expect_same(&of_file, &of_folder);
    free(of_folder.values);
    free(of_file.values);
}
END_TEST

/* The logits of these files differ a little from those of the folders. Some files have the rows of queries and keys in
 * another order, so scores are summed in another order. In other files some weights were multiplied by factors when the
 * file was written, so products are rounded at other places. */
static const struct {
    const char *name, *changes;
} reordered[] = {
    {"granite-swa-odd", "{\"layer_rope_theta\": [0, 700, 0, 700, 700]}"},
    {"granite-swa-odd", "{\"layer_rope_theta\": [0, 0, 0, 0, 0], \"layer_types\": null}"},
    {"granite-moe-swa", "{\"layer_rope_theta\": [0, 4000, 4000, 4000.0]}"},
    {"falcon-h1-norm", "{\"mamba_norm_before_gate\": false}"},
};

START_TEST(a_folder_as_gguf_has_almost_the_same_logits) {
    require(write_file(reordered[_i].name, reordered[_i].changes));
    fr_rows of_folder = rows_of(folder), of_file = rows_of(file);
    ck_assert_uint_eq(of_file.count, of_folder.count);
    fr_rows_compare(of_file.values, of_folder.values, of_folder.count);
    free(of_folder.values);
    free(of_file.values);
}
END_TEST

/* In some of these folders gate and up are one matrix, in experts or in dense layers. In others there are factors by
 * which products are multiplied. The GGUF file must have what llama.cpp's converter writes: gate and up as two matrices
 * (as one matrix in granite_swa), and weights that are already multiplied by the factors. */
static const struct {
    const char *name, *changes;
} parted[] = {{"granite-moe-shared", "{}"},
              {"granite4-micro", "{}"},
              {"falcon-h1-odd", "{}"},
              {"llama4-scout", "{}"},
              {"llama4-maverick", "{}"},
              /* llama.cpp's converter ignores this list and uses one base for all layers */
              {"granite-moe-swa", "{\"layer_rope_theta\": null}"}};

START_TEST(a_folder_is_written_as_the_converter_does) {
    char converted[128];
    snprintf(converted, sizeof converted, "tests/data/dense/%s.gguf", parted[_i].name);
    require(write_file(parted[_i].name, parted[_i].changes));
    fr_rows of_converter = rows_of(converted), of_file = rows_of(file);
    fr_rows_expect_same(&of_file, &of_converter);
    free(of_converter.values);
    free(of_file.values);
}
END_TEST

START_TEST(what_gguf_has_no_key_for_is_not_written) {
    static const struct {
        const char *name, *changes, *line;
    } refused[] = {
        {"qwen2-window", "{}", "no key for its window"},
        {"granite-swa-odd", "{}", "layer_rope_theta has several"},
        {"llama4-listed", "{}", "mixtures that do not come at equal intervals"},
        {"llama4-scout", "{\"attention_chunk_size\": 4096}", "layer 0 differs from what its readers assume"},
        {"llama4-scout", "{\"floor_scale\": 4096}", "layer 3 differs from what its readers assume"},
        {"minicpm3-odd", "{\"scale_emb\": 12}", "no tensors for biases of the feed-forward"},
        {"minicpm3-plain", "{\"scale_depth\": 1.3}", "no keys for its scale_emb, scale_depth"},
        {"falcon-h1-norm", "{}", "no key for norms before the gates"},
        {"falcon-h1-odd", "{\"time_step_limit\": [0, 2]}", "no key for its time_step_limit"},
        {"mamba2-odd", "{\"time_step_limit\": [0, 2]}", "no key for its time_step_limit"},
        {"gemma3-odd", "{}", "no key for its query_pre_attn_scalar"},
        {"gemma4-e", "{\"rope_parameters\": {" FULL("proportional", "2") "}}", "a factor that GGUF has no key for"},
        {"gemma4-e", "{\"rope_parameters\": {" FULL("linear", "2") "}}", "a factor that GGUF has no key for"}};
    ck_assert_int_eq(write_file(refused[_i].name, refused[_i].changes), FR_INPUT);
    ck_assert_msg(strstr(fr_last_error(), refused[_i].line), "%s", fr_last_error());
}
END_TEST

/* Writes only the metadata of a model with this config.json. Frees `config`. */
static fr_status write_metadata(const fr_family *family, json_t *config, fr_model_spec *spec) {
    fr_gguf_writer writer;
    snprintf(file, sizeof file, "%s/model.gguf", folder);
    FILE *out = fopen(file, "wb");
    fr_gguf_writer_open(&writer, out, family->gguf);
    require(fr_family_read(family, &(fr_source){.root = config, .text = config, .where = "it"}, spec));
    fr_status status = fr_family_put(family, &spec->trunk, 0, "it", &writer);
    if (status == FR_OK) require(fr_gguf_write_header(&writer));
    fr_gguf_writer_close(&writer);
    fclose(out);
    json_decref(config);
    return status;
}

/* A folder of a mixture family may have only dense layers. In most families GGUF has no keys for this. LFM2's keys can
 * express it: they state that all layers come before the first mixture. */
START_TEST(a_mixture_in_no_layer_is_refused_or_written) {
    static const struct {
        const fr_family *family;
        const char *config;
        fr_status status;
    } dense[] = {
        {&fr_family_exaone_moe, "{\"num_hidden_layers\": 4, \"first_k_dense_replace\": 4}", FR_INPUT},
        {&fr_family_mellum,
         "{\"num_hidden_layers\": 1, \"mlp_layer_types\": [\"dense\"], \"layer_types\": [\"full_attention\"], "
         "\"num_mtp_layers\": 1, \"mtp_layer_types\": [\"full_attention\"], \"mtp_mlp_layer_types\": [\"dense\"]}",
         FR_INPUT},
        {&fr_family_ernie45_moe, "{\"num_hidden_layers\": 2, \"moe_layer_start_index\": 2}", FR_INPUT},
        {&fr_family_lfm2_moe, "{\"num_hidden_layers\": 2, \"num_dense_layers\": 2}", FR_OK}};
    fr_model_spec spec;
    fr_map map;
    fr_gguf gguf;
    fr_tensors tensors = {0}, unread = {0};
    int64_t leading;
    ck_assert_int_eq(write_metadata(dense[_i].family, json_loads(dense[_i].config, 0, NULL), &spec), dense[_i].status);
    free(spec.trunk.layer);
    if (dense[_i].status != FR_OK) {
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "no key for a model without experts"));
        return;
    }
    require(fr_map_open(&map, file, true));
    require(fr_gguf_read(&gguf, &map, 0, &tensors, &unread));
    require(fr_gguf_int(&gguf, ".leading_dense_block_count", 0, 9, FR_GGUF_REQUIRED, &leading));
    ck_assert_int_eq(leading, 2);
    fr_gguf_close(&gguf);
    fr_map_close(&map);
}
END_TEST

/* Writes only the metadata of a Gemma 3 model. It has this number of layers, this query_pre_attn_scalar, and the widths
 * of the published 27B model. */
static fr_status write_scaled(long long layers, long long scalar, fr_model_spec *spec) {
    return write_metadata(&fr_family_gemma3,
                          json_pack("{s:I, s:i, s:i, s:i, s:i, s:I}", "num_hidden_layers", layers, "hidden_size", 5376,
                                    "num_attention_heads", 32, "num_key_value_heads", 16, "head_dim", 128,
                                    "query_pre_attn_scalar", scalar),
                          spec);
}

/* GGUF has no key for the attention scale. llama.cpp (src/models/gemma3.cpp) divides scores by the square root of the
 * head's width. It recognizes the 27B model by its 62 layers, and divides there by the square root of hidden size /
 * heads. A folder with any other scale is refused. */
START_TEST(a_scale_without_a_key_is_what_readers_take_it_for) {
    static const struct {
        long long layers, scalar;
        fr_status status;
    } scales[] = {{62, 168, FR_OK}, {62, 128, FR_INPUT}, {48, 128, FR_OK}, {48, 168, FR_INPUT}};
    fr_model_spec of_folder, of_file;
    fr_map map;
    fr_gguf gguf;
    fr_tensors tensors = {0}, unread = {0};
    ck_assert_int_eq(write_scaled(scales[_i].layers, scales[_i].scalar, &of_folder), scales[_i].status);
    if (scales[_i].status == FR_OK) {
        require(fr_map_open(&map, file, true));
        require(fr_gguf_read(&gguf, &map, 0, &tensors, &unread));
        require(fr_family_read(&fr_family_gemma3, &(fr_source){.gguf = &gguf, .where = "it"}, &of_file));
        float scale = of_file.trunk.layer[0].attention.scale;
        ck_assert(scale == of_folder.trunk.layer[0].attention.scale);
        ck_assert_float_eq_tol(scale, 1 / sqrtf((float)scales[_i].scalar), 1e-7f);
        free(of_file.trunk.layer);
        fr_gguf_close(&gguf);
        fr_map_close(&map);
    }
    free(of_folder.trunk.layer);
}
END_TEST

/* If this key is missing, transformers 5.24 rotates half of each head. If the key is null, it rotates whole heads. So
 * the engine refuses null. */
START_TEST(a_null_is_not_taken_for_the_usual_part_of_a_head) {
    static const struct {
        const char *text;
        size_t dims; /* 0: refused */
    } told[] = {{"{\"head_dim\": 20}", 10},
                {"{\"head_dim\": 20, \"partial_rotary_factor\": null}", 0},
                {"{\"head_dim\": 20, \"partial_rotary_factor\": null, \"rope_parameters\": {\"rope_type\": "
                 "\"default\", \"partial_rotary_factor\": 0.8}}",
                 16}};
    json_t *config = json_loads(told[_i].text, 0, NULL);
    fr_model_spec spec;
    fr_status status =
        fr_family_read(&fr_family_glm4_moe, &(fr_source){.root = config, .text = config, .where = "it"}, &spec);
    ck_assert_int_eq(status, told[_i].dims ? FR_OK : FR_UNBUILT);
    if (status == FR_OK) {
        ck_assert_uint_eq(spec.trunk.rope[0].dims, told[_i].dims);
        free(spec.trunk.layer);
    } else {
        ck_assert_msg(strstr(fr_last_error(), "partial_rotary_factor null is not built"), "%s", fr_last_error());
    }
    json_decref(config);
}
END_TEST

/* As in transformers 5.17 (configuration_gpt_oss.py, configuration_ministral3.py), a null means the same as a missing
 * key. An empty object of the older key rope_scaling means the same too. */
START_TEST(positions_of_which_nothing_is_said_are_scaled_as_usual) {
    static const char *const silent[] = {"{}", "{\"rope_parameters\": null}", "{\"rope_scaling\": null}",
                                         "{\"rope_scaling\": {}, \"rope_parameters\": null}"};
    static const struct {
        const fr_family *family;
        double theta, factor, trained;
        float amplitude;
    } usual[] = {{&fr_family_gpt_oss, 150000, 32, 4096, 1.34657359F}, {&fr_family_mistral3, 1e6, 16, 16384, 1}};
    for (size_t i = 0; i < COUNT_OF(silent); i++) {
        json_t *config = json_loads(silent[i], 0, NULL);
        fr_model_spec spec;
        require(fr_family_read(usual[_i].family, &(fr_source){.root = config, .text = config, .where = "it"}, &spec));
        const fr_rope_spec *rope = &spec.trunk.rope[0];
        ck_assert_msg(rope->kind == FR_ROPE_YARN, "%s: kind %d", silent[i], rope->kind);
        ck_assert_double_eq(rope->theta, usual[_i].theta);
        ck_assert_double_eq(rope->factor, usual[_i].factor);
        ck_assert_double_eq(rope->original_context, usual[_i].trained);
        ck_assert_float_eq_tol(rope->attention_factor, usual[_i].amplitude, 1e-6F);
        free(spec.trunk.layer);
        json_decref(config);
    }
}
END_TEST

/* If rope_parameters is missing, transformers 5.24 (configuration_cwm.py, configuration_apertus.py) scales positions as
 * in Llama 3 and ignores rope_theta. If rope_parameters is an empty object, positions are not scaled. */
START_TEST(positions_of_which_nothing_is_said_are_scaled_as_llamas) {
    static const struct {
        const fr_family *family;
        const char *config;
        fr_rope_kind kind;
        double theta, factor;
    } says[] = {
        {&fr_family_cwm, "{\"rope_theta\": 500.0, \"rope_scaling\": null}", FR_ROPE_LLAMA3, 1e6, 16},
        {&fr_family_cwm, "{\"rope_theta\": 500.0, \"rope_parameters\": {}}", FR_ROPE_DEFAULT, 500, 1},
        {&fr_family_apertus, "{\"rope_theta\": 500.0}", FR_ROPE_LLAMA3, 12e6, 8},
    };
    json_t *config = json_loads(says[_i].config, 0, NULL);
    fr_model_spec spec;
    require(fr_family_read(says[_i].family, &(fr_source){.root = config, .text = config, .where = "it"}, &spec));
    const fr_rope_spec *rope = &spec.trunk.rope[0];
    ck_assert_int_eq(rope->kind, says[_i].kind);
    ck_assert_double_eq(rope->theta, says[_i].theta);
    ck_assert_double_eq(rope->factor, says[_i].factor);
    free(spec.trunk.layer);
    json_decref(config);
}
END_TEST

/* Ministral multiplies queries by a growing factor at positions beyond original_max_position_embeddings. This must be
 * accepted even with linearly scaled rotary positions, although linear scaling itself does not use that number. */
START_TEST(ministrals_queries_grow_whatever_scales_positions) {
    json_t *config = json_loads("{\"model_type\": \"ministral3\", \"rope_parameters\": {\"rope_type\": \"linear\", "
                                "\"factor\": 2, \"llama_4_scaling_beta\": 0.5, "
                                "\"original_max_position_embeddings\": 50}}",
                                0, NULL);
    fr_model_spec spec;
    require(fr_family_read(&fr_family_mistral3, &(fr_source){.root = config, .text = config, .where = "it"}, &spec));
    ck_assert_int_eq(spec.trunk.rope[0].kind, FR_ROPE_LINEAR);
    ck_assert_double_eq(spec.trunk.rope[0].query_beta, 0.5);
    ck_assert_double_eq(spec.trunk.rope[0].original_context, 50);
    free(spec.trunk.layer);
    json_decref(config);
}
END_TEST

/* In transformers 5.24 (modeling_gemma3.py), Gemma3ForCausalLM caps the logits, but Gemma3ForConditionalGeneration does
 * not. */
START_TEST(gemma3_with_a_tower_has_no_cap_of_logits) {
    json_t *config = json_loads("{\"text_config\": {\"final_logit_softcapping\": 30.0}}", 0, NULL);
    const json_t *text = json_object_get(config, "text_config");
    fr_model_spec whole, alone;
    require(fr_family_read(&fr_family_gemma3, &(fr_source){.root = config, .text = text, .where = "it"}, &whole));
    require(fr_family_read(&fr_family_gemma3, &(fr_source){.root = text, .text = text, .where = "it"}, &alone));
    ck_assert(whole.trunk.softcap == 0);
    ck_assert(alone.trunk.softcap == 30);
    free(whole.trunk.layer);
    free(alone.trunk.layer);
    json_decref(config);
}
END_TEST

/* transformers 5.24 saves InternLM3 and IQuest-Coder as LlamaForCausalLM. Their model_type still selects other defaults
 * than Llama's. InternLM3 also has keys that Llama lacks (configuration_internlm3.py, configuration_iquestcoder.py). */
START_TEST(models_saved_as_llamas_have_defaults_of_their_own) {
    static const struct {
        const char *config;
        size_t kv_heads, head_dim;
        float eps;
        bool qkv_bias, o_bias;
        const char *line;
    } says[] = {
        {"{\"model_type\": \"llama\", \"bias\": true, \"qkv_bias\": true}", 32, 128, 1e-6F, false, false, NULL},
        {"{\"model_type\": \"internlm3\", \"qkv_bias\": true, \"bias\": false}", 2, 128, 1e-5F, true, false, NULL},
        {"{\"model_type\": \"internlm3\", \"qkv_bias\": true, \"mlp_bias\": true}", 2, 128, 1e-5F, true, true, NULL},
        {"{\"model_type\": \"internlm3\", \"bias\": true, \"head_dim\": null}", 2, 128, 1e-5F, false, true, NULL},
        {"{\"model_type\": \"iquestcoder\", \"clip_qkv\": null}", 8, 128, 1e-5F, false, false, NULL},
        {"{\"model_type\": \"iquestcoder\", \"clip_qkv\": 8.0}", 0, 0, 0, false, false, "clip_qkv"},
        {"{\"model_type\": \"iquestcoder\", \"use_sliding_window\": true}", 0, 0, 0, false, false, "sliding"},
    };
    json_t *config = json_loads(says[_i].config, 0, NULL);
    fr_model_spec spec;
    fr_status status =
        fr_family_read(&fr_family_llama, &(fr_source){.root = config, .text = config, .where = "it"}, &spec);
    ck_assert_int_eq(status, says[_i].line ? FR_UNBUILT : FR_OK);
    if (says[_i].line) ck_assert_msg(strstr(fr_last_error(), says[_i].line), "%s", fr_last_error());
    if (status == FR_OK) {
        const fr_layer_spec *layer = &spec.trunk.layer[0];
        ck_assert_uint_eq(layer->attention.kv_heads, says[_i].kv_heads);
        ck_assert_uint_eq(layer->attention.head_dim, says[_i].head_dim);
        ck_assert(spec.trunk.eps == says[_i].eps);
        ck_assert(layer->attention.qkv_bias == says[_i].qkv_bias && layer->attention.o_bias == says[_i].o_bias);
        ck_assert(layer->ffn.biased == says[_i].o_bias);
        free(spec.trunk.layer);
    }
    json_decref(config);
}
END_TEST

/* In transformers 5.17's configurations (__post_init__), a null number differs from a missing number. Null means that
 * the number is derived from other numbers. */
START_TEST(numbers_that_are_null_follow_from_others) {
    static const fr_family *const families[] = {&fr_family_seed_oss, &fr_family_ernie45, &fr_family_qwen3,
                                                &fr_family_smollm3};
    json_t *config = json_loads("{\"hidden_size\": 60, \"num_attention_heads\": 6, \"num_hidden_layers\": 2, "
                                "\"num_key_value_heads\": null, \"head_dim\": null}",
                                0, NULL);
    fr_model_spec spec;
    require(fr_family_read(families[_i], &(fr_source){.root = config, .text = config, .where = "it"}, &spec));
    ck_assert_uint_eq(spec.trunk.layer[0].attention.kv_heads, 6);
    ck_assert_uint_eq(spec.trunk.layer[0].attention.head_dim, 10);
    free(spec.trunk.layer);
    json_decref(config);
}
END_TEST

/* In transformers 5.24, Ling 3, DeepSeek-V3.2 and GLM-5 rotate pairs, whatever the value of rope_interleave. Ling 3's
 * published code applies limits to activations, but the engine does not. So a list of such limits is accepted only if
 * no value in it sets a limit. */
START_TEST(pairs_are_rotated_and_no_activation_is_limited) {
    static const struct {
        const char *config, *line;
        fr_status status;
        const fr_family *family; /* NULL: Ling 3 */
    } says[] = {
        {"{}", "", FR_OK, NULL},
        {"{\"rope_interleave\": null}", "", FR_OK, NULL},
        {"{\"rope_interleave\": false}", "rope_interleave false", FR_UNBUILT, NULL},
        {"{\"expert_swiglu_limit_list\": null, \"share_expert_swiglu_limit_list\": [0, null, 0.0]}", "", FR_OK, NULL},
        {"{\"expert_swiglu_limit_list\": [0, 7.0]}", "expert_swiglu_limit_list with a limit", FR_UNBUILT, NULL},
        {"{\"expert_swiglu_limit_list\": [\"7.0\"]}", "expert_swiglu_limit_list with a limit", FR_UNBUILT, NULL},
        {"{\"share_expert_swiglu_limit_list\": 7.0}", "share_expert_swiglu_limit_list is no list", FR_INPUT, NULL},
        {"{\"rope_interleave\": null}", "", FR_OK, &fr_family_deepseek_v32},
        {"{\"rope_interleave\": null}", "", FR_OK, &fr_family_glm_dsa},
    };
    json_t *config = json_loads(says[_i].config, 0, NULL);
    fr_model_spec spec;
    const fr_family *family = says[_i].family ? says[_i].family : &fr_family_bailing_hybrid;
    fr_status status = fr_family_read(family, &(fr_source){.root = config, .text = config, .where = "it"}, &spec);
    ck_assert_int_eq(status, says[_i].status);
    if (status == FR_OK) ck_assert(!spec.trunk.rope[0].neox);
    if (status == FR_OK) free(spec.trunk.layer);
    if (status != FR_OK) ck_assert_msg(strstr(fr_last_error(), says[_i].line), "%s", fr_last_error());
    json_decref(config);
}
END_TEST

/* Llama 4's configurations have lists with one value for each layer: whether it has a mixture, whether its heads are
 * rotated, and whether it attends in chunks. Files of 2025 have numbers where newer files have true and false. They
 * have an empty list where newer files have no list. */
START_TEST(llama4s_layers_are_as_its_lists_say) {
    static const struct {
        const char *config;
        /* Numbers of layers of four kinds. mixtures: with a mixture of experts; still: without rotation; chunked: with
         * attention in chunks; growing: with queries whose factor grows with the position. */
        size_t mixtures, still, chunked, growing;
        const char *line; /* a part of the error line; NULL: the configuration is accepted */
    } says[] = {
        {"{}", 6, 1, 5, 1, NULL},
        {"{\"no_rope_layers\": [], \"attn_temperature_tuning\": 4}", 6, 1, 5, 1, NULL},
        {"{\"attn_temperature_tuning\": 0, \"interleave_moe_layer_step\": 2}", 3, 1, 5, 0, NULL},
        {"{\"attn_temperature_tuning\": false, \"moe_layers\": [1, 4]}", 2, 1, 5, 0, NULL},
        {"{\"no_rope_layers\": [1, 1, 1, 1, 1, 1], \"attention_chunk_size\": null}", 6, 0, 0, 0, NULL},
        {"{\"no_rope_layers\": [true, false, 0, 1, 1, 1, 0, 0]}", 6, 2, 4, 2, NULL},
        {"{\"num_local_experts\": 0, \"num_experts_per_tok\": 0, \"moe_layers\": []}", 0, 1, 5, 1, NULL},
        {"{\"num_local_experts\": 0, \"moe_layers\": []}", 0, 1, 5, 1, NULL},
        {"{\"num_local_experts\": 0}", 0, 0, 0, 0, "layer 0 has a mixture of experts, and num_local_experts is 0"},
        {"{\"num_experts_per_tok\": 0}", 0, 0, 0, 0, "num_experts_per_tok is 0"},
        {"{\"num_experts_per_tok\": 17}", 0, 0, 0, 0, "17 experts are chosen of 16"},
        {"{\"interleave_moe_layer_step\": 0}", 0, 0, 0, 0, "interleave_moe_layer_step"},
        {"{\"moe_layers\": [-1]}", 0, 0, 0, 0, "moe_layers has something that is no layer's number"},
        {"{\"moe_layers\": 3}", 0, 0, 0, 0, "moe_layers is no list"},
        {"{\"no_rope_layers\": \"1\"}", 0, 0, 0, 0, "no_rope_layers is no list"},
        {"{\"no_rope_layers\": [1, 0]}", 0, 0, 0, 0, "no_rope_layers has no number for layer 2"},
        {"{\"attention_chunk_size\": null, \"layer_types\": [\"full_attention\", \"chunked_attention\", "
         "\"full_attention\", \"full_attention\", \"full_attention\", \"full_attention\"]}",
         0, 0, 0, 0, "layer 1 is chunked, and attention_chunk_size is null"},
        {"{\"attention_chunk_size\": 0}", 0, 0, 0, 0, "attention_chunk_size"},
        {"{\"floor_scale\": 0}", 0, 0, 0, 0, "floor_scale"},
    };
    json_t *config = json_loads(says[_i].config, 0, NULL);
    fr_model_spec spec;
    size_t mixtures = 0, still = 0, chunked = 0, growing = 0;
    ck_assert_int_eq(json_object_set_new(config, "num_hidden_layers", json_integer(6)), 0);
    fr_status status =
        fr_family_read(&fr_family_llama4, &(fr_source){.root = config, .text = config, .where = "it"}, &spec);
    ck_assert_msg((status == FR_OK) == !says[_i].line, "%s: %d", says[_i].config, status);
    if (status != FR_OK) ck_assert_msg(strstr(fr_last_error(), says[_i].line), "%s", fr_last_error());
    for (size_t i = 0; status == FR_OK && i < 6; i++) {
        const fr_layer_spec *layer = &spec.trunk.layer[i];
        mixtures += layer->experts.count > 0;
        still += layer->attention.no_rope;
        chunked += layer->attention.chunked && layer->attention.window == 8192;
        growing += layer->attention.query_beta > 0;
        ck_assert_uint_eq(layer->ffn.width, layer->experts.count ? 8192 : 16384);
        ck_assert(layer->attention.bare_qk_norm == !layer->attention.no_rope);
    }
    ck_assert_msg(mixtures == says[_i].mixtures && still == says[_i].still && chunked == says[_i].chunked &&
                      growing == says[_i].growing,
                  "%s: %zu, %zu, %zu, %zu", says[_i].config, mixtures, still, chunked, growing);
    if (status == FR_OK) free(spec.trunk.layer);
    json_decref(config);
}
END_TEST

/* Tests keys that only one family has. CWM's feed-forward may have biases. Ministral's layers have no window if
 * sliding_window is null. As in transformers, Nemotron-H ignores attention_bias and sliding_window. */
START_TEST(keys_of_one_family_are_read) {
    static const struct {
        const fr_family *family;
        const char *config;
        bool qkv, o, ffn;
        size_t window;
    } says[] = {
        {&fr_family_cwm, "{\"mlp_bias\": true}", false, false, true, 8192},
        {&fr_family_ministral, "{\"mlp_bias\": true}", false, false, false, 4096},
        {&fr_family_ministral, "{\"sliding_window\": null}", false, false, false, 0},
        {&fr_family_nemotron_h, "{\"attention_bias\": true, \"sliding_window\": 5}", false, false, false, 0},
    };
    json_t *config = json_loads(says[_i].config, 0, NULL);
    fr_model_spec spec;
    require(fr_family_read(says[_i].family, &(fr_source){.root = config, .text = config, .where = "it"}, &spec));
    const fr_layer_spec *layer = &spec.trunk.layer[1];
    ck_assert(layer->attention.qkv_bias == says[_i].qkv && layer->attention.o_bias == says[_i].o);
    ck_assert(layer->ffn.biased == says[_i].ffn);
    ck_assert_uint_eq(layer->attention.window, says[_i].window);
    free(spec.trunk.layer);
    json_decref(config);
}
END_TEST

/* A base of 0 means that a layer is not rotated. A base that is not a number must be refused. It must not be read as
 * 0. */
START_TEST(a_base_that_is_a_text_is_refused) {
    json_t *config = json_loads("{\"num_hidden_layers\": 2, \"layer_rope_theta\": [0, \"500\"]}", 0, NULL);
    fr_source source = {.root = config, .text = config, .where = "it"};
    fr_model_spec spec;
    ck_assert_int_eq(fr_family_read(&fr_family_muse_glimmer, &source, &spec), FR_INPUT);
    ck_assert_str_eq(fr_last_error(), "it: layer_rope_theta has no number for layer 1");
    json_decref(config);
}
END_TEST

/* A router divides its experts into groups of equal size. A configuration must be refused in three cases: the number of
 * experts is not a multiple of the number of groups; a group has fewer than two experts; or the router would have to
 * choose more groups than exist. */
START_TEST(nemotrons_groups_of_experts_are_checked) {
    static const char *const says[] = {
        "{\"n_routed_experts\": 6, \"n_group\": 7}", "{\"n_routed_experts\": 6, \"n_group\": 4}",
        "{\"n_routed_experts\": 6, \"n_group\": 6}", "{\"n_routed_experts\": 6, \"n_group\": 3, \"topk_group\": 4}"};
    json_t *config = json_loads(says[_i], 0, NULL);
    fr_model_spec spec;
    ck_assert_int_eq(
        fr_family_read(&fr_family_nemotron_h, &(fr_source){.root = config, .text = config, .where = "it"}, &spec),
        FR_INPUT);
    ck_assert_msg(strstr(fr_last_error(), "of 6 experts can't be chosen"), "%s", fr_last_error());
    json_decref(config);
}
END_TEST

/* llama.cpp reads these keys in files of these architectures. forerun doesn't support the keys, so it refuses files
 * that have one of them. */
START_TEST(what_is_not_built_is_no_key_of_a_file) {
    static const struct {
        const fr_family *family;
        const char *architecture, *key, *value;
    } keys[] = {{&fr_family_deepseek, "deepseek2", ".attention.temperature_scale", "0.1"},
                {&fr_family_lfm2, "lfm2", ".attention.sliding_window", "8"},
                {&fr_family_llama, "llama", ".expert_count", "8"},
                {&fr_family_qwen2, "qwen2", ".attention.causal", "false"}};
    char named[64];
    fr_gguf_writer writer;
    fr_model_spec spec;
    fr_map map;
    fr_gguf gguf;
    fr_tensors tensors = {0}, unread = {0};
    snprintf(file, sizeof file, "%s/model.gguf", folder);
    FILE *out = fopen(file, "wb");
    fr_gguf_writer_open(&writer, out, keys[_i].architecture);
    if (_i == 0)
        fr_gguf_put_f32(&writer, keys[_i].key, 0.1F);
    else if (_i == 3)
        fr_gguf_put_bool(&writer, keys[_i].key, false);
    else
        fr_gguf_put_u32(&writer, keys[_i].key, 8);
    require(fr_gguf_write_header(&writer));
    fr_gguf_writer_close(&writer);
    fclose(out);
    require(fr_map_open(&map, file, true));
    require(fr_gguf_read(&gguf, &map, 0, &tensors, &unread));
    fr_status status = fr_family_read(keys[_i].family, &(fr_source){.gguf = &gguf, .where = "it"}, &spec);
    ck_assert_msg(status == FR_UNBUILT, "%d, %s", status, fr_last_error());
    snprintf(named, sizeof named, "%s: %s is not built", keys[_i].key, keys[_i].value);
    ck_assert_msg(strstr(fr_last_error(), named) != NULL, "%s", fr_last_error());
    fr_gguf_close(&gguf);
    fr_map_close(&map);
}
END_TEST

FR_SUITE("families") {
    TCase *tests = tcase_create("families");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_loop_test(tests, a_configuration_is_taken_or_refused_in_a_line, 0, COUNT_OF(cases));
    tcase_add_loop_test(tests, heads_turn_as_a_whole, 0, 6);
    tcase_add_loop_test(tests, a_folder_as_gguf_is_the_same_model, 0, COUNT_OF(written));
    tcase_add_loop_test(tests, a_folder_as_gguf_has_almost_the_same_logits, 0, COUNT_OF(reordered));
    tcase_add_loop_test(tests, a_folder_is_written_as_the_converter_does, 0, COUNT_OF(parted));
    tcase_add_loop_test(tests, what_gguf_has_no_key_for_is_not_written, 0, 13);
    tcase_add_loop_test(tests, a_null_is_not_taken_for_the_usual_part_of_a_head, 0, 3);
    tcase_add_loop_test(tests, positions_of_which_nothing_is_said_are_scaled_as_usual, 0, 2);
    tcase_add_loop_test(tests, positions_of_which_nothing_is_said_are_scaled_as_llamas, 0, 3);
    tcase_add_test(tests, ministrals_queries_grow_whatever_scales_positions);
    tcase_add_test(tests, gemma3_with_a_tower_has_no_cap_of_logits);
    tcase_add_loop_test(tests, models_saved_as_llamas_have_defaults_of_their_own, 0, 7);
    tcase_add_loop_test(tests, numbers_that_are_null_follow_from_others, 0, 4);
    tcase_add_loop_test(tests, pairs_are_rotated_and_no_activation_is_limited, 0, 9);
    tcase_add_loop_test(tests, nemotrons_groups_of_experts_are_checked, 0, 4);
    tcase_add_test(tests, a_base_that_is_a_text_is_refused);
    tcase_add_loop_test(tests, keys_of_one_family_are_read, 0, 4);
    tcase_add_loop_test(tests, llama4s_layers_are_as_its_lists_say, 0, 19);
    tcase_add_loop_test(tests, what_is_not_built_is_no_key_of_a_file, 0, 4);
    tcase_add_loop_test(tests, a_mixture_in_no_layer_is_refused_or_written, 0, 4);
    tcase_add_loop_test(tests, a_scale_without_a_key_is_what_readers_take_it_for, 0, 4);
    suite_add_tcase(suite, tests);
}
