/* GLM-OCR's text model with its MTP layer, of random weights: see synth.h.
 *
 * Sizes: the published config.json of zai-org/GLM-OCR. The MTP layer has an embedding and a head of its own, as
 * published. */
#include "src/convert/synth.h"
#include "src/families/uniform.h"

static const fr_uniform_config ocr = {
    .hidden = 1536,
    .heads = 16,
    .kv_heads = 8,
    .head_dim = 128,
    .ffn = 4608,
    .context_limit = FR_SYNTH_CONTEXT,
    .eps = 1e-5F,
    .rope = {.kind = FR_ROPE_DEFAULT,
             .dims = 128,
             .sections = {16, 24, 24},
             .theta = 10000.0,
             .partial = 1.0,
             .factor = 1.0},
};

static const char *const has[] = {"output.weight", "nextn.embed_tokens.weight", "nextn.shared_head_head.weight",
                                  FR_SYNTH_MTP_NORM, NULL};

static const fr_synth_shape shapes[] = {{"glm-ocr", "glm4", 16, 59392, 1, &ocr, has}, {0}};

const fr_synth_tokenizer fr_synth_glm_tokenizer = {
    .model = "gpt2",
    .pre = "glm4",
    .special = {"<|endoftext|>", "<|user|>", "[gMASK]", "<sop>"},
    .byte_level = true,
    .turn_end = 1,
};

static fr_status make_spec(const fr_synth_order *order, fr_trunk_spec *spec) {
    fr_uniform_config config = *(const fr_uniform_config *)order->shape->sizes;
    config.layers = order->layers;
    config.vocab = order->vocab;
    return fr_uniform_spec(&config, spec);
}

const fr_synth_family fr_synth_glm = {.shapes = shapes,
                                      .family = &fr_family_glm,
                                      .tokenizer = &fr_synth_glm_tokenizer,
                                      .mtp_layers = 1,
                                      .make_spec = make_spec};
