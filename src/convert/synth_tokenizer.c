/* Makes vocabularies for files with random weights (synth.h). Their tokens have no meaning, but every byte is a token,
 * so any text can be a prompt. */
#include <stdio.h>
#include <string.h>

#include "src/convert/synth.h"
#include "src/language/tokenizer/byte_level.h"

enum { SPECIALS = 4, FIRST_PLAIN = SPECIALS + 256 };

static void put_token(const fr_synth_tokenizer *t, size_t id, fr_gguf_writer *w) {
    char text[32];
    int length;
    if (id < SPECIALS)
        length = snprintf(text, sizeof text, "%s", t->special[id]);
    else if (id >= FIRST_PLAIN)
        length = snprintf(text, sizeof text, "t%zu", id - FIRST_PLAIN);
    else if (t->byte_level)
        length = (int)fr_byte_level_write((unsigned char)(id - SPECIALS), text);
    else
        length = snprintf(text, sizeof text, "<0x%02X>", (unsigned)(id - SPECIALS));
    fr_gguf_add_text(w, (fr_text){text, (size_t)length});
}

/* Gives llama.cpp's number of a token's kind. */
static uint32_t token_type(const fr_synth_tokenizer *t, size_t id) {
    enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, BYTE = 6 };
    if (id < SPECIALS) return id == t->unknown && !t->byte_level ? UNKNOWN : CONTROL;
    return id < FIRST_PLAIN && !t->byte_level ? BYTE : NORMAL;
}

void fr_synth_put_tokenizer(const fr_synth_family *family, size_t vocab, fr_gguf_writer *w) {
    const fr_synth_tokenizer *t = family->tokenizer;
    fr_gguf_put_string(w, "tokenizer.ggml.model", family->family->tokenizer);
    if (family->family->pre) fr_gguf_put_string(w, "tokenizer.ggml.pre", family->family->pre);
    fr_gguf_put_array(w, "tokenizer.ggml.tokens", FR_GGUF_STRING, vocab);
    for (size_t id = 0; id < vocab; id++) put_token(t, id, w);
    fr_gguf_put_array(w, "tokenizer.ggml.scores", FR_GGUF_F32, vocab);
    for (size_t id = 0; id < vocab; id++) fr_gguf_add_f32(w, -(float)id);
    fr_gguf_put_array(w, "tokenizer.ggml.token_type", FR_GGUF_I32, vocab);
    for (size_t id = 0; id < vocab; id++) fr_gguf_add_u32(w, token_type(t, id));
    fr_gguf_put_array(w, "tokenizer.ggml.merges", FR_GGUF_STRING, 1);
    fr_gguf_add_text(w, (fr_text){"t 1", 3});
    fr_gguf_put_u32(w, "tokenizer.ggml.bos_token_id", t->begin);
    fr_gguf_put_u32(w, "tokenizer.ggml.eos_token_id", t->end);
    if (t->turn_end) fr_gguf_put_u32(w, "tokenizer.ggml.eot_token_id", t->turn_end);
    fr_gguf_put_u32(w, "tokenizer.ggml.unknown_token_id", t->unknown);
    fr_gguf_put_u32(w, "tokenizer.ggml.padding_token_id", t->padding);
    fr_gguf_put_bool(w, "tokenizer.ggml.add_bos_token", t->begins);
    fr_gguf_put_bool(w, "tokenizer.ggml.add_space_prefix", false);
}
