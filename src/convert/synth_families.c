/* Describes the tokenizers and the vectors of random weights, for each family (synth.h). In: nothing. Out: for each
 * family that shapes.c names, its tokenizer and the means of its vectors. */
#include <string.h>

#include "src/convert/synth.h"

/* ------------------------------------------------------------------------------------------------------- tokenizers */

static const fr_synth_tokenizer gemma3_tokenizer = {
    .special = {"<pad>", "<eos>", "<bos>", "<unk>"},
    .begins = true,
    .begin = 2,
    .end = 1,
    .unknown = 3,
};

/* DeepSeek's special tokens look like <|begin_of_sentence|>, but with U+FF5C for the bars and U+2581 for the
 * underscores. */
static const fr_synth_tokenizer deepseek_tokenizer = {
    .special = {"<\xef\xbd\x9c"
                "begin\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
                "<\xef\xbd\x9c"
                "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
                "<\xef\xbd\x9c\xe2\x96\x81pad\xe2\x96\x81\xef\xbd\x9c>", "<\xef\xbd\x9cUser\xef\xbd\x9c>"},
    .byte_level = true,
    .end = 1,
    .turn_end = 1,
};

static const fr_synth_tokenizer glm_tokenizer = {
    .special = {"<|endoftext|>", "<|user|>", "[gMASK]", "<sop>"},
    .byte_level = true,
    .turn_end = 1,
};

const fr_synth_tokenizer fr_synth_llama_tokenizer = {
    .special = {"<|begin_of_text|>", "<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"},
    .byte_level = true,
    .begins = true,
    .end = 1,
    .turn_end = 3,
    .unknown = 1,
    .padding = 1,
};

static const fr_synth_tokenizer gpt_oss_tokenizer = {
    .special = {"<|startoftext|>", "<|endoftext|>", "<|return|>", "<|call|>"},
    .byte_level = true,
    .end = 2,
    .turn_end = 2,
    .padding = 1,
};

const fr_synth_tokenizer fr_synth_qwen_tokenizer = {
    .special = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>"},
    .byte_level = true,
    .turn_end = 2,
};

static const fr_synth_tokenizer qwen35_tokenizer = {
    .special = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|image_pad|>"},
    .byte_level = true,
    .end = 2,
    .turn_end = 2,
    .padding = 0,
};

/* A tokenizer of sentencepiece, like Llama 2's. */
static const fr_synth_tokenizer pieces_tokenizer = {
    .special = {"<unk>", "<s>", "</s>", "<pad>"},
    .begins = true,
    .begin = 1,
    .end = 2,
    .turn_end = 2,
};

static const fr_synth_tokenizer cohere_tokenizer = {
    .special = {"<PAD>", "<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>"},
    .byte_level = true,
    .begins = true,
    .begin = 1,
    .end = 3,
    .turn_end = 3,
};

static const fr_synth_tokenizer ernie_tokenizer = {
    .special = {"<unk>", "<s>", "</s>", "<mask:0>"},
    .begins = true,
    .begin = 1,
    .end = 2,
};

static const fr_synth_tokenizer exaone_tokenizer = {
    .special = {"[PAD]", "[BOS]", "[|endofturn|]", "[UNK]"},
    .byte_level = true,
    .begin = 1,
    .end = 2,
    .turn_end = 2,
    .unknown = 3,
};

static const fr_synth_tokenizer lfm2_tokenizer = {
    .special = {"<|pad|>", "<|startoftext|>", "<|endoftext|>", "<|im_end|>"},
    .byte_level = true,
    .begins = true,
    .begin = 1,
    .end = 3,
    .turn_end = 3,
};

/* ------------------------------------------------------------------------------------------------- means of vectors */

static const fr_synth_mean biases[] = {{".bias", 0.1F}, {0}};

/* Biases that correct the choice of experts have a small mean, because they are small compared with the scores. */
static const fr_synth_mean small_biases[] = {{".bias", 0.01F}, {0}};

/* With these means, a recurrent state loses about a quarter of its size from one position to the next. */
static const fr_synth_mean states[] = {{"ssm_a", -1.0f}, {"ssm_dt.bias", -1.0f}, {0}};

/* Ling 3.0's slopes are positive, and its decay has the bound -5. With this bound and these means, the states of Ling
 * 3.0 decay about as fast as other models' states with the means `states`. */
static const fr_synth_mean bounded[] = {{"ssm_a", 1.0f}, {"ssm_dt.bias", -3.0f}, {0}};

/* ----------------------------------------------------------------------------------------------------------- layers */

/* Keeps those attention layers of LFM2 that are among the order's layers. If there are none, the last layer becomes an
 * attention layer. */
static bool keep_attention(const fr_synth_order *order, json_t *config) {
    json_t *numbers = json_object_get(config, "full_attn_idxs");
    for (size_t i = json_array_size(numbers); i-- > 0;)
        if ((size_t)json_integer_value(json_array_get(numbers, i)) >= order->layers) json_array_remove(numbers, i);
    return json_array_size(numbers) || json_array_append_new(numbers, json_integer((json_int_t)order->layers - 1)) == 0;
}

/* Gives attention to every fourth layer and to the last one, as published models with Kimi Delta Attention do. */
static bool set_kinds(const fr_synth_order *order, json_t *config) {
    json_t *kinds = json_array();
    for (size_t i = 0; i < order->layers; i++) {
        bool full = (i + 1) % 4 == 0 || i + 1 == order->layers;
        json_array_append_new(kinds, json_string(full ? "full_attention" : "linear_attention"));
    }
    return json_array_size(kinds) == order->layers && json_object_set_new(config, "layer_types", kinds) == 0;
}

/* Makes Nemotron-H's pattern, which has one letter for each layer, for the number of layers in the order. If the order
 * has more layers than the published model, the letters are repeated. */
static bool cut_letters(const fr_synth_order *order, json_t *config) {
    static const char key[] = "hybrid_override_pattern";
    const char *letters = json_string_value(json_object_get(config, key));
    char all[FR_LAYERS_MAX + 1] = "";
    for (size_t i = 0; i < order->layers && i < FR_LAYERS_MAX; i++) all[i] = letters[i % strlen(letters)];
    return json_object_set_new(config, key, json_string(all)) == 0;
}

/* --------------------------------------------------------------------------------------------------------- families */

const fr_synth_family fr_synth_bailing_hybrid = {&fr_family_bailing_hybrid, &fr_synth_qwen_tokenizer, .means = bounded,
                                                 .mtp_layers = 1, .complete = set_kinds},
                      fr_synth_kimi_linear = {&fr_family_kimi_linear, &deepseek_tokenizer, .means = states,
                                              .complete = set_kinds};

const fr_synth_family fr_synth_bailing_moe = {&fr_family_bailing_moe, &fr_synth_qwen_tokenizer, .means = small_biases},
                      fr_synth_deepseek_v2 = {&fr_family_deepseek_v2, .tokenizer = &deepseek_tokenizer},
                      fr_synth_ernie45_moe = {&fr_family_ernie45_moe, &ernie_tokenizer, .means = small_biases},
                      fr_synth_granite_moe = {&fr_family_granite_moe, .tokenizer = &fr_synth_qwen_tokenizer},
                      fr_synth_hunyuan_moe = {&fr_family_hunyuan_moe, .tokenizer = &fr_synth_qwen_tokenizer},
                      fr_synth_kimi = {&fr_family_deepseek, &deepseek_tokenizer, .means = small_biases},
                      fr_synth_minimax_m2 = {&fr_family_minimax_m2, &fr_synth_qwen_tokenizer, .means = small_biases},
                      fr_synth_mixtral = {&fr_family_mixtral, .tokenizer = &pieces_tokenizer},
                      fr_synth_nemotron_h = {&fr_family_nemotron_h, &fr_synth_qwen_tokenizer, .means = states,
                                             .complete = cut_letters},
                      fr_synth_olmoe = {&fr_family_olmoe, .tokenizer = &fr_synth_qwen_tokenizer},
                      fr_synth_qwen2_moe = {&fr_family_qwen2_moe, &fr_synth_qwen_tokenizer, .means = biases},
                      fr_synth_qwen3_next = {&fr_family_qwen3_next, &fr_synth_qwen_tokenizer, .means = states,
                                             .mtp_layers = 1},
                      fr_synth_sarvam_moe = {&fr_family_sarvam_moe, &gemma3_tokenizer, .means = small_biases};

const fr_synth_family fr_synth_granite = {&fr_family_granite, .tokenizer = &fr_synth_qwen_tokenizer},
                      fr_synth_hunyuan = {&fr_family_hunyuan, .tokenizer = &fr_synth_qwen_tokenizer},
                      fr_synth_mistral = {&fr_family_mistral, .tokenizer = &pieces_tokenizer},
                      fr_synth_mistral3 = {&fr_family_mistral3, .tokenizer = &fr_synth_qwen_tokenizer},
                      fr_synth_phi3 = {&fr_family_phi3, .tokenizer = &fr_synth_qwen_tokenizer},
                      fr_synth_qwen3 = {&fr_family_qwen3, .tokenizer = &fr_synth_qwen_tokenizer},
                      fr_synth_seed_oss = {&fr_family_seed_oss, &fr_synth_qwen_tokenizer, .means = biases},
                      fr_synth_smollm3 = {&fr_family_smollm3, .tokenizer = &fr_synth_llama_tokenizer};

const fr_synth_family fr_synth_cohere2 = {&fr_family_cohere2, .tokenizer = &cohere_tokenizer},
                      fr_synth_ernie45 = {&fr_family_ernie45, .tokenizer = &ernie_tokenizer},
                      fr_synth_exaone4 = {&fr_family_exaone4, .tokenizer = &exaone_tokenizer},
                      fr_synth_glm4 = {&fr_family_glm4, .tokenizer = &glm_tokenizer},
                      fr_synth_lfm2 = {&fr_family_lfm2, .tokenizer = &lfm2_tokenizer, .complete = keep_attention},
                      fr_synth_olmo2 = {&fr_family_olmo2, .tokenizer = &fr_synth_qwen_tokenizer},
                      fr_synth_olmo3 = {&fr_family_olmo3, .tokenizer = &fr_synth_qwen_tokenizer},
                      fr_synth_stablelm = {&fr_family_stablelm, .tokenizer = &fr_synth_qwen_tokenizer, .means = biases};

const fr_synth_family fr_synth_deepseek = {&fr_family_deepseek, &deepseek_tokenizer, .means = small_biases,
                                           .mtp_layers = 1},
                      fr_synth_gemma2 = {&fr_family_gemma2, .tokenizer = &gemma3_tokenizer},
                      fr_synth_gemma3 = {&fr_family_gemma3, .tokenizer = &gemma3_tokenizer},
                      fr_synth_glm = {&fr_family_glm, &glm_tokenizer, .mtp_layers = 1},
                      fr_synth_glm4_moe = {&fr_family_glm4_moe, &glm_tokenizer, .means = small_biases, .mtp_layers = 1},
                      fr_synth_glm_flash = {&fr_family_glm_flash, &glm_tokenizer, .means = small_biases,
                                            .mtp_layers = 1},
                      fr_synth_gpt_oss = {&fr_family_gpt_oss, &gpt_oss_tokenizer, .means = biases},
                      fr_synth_llama = {&fr_family_llama, .tokenizer = &fr_synth_llama_tokenizer},
                      fr_synth_qwen2 = {&fr_family_qwen2, &fr_synth_qwen_tokenizer, .means = biases},
                      fr_synth_qwen3_moe = {&fr_family_qwen3_moe, .tokenizer = &fr_synth_qwen_tokenizer},
                      fr_synth_qwen35 = {&fr_family_qwen35, &qwen35_tokenizer, .means = states, .mtp_layers = 1},
                      fr_synth_qwen35_moe = {&fr_family_qwen35_moe, &qwen35_tokenizer, .means = states,
                                             .mtp_layers = 1};
