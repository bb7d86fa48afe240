/* Opening a Gemma 4 assistant and checking that it fits its target: see assistant_gemma4.h. */
#include "src/assistant_gemma4.h"

#include <stdlib.h>
#include <string.h>

#include "formats/error.h"

static const char *const kind_names[FR_LAYER_KINDS] = {"sliding", "full"};

/* Every layer reads the target's last owning layer of its kind; its heads must fit that cache. */
static fr_status borrow_kv(fr_gemma4 *net, const fr_model *target, const char *path) {
    const fr_gemma4 *source = target->net;
    for (size_t i = 0; i < net->config.layers; i++) {
        const fr_gemma4_layer_config *layer = &net->config.layer[i];
        size_t kv = source->kv_last[layer->kind];
        if (kv == SIZE_MAX)
            return fr_fail(FR_INPUT, "%s: layer %zu reads %s-attention KV, of which the target has none", path, i,
                           kind_names[layer->kind]);
        const fr_kv_shape *shape = &target->kv_shapes[kv];
        if (shape->head_dim != layer->head_dim)
            return fr_fail(FR_INPUT, "%s: layer %zu has head_dim %zu, the target's %s-attention KV has %zu", path, i,
                           layer->head_dim, kind_names[layer->kind], shape->head_dim);
        if (net->config.heads % shape->heads)
            return fr_fail(FR_INPUT, "%s: %zu attention heads are no multiple of the target's %zu %s KV heads", path,
                           net->config.heads, shape->heads, kind_names[layer->kind]);
        net->layers[i].kv = kv;
    }
    return FR_OK;
}

/* An ordering that is no permutation is another file's meaning (a token-to-cluster map, say): never misread it. */
static fr_status check_ordering(const fr_assistant *a, size_t vocab, const char *path) {
    uint8_t *seen = calloc(vocab, 1);
    if (!seen) return fr_fail_memory("token ordering", vocab);
    fr_status status = FR_OK;
    for (size_t i = 0; i < vocab && status == FR_OK; i++) {
        if (seen[a->ordering[i]]++)
            status =
                fr_fail(FR_INPUT, "%s: tensor masked_embedding.token_ordering is no permutation: id %d stands twice",
                        path, a->ordering[i]);
    }
    free(seen);
    return status;
}

static fr_status open_centroids(fr_assistant *a, const json_t *config, fr_weights *weights) {
    const char *path = weights->files->path;
    size_t vocab = a->net.config.vocab;
    bool ordered;
    int64_t clusters, top;
    FR_TRY(fr_json_bool(config, "use_ordered_embeddings", false, "config.json", &ordered));
    if (!ordered) return FR_OK;
    FR_TRY(fr_json_int(config, "num_centroids", 1, (int64_t)vocab, 2048, "config.json", &clusters));
    FR_TRY(fr_json_int(config, "centroid_intermediate_top_k", 1, clusters, 32, "config.json", &top));
    if (vocab % (size_t)clusters)
        return fr_fail(FR_INPUT, "%s: vocab_size %zu is no multiple of num_centroids %lld", path, vocab,
                       (long long)clusters);
    a->clusters = (size_t)clusters;
    a->cluster_size = vocab / a->clusters;
    a->top = (size_t)top;
    FR_TRY(fr_bind_matrix(weights, "", "masked_embedding.centroids.weight", a->clusters, a->net.config.hidden,
                          FR_STREAMED, &a->centroids));
    FR_TRY(fr_bind_indices(weights, "", "masked_embedding.token_ordering", vocab, (int64_t)vocab, &a->ordering));
    return check_ordering(a, vocab, path);
}

static fr_status open_all(fr_assistant *a, const fr_model *target, const fr_checkpoint *files, fr_weights *weights) {
    int64_t backbone;
    json_t *text;
    fr_gemma4_config config;
    FR_TRY(fr_json_int(files->config, "backbone_hidden_size", 1, 1 << 17, 1536, "config.json", &backbone));
    if (target && (size_t)backbone != target->hidden)
        return fr_fail(FR_INPUT,
                       "%s: backbone_hidden_size is %lld, the target's hidden_size %zu: it drafts for another model",
                       files->path, (long long)backbone, target->hidden);
    FR_TRY(fr_json_object(files->config, "text_config", "config.json", &text));
    if (!text) return fr_fail(FR_INPUT, "%s/config.json: text_config is missing", files->path);
    FR_TRY(fr_gemma4_config_read(&config, text, true, "config.json"));
    size_t vocab = config.vocab, hidden = config.hidden;
    bool other_vocab = target && vocab != target->vocab;
    if (config.ple || config.experts || other_vocab) {
        fr_gemma4_config_free(&config);
        if (other_vocab)
            return fr_fail(FR_INPUT, "%s: its vocabulary has %zu ids, the target's %zu: it drafts for another model",
                           files->path, vocab, target->vocab);
        return fr_fail(FR_INPUT, "%s/config.json: an assistant has no per-layer embeddings and no experts",
                       files->path);
    }
    FR_TRY(fr_gemma4_open(&a->net, &config, weights, "model."));
    if (target) FR_TRY(borrow_kv(&a->net, target, files->path));
    FR_TRY(fr_bind_matrix(weights, "", "pre_projection.weight", hidden, 2 * (size_t)backbone, FR_STREAMED, &a->pre));
    FR_TRY(fr_bind_matrix(weights, "", "post_projection.weight", (size_t)backbone, hidden, FR_STREAMED, &a->post));
    return open_centroids(a, files->config, weights);
}

fr_status fr_assistant_open(fr_assistant *assistant, const fr_model *target, const fr_checkpoint *files,
                            fr_weights *weights) {
    *assistant = (fr_assistant){0};
    if (target && target->family != &fr_family_gemma4)
        return fr_fail(FR_INPUT, "%s: a Gemma 4 assistant needs a Gemma 4 target", files->path);
    return open_all(assistant, target, files, weights);
}

void fr_assistant_close(fr_assistant *assistant) {
    fr_gemma4_close(&assistant->net);
}
