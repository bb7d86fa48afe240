/* Prints the logits that llama.cpp computes for given ids, for logits.py. build.sh links this program with llama.cpp's
 * library.
 *
 *   usage: peer-logits MODEL f32|f16 ID,ID,...
 *
 * In: a GGUF file, the type of cached keys and values, ids of the file's vocabulary. Out: on standard output the logits
 * of every id, float32 [ids, vocab]. All ids are run in one batch, by one thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama.h"

#define IDS_MAX 4096

static void silence(enum ggml_log_level level, const char *text, void *context) {
    (void)level, (void)text, (void)context;
}

static int32_t read_ids(const char *text, llama_token *ids) {
    int32_t count = 0;
    char *end = NULL;
    for (const char *at = text; count < IDS_MAX; at = end + 1) {
        ids[count++] = (llama_token)strtol(at, &end, 10);
        if (end == at || *end != ',') break;
    }
    return end && *end == '\0' ? count : 0;
}

static struct llama_context *open_context(struct llama_model *model, enum ggml_type kv, uint32_t count) {
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = params.n_batch = params.n_ubatch = count < 64 ? 64 : count;
    params.n_threads = params.n_threads_batch = 1;
    params.type_k = params.type_v = kv;
    /* llama.cpp's flash attention rounds float32 keys and values to float16. */
    if (kv == GGML_TYPE_F32) params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    return llama_init_from_model(model, params);
}

static int write_logits(struct llama_model *model, struct llama_context *context, const llama_token *ids,
                        int32_t count) {
    size_t vocab = (size_t)llama_vocab_n_tokens(llama_model_get_vocab(model));
    struct llama_batch batch = llama_batch_init(count, 0, 1);
    batch.n_tokens = count;
    for (int32_t i = 0; i < count; i++) {
        batch.token[i] = ids[i];
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }
    int failed = llama_decode(context, batch);
    for (int32_t i = 0; i < count && !failed; i++)
        failed = fwrite(llama_get_logits_ith(context, i), sizeof(float), vocab, stdout) != vocab;
    llama_batch_free(batch);
    return failed;
}

int main(int argc, char **argv) {
    llama_token ids[IDS_MAX];
    int32_t count = argc == 4 ? read_ids(argv[3], ids) : 0;
    if (!count) {
        fprintf(stderr, "usage: peer-logits MODEL f32|f16 ID,ID,... > LOGITS\n");
        return 2;
    }
    llama_log_set(silence, NULL);
    llama_backend_init();
    struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
    enum ggml_type kv = strcmp(argv[2], "f32") == 0 ? GGML_TYPE_F32 : GGML_TYPE_F16;
    struct llama_context *context = model ? open_context(model, kv, (uint32_t)count) : NULL;
    int failed = context ? write_logits(model, context, ids, count) : 1;
    if (failed) fprintf(stderr, "peer-logits: %s: llama.cpp can't run it\n", argv[1]);
    if (context) llama_free(context);
    if (model) llama_model_free(model);
    llama_backend_free();
    return failed != 0;
}
