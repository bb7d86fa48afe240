/* Opens a Gemma 4 assistant and checks that it fits its target: see assistant_gemma4.h. */
#include "src/engine/draft/assistant_gemma4.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/tokenizer_gguf.h"
#include "src/engine/families/architecture.h"
#include "src/engine/families/config.h"
#include "src/engine/families/families.h"
#include "src/language/tokenizer/tokenizer.h"

/* Lets every layer of the assistant read keys and values from the target's cache. A layer reads those of the last
 * target layer that has the same kind (sliding or full) and writes keys and values. The heads of both layers must fit
 * each other. */
static fr_status borrow_kv(fr_trunk *trunk, const fr_model *target, const char *path) {
    for (size_t i = 0; i < trunk->spec.layers; i++) {
        fr_attention_spec *a = &trunk->spec.layer[i].attention;
        const char *kind = a->window ? "sliding" : "full";
        size_t kv = target->trunk.kv_count;
        while (kv > 0 && (target->trunk.kv_shapes[kv - 1].window > 0) != (a->window > 0)) kv--;
        if (kv == 0)
            return fr_fail(FR_INPUT, "%s: layer %zu reads %s-attention KV, of which the target has none", path, i,
                           kind);
        const fr_kv_shape *shape = &target->trunk.kv_shapes[--kv];
        if (shape->head_dim != a->head_dim)
            return fr_fail(FR_INPUT, "%s: layer %zu has head_dim %zu, the target's %s-attention KV has %zu", path, i,
                           a->head_dim, kind, shape->head_dim);
        if (a->heads % shape->heads)
            return fr_fail(FR_INPUT, "%s: %zu attention heads are no multiple of the target's %zu %s KV heads", path,
                           a->heads, shape->heads, kind);
        a->kv_heads = shape->heads;
        a->kv = kv;
    }
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------- names of tensors */

#define SPELLINGS 4

/* The names of a tensor: the published name, and the names in GGUF files of llama.cpp, AtomicChat and ik_llama.cpp. */
typedef struct names {
    const char *published, *gguf[SPELLINGS];
} names;

static const names pre_projection = {
    "pre_projection.weight", {"nextn.pre_projection.weight", "mtp.pre_projection.weight", "mtp_pre_proj.weight"}};
static const names post_projection = {
    "post_projection.weight", {"nextn.post_projection.weight", "mtp.post_projection.weight", "mtp_post_proj.weight"}};
static const names centroids = {"masked_embedding.centroids.weight",
                                {"masked_embd_centroids.weight", "mtp.centroids.weight", "mtp_centroids.weight"}};
static const names ordering = {"masked_embedding.token_ordering",
                               {"masked_embd_ordering", "mtp.token_ordering.weight", "mtp_token_ordering.weight"}};

/* Gives the name by which the file stores a tensor. If the file has none of the tensor's names, gives the first of
 * them. */
static const char *spelled(const fr_weights *weights, const names *tensor) {
    if (!weights->files->gguf) return tensor->published;
    for (size_t i = 0; i < SPELLINGS && tensor->gguf[i]; i++)
        if (fr_weights_has(weights, "", tensor->gguf[i])) return tensor->gguf[i];
    return tensor->gguf[0];
}

/* Reads the width of the target's hidden rows. Also gives the key of the metadata that holds this width. */
static fr_status read_backbone(const fr_checkpoint *files, const char **key, int64_t *backbone) {
    static const char *const keys[] = {".embedding_length_out", ".n_embd_backbone", ".backbone_embedding_length"};
    *key = "backbone_hidden_size";
    int64_t fallback = fr_is_gemma4_unified(files) ? 3840 : 1536;
    if (!files->gguf) return fr_json_int(files->config, *key, 1, 1 << 17, fallback, "config.json", backbone);
    size_t i = 0;
    while (i < 2 && !fr_gguf_find(files->gguf, keys[i])) i++;
    *key = keys[fr_gguf_find(files->gguf, keys[i]) ? i : 0];
    return fr_gguf_int(files->gguf, *key, 1, 1 << 17, FR_GGUF_REQUIRED, backbone);
}

/* ---------------------------------------------------------------------------------------------------- centroid head */

/* Reads whether the head has centroids, which are means of clusters of ids. If it has, also reads the number of
 * clusters, and how many clusters a step scores. */
static fr_status read_head(fr_weights *weights, int64_t vocab, bool *ordered, int64_t *clusters, int64_t *top) {
    const fr_checkpoint *files = weights->files;
    if (!files->gguf) {
        FR_TRY(fr_json_bool(files->config, "use_ordered_embeddings", false, "config.json", ordered));
        FR_TRY(fr_json_int(files->config, "num_centroids", 1, *ordered ? vocab : INT64_MAX, 2048, "config.json",
                           clusters));
        return fr_json_int(files->config, "centroid_intermediate_top_k", 1, *ordered ? *clusters : INT64_MAX, 32,
                           "config.json", top);
    }
    const fr_tensor *table = fr_tensors_find(&files->tensors, spelled(weights, &centroids));
    FR_TRY(fr_gguf_bool(files->gguf, ".use_ordered_embeddings", true, ordered));
    if (*ordered && !table)
        fr_notes_add(
            &weights->notes,
            "%s has no centroid tensors (llama.cpp's converter drops them): each draft scores all %lld ids; `forerun "
            "quantize` from the published folder keeps them",
            files->path, (long long)vocab);
    *ordered = *ordered && table;
    *clusters = table && table->dims == 2 && table->shape[0] <= (uint64_t)vocab ? (int64_t)table->shape[0] : 0;
    if (!*ordered) return FR_OK;
    if (*clusters == 0) return fr_fail(FR_INPUT, "%s: tensor %s is no table of centroids", files->path, table->name);
    return fr_gguf_int(files->gguf, ".centroid_top_k", 1, *clusters, *clusters < 32 ? *clusters : 32, top);
}

static bool is_permutation(const int32_t *values, size_t n, uint8_t *seen) {
    for (size_t i = 0; i < n; i++)
        if (seen[values[i]]++) return false;
    return true;
}

/* Lists the ids of each cluster in ascending order. cluster_of: the cluster of each id. Returns false if clusters have
 * different sizes. */
static bool invert(const fr_assistant *a, const int32_t *cluster_of, size_t vocab, size_t *next, int32_t *ids) {
    for (size_t c = 0; c < a->clusters; c++) next[c] = c * a->cluster_size;
    for (size_t id = 0; id < vocab; id++) {
        size_t c = (size_t)cluster_of[id];
        if (c >= a->clusters || next[c] == (c + 1) * a->cluster_size) return false;
        ids[next[c]++] = (int32_t)id;
    }
    return true;
}

/* Reads the order in which the head stores the ids, which must be a permutation of all ids. ik_llama.cpp stores the
 * cluster of each id under the same name; such a tensor is accepted as well. Anything else is refused. */
static fr_status read_ordering(fr_assistant *a, size_t vocab, fr_weights *weights) {
    const char *name = spelled(weights, &ordering), *path = weights->files->path;
    const int32_t *values;
    FR_TRY(fr_bind_indices(weights, "", name, vocab, (int64_t)vocab, &values));
    uint8_t *seen = calloc(vocab, 1);
    size_t *next = calloc(a->clusters, sizeof *next);
    a->inverted = calloc(vocab, sizeof *a->inverted);
    fr_status status = FR_OK;
    if (!seen || !next || !a->inverted)
        status = fr_fail_memory("token ordering", vocab * sizeof *a->inverted);
    else if (is_permutation(values, vocab, seen))
        a->ordering = values;
    else if (weights->files->gguf && invert(a, values, vocab, next, a->inverted))
        a->ordering = a->inverted;
    else
        status = fr_fail(FR_INPUT, "%s: tensor %s is no permutation of the %zu ids%s", path, name, vocab,
                         weights->files->gguf ? ", and no map of them to their centroids" : "");
    if (a->ordering == a->inverted && a->ordering)
        fr_notes_add(&weights->notes, "%s: tensor %s is ik_llama.cpp's map of ids to centroids: inverted", path, name);
    free(seen);
    free(next);
    return status;
}

/* Opens the centroids, and the list that orders the ids by clusters. A packed head has its rows in the order of this
 * list. */
static fr_status open_centroids(fr_assistant *a, const fr_trunk_spec *spec, fr_weights *weights) {
    bool ordered;
    int64_t clusters, top;
    FR_TRY(read_head(weights, (int64_t)spec->vocab, &ordered, &clusters, &top));
    if (!ordered) return FR_OK;
    if (spec->vocab % (size_t)clusters)
        return fr_fail(FR_INPUT, "%s: a vocabulary of %zu ids is no multiple of %lld centroids", weights->files->path,
                       spec->vocab, (long long)clusters);
    a->clusters = (size_t)clusters;
    a->cluster_size = spec->vocab / a->clusters;
    a->top = (size_t)top;
    FR_TRY(fr_bind_matrix(weights, "", spelled(weights, &centroids), a->clusters, spec->hidden, FR_STREAMED,
                          &a->centroids));
    FR_TRY(read_ordering(a, spec->vocab, weights));
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

/* Checks that drafter and target have vocabularies of the same size. If a GGUF drafter says which ids are its special
 * tokens, checks that the target has the same special tokens. The tokens' texts are not compared, because the drafter's
 * file need not contain them. */
static fr_status check_vocabulary(fr_weights *weights, size_t vocab, const fr_model *target) {
    const fr_checkpoint *files = weights->files;
    if (vocab != target->trunk.spec.vocab)
        return fr_fail(FR_INPUT, "%s: its vocabulary has %zu ids, the target's %zu: it drafts for another model",
                       files->path, vocab, target->trunk.spec.vocab);
    if (!files->gguf) return FR_OK;
    int32_t begin, end;
    FR_TRY(fr_tokenizer_gguf_id(files->gguf, "tokenizer.ggml.bos_token_id", vocab, &weights->notes, &begin));
    FR_TRY(fr_tokenizer_gguf_id(files->gguf, "tokenizer.ggml.eos_token_id", vocab, &weights->notes, &end));
    const char *text = target->tokenizer ? fr_tokenizer_begin(target->tokenizer) : NULL;
    int32_t target_begin = text ? fr_tokenizer_id(target->tokenizer, text) : -1;
    bool other_begin = begin >= 0 && target_begin >= 0 && begin != target_begin;
    bool other_end = end >= 0 && target->eos_count > 0 && !fr_model_is_eos(target, end);
    if (!other_begin && !other_end) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tokenizer.ggml.%s_token_id is %d, not the target's: it drafts for another model",
                   files->path, other_begin ? "bos" : "eos", other_begin ? begin : end);
}

/* Opens the trunk and its head, and checks them against the target. */
static fr_status open_trunk(fr_assistant *a, const fr_model *target, fr_trunk_spec *spec, fr_weights *weights) {
    const char *path = weights->files->path;
    if (target) FR_TRY(check_vocabulary(weights, spec->vocab, target));
    if (spec->ple_width || fr_spec_experts(spec))
        return fr_fail(FR_INPUT, "%s: an assistant has no per-layer embeddings and no experts", path);
    FR_TRY(open_centroids(a, spec, weights));
    FR_TRY(fr_trunk_open(&a->trunk, spec, fr_family_gemma4.names, weights, a->ordering));
    return target ? borrow_kv(&a->trunk, target, path) : FR_OK;
}

/* Reads the spec of the assistant's layers. The caller frees spec->trunk.layer, also after a failure. */
static fr_status read_spec(const fr_checkpoint *files, fr_weights *weights, fr_model_spec *spec) {
    const fr_family *family = fr_is_gemma4_unified(files) ? &fr_family_gemma4_unified : &fr_family_gemma4;
    fr_source source;
    *spec = (fr_model_spec){0};
    FR_TRY(fr_source_of(weights, &source));
    source.drafter = true;
    if (!files->gguf && source.text == source.root)
        return fr_fail(FR_INPUT, "%s: text_config is missing", source.where);
    return fr_family_read(family, &source, spec);
}

static fr_status open_all(fr_assistant *a, const fr_model *target, const fr_checkpoint *files, fr_weights *weights) {
    int64_t backbone;
    const char *key;
    fr_model_spec spec;
    FR_TRY(read_backbone(files, &key, &backbone));
    if (target && (size_t)backbone != target->trunk.spec.hidden)
        return fr_fail(FR_INPUT, "%s: %s%s is %lld, the target's hidden_size %zu: it drafts for another model",
                       files->path, files->gguf ? files->gguf->architecture : "", key, (long long)backbone,
                       target->trunk.spec.hidden);
    fr_status status = read_spec(files, weights, &spec);
    if (status == FR_OK) status = open_trunk(a, target, &spec.trunk, weights);
    free(spec.trunk.layer);
    FR_TRY(status);
    size_t hidden = a->trunk.spec.hidden;
    FR_TRY(fr_bind_matrix(weights, "", spelled(weights, &pre_projection), hidden, 2 * (size_t)backbone, FR_STREAMED,
                          &a->pre));
    FR_TRY(fr_bind_matrix(weights, "", spelled(weights, &post_projection), (size_t)backbone, hidden, FR_STREAMED,
                          &a->post));
    a->trunk.packed = weights->has_packed;
    return fr_tensor_names_check_read(weights, fr_family_gemma4.names, a->trunk.spec.layers, 0);
}

fr_status fr_assistant_open(fr_assistant *assistant, const fr_model *target, const fr_checkpoint *files,
                            fr_weights *weights) {
    *assistant = (fr_assistant){0};
    if (target && strcmp(fr_family_word(target->family), fr_family_gemma4.gguf) != 0)
        return fr_fail(FR_INPUT, "%s: a Gemma 4 assistant needs a Gemma 4 target", files->path);
    fr_status status = open_all(assistant, target, files, weights);
    if (status != FR_INPUT) return status;
    return fr_fail(FR_INPUT, "%s. Take the assistant published for this target; `forerun quantize` makes GGUF of it",
                   fr_last_error());
}

void fr_assistant_close(fr_assistant *assistant) {
    free(assistant->inverted);
    assistant->inverted = NULL;
    fr_trunk_close(&assistant->trunk);
}

/* ---------------------------------------------------------------------------------------------------------- writing */

const char *fr_assistant_gguf(const fr_assistant *assistant) {
    return assistant->clusters ? "gemma4_assistant" : "gemma4-assistant";
}

const char *fr_assistant_name(const fr_assistant *assistant, const char *published) {
    const names *const all[] = {&pre_projection, &post_projection, &centroids, &ordering};
    for (size_t i = 0; i < (assistant->clusters ? 4 : 2); i++)
        if (strcmp(all[i]->published, published) == 0) return all[i]->gguf[assistant->clusters > 0];
    return NULL;
}

/* Writes the keys of an assistant to a GGUF file. If the head has no centroids, the keys are those of llama.cpp, and
 * one of them says that there are no centroids. If the head has centroids, the keys are those of AtomicChat. */
fr_status fr_assistant_put_keys(const fr_assistant *a, const char *where, fr_gguf_writer *writer) {
    const fr_trunk_spec *s = &a->trunk.spec;
    bool k_eq_v = false;
    FR_TRY(fr_family_put(&fr_family_gemma4, s, 0, where, writer));
    if (a->clusters == 0) {
        fr_gguf_put_u32(writer, ".embedding_length_out", (uint32_t)a->post.features);
        fr_gguf_put_u32(writer, ".nextn_predict_layers", (uint32_t)s->layers);
        fr_gguf_put_bool(writer, ".use_ordered_embeddings", false);
        return FR_OK;
    }
    for (size_t i = 0; i < s->layers; i++) k_eq_v |= s->layer[i].attention.k_eq_v;
    fr_gguf_put_u32(writer, ".n_embd_backbone", (uint32_t)a->post.features);
    fr_gguf_put_u32(writer, ".n_centroids", (uint32_t)a->clusters);
    fr_gguf_put_u32(writer, ".centroid_top_k", (uint32_t)a->top);
    fr_gguf_put_bool(writer, ".use_ordered_embeddings", true);
    fr_gguf_put_bool(writer, ".attention.k_eq_v", k_eq_v);
    fr_gguf_put_string(writer, ".requires_target_arch", "gemma4");
    return FR_OK;
}
