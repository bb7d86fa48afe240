/* Tests configurations that state a fixture's values in another form, or that leave out members for which transformers
 * has a default. The logits must still be those of transformers (reference.safetensors). The forms are those that
 * transformers 5.17 accepts in RotaryEmbeddingConfigMixin and PreTrainedModel.tie_weights.
 *
 * Also tests configurations that scale rotary positions differently from the fixture's configuration. The expected
 * numbers are computed by transformers (tests/data/configurations, tests/references/configurations.py). */
#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats/safetensors.h"
#include "src/engine/model/model.h"
#include "tests/support/changed_folder.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define DATA "tests/data/configurations/"

enum { SCALED = 8 };

static const struct {
    const char *name, *changes; /* changes: members that replace those of config.json; a null removes the member */
    const char *text;           /* members that replace those of text_config, or NULL if there is no text_config */
} cases[] = {
    /* This configuration has the older key rope_scaling instead of rope_parameters, and type instead of rope_type. */
    {"qwen35-odd",
     "{\"rope_parameters\": null, \"rope_scaling\": {\"type\": \"default\", \"mrope_section\": [2, 1, 1]}, "
     "\"rope_theta\": 5000.0, \"partial_rotary_factor\": 0.4}",
     NULL},
    {"glm-ocr-odd", "{}",
     "{\"rope_parameters\": null, \"rope_theta\": 10000, \"rope_scaling\": {\"type\": \"default\", "
     "\"mrope_section\": [3, 4, 3]}}"},
    {"glm4-moe-dense",
     "{\"rope_scaling\": null, \"rope_theta\": null, \"rope_parameters\": {\"rope_theta\": 9000.0, \"rope_type\": "
     "\"yarn\", \"factor\": 5.0, \"original_max_position_embeddings\": 40, \"beta_fast\": 8}}",
     NULL},
    /* If both rope_parameters and rope_scaling are present, rope_scaling is used. An empty rope_scaling is ignored. */
    {"glm4-moe-dense", "{\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 10.0}}", NULL},
    {"qwen35-odd", "{\"rope_scaling\": {}}", NULL},
    /* rope_scaling may lack the original number of positions. Then the value of max_position_embeddings is used. */
    {"glm4-moe-dense",
     "{\"max_position_embeddings\": 40, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 5.0, \"beta_fast\": 8}}",
     NULL},
    /* Gemma 4's 12B has another architecture name, and no embeddings for each layer. */
    {"gemma4-dense-odd", "{\"architectures\": [\"Gemma4UnifiedForConditionalGeneration\"]}",
     "{\"hidden_size_per_layer_input\": null, \"vocab_size_per_layer_input\": null}"},
    {"gemma4-dense", "{\"architectures\": [\"Gemma4UnifiedForConditionalGeneration\"]}",
     "{\"hidden_size_per_layer_input\": null, \"vocab_size_per_layer_input\": null}"},
    /* Qwen3.5's mixture has its own defaults. Its routers always normalize the chosen weights, so norm_topk_prob has no
     * effect. */
    {"qwen35-moe-tied", "{\"num_key_value_heads\": null}", NULL},
    {"qwen35-moe-tied", "{\"norm_topk_prob\": false}", NULL},
    {"qwen35-moe-odd", "{}", "{\"norm_topk_prob\": false, \"num_key_value_heads\": null}"},
    /* dynamic scaling begins only beyond max_position_embeddings, which the texts of this test don't reach */
    {"qwen3-odd", "{\"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 6.0}}", NULL},
    /* transformers does not read attention_bias and sliding_window for Nemotron-H; for Ling 3 it does not read
     * shared_expert_intermediate_size */
    {"nemotron-h-odd", "{\"attention_bias\": true, \"sliding_window\": 5}", NULL},
    {"ling3-odd", "{\"shared_expert_intermediate_size\": 17}", NULL},
    /* The outer configuration decides whether the embeddings are also used as the head. */
    {"qwen35-tied", "{\"tie_word_embeddings\": true}", "{\"tie_word_embeddings\": false}"},
};

/* Returns the JSON of `changes`, whose members replace those of the fixture's config.json. If `text` is not NULL, the
 * JSON also has the fixture's text_config with the members of `text` replaced. The caller frees the JSON. */
static char *changes_of(const char *name, const char *changes, const char *text) {
    char path[128];
    snprintf(path, sizeof path, FR_TEST_MODELS "%s/config.json", name);
    json_t *all = json_loads(changes, 0, NULL), *config = fr_load_json(path);
    ck_assert_ptr_nonnull(all);
    if (text) {
        json_t *inner = json_object_get(config, "text_config"), *more = json_loads(text, 0, NULL), *value;
        const char *key;
        ck_assert(inner && more);
        ck_assert_int_eq(json_object_update(inner, more), 0);
        json_object_foreach (more, key, value)
            if (json_is_null(value)) json_object_del(inner, key);
        ck_assert_int_eq(json_object_set(all, "text_config", inner), 0);
        json_decref(more);
    }
    char *dumped = json_dumps(all, 0);
    json_decref(config);
    json_decref(all);
    return dumped;
}

static fr_status open_changed(const char *name, const char *changes, const char *text, fr_changed_folder *folder,
                              fr_model **model) {
    char from[128], *all = changes_of(name, changes, text);
    snprintf(from, sizeof from, FR_TEST_MODELS "%s", name);
    fr_changed_folder_make(folder, from, all);
    free(all);
    return fr_model_open(folder->path, NULL, model);
}

/* Compares the logits of the fixture's prompt 2 with the reference. */
static void compare_logits(const char *name, fr_model *model) {
    fr_reference r;
    fr_session *session;
    size_t count, expected_count;
    fr_reference_open(&r, name, NULL);
    int32_t *ids = fr_json_ids_of(json_array_get(json_object_get(r.info, "prompts"), 2), &count);
    const float *expected = fr_reference_floats(&r, &expected_count, "prompt.2.logits");
    fr_rows rows = {malloc(expected_count * sizeof(float)), 0, expected_count};
    require(fr_session_open(model, NULL, NULL, &session));
    require(fr_session_logits(session, ids, count, 0, fr_rows_collect, &rows));
    ck_assert_uint_eq(rows.count, expected_count);
    fr_rows_compare(rows.values, expected, expected_count);
    fr_session_close(session);
    free(rows.values);
    free(ids);
    fr_reference_close(&r);
}

START_TEST(another_spelling_gives_the_references_logits) {
    fr_changed_folder folder;
    fr_model *model;
    require(open_changed(cases[_i].name, cases[_i].changes, cases[_i].text, &folder, &model));
    compare_logits(cases[_i].name, model);
    fr_model_close(model);
    fr_changed_folder_remove(&folder);
}
END_TEST

/* Compares the logits of a prompt's last row with `expected`. */
static void compare_last(const json_t *one, const float *expected, size_t vocab, fr_model *model) {
    size_t count;
    fr_session *session;
    int32_t *ids = fr_ids_of(json_object_get(one, "ids"), &count);
    fr_rows rows = {malloc(vocab * sizeof(float)), 0, vocab};
    require(fr_session_open(model, NULL, NULL, &session));
    require(fr_session_logits(session, ids, count, count - 1, fr_rows_collect, &rows));
    ck_assert_uint_eq(rows.count, vocab);
    fr_rows_compare(rows.values, expected, vocab);
    fr_session_close(session);
    free(rows.values);
    free(ids);
}

START_TEST(rotary_positions_are_scaled_as_transformers_does) {
    fr_changed_folder folder;
    fr_model *model;
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    json_t *all = fr_load_json(DATA "cases.json"), *one = json_array_get(all, (size_t)_i);
    require(fr_map_open(&map, DATA "logits.safetensors", true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    const fr_tensor *expected = fr_tensors_find(&tensors, json_string_value(json_object_get(one, "case")));
    ck_assert_ptr_nonnull(expected);
    char *changes = json_dumps(json_object_get(one, "changes"), 0);
    bool nested = json_is_true(json_object_get(one, "nested"));
    require(open_changed(json_string_value(json_object_get(one, "model")), nested ? "{}" : changes,
                         nested ? changes : NULL, &folder, &model));
    compare_last(one, expected->data, expected->bytes / sizeof(float), model);
    free(changes);
    fr_model_close(model);
    fr_changed_folder_remove(&folder);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
    json_decref(all);
}
END_TEST

/* If "architectures" is missing, the model_type decides how the folder is read. If model_type is missing too, the
 * model_type of text_config decides. In all these cases each fixture must be read as the same model. */
START_TEST(a_model_type_stands_for_an_architecture) {
    static const char *const changes[] = {"{\"architectures\": null}", "{\"architectures\": []}",
                                          "{\"architectures\": [\"\"]}",
                                          "{\"architectures\": null, \"model_type\": null}"};
    glob_t found;
    size_t nested = 0;
    ck_assert_int_eq(glob(FR_TEST_MODELS "*/config.json", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *path = found.gl_pathv[i];
        json_t *config = fr_load_json(path);
        bool of_another = strstr(path, "mistral3-tower"); /* the text model is Mistral's, another family */
        bool has_text = json_is_object(json_object_get(config, "text_config")) && !of_another;
        /* transformers saves this fixture with DeepSeek-V3's class, which runs it, and with Sarvam's model_type; both
         * families read it as the same model */
        bool two_families = strstr(path, "sarvam-mla-saved");
        fr_model *own;
        *strrchr(path, '/') = 0;
        require(fr_model_open(path, NULL, &own));
        for (size_t c = 0; c < (has_text ? 4 : 3); c++) {
            fr_changed_folder folder;
            fr_model *model;
            fr_changed_folder_make(&folder, path, changes[c]);
            ck_assert_msg(fr_model_open(folder.path, NULL, &model) == FR_OK, "%s, %s: %s", path, changes[c],
                          fr_last_error());
            ck_assert_msg(model->family == own->family || two_families, "%s, %s: of another family", path, changes[c]);
            fr_model_close(model);
            fr_changed_folder_remove(&folder);
        }
        fr_model_close(own);
        nested += has_text;
        json_decref(config);
    }
    ck_assert(found.gl_pathc > 60 && nested > 5);
    globfree(&found);
}
END_TEST

START_TEST(an_unknown_model_type_is_named) {
    static const struct {
        const char *changes, *line;
    } says[] = {
        {"{\"architectures\": null, \"model_type\": \"unheard_of\"}", "model_type \"unheard_of\" is not known"},
        {"{\"architectures\": null, \"model_type\": null, \"text_config\": {\"model_type\": \"unheard_of\"}}",
         "model_type \"unheard_of\" is not known"},
        {"{\"architectures\": null, \"model_type\": \"mamba\"}", "\"MambaForCausalLM\" (Mamba) can't be run"},
        {"{\"architectures\": null, \"model_type\": null}", "names neither an architecture nor a model_type"},
        {"{\"architectures\": [\"UnheardOf\"], \"model_type\": \"llama\"}", "architecture \"UnheardOf\" is not known"},
    };
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        fr_changed_folder folder;
        fr_model *model;
        fr_changed_folder_make(&folder, FR_TEST_MODELS "llama", says[i].changes);
        ck_assert_int_eq(fr_model_open(folder.path, NULL, &model), FR_INPUT);
        ck_assert_msg(strstr(fr_last_error(), says[i].line), "%s: %s", says[i].changes, fr_last_error());
        fr_changed_folder_remove(&folder);
    }
}
END_TEST

/* Python's json module writes NaN and Infinity, and configurations with Mamba's limits contain Infinity. If the engine
 * uses a key, it must refuse such a value. In all other keys such a value is accepted. */
START_TEST(numbers_that_are_not_finite_matter_where_they_are_used) {
    static const struct {
        const char *key, *value, *line; /* if line is NULL, the engine does not use the value */
    } says[] = {
        {"time_step_limit", "[0.0, Infinity]", NULL},
        {"x", "{\"y\": [NaN, -Infinity]}", NULL},
        {"rms_norm_eps", "NaN", "\"rms_norm_eps\" is NaN, not a finite number"},
        {"hidden_size", "Infinity", "\"hidden_size\" is Infinity, not a whole number"},
        {"rope_theta", "-Infinity", "\"rope_theta\" is -Infinity, not a finite number"},
        {"tie_word_embeddings", "NaN", "\"tie_word_embeddings\" is NaN, neither true nor false"},
        {"eos_token_id", "[1, NaN]", "\"eos_token_id\" holds something that is no id"},
    };
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        fr_changed_folder folder;
        fr_model *model;
        json_t *config = fr_load_json(FR_TEST_MODELS "llama/config.json");
        char *rest, *text;
        json_object_del(config, says[i].key);
        json_object_del(config, "rope_parameters");
        rest = json_dumps(config, 0);
        ck_assert_int_gt(asprintf(&text, "{\"%s\": %s, %s", says[i].key, says[i].value, rest + 1), 0);
        fr_changed_folder_make(&folder, FR_TEST_MODELS "llama", "{}");
        fr_changed_folder_write(&folder, "config.json", text);
        fr_status status = fr_model_open(folder.path, NULL, &model);
        ck_assert_msg(status == (says[i].line ? FR_INPUT : FR_OK), "%s: %s", says[i].key, fr_last_error());
        if (says[i].line) ck_assert_msg(strstr(fr_last_error(), says[i].line), "%s", fr_last_error());
        fr_model_close(model);
        fr_changed_folder_remove(&folder);
        json_decref(config);
        free(rest);
        free(text);
    }
}
END_TEST

/* For DeepSeek-V3 and GLM-4.5, transformers assumes one MTP layer if the configuration does not give the number of MTP
 * layers. */
START_TEST(an_mtp_layer_need_not_be_announced) {
    static const char *const of[] = {"../deepseek-v3", "deepseek-v3-own", "glm4-moe-own", "glm-4.7-flash-odd"};
    fr_changed_folder folder;
    fr_model *model;
    require(open_changed(of[_i], "{\"num_nextn_predict_layers\": null}", NULL, &folder, &model));
    ck_assert_int_eq(fr_model_fact(model, FR_FACT_MTP_LAYERS), 1);
    fr_model_close(model);
    fr_changed_folder_remove(&folder);
}
END_TEST

/* Gemma 4's 12B model has the defaults of Gemma4UnifiedTextConfig. Some of them differ from those of
 * Gemma4TextConfig. */
START_TEST(gemma4_12b_has_defaults_of_its_own) {
    fr_changed_folder folder;
    fr_model *model;
    const char *text = "{\"sliding_window\": null, \"max_position_embeddings\": null, "
                       "\"hidden_size_per_layer_input\": null}";
    require(open_changed("gemma4-dense", "{\"architectures\": [\"Gemma4UnifiedForCausalLM\"]}", text, &folder, &model));
    ck_assert_int_eq(fr_model_fact(model, FR_FACT_CONTEXT_LIMIT), 262144);
    ck_assert_uint_eq(model->trunk.spec.layer[0].attention.window, 1024);
    fr_model_close(model);
    fr_changed_folder_remove(&folder);
}
END_TEST

/* The engine refuses folders that these tools have quantized. The error line names the tool, whatever tensors the
 * folder has. */
START_TEST(what_other_tools_quantize_is_refused_by_its_name) {
    static const char *const methods[] = {"hqq", "aqlm", "quark", "torchao", "bitsandbytes"};
    char changes[128], line[128];
    fr_changed_folder folder;
    fr_model *model;
    snprintf(changes, sizeof changes, "{\"quantization_config\": {\"quant_method\": \"%s\"}}", methods[_i]);
    snprintf(line, sizeof line, "quant_method %s are not built", methods[_i]);
    ck_assert_int_eq(open_changed("qwen3-moe-odd", changes, NULL, &folder, &model), FR_UNBUILT);
    ck_assert_msg(strstr(fr_last_error(), line), "%s", fr_last_error());
    fr_changed_folder_remove(&folder);
}
END_TEST

/* ModelOpt writes the name of a quantization's algorithm to hf_quant_config.json. Newer versions also write it to
 * config.json, with or without quant_method. If forerun does not support the algorithm, the error line must contain its
 * name. */
START_TEST(what_modelopt_quantizes_otherwise_is_refused_by_its_algorithm) {
    static const struct {
        const char *changes, *file, *line;
        fr_status status;
    } says[] = {
        {"{\"quantization_config\": {\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4_AWQ\"}}", "{}",
         "config.json: weights of quant_algo NVFP4_AWQ are not built", FR_UNBUILT},
        {"{\"quantization_config\": {\"quant_algo\": \"FP9\"}}", "{}", "quant_algo FP9 are not built", FR_UNBUILT},
        {"{}", "{\"producer\": {\"name\": \"modelopt\"}, \"quantization\": {\"quant_algo\": \"W4A16_AWQ\"}}",
         "hf_quant_config.json: weights of quant_algo W4A16_AWQ are not built", FR_UNBUILT},
        {"{}", "{\"quantization\": {\"quant_algo\": null, \"kv_cache_quant_algo\": \"FP8\"}}", "", FR_OK},
        {"{}", "{\"quantization\": {\"quant_algo\": 4}}", "quant_algo", FR_INPUT},
        {"{}", "{\"quantization\": 4}", "quantization", FR_INPUT},
    };
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        fr_changed_folder folder;
        fr_model *model;
        fr_changed_folder_make(&folder, FR_TEST_MODELS "qwen3-moe-odd", says[i].changes);
        fr_changed_folder_write(&folder, "hf_quant_config.json", says[i].file);
        ck_assert_int_eq(fr_model_open(folder.path, NULL, &model), says[i].status);
        if (says[i].status != FR_OK) ck_assert_msg(strstr(fr_last_error(), says[i].line), "%s", fr_last_error());
        fr_model_close(model);
        fr_changed_folder_remove(&folder);
    }
}
END_TEST

FR_SUITE("configurations") {
    TCase *tests = tcase_create("configurations");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, another_spelling_gives_the_references_logits, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(tests, rotary_positions_are_scaled_as_transformers_does, 0, SCALED);
    tcase_add_test(tests, a_model_type_stands_for_an_architecture);
    tcase_add_test(tests, an_unknown_model_type_is_named);
    tcase_add_test(tests, numbers_that_are_not_finite_matter_where_they_are_used);
    tcase_add_test(tests, gemma4_12b_has_defaults_of_its_own);
    tcase_add_loop_test(tests, an_mtp_layer_need_not_be_announced, 0, 4);
    tcase_add_loop_test(tests, what_other_tools_quantize_is_refused_by_its_name, 0, 5);
    tcase_add_test(tests, what_modelopt_quantizes_otherwise_is_refused_by_its_algorithm);
    suite_add_tcase(suite, tests);
}
