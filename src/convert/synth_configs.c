/* Qwen2.5 and Gemma 3 of random weights: see synth.h. A shape is a config.json, which its family's reader reads.
 *
 * Sizes: the published config.json of Qwen/Qwen2.5-0.5B, -1.5B and -7B, and of google/gemma-3-270m, -1b-pt and
 * -4b-pt. */
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "src/convert/synth.h"
#include "src/families/config.h"

enum { QWEN_VOCAB = 151936, GEMMA_VOCAB = 262144 };

static const char *const untied[] = {"output.weight", NULL};

static bool set(json_t *config, const char *key, size_t value) {
    return json_object_set_new(config, key, json_integer((json_int_t)value)) == 0;
}

/* Positions are fewer than published; one layer at least has a mixture, if any has. */
fr_status fr_synth_read(const fr_family *family, const fr_synth_order *order, bool drafter, json_t *config,
                        fr_trunk_spec *spec) {
    static const char leading[] = "first_k_dense_replace";
    const fr_source source = {.root = config, .text = config, .where = order->shape->name, .drafter = drafter};
    fr_model_spec whole = {0};
    bool done = set(config, "vocab_size", order->vocab) && set(config, "num_hidden_layers", order->layers) &&
                set(config, "max_position_embeddings", FR_SYNTH_CONTEXT);
    size_t dense = (size_t)json_integer_value(json_object_get(config, leading));
    if (dense) done &= set(config, leading, fr_smaller(dense, order->layers - 1));
    fr_status status = done ? fr_family_read(family, &source, &whole) : fr_fail_memory("a shape", 0);
    json_decref(config);
    *spec = whole.trunk;
    return status;
}

fr_status fr_synth_spec_of_config(const fr_family *family, const fr_synth_order *order, fr_trunk_spec *spec) {
    const char *text = order->shape->sizes;
    json_t *config;
    FR_TRY(fr_json_parse(text, strlen(text), order->shape->name, &config));
    return fr_synth_read(family, order, false, config, spec);
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

static const fr_synth_mean small_biases[] = {{".bias", 0.1F}, {0}};

const fr_synth_family fr_synth_qwen2 = {.shapes = qwen2_shapes,
                                        .family = &fr_family_qwen2,
                                        .tokenizer = &fr_synth_qwen_tokenizer,
                                        .means = small_biases};

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

const fr_synth_family fr_synth_gemma3 = {.shapes = gemma3_shapes,
                                         .family = &fr_family_gemma3,
                                         .tokenizer = &gemma3_tokenizer};
