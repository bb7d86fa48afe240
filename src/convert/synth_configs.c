/* Qwen2.5 and Gemma 3 of random weights: see synth.h. A shape is a config.json, which its family's reader reads.
 *
 * Sizes: the published config.json of Qwen/Qwen2.5-0.5B, -1.5B and -7B, and of google/gemma-3-270m, -1b-pt and
 * -4b-pt. */
#include <string.h>

#include "base/error.h"
#include "src/convert/synth.h"
#include "src/families/config.h"

enum { QWEN_VOCAB = 151936, GEMMA_VOCAB = 262144 };

static const char *const untied[] = {"output.weight", NULL};

/* What an order leaves open; positions are fewer than published. */
static fr_status make_spec(const fr_family *family, const fr_synth_order *order, fr_trunk_spec *spec) {
    const char *text = order->shape->sizes;
    fr_source source = {.where = order->shape->name};
    fr_model_spec whole = {0};
    json_t *config;
    FR_TRY(fr_json_parse(text, strlen(text), source.where, &config));
    bool set = json_object_set_new(config, "vocab_size", json_integer((json_int_t)order->vocab)) == 0 &&
               json_object_set_new(config, "num_hidden_layers", json_integer((json_int_t)order->layers)) == 0 &&
               json_object_set_new(config, "max_position_embeddings", json_integer(FR_SYNTH_CONTEXT)) == 0;
    source.root = source.text = config;
    fr_status status = set ? fr_family_read(family, &source, &whole) : fr_fail_memory("a shape", 0);
    json_decref(config);
    *spec = whole.trunk;
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- Qwen2.5 */

static const fr_synth_shape qwen2_shapes[] = {
    {"qwen2.5-0.5b", "qwen2", 24, QWEN_VOCAB, 1,
     "{\"hidden_size\": 896, \"intermediate_size\": 4864, \"num_attention_heads\": 14, \"num_key_value_heads\": 2, "
     "\"rope_theta\": 1000000.0}", NULL},
    {"qwen2.5-1.5b", "qwen2", 28, QWEN_VOCAB, 1,
     "{\"hidden_size\": 1536, \"intermediate_size\": 8960, \"num_attention_heads\": 12, \"num_key_value_heads\": 2, "
     "\"rope_theta\": 1000000.0}", NULL},
    {"qwen2.5-7b", "qwen2", 28, QWEN_VOCAB + 128, 1,
     "{\"hidden_size\": 3584, \"intermediate_size\": 18944, \"num_attention_heads\": 28, \"num_key_value_heads\": 4, "
     "\"rope_theta\": 1000000.0}", untied},
    {0},
};

static fr_status make_qwen2(const fr_synth_order *order, fr_trunk_spec *spec) {
    return make_spec(&fr_family_qwen2, order, spec);
}

static const fr_synth_mean small_biases[] = {{".bias", 0.1F}, {0}};

const fr_synth_family fr_synth_qwen2 = {.shapes = qwen2_shapes,
                                        .family = &fr_family_qwen2,
                                        .tokenizer = &fr_synth_qwen_tokenizer,
                                        .means = small_biases,
                                        .make_spec = make_qwen2};

/* ---------------------------------------------------------------------------------------------------------- Gemma 3 */

static const fr_synth_shape gemma3_shapes[] = {
    {"gemma3-270m", "gemma3", 18, GEMMA_VOCAB, 1,
     "{\"hidden_size\": 640, \"intermediate_size\": 2048, \"num_attention_heads\": 4, \"num_key_value_heads\": 1, "
     "\"sliding_window\": 512}", NULL},
    {"gemma3-1b", "gemma3", 26, GEMMA_VOCAB, 1,
     "{\"hidden_size\": 1152, \"intermediate_size\": 6912, \"num_attention_heads\": 4, \"num_key_value_heads\": 1, "
     "\"sliding_window\": 512}", NULL},
    {"gemma3-4b", "gemma3", 34, GEMMA_VOCAB + 64, 1,
     "{\"hidden_size\": 2560, \"intermediate_size\": 10240, \"sliding_window\": 1024, "
     "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8.0}}", NULL},
    {0},
};

static const fr_synth_tokenizer gemma3_tokenizer = {
    .model = "llama",
    .special = {"<pad>", "<eos>", "<bos>", "<unk>"},
    .begins = true,
    .begin = 2,
    .end = 1,
    .unknown = 3,
};

static fr_status make_gemma3(const fr_synth_order *order, fr_trunk_spec *spec) {
    return make_spec(&fr_family_gemma3, order, spec);
}

const fr_synth_family fr_synth_gemma3 = {.shapes = gemma3_shapes,
                                         .family = &fr_family_gemma3,
                                         .tokenizer = &gemma3_tokenizer,
                                         .make_spec = make_gemma3};
