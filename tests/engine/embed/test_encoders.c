/* Compares embeddings and scores with sentence-transformers, for text encoders and for models that generate text.
 *
 * tests/data/encoders/NAME is a small model with random weights. Its folder also has what sentence-transformers 6.2
 * with transformers 5.24 computed from its texts (tests/references/encoders.py). Embeddings must agree within 1e-5. If
 * FR_ENCODER_FIXTURES is set in the environment, it names another folder with such models. */
/* suite: threads */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "src/engine/embed/recipe.h"
#include "tests/support/changed_folder.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define BOUND 1e-5

static const char *const names[] = {
    "bert-mean",  "bert-cls",    "bert-modes", "roberta",           "xlm-roberta",      "mpnet",
    "distilbert", "nomic",       "gte",        "jina-v3",           "modernbert",       "gemma",
    "qwen3",      "qwen3-dense", "cross-bert", "cross-xlm-roberta", "cross-modernbert", "cross-qwen3",
    "nomic-moe"};
/* The first EMBEDDERS names are models that make embeddings. The next SCORERS names are models that score pairs of
 * texts. The last name, nomic-moe, is compared with llama.cpp. */
enum { NAMES = sizeof names / sizeof *names, EMBEDDERS = 14, SCORERS = 4, LONG = 300 };

static const char *path_of(const char *name, const char *file) {
    static char path[512];
    const char *place = getenv("FR_ENCODER_FIXTURES");
    snprintf(path, sizeof path, "%s/%s%s%s", place ? place : "tests/data/encoders", name, *file ? "/" : "", file);
    return path;
}

typedef struct fixture {
    fr_model *model;
    fr_embedder *embedder;
    json_t *cases;
} fixture;

static void open_embedder(fixture *f, const char *path, int threads, const char *isa) {
    fr_options *options = fr_options_new();
    if (threads) require(fr_options_set(options, FR_OPT_THREADS, threads));
    if (isa) require(fr_options_set_text(options, FR_OPT_ISA, isa));
    require(fr_model_open(path, options, &f->model));
    require(fr_embedder_open(f->model, NULL, options, FR_POOLING_NONE, &f->embedder));
    fr_options_free(options);
}

static void open_fixture(fixture *f, const char *name, int threads, const char *isa) {
    json_error_t error;
    *f = (fixture){.cases = json_load_file(path_of(name, "cases.json"), 0, &error)};
    ck_assert_msg(f->cases != NULL, "%s: %s", path_of(name, "cases.json"), error.text);
    open_embedder(f, path_of(name, ""), threads, isa);
}

static void close_fixture(fixture *f) {
    fr_embedder_close(f->embedder);
    fr_model_close(f->model);
    json_decref(f->cases);
}

static size_t encode_texts(const fixture *f, const char *prompt, fr_embedder_text **texts) {
    const json_t *list = json_object_get(f->cases, "texts");
    size_t count = json_array_size(list);
    *texts = calloc(count, sizeof **texts);
    for (size_t i = 0; i < count; i++) {
        const json_t *text = json_array_get(list, i);
        require(
            fr_embedder_encode(f->embedder, prompt, json_string_value(text), json_string_length(text), &(*texts)[i]));
    }
    return count;
}

static size_t encode_pairs(const fixture *f, fr_embedder_text **pairs) {
    const json_t *list = json_object_get(f->cases, "pairs");
    size_t count = json_array_size(list);
    *pairs = calloc(count, sizeof **pairs);
    for (size_t i = 0; i < count; i++) {
        const char *query = json_string_value(json_array_get(json_array_get(list, i), 0));
        const char *document = json_string_value(json_array_get(json_array_get(list, i), 1));
        require(
            fr_embedder_encode_pair(f->embedder, NULL, query, strlen(query), document, strlen(document), &(*pairs)[i]));
    }
    return count;
}

static void free_texts(fr_embedder_text *texts, size_t count) {
    for (size_t i = 0; i < count; i++) fr_embedder_text_free(&texts[i]);
    free(texts);
}

static void compare_rows(const fixture *f, const json_t *rows, const float *got, size_t count, const char *what) {
    size_t width = (size_t)fr_embedder_fact_of(f->embedder, FR_EMBEDDER_WIDTH);
    ck_assert_uint_eq(json_array_size(rows), count);
    for (size_t t = 0; t < count; t++) {
        const json_t *row = json_array_get(rows, t);
        ck_assert_uint_eq(json_array_size(row), width);
        for (size_t i = 0; i < width; i++) {
            double expected = json_number_value(json_array_get(row, i));
            ck_assert_msg(fabs((double)got[t * width + i] - expected) <= BOUND,
                          "%s: text %zu, number %zu: %.9g, not %.9g", what, t, i, (double)got[t * width + i], expected);
        }
    }
}

START_TEST(rows_are_those_of_sentence_transformers) {
    fixture f;
    open_fixture(&f, names[_i], 0, NULL);
    const json_t *entry;
    size_t at;
    json_array_foreach (json_object_get(f.cases, "cases"), at, entry) {
        const char *name = json_string_value(json_object_get(entry, "prompt"));
        fr_embedder_text *texts;
        const char *prompt = fr_embedder_prompt(f.embedder, name);
        ck_assert(!name || prompt);
        size_t count = encode_texts(&f, prompt, &texts);
        float *rows = calloc(count * (size_t)fr_embedder_fact_of(f.embedder, FR_EMBEDDER_WIDTH), sizeof *rows);
        require(fr_embedder_rows(f.embedder, texts, count, 0, -1, rows));
        compare_rows(&f, json_object_get(entry, "rows"), rows, count, names[_i]);
        free(rows);
        free_texts(texts, count);
    }
    close_fixture(&f);
}
END_TEST

/* Models whose folders llama.cpp's converter has converted to GGUF files (encoders_gguf.py). The embeddings of these
 * files have length 1. */
static const char *const converted[] = {"bert-mean", "nomic", "modernbert"};

START_TEST(gguf_files_have_the_rows_of_their_folders) {
    fixture f;
    char file[64];
    fr_embedder_text *texts;
    json_error_t error;
    snprintf(file, sizeof file, "%s.gguf", converted[_i]);
    f.cases = json_load_file(path_of(converted[_i], "cases.json"), 0, &error);
    ck_assert_ptr_nonnull(f.cases);
    open_embedder(&f, path_of("gguf", file), 0, NULL);
    size_t count = encode_texts(&f, NULL, &texts), width = (size_t)fr_embedder_fact_of(f.embedder, FR_EMBEDDER_WIDTH);
    float *rows = calloc(count * width, sizeof *rows);
    require(fr_embedder_rows(f.embedder, texts, count, 0, -1, rows));
    const json_t *expected = json_object_get(json_array_get(json_object_get(f.cases, "cases"), 0), "rows");
    for (size_t t = 0; t < count; t++) {
        double squares = 0;
        for (size_t i = 0; i < width; i++)
            squares += pow(json_number_value(json_array_get(json_array_get(expected, t), i)), 2);
        for (size_t i = 0; i < width; i++)
            ck_assert_double_eq_tol((double)rows[t * width + i],
                                    json_number_value(json_array_get(json_array_get(expected, t), i)) / sqrt(squares),
                                    BOUND);
    }
    free(rows);
    free_texts(texts, count);
    close_fixture(&f);
}
END_TEST

/* Models that transformers does not have. One is Jina's embeddings v2; without ALiBi its numbers would differ by 0.1
 * and more. The other is NomicBERT with mixtures of experts, as a file and as a folder. */
static const struct {
    const char *model, *cases;
} of_llama_cpp[] = {{"gguf/jina-v2.gguf", "gguf/jina-v2.json"},
                    {"gguf/jina-v2-gate.gguf", "gguf/jina-v2.json"},
                    {"gguf/nomic-moe.gguf", "nomic-moe/cases.json"},
                    {"nomic-moe", "nomic-moe/cases.json"}};

/* Compares embeddings with those of llama.cpp's server, which approximates GELU (tests/references/encoders_jina.py and
 * encoders_nomic_moe.py). */
START_TEST(rows_are_those_of_llama_cpp) {
    char path[512];
    fixture f = {.cases = json_load_file(path_of(of_llama_cpp[_i].cases, ""), 0, NULL)};
    fr_embedder_text *texts;
    snprintf(path, sizeof path, "%s", path_of(of_llama_cpp[_i].model, ""));
    ck_assert_ptr_nonnull(f.cases);
    open_embedder(&f, path, 0, NULL);
    size_t count = encode_texts(&f, NULL, &texts), width = (size_t)fr_embedder_fact_of(f.embedder, FR_EMBEDDER_WIDTH);
    float *rows = calloc(count * width, sizeof *rows);
    require(fr_embedder_rows(f.embedder, texts, count, 0, 1, rows));
    for (size_t t = 0; t < count; t++) {
        const json_t *ids = json_array_get(json_object_get(f.cases, "ids"), t);
        const json_t *row = json_array_get(json_object_get(f.cases, "rows"), t);
        ck_assert_uint_eq(texts[t].count, json_array_size(ids));
        for (size_t i = 0; i < texts[t].count; i++)
            ck_assert_int_eq(texts[t].ids[i], json_integer_value(json_array_get(ids, i)));
        ck_assert_uint_eq(json_array_size(row), width);
        for (size_t i = 0; i < width; i++)
            ck_assert_double_eq_tol((double)rows[t * width + i], json_number_value(json_array_get(row, i)), 2e-3);
    }
    free(rows);
    free_texts(texts, count);
    close_fixture(&f);
}
END_TEST

/* llama.cpp's converter leaves out the pooler. A score without the pooler would be wrong, so such a file must give no
 * scores. */
START_TEST(a_gguf_file_without_its_pooler_scores_nothing) {
    fixture f = {.cases = NULL};
    open_embedder(&f, path_of("gguf", "cross-bert.gguf"), 0, NULL);
    ck_assert_int_eq(fr_embedder_fact_of(f.embedder, FR_EMBEDDER_SCORES), 0);
    close_fixture(&f);
}
END_TEST

static void compare_scores(const fixture *f, const fr_embedder_text *pairs, size_t count, const char *key, bool raw) {
    const json_t *list = json_object_get(f->cases, key);
    float *scores = calloc(count, sizeof *scores);
    require(fr_embedder_scores(f->embedder, pairs, count, raw, scores));
    for (size_t i = 0; i < count && json_is_array(list); i++) {
        double expected = json_number_value(json_array_get(list, i));
        ck_assert_msg(fabs((double)scores[i] - expected) <= BOUND, "%s of pair %zu: %.9g, not %.9g", key, i,
                      (double)scores[i], expected);
    }
    free(scores);
}

START_TEST(scores_are_those_of_sentence_transformers) {
    fixture f;
    fr_embedder_text *pairs;
    open_fixture(&f, names[_i], 0, NULL);
    ck_assert_int_eq(fr_embedder_fact_of(f.embedder, FR_EMBEDDER_SCORES), 1);
    size_t count = encode_pairs(&f, &pairs);
    compare_scores(&f, pairs, count, "scores", false);
    compare_scores(&f, pairs, count, "raw", true);
    free_texts(pairs, count);
    close_fixture(&f);
}
END_TEST

/* Computes the embeddings of all texts, or the scores of all pairs. If `alone` is true, each is computed in its own
 * call, otherwise all are computed in one call. */
static float *run_all(const fixture *f, bool alone, size_t *bytes) {
    bool scores = json_object_get(f->cases, "pairs") != NULL;
    fr_embedder_text *texts;
    size_t count = scores ? encode_pairs(f, &texts) : encode_texts(f, NULL, &texts);
    char *tail = calloc(1, 8 * LONG + 1); /* next to the short texts, one that is twice as long as the model can read */
    for (size_t i = 0; i < LONG; i++) memcpy(tail + 8 * i, "the sea ", 8);
    texts = realloc(texts, (count + 2) * sizeof *texts);
    for (size_t i = 0; i < 2; i++, count++)
        require(scores ? fr_embedder_encode_pair(f->embedder, NULL, "a", 1, tail, 8 * LONG, &texts[count])
                       : fr_embedder_encode(f->embedder, NULL, tail, 8 * LONG - 8 * i, &texts[count]));
    free(tail);
    size_t width = scores ? 1 : (size_t)fr_embedder_fact_of(f->embedder, FR_EMBEDDER_WIDTH);
    float *rows = calloc(count * width, sizeof *rows);
    for (size_t t = 0; t < count; t += alone ? 1 : count) {
        size_t many = alone ? 1 : count;
        require(scores ? fr_embedder_scores(f->embedder, texts + t, many, true, rows + t)
                       : fr_embedder_rows(f->embedder, texts + t, many, 0, -1, rows + t * width));
    }
    free_texts(texts, count);
    *bytes = count * width * sizeof *rows;
    return rows;
}

START_TEST(no_bit_depends_on_neighbours_threads_or_instruction_set) {
    fixture f;
    size_t bytes, same;
    open_fixture(&f, names[_i], 1, NULL);
    float *expected = run_all(&f, true, &bytes);
    float *together = run_all(&f, false, &same);
    ck_assert_uint_eq(bytes, same);
    ck_assert_msg(memcmp(expected, together, bytes) == 0, "%s: neighbours change bits", names[_i]);
    free(together);
    close_fixture(&f);
    for (int threads = 2; threads <= 5; threads += 3) {
        open_fixture(&f, names[_i], threads, threads == 5 ? "scalar" : NULL);
        float *rows = run_all(&f, false, &same);
        ck_assert_msg(memcmp(expected, rows, bytes) == 0, "%s: %d threads change bits", names[_i], threads);
        free(rows);
        close_fixture(&f);
    }
    free(expected);
}
END_TEST

START_TEST(a_text_is_cut_at_its_end_and_says_so) {
    fixture f;
    open_fixture(&f, "bert-mean", 0, NULL);
    int64_t limit = fr_embedder_fact_of(f.embedder, FR_EMBEDDER_LIMIT);
    char text[600];
    fr_embedder_text encoded, pair;
    memset(text, 0, sizeof text);
    for (size_t i = 0; i < 100; i++) memcpy(text + 4 * i, "sea ", 4);
    require(fr_embedder_encode(f.embedder, NULL, text, strlen(text), &encoded));
    ck_assert_int_eq(limit, 64);
    ck_assert_uint_eq(encoded.count, 64);
    ck_assert_uint_eq(encoded.whole, 102);
    ck_assert_int_eq(encoded.ids[0], 2);  /* [CLS] */
    ck_assert_int_eq(encoded.ids[63], 3); /* [SEP] remains at the end when the text is cut */
    fr_embedder_text_free(&encoded);
    require(fr_embedder_encode_pair(f.embedder, NULL, "a house", 7, text, strlen(text), &pair));
    ck_assert_uint_eq(pair.count, 64);
    ck_assert_uint_eq(pair.whole, 105);
    ck_assert_int_eq(pair.ids[3], 3);
    ck_assert_int_eq(pair.types[3], 0);
    ck_assert_int_eq(pair.ids[63], 3);
    fr_embedder_text_free(&pair);
    close_fixture(&f);
}
END_TEST

START_TEST(dimensions_keep_the_first_numbers) {
    fixture f;
    fr_embedder_text text;
    float whole[32], cut[8], plain[8];
    open_fixture(&f, "bert-mean", 0, NULL);
    require(fr_embedder_encode(f.embedder, NULL, "a house", 7, &text));
    require(fr_embedder_rows(f.embedder, &text, 1, 0, -1, whole));
    require(fr_embedder_rows(f.embedder, &text, 1, 8, -1, cut));
    require(fr_embedder_rows(f.embedder, &text, 1, 8, 0, plain));
    double squares = 0, length = 0;
    for (size_t i = 0; i < 8; i++) squares += (double)cut[i] * (double)cut[i];
    for (size_t i = 0; i < 8; i++) length += (double)whole[i] * (double)whole[i];
    ck_assert_double_eq_tol(squares, 1.0, 1e-6);
    for (size_t i = 0; i < 8; i++) {
        ck_assert_double_eq_tol((double)cut[i], (double)whole[i] / sqrt(length), 1e-6);
        ck_assert_double_eq_tol((double)(plain[i] / plain[0]), (double)(whole[i] / whole[0]), 1e-4);
    }
    ck_assert_int_eq(fr_embedder_rows(f.embedder, &text, 1, 33, -1, whole), FR_USAGE);
    fr_embedder_text_free(&text);
    close_fixture(&f);
}
END_TEST

/* -------------------------------------------------------------------------------------------------------- refusals */

#define MODULES(rest) "[{\"type\": \"x.Transformer\", \"path\": \"\"}, " rest "]"

/* Changes of a configuration that would change the result. The error line must contain `word`. */
static const struct {
    const char *model, *file, *change, *word;
} refused[] = {
    {"bert-mean", "config.json", "{\"position_embedding_type\": \"relative_key\"}", "position_embedding_type"},
    {"bert-mean", "config.json", "{\"is_decoder\": true}", "is_decoder"},
    {"bert-mean", "config.json", "{\"hidden_act\": \"mish\"}", "hidden_act"},
    {"bert-mean", "config.json", "{\"embedding_size\": 16}", "embedding_size"},
    {"bert-mean", "config.json", "{\"pruned_heads\": {\"0\": [1]}}", "pruned_heads"},
    {"bert-mean", "config.json", "{\"num_attention_heads\": 5}", "heads"},
    {"bert-mean", "config.json", "{\"vocab_size\": 120}", "word_embeddings"},
    {"bert-mean", "config.json", "{\"num_hidden_layers\": 3}", "encoder.layer.2."},
    {"bert-mean", "config.json", "{\"use_mup\": true}", "use_mup"},
    {"bert-mean", "config.json", "{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.0}}", "rope_scaling"},
    {"bert-mean", "config.json", "{\"auto_map\": {\"AutoModel\": \"modeling_bert.JinaBertModel\"}}", "auto_map"},
    {"roberta", "config.json", "{\"position_embedding_type\": \"rotary\"}", "position_embedding_type"},
    {"xlm-roberta", "config.json", "{\"lora_adaptations\": [\"retrieval.query\"]}", "lora_adaptations"},
    {"distilbert", "config.json", "{\"activation\": \"gelu_10\"}", "activation"},
    {"distilbert", "config.json", "{\"is_decoder\": true}", "is_decoder"},
    {"mpnet", "config.json", "{\"is_decoder\": true}", "is_decoder"},
    {"gte", "config.json", "{\"is_decoder\": true}", "is_decoder"},
    {"jina-v3", "config.json", "{\"is_decoder\": true}", "is_decoder"},
    {"jina-v3", "config.json", "{\"rope_scaling\": {\"type\": \"ntk\", \"factor\": 8.0}}", "rope_scaling"},
    {"jina-v3", "config.json", "{\"hidden_act\": \"mish\"}", "hidden_act"},
    {"gte", "config.json", "{\"layer_norm_type\": \"rms_norm\"}", "layer_norm_type"},
    {"gemma", "config.json", "{\"use_qk_norm\": true}", "use_qk_norm"},
    {"gemma", "config.json", "{\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8.0}}", "rope_scaling"},
    {"nomic", "config.json", "{\"num_experts\": 8}", "num_experts"},
    {"bert-mean", "config.json", "{\"num_experts\": 8}", "num_experts"},
    {"gte", "config.json", "{\"num_experts\": 8}", "num_experts"},
    {"modernbert", "config.json", "{\"num_experts\": 8}", "num_experts"},
    {"nomic-moe", "config.json", "{\"num_experts\": 4}", "router"},
    {"nomic-moe", "config.json", "{\"moe_top_k\": 6}", "moe_top_k"},
    {"nomic-moe", "config.json", "{\"moe_every_n_layers\": 3}", "mlp."},
    {"nomic-moe", "config.json", "{\"num_shared_experts\": 1}", "num_shared_experts"},
    {"nomic-moe", "config.json", "{\"moe_normalize_expert_weights\": true}", "moe_normalize_expert_weights"},
    {"nomic-moe", "config.json", "{\"expert_choice_router\": true}", "expert_choice_router"},
    {"cross-modernbert", "config.json", "{\"classifier_pooling\": \"max\"}", "classifier_pooling"},
    {"qwen3", "config.json", "{\"use_bidirectional_attention\": true}", "use_bidirectional_attention"},
    {"mpnet", "config.json", "{\"relative_attention_num_buckets\": 64}", "relative_attention_num_buckets"},
    {"nomic", "config.json", "{\"prenorm\": true}", "prenorm"},
    {"nomic", "config.json", "{\"rotary_emb_fraction\": 0.5}", "rotary_emb_fraction"},
    {"nomic", "config.json", "{\"scale_attn_weights\": false}", "scale_attn_weights false is not built"},
    {"nomic", "config.json", "{\"scale_attn_weights\": \"no\"}", "scale_attn_weights"},
    {"nomic", "config.json", "{\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 2.0}}", "rope_type"},
    {"gte", "config.json", "{\"logn_attention_scale\": true}", "logn_attention_scale"},
    {"gte", "config.json", "{\"rope_scaling\": {\"type\": \"ntk\", \"factor\": 8.0}}", "rope_scaling"},
    {"modernbert", "config.json", "{\"mlp_bias\": true}", "mlp_bias"},
    {"modernbert", "config.json", "{\"layer_types\": [\"full_attention\"]}", "layer_types"},
    {"gemma", "config.json", "{\"attn_logit_softcapping\": 50.0}", "attn_logit_softcapping"},
    {"bert-mean", "1_Pooling/config.json", "{\"pooling_mode\": \"median\"}", "pooling_mode"},
    {"bert-mean", "1_Pooling/config.json", "{\"embedding_dimension\": 31}", "31"},
    {"bert-modes", "2_Dense/config.json", "{\"activation_function\": \"torch.nn.Mish\"}", "activation_function"},
    {"bert-modes", "2_Dense/config.json", "{\"in_features\": 96}", "96"},
    {"bert-mean", "1_Pooling/config.json", "{\"pooling_mode\": 3}", "pooling_mode"},
    {"bert-mean", "sentence_bert_config.json", "{\"transformer_task\": \"fill-mask\"}", "transformer_task"},
    {"bert-mean", "sentence_bert_config.json", "{\"module_output_name\": \"sentence_embedding\"}",
     "module_output_name"},
    {"bert-mean", "sentence_bert_config.json",
     "{\"modality_config\": {\"text\": {\"method_output_name\": \"pooler_output\"}}}", "method_output_name"},
    {"bert-mean", "sentence_bert_config.json", "{\"query_length\": 32}", "query_length"},
    {"bert-mean", "sentence_bert_config.json", "{\"processing_kwargs\": {\"text\": {\"padding\": \"max_length\"}}}",
     "processing_kwargs"},
    {"xlm-roberta", "sentence_bert_config.json", "{\"do_lower_case\": true}", "do_lower_case"},
    {"bert-modes", "modules.json",
     MODULES("{\"type\": \"x.Dense\", \"path\": \"2_Dense\"}, {\"type\": \"x.Pooling\", \"path\": \"1_Pooling\"}"),
     "x.Dense"},
    {"bert-modes", "modules.json",
     MODULES("{\"type\": \"x.Pooling\", \"path\": \"1_Pooling\"}, {\"type\": \"y.Pooling\", \"path\": \"1_Pooling\"}"),
     "y.Pooling"},
    {"bert-modes", "modules.json", MODULES("{\"type\": \"x.Normalize\", \"path\": \"\"}"), "x.Normalize"},
    {"bert-modes", "2_Dense/config.json", "{\"module_input_name\": \"token_embeddings\"}", "module_input_name"},
};

/* Makes a copy of a model's folder, in which one JSON file is changed and the other files are links. If `change` is an
 * object, its members replace those of the file. If `change` is a list, it replaces the whole file. */
static char *changed_folder(const char *model, const char *file, const char *change) {
    static const char *const files[] = {"config.json",
                                        "model.safetensors",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "modules.json",
                                        "sentence_bert_config.json",
                                        "config_sentence_transformers.json",
                                        "1_Pooling/config.json",
                                        "2_Normalize/config.json",
                                        "2_Dense/config.json",
                                        "2_Dense/model.safetensors",
                                        "3_Dense/config.json",
                                        "3_Dense/model.safetensors",
                                        "4_Normalize/config.json"};
    static char folder[64];
    char place[512], here[512];
    snprintf(folder, sizeof folder, "/tmp/forerun-embed-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *slash = strchr(files[i], '/');
        if (!realpath(path_of(model, files[i]), here)) continue;
        if (slash) {
            snprintf(place, sizeof place, "%s/%.*s", folder, (int)(slash - files[i]), files[i]);
            mkdir(place, 0700);
        }
        snprintf(place, sizeof place, "%s/%s", folder, files[i]);
        if (strcmp(files[i], file) != 0) {
            ck_assert_int_eq(symlink(here, place), 0);
            continue;
        }
        json_t *object = json_load_file(here, 0, NULL), *keys = json_loads(change, 0, NULL);
        ck_assert_ptr_nonnull(keys);
        json_object_update(object, keys);
        ck_assert_int_eq(json_dump_file(json_is_array(keys) ? keys : object, place, 0), 0);
        json_decref(object);
        json_decref(keys);
    }
    return folder;
}

static void remove_folder(const char *folder) {
    char line[128];
    snprintf(line, sizeof line, "rm -r %s", folder);
    ck_assert_int_eq(system(line), 0);
}

START_TEST(keys_that_change_the_computation_are_refused_by_name) {
    const char *folder = changed_folder(refused[_i].model, refused[_i].file, refused[_i].change);
    fr_model *model = NULL;
    fr_embedder *embedder = NULL;
    fr_status status = fr_model_open(folder, NULL, &model);
    if (status == FR_OK) status = fr_embedder_open(model, NULL, NULL, FR_POOLING_NONE, &embedder);
    ck_assert_msg(status == FR_INPUT || status == FR_UNBUILT, "%s: status %d", refused[_i].change, (int)status);
    ck_assert_msg(strstr(fr_last_error(), refused[_i].word) != NULL, "%s: %s", refused[_i].change, fr_last_error());
    fr_embedder_close(embedder);
    fr_model_close(model);
    remove_folder(folder);
}
END_TEST

START_TEST(an_encoder_generates_no_text) {
    fr_model *model;
    fr_session *session;
    require(fr_model_open(path_of("bert-mean", ""), NULL, &model));
    ck_assert_int_eq(fr_model_fact(model, FR_FACT_ENCODER), 1);
    ck_assert_int_eq(fr_session_open(model, NULL, NULL, &session), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "text encoder"));
    fr_model_close(model);
}
END_TEST

START_TEST(a_model_without_a_classifier_scores_nothing) {
    fixture f;
    fr_embedder_text text;
    float score;
    open_fixture(&f, "bert-mean", 0, NULL);
    ck_assert_int_eq(fr_embedder_fact_of(f.embedder, FR_EMBEDDER_SCORES), 0);
    require(fr_embedder_encode(f.embedder, NULL, "a", 1, &text));
    ck_assert_int_eq(fr_embedder_scores(f.embedder, &text, 1, false, &score), FR_INPUT);
    fr_embedder_text_free(&text);
    close_fixture(&f);
}
END_TEST

/* Qwen3-Embedding-8B is published without a head, although its configuration says that the embeddings are not tied to
 * the head. The fixture is opened in this form too. It must give the same embeddings as with a head, and refuse to
 * generate text and to score. */
START_TEST(a_model_without_a_head_makes_rows_alone) {
    const char *folder = changed_folder("qwen3", "config.json", "{\"tie_word_embeddings\": false}");
    float expected[64], got[64], score;
    fixture tied, bare = {.cases = NULL};
    fr_session *session;
    fr_embedder_text text;
    open_fixture(&tied, "qwen3", 0, NULL);
    open_embedder(&bare, folder, 0, NULL);
    ck_assert_int_le(fr_embedder_fact_of(bare.embedder, FR_EMBEDDER_WIDTH), 64);
    size_t bytes = (size_t)fr_embedder_fact_of(bare.embedder, FR_EMBEDDER_WIDTH) * sizeof *got;
    require(fr_embedder_encode(bare.embedder, NULL, "a house", 7, &text));
    require(fr_embedder_rows(tied.embedder, &text, 1, 0, -1, expected));
    require(fr_embedder_rows(bare.embedder, &text, 1, 0, -1, got));
    ck_assert_mem_eq(got, expected, bytes);
    ck_assert_int_eq(fr_embedder_fact_of(tied.embedder, FR_EMBEDDER_SCORES), 1);
    ck_assert_int_eq(fr_embedder_fact_of(bare.embedder, FR_EMBEDDER_SCORES), 0);
    ck_assert_int_eq(fr_embedder_scores(bare.embedder, &text, 1, true, &score), FR_INPUT);
    require(fr_session_open(bare.model, NULL, NULL, &session));
    ck_assert_int_eq(fr_session_prompt(session, text.ids, text.count), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "lm_head.weight"));
    ck_assert_int_eq(fr_session_put(session, text.ids, text.count), FR_INPUT);
    fr_session_close(session);
    fr_embedder_text_free(&text);
    close_fixture(&tied);
    fr_embedder_close(bare.embedder);
    fr_model_close(bare.model);
    remove_folder(folder);
}
END_TEST

/* The rows of a prompt must be left out of the pooling. If the text has only the prompt's rows, the result must be that
 * of sentence-transformers: the first row for cls, minus infinity for max, and zeros for all other modes. */
START_TEST(rows_of_a_prompt_are_left_out) {
    static const float rows[] = {1, -2, 5, 4, 3, -9};
    static const struct {
        size_t skipped;
        fr_pool_mode mode;
        float expected[2];
    } cases[] = {{2, FR_POOL_MEAN, {3, -9}},     {2, FR_POOL_CLS, {3, -9}},
                 {1, FR_POOL_MAX, {5, 4}},       {1, FR_POOL_LAST, {3, -9}},
                 {3, FR_POOL_MEAN, {0, 0}},      {3, FR_POOL_WEIGHTED, {0, 0}},
                 {9, FR_POOL_MEAN_SQRT, {0, 0}}, {3, FR_POOL_CLS, {1, -2}},
                 {3, FR_POOL_LAST, {0, 0}},      {3, FR_POOL_MAX, {-INFINITY, -INFINITY}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fr_recipe recipe = {.modes = {cases[i].mode}, .mode_count = 1, .skips_prompt = true};
        float pooled[2];
        fr_recipe_pool(&recipe, rows, 3, 2, cases[i].skipped, pooled);
        for (size_t n = 0; n < 2; n++) ck_assert_msg(pooled[n] == cases[i].expected[n], "case %zu", i);
    }
}
END_TEST

START_TEST(ids_outside_the_vocabulary_are_refused) {
    fixture f;
    float row[32];
    open_fixture(&f, "bert-mean", 0, NULL);
    int32_t ids[] = {2, 4000, 3};
    fr_embedder_text none = {0}, text = {.ids = ids, .count = 3}, encoded;
    ck_assert_int_eq(fr_embedder_encode_ids(f.embedder, ids, 3, &encoded), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "id 4000 at 1"));
    ck_assert_int_eq(fr_embedder_rows(f.embedder, &text, 1, 0, -1, row), FR_INPUT);
    ck_assert_int_eq(fr_embedder_rows(f.embedder, &none, 1, 0, -1, row), FR_INPUT);
    close_fixture(&f);
}
END_TEST

START_TEST(types_that_the_model_lacks_are_refused) {
    fixture f;
    float row[32];
    uint8_t types[] = {0, 2, 0};
    int32_t ids[] = {2, 5, 3};
    open_fixture(&f, "bert-mean", 0, NULL);
    fr_embedder_text text = {.ids = ids, .types = types, .count = 3};
    ck_assert_int_eq(fr_embedder_rows(f.embedder, &text, 1, 0, -1, row), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "token type 2"));
    close_fixture(&f);
}
END_TEST

/* The model has several pooling modes, and each gives one part of the embedding. If the caller chooses one mode, it
 * replaces all of them, and the embedding still has length 1. */
START_TEST(one_pooling_instead_of_several_gives_a_whole_row) {
    const char *folder = changed_folder("bert-modes", "modules.json",
                                        MODULES("{\"type\": \"x.Pooling\", \"path\": \"1_Pooling\"}, "
                                                "{\"type\": \"x.Normalize\", \"path\": \"\"}"));
    fr_model *model;
    fr_embedder *embedder;
    fr_embedder_text text;
    float row[32], bare[32];
    double squares = 0, length = 0;
    require(fr_model_open(folder, NULL, &model));
    require(fr_embedder_open(model, NULL, NULL, FR_POOLING_MEAN, &embedder));
    ck_assert_int_eq(fr_embedder_fact_of(embedder, FR_EMBEDDER_WIDTH), 32);
    require(fr_embedder_encode(embedder, NULL, "a house", 7, &text));
    require(fr_embedder_rows(embedder, &text, 1, 0, -1, row));
    require(fr_embedder_rows(embedder, &text, 1, 0, 0, bare));
    for (size_t i = 0; i < 32; i++) squares += (double)row[i] * (double)row[i];
    for (size_t i = 0; i < 32; i++) length += (double)bare[i] * (double)bare[i];
    ck_assert_double_eq_tol(squares, 1.0, 1e-6);
    for (size_t i = 0; i < 32; i++) ck_assert_double_eq_tol((double)row[i] * sqrt(length), (double)bare[i], 1e-5);
    fr_embedder_text_free(&text);
    fr_embedder_close(embedder);
    fr_model_close(model);
    remove_folder(folder);
}
END_TEST

/* Weights of 3e38 are finite, but their sums are not. */
START_TEST(a_row_that_is_not_finite_is_an_error) {
    const char *folder = changed_folder("gemma", "", "{}");
    char place[128];
    uint64_t header;
    size_t size;
    float row[64];
    fr_model *model;
    fr_embedder *embedder;
    fr_embedder_text text;
    FILE *in = fopen(path_of("gemma", "2_Dense/model.safetensors"), "rb");
    unsigned char *bytes = calloc(1, 1 << 16);
    ck_assert_ptr_nonnull(in);
    size = fread(bytes, 1, 1 << 16, in);
    fclose(in);
    memcpy(&header, bytes, sizeof header);
    for (size_t at = sizeof header + header; at + sizeof(float) <= size; at += sizeof(float))
        memcpy(bytes + at, &(float){3e38F}, sizeof(float));
    snprintf(place, sizeof place, "%s/2_Dense/model.safetensors", folder);
    ck_assert_int_eq(unlink(place), 0);
    FILE *out = fopen(place, "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, size, out), size);
    fclose(out);
    free(bytes);
    require(fr_model_open(folder, NULL, &model));
    require(fr_embedder_open(model, NULL, NULL, FR_POOLING_NONE, &embedder));
    require(fr_embedder_encode(embedder, NULL, "a house", 7, &text));
    ck_assert_int_le(fr_embedder_fact_of(embedder, FR_EMBEDDER_WIDTH), 64);
    ck_assert_int_eq(fr_embedder_rows(embedder, &text, 1, 0, -1, row), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "not finite"));
    fr_embedder_text_free(&text);
    fr_embedder_close(embedder);
    fr_model_close(model);
    remove_folder(folder);
}
END_TEST

/* Several texts are run together, and the embedding of one is not finite. The texts before this one must still get
 * their embeddings, so that a server need not run them again. */
START_TEST(a_damaged_text_spares_those_before_it) {
    enum { TEXTS = 5, BAD = 3, WIDTH = 32, BAD_ID = 60 };
    int32_t ids[TEXTS][3];
    fr_embedder_text texts[TEXTS];
    float rows[2][TEXTS * WIDTH];
    fr_changed_folder damaged;
    fr_changed_folder_make(&damaged, path_of("bert-mean", ""), "{}");
    fr_changed_folder_damage(&damaged, "embeddings.word_embeddings.weight", BAD_ID);
    for (size_t t = 0; t < TEXTS; t++) {
        memcpy(ids[t], (int32_t[]){2, t == BAD ? BAD_ID : (int32_t)(20 + t), 3}, sizeof ids[t]);
        texts[t] = (fr_embedder_text){.ids = ids[t], .count = 3};
    }
    for (size_t i = 0; i < 2; i++) {
        fr_model *model;
        fr_embedder *embedder;
        require(fr_model_open(i ? damaged.path : path_of("bert-mean", ""), NULL, &model));
        require(fr_embedder_open(model, NULL, NULL, FR_POOLING_NONE, &embedder));
        ck_assert_int_eq(fr_embedder_rows(embedder, texts, TEXTS, 0, 1, rows[i]), i ? FR_INPUT : FR_OK);
        ck_assert_uint_eq(fr_lab_embedder_done(embedder), i ? BAD : TEXTS);
        ck_assert_int_eq(fr_embedder_rows(embedder, texts, TEXTS, WIDTH + 1, 1, rows[i]), FR_USAGE);
        ck_assert_uint_eq(fr_lab_embedder_done(embedder), 0);
        fr_embedder_close(embedder);
        fr_model_close(model);
    }
    ck_assert_mem_eq(rows[1], rows[0], BAD * WIDTH * sizeof **rows);
    fr_changed_folder_remove(&damaged);
}
END_TEST

FR_SUITE("encoders") {
    TCase *cases = tcase_create("sentence-transformers");
    tcase_add_loop_test(cases, rows_are_those_of_sentence_transformers, 0, EMBEDDERS);
    tcase_add_loop_test(cases, gguf_files_have_the_rows_of_their_folders, 0, sizeof converted / sizeof *converted);
    tcase_add_loop_test(cases, rows_are_those_of_llama_cpp, 0, sizeof of_llama_cpp / sizeof *of_llama_cpp);
    tcase_add_test(cases, a_gguf_file_without_its_pooler_scores_nothing);
    tcase_add_loop_test(cases, scores_are_those_of_sentence_transformers, EMBEDDERS, EMBEDDERS + SCORERS);
    tcase_add_loop_test(cases, no_bit_depends_on_neighbours_threads_or_instruction_set, 0, NAMES);
    tcase_add_test(cases, a_text_is_cut_at_its_end_and_says_so);
    tcase_add_test(cases, dimensions_keep_the_first_numbers);
    tcase_add_loop_test(cases, keys_that_change_the_computation_are_refused_by_name, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_test(cases, an_encoder_generates_no_text);
    tcase_add_test(cases, a_model_without_a_classifier_scores_nothing);
    tcase_add_test(cases, a_model_without_a_head_makes_rows_alone);
    tcase_add_test(cases, rows_of_a_prompt_are_left_out);
    tcase_add_test(cases, ids_outside_the_vocabulary_are_refused);
    tcase_add_test(cases, types_that_the_model_lacks_are_refused);
    tcase_add_test(cases, one_pooling_instead_of_several_gives_a_whole_row);
    tcase_add_test(cases, a_row_that_is_not_finite_is_an_error);
    tcase_add_test(cases, a_damaged_text_spares_those_before_it);
    suite_add_tcase(suite, cases);
}
