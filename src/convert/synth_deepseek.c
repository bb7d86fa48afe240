/* DeepSeek-V3 and GLM-4.7-Flash with their MTP layers, of random weights: see synth.h.
 *
 * Sizes: the published config.json of deepseek-ai/DeepSeek-V3 and zai-org/GLM-4.7-Flash. The MTP layers have copies of
 * the model's table and head, which files need not have and these haven't. */
#include "src/convert/synth.h"

static const char *const has[] = {"output.weight", "attn_q_b.weight", "attn_k_b.weight", FR_SYNTH_MTP_NORM, NULL};

static const fr_synth_shape deepseek_shapes[] = {
    {"deepseek-v3", "deepseek2", 61, 129280, 1,
     "{\"first_k_dense_replace\": 3, \"rope_theta\": 10000, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 40, "
     "\"beta_fast\": 32, \"beta_slow\": 1, \"mscale\": 1.0, \"mscale_all_dim\": 1.0, "
     "\"original_max_position_embeddings\": 4096}}", has},
    {0},
};
static const fr_synth_shape flash_shapes[] = {
    {"glm-4.7-flash", "deepseek2", 47, 154880, 1, "{\"first_k_dense_replace\": 1, \"rope_theta\": 1000000}", has},
    {0},
};

/* <|begin_of_sentence|> and so on, with bars of full width and lower blocks. */
static const fr_synth_tokenizer deepseek_tokenizer = {
    .model = "gpt2",
    .pre = "deepseek-v3",
    .special = {"<\xef\xbd\x9c" "begin\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
                "<\xef\xbd\x9c" "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
                "<\xef\xbd\x9c\xe2\x96\x81pad\xe2\x96\x81\xef\xbd\x9c>", "<\xef\xbd\x9cUser\xef\xbd\x9c>"},
    .byte_level = true,
    .end = 1,
    .turn_end = 1,
};

/* What corrects a choice is smaller than scores. */
static const fr_synth_mean means[] = {{".bias", 0.01F}, {0}};

const fr_synth_family fr_synth_deepseek = {.shapes = deepseek_shapes,
                                           .family = &fr_family_deepseek,
                                           .tokenizer = &deepseek_tokenizer,
                                           .means = means,
                                           .mtp_layers = 1};

const fr_synth_family fr_synth_glm_flash = {.shapes = flash_shapes,
                                            .family = &fr_family_glm_flash,
                                            .tokenizer = &fr_synth_glm_tokenizer,
                                            .means = means,
                                            .mtp_layers = 1};
