/* GLM-OCR's text model with its MTP layer, of random weights: see synth.h.
 *
 * Sizes: the published config.json of zai-org/GLM-OCR. The MTP layer has an embedding and a head of its own, as
 * published. */
#include "src/convert/synth.h"

static const char *const has[] = {"output.weight", "nextn.embed_tokens.weight", "nextn.shared_head_head.weight",
                                  FR_SYNTH_MTP_NORM, NULL};

static const fr_synth_shape shapes[] = {
    {"glm-ocr", "glm4", 16, 59392, 1,
     "{\"hidden_size\": 1536, \"intermediate_size\": 4608, \"head_dim\": 128, "
     "\"rope_scaling\": {\"type\": \"default\", \"mrope_section\": [16, 24, 24]}}", has},
    {0},
};

const fr_synth_tokenizer fr_synth_glm_tokenizer = {
    .model = "gpt2",
    .pre = "glm4",
    .special = {"<|endoftext|>", "<|user|>", "[gMASK]", "<sop>"},
    .byte_level = true,
    .turn_end = 1,
};

const fr_synth_family fr_synth_glm = {.shapes = shapes,
                                      .family = &fr_family_glm,
                                      .tokenizer = &fr_synth_glm_tokenizer,
                                      .mtp_layers = 1};
