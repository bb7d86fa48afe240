/* DeepSeek-V3 and GLM-4.7-Flash with their MTP layers, of random weights: see synth.h.
 *
 * Sizes: the published config.json of deepseek-ai/DeepSeek-V3 and zai-org/GLM-4.7-Flash. The MTP layers have copies of
 * the model's table and head, which files need not have and these haven't. */
#include "base/sizes.h"
#include "src/convert/synth.h"
#include "src/families/deepseek.h"

static const fr_rope_spec v3_rope = {.kind = FR_ROPE_YARN,
                                     .dims = 64,
                                     .theta = 10000.0,
                                     .partial = 1.0,
                                     .factor = 40.0,
                                     .beta_fast = 32.0,
                                     .beta_slow = 1.0,
                                     .original_context = 4096.0,
                                     .attention_factor = 1.0f,
                                     .mscale_all_dim = 1.0};
static const fr_rope_spec flash_rope = {
    .kind = FR_ROPE_DEFAULT, .dims = 64, .theta = 1e6, .partial = 1.0, .factor = 1.0};

typedef struct sizes {
    const fr_deepseek_config *published;
    const fr_rope_spec *rope;
} sizes;

static const sizes v3 = {&fr_deepseek_v3, &v3_rope}, flash = {&fr_glm_flash, &flash_rope};

static const char *const has[] = {"output.weight", "attn_q_b.weight", "attn_k_b.weight", FR_SYNTH_MTP_NORM, NULL};

static const fr_synth_shape deepseek_shapes[] = {{"deepseek-v3", "deepseek2", 61, 129280, 1, &v3, has}, {0}};
static const fr_synth_shape flash_shapes[] = {{"glm-4.7-flash", "deepseek2", 47, 154880, 1, &flash, has}, {0}};

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

/* One layer at least has a mixture. */
static fr_status make_spec(const fr_synth_order *order, fr_trunk_spec *spec) {
    const sizes *s = order->shape->sizes;
    fr_deepseek_config c = *s->published;
    c.uniform.layers = order->layers;
    c.uniform.vocab = order->vocab;
    c.uniform.context_limit = FR_SYNTH_CONTEXT;
    c.uniform.rope = *s->rope;
    c.mixture.shared *= c.mixture.experts.width;
    c.mixture.leading_dense = fr_smaller(c.mixture.leading_dense, order->layers - 1);
    return fr_deepseek_spec(&c, spec);
}

/* What corrects a choice is smaller than scores. */
static const fr_synth_mean means[] = {{".bias", 0.01F}, {0}};

const fr_synth_family fr_synth_deepseek = {.shapes = deepseek_shapes,
                                           .family = &fr_family_deepseek,
                                           .tokenizer = &deepseek_tokenizer,
                                           .means = means,
                                           .mtp_layers = 1,
                                           .make_spec = make_spec};

const fr_synth_family fr_synth_glm_flash = {.shapes = flash_shapes,
                                            .family = &fr_family_glm_flash,
                                            .tokenizer = &fr_synth_glm_tokenizer,
                                            .means = means,
                                            .mtp_layers = 1,
                                            .make_spec = make_spec};
